//! The state file of a server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Core;
use crate::object::Stored;
use crate::state::{Journal, Kept};
use crate::storage::ResourceId;

impl Core {
    /// Stops the server: a write may not survive it.
    pub(super) fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.stopped.cancel();
    }

    /// Returns true if a write could not be recorded in the state file.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Sets the revision at which the store continues an earlier one.
    pub(crate) fn set_revision(&self, revision: u64) {
        self.storage.lock().set_revision(revision);
    }

    /// Adds an object that an earlier store had.
    pub(crate) fn load(&self, resource: ResourceId, key: &str, object: Arc<Stored>) {
        self.storage.lock().load(resource, key, object);
    }

    /// Sets the name of a resource in the state file.
    pub(crate) fn name_resource(&self, resource: ResourceId, name: &str) {
        self.storage.lock().name_resource(resource, name);
    }

    /// Takes the objects that the state file has of a resource which was not served so far.
    pub(crate) fn take_unserved(&self, resource: &str) -> BTreeMap<String, Kept> {
        self.storage.lock().take_unserved(resource).unwrap_or_default()
    }

    /// Records every change in a state file from now on.
    pub(crate) fn keep_journal(&self, journal: Journal) {
        self.storage.lock().keep_journal(journal);
        self.has_state.store(true, Ordering::Relaxed);
    }
}
