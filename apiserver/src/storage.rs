//! Storage: the objects, one revision counter, and the history that watches read. No clock, no
//! lock, no task.
//!
//! Each resource is a persistent map from `namespace/name` to its object. A clone costs nothing, so
//! that a paged list pins the state that it started with, regardless of later writes.

mod backup;
mod compaction;
mod history;
mod lag;
mod state_file;

use std::sync::Arc;

use imbl::OrdMap;
use tokio::time::Instant;

use crate::object::{Encoded, Stored};
use crate::state::{Journal, Record};
use compaction::Compaction;
use history::History;

pub use backup::Backup;
pub use lag::Lag;

pub(crate) use history::Change;

pub(crate) type Objects = OrdMap<Arc<str>, Arc<Stored>>;

/// The index of a resource in storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ResourceId(pub(crate) usize);

/// All objects of a server.
#[derive(Debug)]
pub(crate) struct Storage {
    revision: u64,
    /// Indexed by [`ResourceId`]; it grows with the first write to a new resource.
    resources: Vec<Resource>,
    /// Stands for a resource without writes.
    empty: Resource,
    compaction: Compaction,
    /// Records every change, if the server has a state file.
    journal: Option<Journal>,
}

#[derive(Debug, Default)]
struct Resource {
    objects: Objects,
    history: History,
    /// The states that continue tokens refer to, oldest first.
    pinned: Vec<(u64, Objects)>,
    /// The name in the state file; empty if there is none.
    name: Arc<str>,
}

/// The key of an object, and the precondition of a write to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) key: &'a str,
    /// The revision that must be stored; `None` if no object may be stored.
    pub(crate) expected: Option<u64>,
}

/// The requested state is no longer in the history.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest revision that can still be requested.
    pub(crate) oldest: u64,
}

/// A concurrent write was faster: the caller reads again.
#[derive(Debug)]
pub(crate) struct Stale;

/// The number of paged lists of a resource that can go on at once when the history no longer
/// reaches back to them.
const PINNED: usize = 16;

// === impl Storage ===

impl Storage {
    pub(crate) fn new(resources: usize) -> Self {
        // The real server's first revision is 1, of an empty store.
        let resources = (0..resources).map(|_| Resource::new(1)).collect();
        let (empty, compaction) = (Resource::new(1), Compaction::default());
        Self { revision: 1, resources, empty, compaction, journal: None }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, resource: ResourceId, key: &str) -> Option<&Arc<Stored>> {
        self.at(resource).objects.get(key)
    }

    pub(crate) fn objects(&self, resource: ResourceId) -> &Objects {
        &self.at(resource).objects
    }

    /// Stores an object at a new revision, if the slot is as expected.
    pub(crate) fn put(
        &mut self,
        resource: ResourceId,
        slot: Slot<'_>,
        object: &Encoded,
        now: Instant,
    ) -> Result<Arc<Stored>, Stale> {
        let Slot { key, expected } = slot;
        let id = resource;
        let old = self
            .at(resource)
            .objects
            .get_key_value(key)
            .map(|(key, old)| (Arc::clone(key), Arc::clone(old)));
        if old.as_ref().map(|(_, old)| old.revision) != expected {
            return Err(Stale);
        }
        self.compact_if_due(now);
        self.revision += 1;
        let new = Arc::new(object.at(self.revision));
        let (key, old) = match old {
            Some((key, old)) => (key, Some(old)),
            None => (Arc::from(key), None),
        };
        let resource = self.at_mut(resource);
        resource.objects.insert(Arc::clone(&key), Arc::clone(&new));
        let (change_key, stored) = (Arc::clone(&key), Some(Arc::clone(&new)));
        let change = Change { revision: new.revision, key: change_key, old, new: stored };
        resource.history.push(change, now);
        self.record(|resources| {
            let (revision, resource) = (new.revision, &resources[id.0].name);
            Record::Put { revision, resource, key: &key, object: new.bytes() }
        });
        self.compact_journal();
        Ok(new)
    }

    /// Deletes an object if it is still at `expected`. Watches see its last state, at a new
    /// revision.
    pub(crate) fn delete(
        &mut self,
        resource: ResourceId,
        key: &str,
        expected: u64,
        now: Instant,
    ) -> Result<Arc<Stored>, Stale> {
        let (key, old) = match self.at(resource).objects.get_key_value(key) {
            Some((key, old)) if old.revision == expected => (Arc::clone(key), Arc::clone(old)),
            _ => return Err(Stale),
        };
        self.compact_if_due(now);
        self.revision += 1;
        let revision = self.revision;
        self.record(|resources| {
            let resource = &resources[resource.0].name;
            Record::Delete { revision, resource, key: &key }
        });
        let resource = self.at_mut(resource);
        resource.objects.remove(&key);
        let change = Change { revision, key, old: Some(Arc::clone(&old)), new: None };
        resource.history.push(change, now);
        self.compact_journal();
        Ok(Arc::new(old.at(revision)))
    }

    /// Returns the objects of a resource at exactly `revision`, which must not be in the future.
    pub(crate) fn objects_at(
        &self,
        resource: ResourceId,
        revision: u64,
    ) -> Result<Objects, TooOld> {
        let resource = self.at(resource);
        if let Some((_, objects)) = resource.pinned.iter().find(|(pinned, _)| *pinned == revision) {
            return Ok(objects.clone());
        }
        let oldest = resource.history.list_floor();
        if revision < oldest { Err(TooOld { oldest }) } else { Ok(resource.objects_at(revision)) }
    }

    /// Returns the objects that a watch cache had at `revision`, which must not be in the future.
    /// The compactions by time leave the cache as it is.
    pub(crate) fn cached_objects_at(
        &self,
        resource: ResourceId,
        revision: u64,
    ) -> Result<Objects, TooOld> {
        let resource = self.at(resource);
        let oldest = resource.history.cache_floor();
        if revision < oldest { Err(TooOld { oldest }) } else { Ok(resource.objects_at(revision)) }
    }

    /// Keeps a state for the continue token that refers to it.
    pub(crate) fn pin(&mut self, resource: ResourceId, revision: u64, objects: &Objects) {
        let pinned = &mut self.at_mut(resource).pinned;
        if pinned.iter().any(|(known, _)| *known == revision) {
            return;
        }
        if pinned.len() == PINNED {
            pinned.remove(0);
        }
        pinned.push((revision, objects.clone()));
    }

    /// Checks that a watch can start after `revision`.
    pub(crate) fn check_watchable(
        &self,
        resource: ResourceId,
        revision: u64,
    ) -> Result<(), TooOld> {
        let oldest = self.at(resource).history.watch_floor();
        if revision < oldest { Err(TooOld { oldest }) } else { Ok(()) }
    }

    /// Returns the changes after `revision`, or `None` if the history no longer has all of them.
    pub(crate) fn changes_after(
        &self,
        resource: ResourceId,
        revision: u64,
    ) -> Option<impl DoubleEndedIterator<Item = &Change>> {
        let history = &self.at(resource).history;
        (revision >= history.kept_after()).then(|| history.after(revision))
    }

    /// Returns a snapshot of all objects.
    pub(crate) fn backup(&self) -> Backup {
        let objects = self.resources.iter().map(|resource| resource.objects.clone()).collect();
        Backup { revision: self.revision, objects }
    }

    /// Restores a snapshot, and drops the history since.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        self.revision = backup.revision;
        self.compaction = Compaction::default();
        let names = self.resources.iter().map(|resource| Arc::clone(&resource.name));
        let names: Vec<Arc<str>> = names.collect();
        let restored = |(at, objects): (usize, &Objects)| Resource {
            objects: objects.clone(),
            name: names.get(at).cloned().unwrap_or_default(),
            ..Resource::new(backup.revision)
        };
        self.resources = backup.objects.iter().enumerate().map(restored).collect();
        self.empty = Resource::new(backup.revision);
        self.write_snapshot();
    }

    /// Increases the revision without a write.
    pub(crate) fn skip(&mut self, revisions: u64) {
        if revisions == 0 {
            // Each record of the state file has a revision of its own.
            return;
        }
        self.revision = self.revision.saturating_add(revisions);
        let revision = self.revision;
        self.record(|_| Record::Revision { revision });
    }

    /// Returns the newest revision of a resource that is at least `lag` old.
    pub(crate) fn revision_ago(&self, resource: ResourceId, lag: Lag, now: Instant) -> u64 {
        let history = &self.at(resource).history;
        let revision = match lag {
            Lag::Revisions(revisions) => self.revision.saturating_sub(revisions),
            Lag::Time(time) => match now.checked_sub(time) {
                Some(then) => {
                    history.first_after(then).map_or(self.revision, |change| change.revision - 1)
                }
                // It was before all changes.
                None => 0,
            },
        };
        // A watch cache contains no older changes.
        revision.max(history.watch_floor())
    }

    /// Compacts the store: older states can no longer be listed. Watches read the changes from the
    /// watch cache, which keeps them.
    pub(crate) fn compact(&mut self) {
        for resource in self.resources.iter_mut().chain([&mut self.empty]) {
            resource.history.raise_list_floor(self.revision);
            resource.pinned.clear();
        }
    }

    /// Compacts what is 5 to 10 minutes old.
    pub(crate) fn compact_if_due(&mut self, now: Instant) {
        let Some(oldest) = self.compaction.due(self.revision, now) else { return };
        for resource in self.resources.iter_mut().chain([&mut self.empty]) {
            resource.history.raise_age_floor(oldest);
            resource.pinned.retain(|(revision, _)| *revision >= oldest);
        }
    }

    /// Drops the watch cache: no watch can start at an older revision. Older states can still be
    /// listed from the store.
    pub(crate) fn drop_watch_cache(&mut self) {
        for resource in self.resources.iter_mut().chain([&mut self.empty]) {
            resource.history.raise_watch_floor(self.revision);
        }
    }

    /// Drops the history of a resource, as a new watch cache has none: no older state can be
    /// listed or watched. `reread` returns the object that replaces a stored one.
    pub(crate) fn reopen(
        &mut self,
        resource: ResourceId,
        reread: impl Fn(&Arc<Stored>) -> Arc<Stored>,
    ) {
        let revision = self.revision;
        let resource = self.at_mut(resource);
        let objects = resource.objects.iter();
        let objects = objects.map(|(key, stored)| (Arc::clone(key), reread(stored))).collect();
        let name = Arc::clone(&resource.name);
        *resource = Resource { objects, name, ..Resource::new(revision) };
    }

    fn at(&self, resource: ResourceId) -> &Resource {
        self.resources.get(resource.0).unwrap_or(&self.empty)
    }

    fn at_mut(&mut self, resource: ResourceId) -> &mut Resource {
        let missing = (resource.0 + 1).saturating_sub(self.resources.len());
        self.resources
            .extend(std::iter::repeat_with(|| Resource::new(self.revision)).take(missing));
        &mut self.resources[resource.0]
    }
}

// === impl Resource ===

impl Resource {
    fn new(revision: u64) -> Self {
        Self { history: History::new(revision), ..Self::default() }
    }

    /// Returns the objects at `revision`, back to which the history reaches.
    fn objects_at(&self, revision: u64) -> Objects {
        let mut objects = self.objects.clone();
        for change in self.history.after(revision).rev() {
            match &change.old {
                Some(old) => objects.insert(Arc::clone(&change.key), Arc::clone(old)),
                None => objects.remove(&change.key),
            };
        }
        objects
    }
}

#[cfg(test)]
mod tests;
