//! The position of a watch in the history.

use std::sync::Arc;

use super::{CHUNK, Watch};
use crate::object::Stored;
use crate::storage::{Change, Storage};

impl Watch {
    /// Starts with the present objects.
    pub(super) fn list(&mut self) {
        let resource = self.renderer.served().resource;
        let (revision, objects) = self.core.read(|storage| {
            let shown = self.client_view.cached(storage.revision());
            // If the history no longer reaches back to the lagging revision, the lagging server has
            // caught up.
            let objects = storage.cached_objects_at(resource, shown);
            let objects = objects.map(|objects| (shown, objects));
            objects.unwrap_or_else(|_| (storage.revision(), storage.objects(resource).clone()))
        });
        self.revision = revision;
        let scope = objects
            .range(Arc::<str>::from(self.prefix.as_str())..)
            .take_while(|(key, _)| key.starts_with(&self.prefix));
        let selected = scope.filter(|(_, object)| self.selector.matches(&object.selectable));
        self.initial = selected.map(|(_, object)| Arc::clone(object)).collect();
        self.initial.reverse();
    }

    /// Starts at the newest revision that the client's server shows.
    pub(super) fn start_at_the_present(&mut self) {
        let resource = self.renderer.served().resource;
        self.revision = self.core.read(|storage| {
            let now = storage.revision();
            let shown = self.client_view.cached(now);
            if storage.check_watchable(resource, shown).is_ok() { shown } else { now }
        });
    }

    /// Takes about a chunk of changes. The lock is not held while they are encoded.
    pub(super) fn take_changes(
        &mut self,
        storage: &Storage,
    ) -> Option<Vec<(&'static str, Arc<Stored>)>> {
        let mut events = Vec::new();
        let mut size = 0;
        let shown = self.client_view.cached(storage.revision());
        let changes = storage.changes_after(self.renderer.served().resource, self.revision)?;
        if self.is_overrun(storage, shown) {
            return None;
        }
        for change in changes.take_while(|change| change.revision <= shown) {
            self.revision = change.revision;
            if let Some((kind, object)) = self.event_of(change) {
                size += object.bytes().len();
                events.push((kind, object));
            }
            if size >= CHUNK {
                return Some(events);
            }
        }
        // No change up to this revision is missing, whichever resource it was for: that is the
        // meaning of a bookmark.
        self.revision = self.revision.max(shown);
        Some(events)
    }

    /// Returns whether more events wait for the client than its buffer holds.
    fn is_overrun(&self, storage: &Storage, shown: u64) -> bool {
        let limit = self.core.watch_buffer();
        if limit == usize::MAX {
            return false;
        }
        let changes = storage.changes_after(self.renderer.served().resource, self.revision);
        let changes = changes.into_iter().flatten();
        let events = changes
            .take_while(|change| change.revision <= shown)
            .filter(|change| self.event_of(change).is_some());
        events.take(limit.saturating_add(1)).count() > limit
    }

    /// Returns the event of a change: an object that starts to match is ADDED, one that ceases to
    /// match is DELETED.
    fn event_of(&self, change: &Change) -> Option<(&'static str, Arc<Stored>)> {
        if !change.key.starts_with(&self.prefix) {
            return None;
        }
        let matching = |object: &&Arc<Stored>| self.selector.matches(&object.selectable);
        let old = change.old.as_ref().filter(matching);
        let new = change.new.as_ref().filter(matching);
        match (old, new) {
            (None, None) => None,
            (None, Some(new)) => Some(("ADDED", Arc::clone(new))),
            (Some(_), Some(new)) => Some(("MODIFIED", Arc::clone(new))),
            (Some(old), None) => Some(("DELETED", Arc::new(old.at(change.revision)))),
        }
    }
}
