//! The commands of a test: restarts, restores, compactions and bookmarks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::Core;
use crate::kinds::Allocations;
use crate::storage::{Backup, Storage};

/// The longest time until a watch cache is ready, 100 years.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

// === impl Core ===

impl Core {
    pub(crate) fn compact(&self) {
        let at = {
            let mut storage = self.storage.lock();
            storage.compact();
            storage.revision()
        };
        self.faults.note(format!("server: compacted at {at}"));
    }

    /// Drops the history: older states can be neither listed nor watched.
    pub(crate) fn expire_history(&self) {
        let at = {
            let mut storage = self.storage.lock();
            storage.compact();
            storage.drop_watch_cache();
            storage.revision()
        };
        self.faults.note(format!("server: history expired at {at}"));
    }

    /// Drops what a restart loses: the watch cache and the open watches. The watch cache is ready
    /// after `warm_up`.
    pub(crate) fn restart(&self, warm_up: Duration) {
        self.storage.lock().drop_watch_cache();
        self.faults.note("server: restarted");
        // A time that no clock can express is never.
        let ready_at = Instant::now().checked_add(warm_up.min(CENTURY));
        self.clients.lock().ready_at = ready_at;
        self.end_streams();
    }

    pub(crate) fn backup(&self) -> Backup {
        self.storage.lock().backup()
    }

    pub(crate) fn restore(&self, backup: &Backup) {
        {
            let mut allocations = self.allocations.lock();
            self.storage.lock().restore(backup);
            *allocations = Allocations::default();
        }
        if self.read(Storage::has_failed) {
            self.fail();
        }
        self.faults.note(format!("server: restored, back at {}", backup.revision));
        self.end_streams();
    }

    fn end_streams(&self) {
        let ended = std::mem::replace(&mut *self.streams.lock(), self.stopped.child_token());
        ended.cancel();
    }

    pub(crate) fn skip(&self, revisions: u64) {
        self.storage.lock().skip(revisions);
        if self.read(Storage::has_failed) {
            self.fail();
        }
        self.faults.note(format!("server: {revisions} revisions of something else"));
        self.changes.notify_all();
    }

    /// Sends a bookmark to every watch that accepts them.
    pub(crate) fn bookmark(&self) {
        self.faults.note("server: bookmarks for all");
        self.bookmarks.fetch_add(1, Ordering::SeqCst);
        self.changes.notify_all();
    }

    pub(crate) fn bookmarks(&self) -> u64 {
        self.bookmarks.load(Ordering::SeqCst)
    }

    pub(crate) fn limit_watch_buffer(&self, events: usize) {
        self.faults.note(format!("server: a watch ends if {events} events wait for its client"));
        self.watch_buffer.store(events, Ordering::SeqCst);
    }

    /// Returns the number of events that may wait for the client of a watch.
    pub(crate) fn watch_buffer(&self) -> usize {
        self.watch_buffer.load(Ordering::SeqCst)
    }
}
