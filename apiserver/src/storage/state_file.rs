//! The storage and its state file.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Resource, ResourceId, Storage};
use crate::object::Stored;
use crate::state::{Journal, Kept, Record};

impl Storage {
    /// Sets the revision at which a new store continues an earlier one.
    pub(crate) fn set_revision(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
        let revision = self.revision;
        let names = self.resources.iter().map(|resource| Arc::clone(&resource.name));
        self.resources = names.map(|name| Resource { name, ..Resource::new(revision) }).collect();
        self.empty = Resource::new(revision);
    }

    /// Adds an object that an earlier store had.
    pub(crate) fn load(&mut self, resource: ResourceId, key: &str, object: Arc<Stored>) {
        self.at_mut(resource).objects.insert(Arc::from(key), object);
    }

    /// Sets the name of a resource in the state file.
    pub(crate) fn name_resource(&mut self, resource: ResourceId, name: &str) {
        self.at_mut(resource).name = Arc::from(name);
    }

    /// Takes the objects that the state file has of a resource which was not served so far.
    pub(crate) fn take_unserved(&mut self, resource: &str) -> Option<BTreeMap<String, Kept>> {
        self.journal.as_mut()?.take_unserved(resource)
    }

    /// Records every change from now on.
    pub(crate) fn keep_journal(&mut self, journal: Journal) {
        self.journal = Some(journal);
    }

    /// Returns true if a change could not be recorded.
    pub(crate) fn has_failed(&self) -> bool {
        self.journal.as_ref().is_some_and(Journal::has_failed)
    }

    /// Appends a record, if there is a state file.
    pub(super) fn record<'a>(&'a mut self, record: impl FnOnce(&'a [Resource]) -> Record<'a>) {
        if let Some(journal) = &mut self.journal {
            journal.append(&record(&self.resources));
        }
    }

    /// Replaces a journal that has grown too large.
    pub(super) fn compact_journal(&mut self) {
        if self.journal.as_ref().is_some_and(Journal::is_full) {
            self.write_snapshot();
        }
    }

    /// Replaces the journal by the present objects.
    pub(super) fn write_snapshot(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        let named = self.resources.iter().filter(|resource| !resource.name.is_empty());
        let objects = named.flat_map(|resource| {
            resource.objects.iter().map(|(key, stored)| Record::Put {
                revision: stored.revision,
                resource: &resource.name,
                key,
                object: stored.bytes(),
            })
        });
        journal.compact(self.revision, objects);
    }
}
