//! The owners after a write that takes nothing from other managers: only the entry of its manager
//! changes.
//!
//! Most writes are of this kind: a controller writes the same members of a status again and again,
//! and then only a time changes. The entries of the others stay text, and their sets are not
//! decoded.

use serde_json::{Map, Value};

use super::encoded_set::Expected;
use super::entries::{Entry, join, split};
use super::owners::{MAX_UPDATERS, STRIPPED};
use super::updater::Difference;
use super::writer::FieldWriter;
use super::{ManagedFields, Manager, Operation};
use crate::apply::{Comparison, reconcile};
use crate::field_set::{FieldSet, NO_FIELDS};

/// The fields that a write changes.
struct Changed {
    /// The written fields that have owners.
    owned: FieldSet,
    /// Written fields that the server itself sets, and removed fields: the writer may not own them.
    not_own: FieldSet,
}

// === impl ManagedFields ===

impl ManagedFields {
    /// Returns true if a manager has a second entry in a JSON text that [`to_json`](Self::to_json)
    /// has returned: a write to the scale has added it, and the next write drops it.
    pub fn has_second(text: &str) -> bool {
        split(text).is_some_and(|entries| has_second(&entries))
    }
}

// === impl FieldWriter ===

impl FieldWriter<'_> {
    /// Returns the JSON text of the owners after a write that is not an apply; `None` if there are
    /// none. Most writes take nothing from other managers, whose entries are then not decoded.
    ///
    /// `owners` is what [`ManagedFields::to_json`] has returned; `live` and `new` are as in
    /// [`update`](Self::update), but objects of a built-in type may both have equal owners, in any
    /// form. If one of them does not fit the type, the owners stay.
    pub fn update_json(
        &self,
        owners: &str,
        live: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Option<String> {
        let Ok(compared) = self.compare(live, new) else { return Some(owners.to_owned()) };
        self.renew(owners, compared).or_else(|| {
            let decoded = ManagedFields::from_json(owners);
            if decoded.is_empty() {
                // The object is not tracked; an apply starts it.
                return None;
            }
            match self.update(decoded, live, new) {
                Ok(updated) => updated.to_json(),
                Err(_) => Some(owners.to_owned()),
            }
        })
    }

    /// Returns the encoded owners after a write that is not an apply; `None` unless it is certain
    /// that the other managers lose no field.
    ///
    /// `owners` is what [`ManagedFields::to_json`] has returned.
    pub(super) fn renew(&self, owners: &str, compared: Comparison) -> Option<String> {
        let mut entries = split(owners)?;
        if has_second(&entries) {
            return None;
        }
        let manager = Manager::updater(self.manager, self.api_version, self.subresource);
        let own = entries.iter().position(|entry| entry.is_of(&manager));
        let changed = Changed::of(compared, self.reset);
        let mut others = entries.iter().enumerate().filter(|(at, _)| Some(*at) != own);
        if entries.is_empty() || !others.all(|(_, other)| self.meets(changed.of_other(), other)) {
            return None;
        }
        let set = match own {
            Some(own) if self.meets(changed.of_owner(), &entries[own]) => None,
            _ if changed.owned.is_empty() => return None,
            Some(own) => Some(self.extended(&entries[own], &changed)?),
            None => Some(changed.owned.to_json()),
        };
        let own = own.unwrap_or_else(|| {
            entries.push(Entry::without_fields(&manager));
            entries.len() - 1
        });
        entries[own].encoded = None;
        if let Some(set) = &set {
            entries[own].fields_v1 = set;
        }
        if !changed.owned.is_empty() {
            entries[own].time = self.now;
        }
        let updaters = entries.iter().filter(|entry| entry.is_updater()).count();
        if updaters > MAX_UPDATERS {
            return None;
        }
        entries.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        Some(join(&entries))
    }

    fn meets(&self, expected: Expected<'_>, entry: &Entry<'_, &str>) -> bool {
        // The types of built-in kinds do not change: their sets stay current.
        let of = (!self.schema.is_built_in()).then(|| self.root());
        self.is_readable(entry) && expected.is_met_by(entry.fields_v1, of)
    }

    fn is_readable(&self, entry: &Entry<'_, &str>) -> bool {
        entry.api_version == self.api_version && entry.fields_type == "FieldsV1"
    }

    /// Returns the set of the writer's entry with the fields that it writes.
    fn extended(&self, entry: &Entry<'_, &str>, changed: &Changed) -> Option<String> {
        if !self.is_readable(entry) {
            return None;
        }
        let set: Value = serde_json::from_str(entry.fields_v1).ok()?;
        let set = FieldSet::from_fields_v1(&set).ok()?;
        let mut set = reconcile(self.root(), &set).unwrap_or(set);
        set.subtract(&changed.not_own);
        set.extend(changed.owned.clone());
        Some(set.to_json())
    }
}

// === impl Entry ===

impl<'e> Entry<'e, &'e str> {
    /// Creates an entry without a set and a time.
    fn without_fields(manager: &'e Manager) -> Self {
        Self {
            api_version: &manager.api_version,
            fields_type: "FieldsV1",
            fields_v1: "{}",
            manager: &manager.name,
            operation: manager.operation.as_str(),
            subresource: &manager.subresource,
            time: "",
            encoded: None,
        }
    }
}

impl<F> Entry<'_, F> {
    fn is_of(&self, manager: &Manager) -> bool {
        let Manager { name, operation, api_version, subresource, is_second: _ } = manager;
        self.manager == name
            && self.operation == operation.as_str()
            && self.api_version == api_version
            && self.subresource == subresource
    }

    fn is_same(&self, other: &Self) -> bool {
        let ([operation, _, rest @ ..], [other, _, others @ ..]) =
            (self.sort_key(), other.sort_key());
        operation == other && rest == others
    }

    fn is_updater(&self) -> bool {
        self.operation == Operation::Update.as_str()
    }
}

/// Returns true if a manager has a second entry, from a write to the scale. It has no time.
fn has_second<F>(entries: &[Entry<'_, F>]) -> bool {
    let is_second = |entry: &Entry<'_, F>| {
        entry.time.is_empty() && entries.iter().filter(|other| entry.is_same(other)).count() > 1
    };
    entries.iter().any(is_second)
}

// === impl Changed ===

impl Changed {
    fn of(compared: Comparison, reset: &FieldSet) -> Self {
        let Difference { written: mut owned, removed } = Difference::of(compared, reset);
        let mut not_own = owned.intersection(&STRIPPED);
        not_own.extend(removed);
        owned.subtract(&STRIPPED);
        Self { owned, not_own }
    }

    /// The writer already owns what it writes.
    fn of_owner(&self) -> Expected<'_> {
        Expected { wanted: &self.owned, excluded: [&self.not_own, &NO_FIELDS] }
    }

    /// Another manager owns nothing that is written or removed.
    fn of_other(&self) -> Expected<'_> {
        Expected { wanted: &NO_FIELDS, excluded: [&self.owned, &self.not_own] }
    }
}
