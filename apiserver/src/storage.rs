//! Objects, one revision counter, and the history that watches read: no clock, no lock, no task.
//!
//! Each resource is a persistent map from `namespace/name` to its object. Cloning it is free, so a paged list pins the
//! state it started with, whatever is written meanwhile.

mod history;

use std::sync::Arc;

use imbl::OrdMap;
use tokio::time::Instant;

pub(crate) use history::Change;
use history::History;

use crate::backup::Backup;
use crate::kinds::ResourceId;
use crate::object::{Encoded, Stored};
use crate::view::Lag;

pub(crate) type Objects = OrdMap<Arc<str>, Arc<Stored>>;

/// What a server has stored.
#[derive(Debug)]
pub(crate) struct Storage {
    revision: u64,
    resources: Vec<Resource>,
}

#[derive(Debug, Default)]
struct Resource {
    objects: Objects,
    history: History,
    /// States that continue tokens refer to, oldest first.
    pinned: Vec<(u64, Objects)>,
}

/// Where to put an object, and what must be there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) key: &'a str,
    /// The revision of what is there; none: nothing is.
    pub(crate) expected: Option<u64>,
}

/// The state that was asked for is no longer known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest revision that can still be asked for.
    pub(crate) oldest: u64,
}

/// Somebody else was faster: look again.
#[derive(Debug)]
pub(crate) struct Stale;

/// How many paged lists of a resource can go on at once without help from the history.
const PINNED: usize = 16;

// === impl Storage ===

impl Storage {
    pub(crate) fn new(resources: usize) -> Self {
        // The real server's first revision is 1, of an empty store.
        Self { revision: 1, resources: (0..resources).map(|_| Resource::new(1)).collect() }
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
        object: Encoded,
        now: Instant,
    ) -> Result<Arc<Stored>, Stale> {
        let Slot { key, expected } = slot;
        let old = self
            .at(resource)
            .objects
            .get_key_value(key)
            .map(|(key, old)| (Arc::clone(key), Arc::clone(old)));
        if old.as_ref().map(|(_, old)| old.revision) != expected {
            return Err(Stale);
        }
        self.revision += 1;
        let new = Arc::new(object.at(self.revision));
        let (key, old) = match old {
            Some((key, old)) => (key, Some(old)),
            None => (Arc::from(key), None),
        };
        let resource = &mut self.resources[resource.0];
        resource.objects.insert(Arc::clone(&key), Arc::clone(&new));
        let change = Change { revision: self.revision, key, old, new: Some(Arc::clone(&new)) };
        resource.history.push(change, now);
        Ok(new)
    }

    /// Deletes an object if it is still at `expected`. Watches see `last` (or what was stored), at a new revision.
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
        self.revision += 1;
        let resource = &mut self.resources[resource.0];
        resource.objects.remove(&key);
        let change =
            Change { revision: self.revision, key, old: Some(Arc::clone(&old)), new: None };
        resource.history.push(change, now);
        Ok(Arc::new(old.at(self.revision)))
    }

    /// The state of a resource at exactly `revision`, which must not lie in the future.
    pub(crate) fn objects_at(
        &self,
        resource: ResourceId,
        revision: u64,
    ) -> Result<Objects, TooOld> {
        let resource = self.at(resource);
        if let Some((_, objects)) = resource.pinned.iter().find(|(pinned, _)| *pinned == revision) {
            return Ok(objects.clone());
        }
        let oldest = resource.history.floor();
        if revision < oldest {
            return Err(TooOld { oldest });
        }
        let mut objects = resource.objects.clone();
        for change in resource.history.after(revision).rev() {
            match &change.old {
                Some(old) => objects.insert(Arc::clone(&change.key), Arc::clone(old)),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    /// Keeps a state for the continue token that refers to it.
    pub(crate) fn pin(&mut self, resource: ResourceId, revision: u64, objects: &Objects) {
        let pinned = &mut self.resources[resource.0].pinned;
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
        let oldest = self.at(resource).history.floor();
        if revision < oldest { Err(TooOld { oldest }) } else { Ok(()) }
    }

    /// The changes after `revision`, or none if some of them are no longer known: that watch has fallen behind.
    pub(crate) fn changes_after(
        &self,
        resource: ResourceId,
        revision: u64,
    ) -> Option<impl DoubleEndedIterator<Item = &Change>> {
        let history = &self.at(resource).history;
        (revision >= history.kept_after()).then(|| history.after(revision))
    }

    /// Everything that is stored now.
    pub(crate) fn backup(&self) -> Backup {
        let objects = self.resources.iter().map(|resource| resource.objects.clone()).collect();
        Backup { revision: self.revision, objects }
    }

    /// Goes back to what was stored then. What happened since is not even history.
    pub(crate) fn restore(&mut self, backup: &Backup) {
        self.revision = backup.revision;
        let restored = |objects: &Objects| Resource {
            objects: objects.clone(),
            ..Resource::new(backup.revision)
        };
        self.resources = backup.objects.iter().map(restored).collect();
    }

    /// Uses revisions up, as writes to resources that nobody looks at do.
    pub(crate) fn skip(&mut self, revisions: u64) {
        self.revision = self.revision.saturating_add(revisions);
    }

    /// The newest revision of a resource's past that lies so far back.
    pub(crate) fn revision_ago(&self, resource: ResourceId, lag: Lag, now: Instant) -> u64 {
        let history = &self.at(resource).history;
        let revision = match lag {
            Lag::Revisions(revisions) => self.revision.saturating_sub(revisions),
            Lag::Time(time) => now
                .checked_sub(time)
                .and_then(|then| history.first_after(then))
                .map_or(self.revision, |change| change.revision - 1),
        };
        // Further back nobody remembers.
        revision.max(history.floor())
    }

    /// Forgets the past: nothing older than now can be listed, and no watch can start there.
    pub(crate) fn compact(&mut self) {
        for resource in &mut self.resources {
            resource.history.raise_floor(self.revision);
            resource.pinned.clear();
        }
    }

    fn at(&self, resource: ResourceId) -> &Resource {
        &self.resources[resource.0]
    }
}

// === impl Resource ===

impl Resource {
    fn new(revision: u64) -> Self {
        Self { history: History::new(revision), ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
