//! What all requests share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backup::Backup;
use crate::clock::{Chance, Clock};
use crate::faults::Faults;
use crate::http::Call;
use crate::kinds::{Kinds, ResourceId};
use crate::object::{Encoded, Stored};
use crate::server::ClientName;
use crate::status::{Failure, Result};
use crate::storage::{Objects, Slot, Stale, Storage};
use crate::view::{Sight, View};

/// The state of one server.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) kinds: Kinds,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    storage: Mutex<Storage>,
    /// Told of each new revision. (Not a `watch` channel: that one wakes its readers in a random order.)
    changed: Arc<Notify>,
    /// Cancelled by a restart: ends the watches that run now.
    streams: Mutex<CancellationToken>,
    /// What the server does by itself goes into their trace.
    pub(crate) faults: Faults,
    outside: Mutex<Outside>,
    /// Each watch has one of these.
    watching: Arc<()>,
    /// Counts the bookmarks that were asked for out of turn.
    bookmarks: AtomicU64,
    /// Cancelled with the last handle.
    pub(crate) stopped: CancellationToken,
}

/// What is known of the clients and of the last start.
#[derive(Debug, Default)]
struct Outside {
    /// Clients that see a server that has fallen behind.
    views: BTreeMap<Arc<str>, View>,
    /// Cancelled when a client is moved: ends its watches. Without one a client is soon forgotten.
    streams: BTreeMap<Arc<str>, Weak<CancellationToken>>,
    /// Until then the watch cache is not filled.
    ready_at: Option<Instant>,
}

/// How long a read waits for a revision that is yet to come.
const PATIENCE: Duration = Duration::from_secs(3);

// === impl Core ===

impl Core {
    pub(crate) fn new(kinds: Kinds, clock: Clock, chance: Chance, faults: Faults) -> Arc<Self> {
        let storage = Mutex::new(Storage::new(kinds.rows().len()));
        let stopped = CancellationToken::new();
        let streams = Mutex::new(stopped.child_token());
        Arc::new(Self {
            kinds,
            clock,
            chance,
            storage,
            changed: Arc::new(Notify::new()),
            streams,
            faults,
            outside: Mutex::default(),
            watching: Arc::default(),
            bookmarks: AtomicU64::new(0),
            stopped,
        })
    }

    /// Looks at what is stored. Nothing but looking happens in `read`: the lock is held.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Storage) -> R) -> R {
        read(&self.storage.lock())
    }

    pub(crate) fn pin(&self, resource: ResourceId, revision: u64, objects: &Objects) {
        self.storage.lock().pin(resource, revision, objects);
    }

    pub(crate) fn get(&self, resource: ResourceId, key: &str) -> Option<Arc<Stored>> {
        self.read(|storage| storage.get(resource, key).cloned())
    }

    /// An object as the client of this call sees it: what asks for no revision gets what is stored now.
    pub(crate) fn get_in_sight(&self, call: &Call, key: &str) -> Option<Arc<Stored>> {
        let from_cache = !call.params.get("resourceVersion").is_empty();
        let (_, objects) = self.in_sight(call, from_cache)?;
        objects.get(key).cloned()
    }

    /// The state that a call sees: the watch cache's, or, if it insists, the store's.
    pub(crate) fn in_sight(&self, call: &Call, from_cache: bool) -> Option<(u64, Objects)> {
        let resource = call.target.served.resource;
        let sight = &call.sight;
        self.read(|storage| {
            let now = storage.revision();
            let mut shown = if from_cache { sight.cached(now) } else { now };
            if let Some(lag) = sight.lag {
                shown = shown.min(storage.revision_ago(resource, lag, Instant::now()));
            }
            if shown == now {
                return Some((now, storage.objects(resource).clone()));
            }
            storage.objects_at(resource, shown).ok().map(|objects| (shown, objects))
        })
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
        let at = {
            let mut storage = self.storage.lock();
            storage.compact();
            storage.revision()
        };
        self.faults.note(format!("server: compacted at {at}"));
    }

    /// Drops what a restart loses: the history, the pinned lists and the open watches. The watch cache is filled
    /// `warm_up` later.
    pub(crate) fn restart(&self, warm_up: Duration) {
        self.storage.lock().compact();
        self.faults.note("server: restarted");
        self.outside.lock().ready_at = Instant::now().checked_add(warm_up);
        self.end_streams();
    }

    pub(crate) fn backup(&self) -> Backup {
        self.storage.lock().backup()
    }

    pub(crate) fn restore(&self, backup: &Backup) {
        self.storage.lock().restore(backup);
        self.faults.note(format!("server: restored, back at {}", backup.revision));
        self.end_streams();
    }

    fn end_streams(&self) {
        let ended = std::mem::replace(&mut *self.streams.lock(), self.stopped.child_token());
        ended.cancel();
    }

    pub(crate) fn skip(&self, revisions: u64) {
        self.storage.lock().skip(revisions);
        self.faults.note(format!("server: {revisions} revisions of something else"));
        self.changed.notify_waiters();
    }

    /// Lets every watch that takes bookmarks have one now.
    pub(crate) fn bookmark(&self) {
        self.faults.note("server: bookmarks for all");
        self.bookmarks.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    pub(crate) fn bookmarks(&self) -> u64 {
        self.bookmarks.load(Ordering::SeqCst)
    }

    pub(crate) fn view(&self) -> View {
        let revision = Arc::new(AtomicU64::new(self.read(Storage::revision)));
        View { revision, changed: Arc::clone(&self.changed) }
    }

    /// Moves a client to another server, or back: its watches end.
    pub(crate) fn move_client(&self, name: &str, view: Option<View>) {
        let where_to = match &view {
            Some(view) => format!("a server that is at {}", view.revision()),
            None => "the server that is up to date".to_owned(),
        };
        self.faults.note(format!("server: {name} moves to {where_to}"));
        let ended = {
            let mut outside = self.outside.lock();
            match view {
                Some(view) => outside.views.insert(name.into(), view),
                None => outside.views.remove(name),
            };
            outside.streams.remove(name)
        };
        if let Some(ended) = ended.and_then(|ended| ended.upgrade()) {
            ended.cancel();
        }
    }

    /// What a client may see.
    pub(crate) fn sight(&self, client: ClientName) -> Sight {
        let view = self.outside.lock().views.get(&client.0).cloned();
        Sight { client: Some(client), view, lag: None }
    }

    /// Fails while the watch cache is being filled, which is soon after a restart.
    pub(crate) fn check_ready(&self) -> Result<()> {
        match self.outside.lock().ready_at {
            Some(ready_at) if Instant::now() < ready_at => Err(Failure::not_ready()),
            _ => Ok(()),
        }
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// When a watch of this client ends before its time.
    pub(crate) fn stream_end(&self, sight: &Sight) -> Arc<CancellationToken> {
        let all = self.streams.lock().clone();
        let Some(name) = sight.client.as_ref().filter(|name| !name.0.is_empty()) else {
            return Arc::new(all);
        };
        let mut outside = self.outside.lock();
        let known = outside.streams.get(&name.0).and_then(Weak::upgrade);
        known.filter(|end| !end.is_cancelled()).unwrap_or_else(|| {
            let end = Arc::new(all.child_token());
            // Clients come and go, and may have a new name each time.
            outside.streams.retain(|_, end| end.strong_count() > 0);
            outside.streams.insert(Arc::clone(&name.0), Arc::downgrade(&end));
            end
        })
    }

    /// What a watch holds for as long as it is open.
    pub(crate) fn watching(&self) -> Arc<()> {
        Arc::clone(&self.watching)
    }

    /// How many watches are open.
    pub(crate) fn watches(&self) -> usize {
        Arc::strong_count(&self.watching) - 1
    }

    /// Waits until the watch cache shows a revision, as long as the real server does.
    pub(crate) async fn reach(&self, revision: u64, sight: &Sight) -> Result<()> {
        if tokio::time::timeout(PATIENCE, self.reached(revision, sight)).await.is_ok() {
            return Ok(());
        }
        let shown = sight.cached(self.read(Storage::revision));
        Err(Failure::too_large_resource_version(revision, shown))
    }

    async fn reached(&self, revision: u64, sight: &Sight) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listens before it looks, so that no revision falls in between.
            changed.as_mut().enable();
            if sight.cached(self.read(Storage::revision)) >= revision {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_is_known_for_as_long_as_it_watches() {
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let faults = Faults::seeded(1);
        let core = Core::new(Kinds::new(Vec::new()), Clock::new(epoch), Chance::new(1), faults);
        let end_of = |name: &str| core.stream_end(&core.sight(ClientName(name.into())));
        let stays = end_of("stays");
        for n in 0..1000 {
            drop(end_of(&format!("client-{n}")));
        }
        assert!(core.outside.lock().streams.len() <= 2);
        let view = core.view();
        core.move_client("stays", Some(view));
        assert!(stays.is_cancelled());
        assert!(!end_of("stays").is_cancelled());
    }
}
