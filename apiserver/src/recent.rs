//! The parsed form of the objects that were written last.
//!
//! A controller writes an object again soon after it was written: its next write then needs no
//! parsing.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::fields::Fields;
use crate::object::Stored;

/// The objects that were written last, oldest first. An entry is found by the stored object itself,
/// so that none is ever out of date.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<VecDeque<(Arc<Stored>, Arc<Fields>)>>);

/// The number of objects that are kept. Each may take some ten times the size of its JSON.
const KEPT: usize = 16;

// === impl Recent ===

impl Recent {
    /// Keeps the parsed form of an object that replaces the one at `replaced`.
    pub(crate) fn keep(&self, replaced: Option<u64>, stored: &Arc<Stored>, fields: Fields) {
        let fields = Arc::new(fields);
        let mut kept = self.0.lock();
        let place = kept.iter().position(|(old, _)| Some(old.revision) == replaced);
        let gone = match place {
            Some(place) => kept.remove(place),
            None if kept.len() == KEPT => kept.pop_front(),
            None => None,
        };
        kept.push_back((Arc::clone(stored), fields));
        drop(kept);
        drop(gone);
    }

    /// Returns the parsed form of an object, with packed owners.
    pub(crate) fn fields(&self, stored: &Arc<Stored>) -> Arc<Fields> {
        let kept = self.0.lock();
        let found = kept.iter().rev().find(|(known, _)| Arc::ptr_eq(known, stored));
        let found = found.map(|(_, fields)| Arc::clone(fields));
        drop(kept);
        found.unwrap_or_else(|| Arc::new(stored.packed_fields()))
    }

    /// Drops the parsed form of an object that was deleted.
    pub(crate) fn forget(&self, deleted: u64) {
        let mut kept = self.0.lock();
        let place = kept.iter().position(|(old, _)| old.revision == deleted);
        let gone = place.and_then(|place| kept.remove(place));
        drop(kept);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::Kind;
    use crate::object::unpack_owners;

    fn kept(object: Value, revision: u64) -> (Arc<Stored>, Option<Fields>) {
        let Value::Object(object) = object else { panic!("an object") };
        let encoded = Kind::custom("example.com", "v1", "Foo", "foos").encode(object);
        (Arc::new(encoded.at(revision)), encoded.into_fields(revision))
    }

    #[test]
    fn kept_form_is_what_parsing_returns() {
        let metadata = json!({"name": "a", "labels": {"x": "\n"}});
        let spec = json!({"n": -1, "list": [{}]});
        let object = json!({"metadata": metadata, "spec": spec, "kind": "Bar", "status": null});
        let (stored, fields) = kept(object, 7);
        assert_eq!(fields.unwrap(), stored.packed_fields());
        let owners = json!([{"manager": "\"é\"", "fieldsV1": {"k:{\"a\":1}": {}}}]);
        let (list, text) = (owners.clone(), json!(owners.to_string()));
        for owners in [list, text] {
            let metadata = json!({"name": "a", "managedFields": owners, "uid": "u"});
            let (stored, fields) = kept(json!({"metadata": metadata, "spec": {}}), 17);
            assert_eq!(fields.unwrap(), stored.packed_fields());
            assert_eq!(stored.at(9).packed_fields()["metadata"]["resourceVersion"], "9");
            let mut unpacked = stored.packed_fields();
            unpack_owners(&mut unpacked);
            assert_eq!(unpacked, stored.fields());
        }
        let (_, fraction) = kept(json!({"metadata": {}, "spec": 0.1}), 7);
        assert_eq!(fraction, None, "it might be read as another number");
        let (_, large) = kept(json!({"metadata": {}, "spec": "x".repeat(20_000)}), 7);
        assert_eq!(large, None);
    }

    #[test]
    fn few_objects_are_kept_each_in_its_last_state() {
        let recent = Recent::default();
        let len = || recent.0.lock().len();
        let mut stored = Vec::new();
        for revision in 1..=40 {
            let (object, fields) = kept(json!({"metadata": {"name": "a"}}), revision);
            recent.keep(None, &object, fields.unwrap());
            stored.push(object);
        }
        assert_eq!(len(), KEPT);
        let (object, fields) = kept(json!({"metadata": {"name": "b"}}), 41);
        recent.keep(Some(40), &object, fields.unwrap());
        assert_eq!(len(), KEPT);
        assert_eq!(recent.fields(&object)["metadata"]["name"], "b");
        assert_eq!(*recent.fields(&stored[0]), stored[0].packed_fields());
        recent.forget(41);
        assert_eq!(len(), KEPT - 1);
    }
}
