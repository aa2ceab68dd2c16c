//! The complete form of an object, and the form in which it is stored.

use serde_json::Value;

use super::Kind;
use crate::fields::Fields;
use crate::types::{normalize_changed, normalize_kind};

impl Kind {
    /// Removes unknown and empty members, and fills in defaults, as the real server's encoder does.
    /// Objects of a definition are completed when they are decoded.
    pub(crate) fn complete(&self, object: &mut Fields) {
        if let Some(known) = self.known_type() {
            normalize_kind(known, object);
        }
        for defaults in self.defaults {
            defaults.apply(object);
        }
        (self.derive)(object);
    }

    /// Completes the new state of an object, of which the stored state, `old`, is complete. Parts
    /// that did not change are left alone.
    pub(crate) fn complete_changed(&self, object: &mut Fields, old: &Fields) {
        let Some(known) = self.known_type().filter(|_| self.definition.is_none()) else {
            return self.complete(object);
        };
        let whole = cfg!(debug_assertions).then(|| {
            let mut whole = object.clone();
            self.complete(&mut whole);
            whole
        });
        let is_kept = |name: &str, value: &Value| !value.is_null() && old.get(name) == Some(value);
        normalize_changed(known, object, old);
        let mut last = ("", false);
        for defaults in self.defaults {
            let first = defaults.under.split('.').next().unwrap_or_default();
            // Those of one member stand together, so that it is compared once.
            if last.0 != first {
                last = (first, object.get(first).is_some_and(|value| is_kept(first, value)));
            }
            if !last.1 {
                defaults.apply(object);
            }
        }
        (self.derive)(object);
        debug_assert!(whole.is_none_or(|whole| whole == *object), "{} was incomplete", self.kind);
    }

    /// Renames members to the names that the storing kind uses.
    pub(crate) fn rename_for_storage(&self, object: &mut Fields) {
        let renames = self.stored_as.map_or(&[][..], |home| home.renames);
        for (here, there) in renames {
            if let Some(value) = object.remove(*here) {
                object.insert((*there).to_owned(), value);
            }
        }
        if let Some(home) = self.stored_as {
            (home.convert)(object);
        }
    }

    /// Renames members back to the names of this kind.
    pub(crate) fn rename_from_storage(&self, object: &mut Fields) {
        let renames = self.stored_as.map_or(&[][..], |home| home.renames);
        for (here, there) in renames {
            if let Some(value) = object.remove(*there) {
                object.insert((*here).to_owned(), value);
            }
        }
        if let Some(home) = self.stored_as {
            (home.convert_back)(object);
        }
        if let Some(known) = self.known_type().filter(|_| self.stored_as.is_some()) {
            normalize_kind(known, object);
        }
    }
}
