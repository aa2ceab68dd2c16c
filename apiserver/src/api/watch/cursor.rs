//! The position of a watch in the history.

use std::sync::Arc;
use std::time::Duration;

use super::{CHUNK, Watch, until_cancelled};
use crate::api::shown;
use crate::object::Stored;
use crate::status::Result;
use crate::storage::{Change, Storage};

/// The time after which a failed conversion is repeated.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl Watch {
    /// Starts with the present objects.
    pub(super) async fn list(&mut self) -> Result<()> {
        let served = self.renderer.served().clone();
        let (revision, objects) = self.core.read(|storage| {
            let shown = self.client_view.cached(storage.revision());
            // If the history no longer reaches back to the lagging revision, the lagging server has
            // caught up.
            let objects = storage.cached_objects_at(served.resource, shown);
            let objects = objects.map(|objects| (shown, objects));
            objects
                .unwrap_or_else(|_| (storage.revision(), storage.objects(served.resource).clone()))
        });
        self.revision = revision;
        let scope = objects
            .range(Arc::<str>::from(self.prefix.as_str())..)
            .take_while(|(key, _)| key.starts_with(&self.prefix));
        let mut objects: Vec<_> = scope.map(|(_, object)| Arc::clone(object)).collect();
        if served.has_webhook() {
            objects = shown::objects(&self.core, &served, &objects).await?;
        }
        objects.retain(|object| self.selector.matches(&object.selectable));
        objects.reverse();
        self.initial = objects;
        Ok(())
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
    pub(super) fn take_changes(&mut self, storage: &Storage) -> Option<Vec<Change>> {
        let mut taken = Vec::new();
        let mut size = 0;
        let shown = self.client_view.cached(storage.revision());
        let has_webhook = self.renderer.served().has_webhook();
        let changes = storage.changes_after(self.renderer.served().resource, self.revision)?;
        if self.is_overrun(storage, shown) {
            return None;
        }
        for change in changes.take_while(|change| change.revision <= shown) {
            self.revision = change.revision;
            // A selector may match the converted object alone.
            let object = change.new.as_ref().or(change.old.as_ref());
            let is_event = if has_webhook {
                change.key.starts_with(&self.prefix)
            } else {
                self.event_of(change).is_some()
            };
            if is_event && let Some(object) = object {
                size += object.bytes().len();
                taken.push(change.clone());
            }
            if size >= CHUNK {
                return Some(taken);
            }
        }
        // No change up to this revision is missing, whichever resource it was for: that is the
        // meaning of a bookmark.
        self.revision = self.revision.max(shown);
        Some(taken)
    }

    /// Returns the events of changes; `None` if the watch ends. As on the real server, a watch
    /// stays open and sends nothing while a webhook does not convert their objects.
    pub(super) async fn events(
        &self,
        changes: Vec<Change>,
    ) -> Option<Vec<(&'static str, Arc<Stored>)>> {
        let changes = if self.renderer.served().has_webhook() && !changes.is_empty() {
            tokio::select! {
                biased;
                () = self.end() => return None,
                converted = self.converted(changes) => converted,
            }
        } else {
            changes
        };
        Some(changes.iter().filter_map(|change| self.event_of(change)).collect())
    }

    /// Returns changes whose objects a webhook has converted. A failed call is repeated.
    async fn converted(&self, mut changes: Vec<Change>) -> Vec<Change> {
        let states = changes.iter().flat_map(|change| change.old.iter().chain(&change.new));
        let states: Vec<_> = states.cloned().collect();
        let served = self.renderer.served();
        let converted = loop {
            match shown::objects(&self.core, served, &states).await {
                Ok(converted) => break converted,
                Err(_) => tokio::time::sleep(RETRY_AFTER).await,
            }
        };
        let places = changes.iter_mut();
        let places = places.flat_map(|change| change.old.iter_mut().chain(&mut change.new));
        for (place, converted) in places.zip(converted) {
            *place = converted;
        }
        changes
    }

    /// Waits for the end of the watch.
    async fn end(&self) {
        let definition = self.renderer.served().kind.definition.as_ref();
        tokio::select! {
            biased;
            () = self.ended.cancelled() => {}
            () = until_cancelled(definition.map(|definition| definition.retired())) => {}
            () = tokio::time::sleep_until(self.deadline) => {}
        }
    }

    /// Returns true if more events wait for the client than its buffer holds.
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
