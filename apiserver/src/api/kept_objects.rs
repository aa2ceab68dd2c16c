//! The objects that a state file has kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::core::Core;
use crate::kinds::Served;
use crate::object::{Selectable, Stored};
use crate::state::Kept;

/// Loads the objects that the state file has of a kind which was not served so far.
pub(super) fn adopt(core: &Core, served: &Served) {
    load(core, served, core.take_unserved(&served.resource_name()));
}

/// Loads objects of a kind.
pub(super) fn load(core: &Core, served: &Served, objects: BTreeMap<String, Kept>) {
    for (key, Kept { revision, bytes }) in objects {
        // Without the copy, the whole file would stay in memory.
        let bytes = Bytes::copy_from_slice(&bytes);
        let stored = Stored::read(&bytes, revision, |object| {
            // The schema of a definition may have changed since the object was stored.
            Selectable { form: 0, ..served.home.selectable(object) }
        });
        let stored = stored.expect("the checksum is right, so the bytes are those of an object");
        let stored = match &served.home.definition {
            Some(_) => served.relabel(&stored),
            None => stored,
        };
        core.load(served.resource, &key, Arc::new(stored));
    }
}
