//! The owners after a write that sets again what its manager owns alone: only a time changes.
//!
//! Most writes are of this kind: a controller writes the same members of a status again and again.
//! Their effect follows from the encoded sets, so that none is decoded.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::writer::{FieldWriter, MAX_UPDATERS, STRIPPED};
use super::{Manager, Operation};
use crate::apply::{Comparison, Duplicates, compare, is_encoded_set_current, validate_object};
use crate::field_set::{FieldSet, encoded_contains, encoded_intersects};

/// The fields that a write changes.
struct Changed {
    written: FieldSet,
    /// Those of the written fields that have owners.
    owned: FieldSet,
    /// Those of the written fields that the server itself sets.
    stripped: FieldSet,
    removed: FieldSet,
}

// === impl FieldWriter ===

impl FieldWriter<'_> {
    /// Returns the encoded owners after a write that is not an apply, if it changes only the
    /// time of its manager's entry. Otherwise, and if that is not certain, returns `None`: then
    /// [`update`](Self::update) decides.
    ///
    /// `owners` is the encoding that [`ManagedFields::encode`](super::ManagedFields::encode) has
    /// returned; `live` and `new` are the object before and after, without `managedFields`.
    pub fn renew(
        &self,
        owners: &Value,
        live: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Option<Value> {
        let entries = owners.as_array()?;
        let manager = Manager::updater(self.manager, self.api_version, self.subresource);
        let own = entries.iter().position(|entry| is_entry_of(&manager, entry))?;
        validate_object(self.root(), new, Duplicates::Allowed).ok()?;
        let compared = compare(self.root(), live, new).ok()?;
        let changed = Changed::of(&compared, self.reset);
        let mut updaters = 0;
        for (at, entry) in entries.iter().enumerate() {
            updaters += usize::from(text(entry, "operation") == Operation::Update.as_str());
            let set = self.encoded_set(entry)?;
            let is_same =
                if at == own { changed.renews_owner(set) } else { changed.spares_other(set) };
            if !is_same || encoded_intersects(set, &changed.removed) {
                return None;
            }
        }
        if updaters > MAX_UPDATERS {
            return None;
        }
        let mut renewed = entries.clone();
        if !changed.owned.is_empty() {
            renewed[own]["time"] = self.now.into();
            renewed.sort_by(order);
        }
        Some(Value::Array(renewed))
    }

    /// Returns the set of an entry, if it is one of the written version and fits the schema.
    fn encoded_set<'e>(&self, entry: &'e Value) -> Option<&'e Value> {
        let is_known = text(entry, "apiVersion") == self.api_version
            && text(entry, "fieldsType") == "FieldsV1";
        let set = entry.get("fieldsV1").filter(|_| is_known)?;
        let is_empty = set.as_object().is_none_or(Map::is_empty);
        (!is_empty && is_encoded_set_current(self.root(), set)).then_some(set)
    }
}

// === impl Changed ===

impl Changed {
    fn of(compared: &Comparison, reset: &FieldSet) -> Self {
        let written = compared.written().recursive_difference(reset);
        Self {
            owned: written.difference(&STRIPPED),
            stripped: written.intersection(&STRIPPED),
            written,
            removed: compared.removed.recursive_difference(reset),
        }
    }

    /// Returns whether the writer, who owns an encoded set, already owns what it writes.
    fn renews_owner(&self, set: &Value) -> bool {
        encoded_contains(set, &self.owned) && !encoded_intersects(set, &self.stripped)
    }

    /// Returns whether another manager, who owns an encoded set, owns nothing that is written.
    fn spares_other(&self, set: &Value) -> bool {
        !encoded_intersects(set, &self.written)
    }
}

fn is_entry_of(manager: &Manager, entry: &Value) -> bool {
    let Manager { name, operation, api_version, subresource } = manager;
    [
        ("manager", name.as_str()),
        ("operation", operation.as_str()),
        ("apiVersion", api_version),
        ("subresource", subresource),
    ]
    .iter()
    .all(|(key, value)| text(entry, key) == *value)
}

/// Sorts encoded entries as [`encode`](super::entries::encode) does.
fn order(a: &Value, b: &Value) -> Ordering {
    sort_key(a).cmp(&sort_key(b))
}

fn sort_key(entry: &Value) -> [&str; 5] {
    ["operation", "time", "manager", "apiVersion", "subresource"].map(|name| text(entry, name))
}

fn text<'e>(entry: &'e Value, name: &str) -> &'e str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}
