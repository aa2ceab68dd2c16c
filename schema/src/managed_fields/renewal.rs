//! The owners after a write that sets again what its manager owns alone: only a time changes.
//!
//! Most writes are of this kind: a controller writes the same members of a status again and again.
//! Their effect follows from the text of the owners, so that no set is decoded.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::encoded_set::Expected;
use super::entries::Entry;
use super::writer::{FieldWriter, MAX_UPDATERS, STRIPPED};
use super::{Manager, Operation};
use crate::apply::Comparison;
use crate::field_set::FieldSet;

/// The fields that a write changes, encoded.
struct Changed {
    /// The written fields that have owners.
    owned: Value,
    /// Written fields that the server itself sets, and removed fields: the writer may not own them.
    not_own: Value,
}

// === impl FieldWriter ===

impl FieldWriter<'_> {
    /// Returns the encoded owners after a write that is not an apply, if it changes only the
    /// time of its manager's entry. Otherwise, and if that is not certain, returns `None`: then
    /// [`update`](Self::update) decides. [`update_json`](Self::update_json) does both.
    ///
    /// `owners` is what [`ManagedFields::to_json`](super::ManagedFields::to_json) has returned;
    /// `live` and `new` are the object before and after, without `managedFields`.
    pub fn renew(
        &self,
        owners: &str,
        live: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Option<String> {
        self.renew_compared(owners, &self.compare(live, new).ok()?)
    }

    pub(super) fn renew_compared(&self, owners: &str, compared: &Comparison) -> Option<String> {
        let mut entries: Vec<Entry<'_, &RawValue>> = serde_json::from_str(owners).ok()?;
        let manager = Manager::updater(self.manager, self.api_version, self.subresource);
        let own = entries.iter().position(|entry| entry.is_of(&manager))?;
        let updaters = entries.iter().filter(|entry| entry.is_updater()).count();
        if updaters > MAX_UPDATERS {
            return None;
        }
        let changed = Changed::of(compared, self.reset);
        let is_renewal = entries.iter().enumerate().all(|(at, entry)| {
            let expected = if at == own { changed.of_owner() } else { changed.of_other() };
            entry.api_version == self.api_version
                && entry.fields_type == "FieldsV1"
                && expected.is_met_by(entry.fields_v1.get(), self.root())
        });
        if !is_renewal {
            return None;
        }
        if !is_empty(&changed.owned) {
            entries[own].time = self.now;
            entries.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        }
        serde_json::to_string(&entries).ok()
    }
}

// === impl Entry ===

impl<F> Entry<'_, F> {
    fn is_of(&self, manager: &Manager) -> bool {
        let Manager { name, operation, api_version, subresource } = manager;
        self.manager == name
            && self.operation == operation.as_str()
            && self.api_version == api_version
            && self.subresource == subresource
    }

    fn is_updater(&self) -> bool {
        self.operation == Operation::Update.as_str()
    }
}

// === impl Changed ===

impl Changed {
    fn of(compared: &Comparison, reset: &FieldSet) -> Self {
        let written = compared.written().recursive_difference(reset);
        let removed = compared.removed.recursive_difference(reset);
        Self {
            owned: written.difference(&STRIPPED).to_fields_v1(),
            not_own: written.intersection(&STRIPPED).union(&removed).to_fields_v1(),
        }
    }

    /// The writer already owns what it writes.
    fn of_owner(&self) -> Expected<'_> {
        Expected { wanted: Some(&self.owned), excluded: [Some(&self.not_own), None] }
    }

    /// Another manager owns nothing that is written or removed.
    fn of_other(&self) -> Expected<'_> {
        Expected { wanted: None, excluded: [Some(&self.owned), Some(&self.not_own)] }
    }
}

/// Returns whether an encoded set has no member.
fn is_empty(set: &Value) -> bool {
    set.as_object().is_none_or(Map::is_empty)
}
