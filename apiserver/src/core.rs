//! What all requests share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::{Chance, Clock};
use crate::kinds::{Kinds, ResourceId};
use crate::object::{Encoded, Stored};
use crate::status::{Failure, Result};
use crate::storage::{Slot, Stale, Storage};

/// The state of one server.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) kinds: Kinds,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    storage: Mutex<Storage>,
    /// Told of each new revision. (Not a `watch` channel: that one wakes its readers in a random order.)
    changed: Notify,
    /// Cancelled by a restart: ends the watches that run now.
    streams: Mutex<CancellationToken>,
    /// Cancelled with the last handle.
    pub(crate) stopped: CancellationToken,
}

/// How long a read waits for a revision that is yet to come.
const PATIENCE: Duration = Duration::from_secs(3);

// === impl Core ===

impl Core {
    pub(crate) fn new(kinds: Kinds, clock: Clock, chance: Chance) -> Arc<Self> {
        let storage = Mutex::new(Storage::new(kinds.rows().len()));
        let stopped = CancellationToken::new();
        let streams = Mutex::new(stopped.child_token());
        Arc::new(Self { kinds, clock, chance, storage, changed: Notify::new(), streams, stopped })
    }

    /// Looks at what is stored. Nothing but looking happens in `read`: the lock is held.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Storage) -> R) -> R {
        read(&self.storage.lock())
    }

    pub(crate) fn pin(
        &self,
        resource: ResourceId,
        revision: u64,
        objects: &crate::storage::Objects,
    ) {
        self.storage.lock().pin(resource, revision, objects);
    }

    pub(crate) fn get(&self, resource: ResourceId, key: &str) -> Option<Arc<Stored>> {
        self.read(|storage| storage.get(resource, key).cloned())
    }

    pub(crate) fn put(
        &self,
        resource: ResourceId,
        key: &str,
        expected: Option<u64>,
        object: Encoded,
    ) -> std::result::Result<Arc<Stored>, Stale> {
        let stored =
            self.storage.lock().put(resource, Slot { key, expected }, object, Instant::now())?;
        self.changed.notify_waiters();
        Ok(stored)
    }

    pub(crate) fn delete(
        &self,
        resource: ResourceId,
        key: &str,
        expected: u64,
    ) -> std::result::Result<Arc<Stored>, Stale> {
        let deleted = self.storage.lock().delete(resource, key, expected, Instant::now())?;
        self.changed.notify_waiters();
        Ok(deleted)
    }

    pub(crate) fn compact(&self) {
        self.storage.lock().compact();
    }

    /// Drops what a restart loses: the history, the pinned lists and the open watches.
    pub(crate) fn restart(&self) {
        self.compact();
        let ended = std::mem::replace(&mut *self.streams.lock(), self.stopped.child_token());
        ended.cancel();
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.changed
    }

    pub(crate) fn stream_end(&self) -> CancellationToken {
        self.streams.lock().clone()
    }

    /// Waits for a revision, as long as the real server does.
    pub(crate) async fn reach(&self, revision: u64) -> Result<()> {
        match tokio::time::timeout(PATIENCE, self.reached(revision)).await {
            Ok(()) => Ok(()),
            Err(_) => {
                Err(Failure::too_large_resource_version(revision, self.read(Storage::revision)))
            }
        }
    }

    async fn reached(&self, revision: u64) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listens before it looks, so that no revision falls in between.
            changed.as_mut().enable();
            if self.read(Storage::revision) >= revision {
                return;
            }
            changed.await;
        }
    }
}
