//! The state that all requests share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use homeostat_core::WallClock;
use homeostat_faults::{ClientName, Faults};
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::clock::Chance;
use crate::fields::Fields;
use crate::kinds::crd::names_in_use::NamesInUse;
use crate::kinds::{Allocations, Kinds, Served};
use crate::object::{Encoded, Stored, pack_owners};
use crate::plugin::AdmissionPlugin;
use crate::policies::{self, Policies};
use crate::recent::Recent;
use crate::state::{Journal, Kept};
use crate::status::{Failure, Result};
use crate::storage::{Backup, Objects, ResourceId, Slot, Stale, Storage, TooOld};
use crate::view::{ClientView, LaggingView};
use crate::webhooks::{self, Webhooks};

/// The state of one server.
#[derive(Debug)]
pub(crate) struct Core {
    /// The kinds that are served now. A request keeps the table that it started with.
    kinds: RwLock<Arc<Kinds>>,
    /// The storage of definitions.
    definitions: ResourceId,
    pending: Mutex<Pending>,
    /// The objects that the server creates again if they are deleted.
    kept: OnceLock<Vec<(ResourceId, String)>>,
    /// The resources of those that were deleted.
    lost: Mutex<Vec<ResourceId>>,
    /// The names of definitions. No other lock is taken while this one is held, except `pending`.
    pub(crate) names_in_use: Mutex<NamesInUse>,
    /// The storage of admission policies, and that of their bindings; `None` if they are off.
    policy_resources: Option<[ResourceId; 2]>,
    /// The compiled policies. No other lock is taken while this one is held.
    policies: Mutex<policies::Cache>,
    /// The storage of the policies that change objects, and that of their bindings; `None` if they
    /// are off.
    mutating_resources: Option<[ResourceId; 2]>,
    /// The compiled policies that change objects. No other lock is taken while this one is held.
    mutating: Mutex<policies::Cache>,
    /// The storage of the configurations of webhooks, mutating ones first; `None` if they are off.
    webhook_resources: [Option<ResourceId>; 2],
    /// The webhooks that are configured. No other lock is taken while this one is held.
    webhooks: Mutex<webhooks::Cache>,
    /// Calls webhooks.
    pub(crate) webhook_client: webhooks::Client,
    /// Locked while a service is written. The lock of the storage is taken while this one is held.
    allocations: Mutex<Allocations>,
    pub(crate) clock: WallClock,
    pub(crate) chance: Chance,
    storage: Mutex<Storage>,
    recent: Recent,
    /// Notified at each new revision. A `watch` channel would wake its readers in a random order.
    changed: Arc<Notify>,
    /// Cancelled by a restart: ends the open watches.
    streams: Mutex<CancellationToken>,
    /// Its trace also records what the server does on its own.
    pub(crate) faults: Faults,
    clients: Mutex<Clients>,
    /// Each open watch holds a clone.
    watching: Arc<()>,
    /// The number of requests to send all bookmarks now.
    bookmarks: AtomicU64,
    /// The number of events that may wait for the client of a watch.
    watch_buffer: AtomicUsize,
    pub(crate) access: Access,
    /// True if quota admission is on.
    enforces_quotas: AtomicBool,
    /// True if pods get their service accounts.
    admits_service_accounts: AtomicBool,
    /// True if writes are recorded in a state file.
    has_state: AtomicBool,
    /// True after a write that could not be recorded.
    has_failed: AtomicBool,
    /// Cancelled when the last handle is dropped.
    pub(crate) stopped: CancellationToken,
}

/// The definitions that were written, and whose effects are still to be carried out.
#[derive(Debug, Default)]
struct Pending {
    names: BTreeSet<String>,
    /// True while a task carries them out.
    is_running: bool,
}

/// Marks that a task carries out the effects of definitions; dropped at its end.
#[derive(Debug)]
pub(crate) struct Settling {
    core: Arc<Core>,
    is_done: bool,
}

/// The state of clients, and of the last restart.
#[derive(Debug, Default)]
struct Clients {
    /// Clients that were moved to a lagging server.
    views: BTreeMap<Arc<str>, LaggingView>,
    /// Cancelled when a client is moved: ends its watches. An entry is removed with the
    /// client's last watch.
    streams: BTreeMap<Arc<str>, Weak<CancellationToken>>,
    /// The watch cache is not ready before this instant.
    ready_at: Option<Instant>,
}

/// The longest time until a watch cache is ready, 100 years.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The longest time that a read waits for a future revision, as in the real server.
const FUTURE_REVISION_TIMEOUT: Duration = Duration::from_secs(3);

// === impl Core ===

impl Core {
    pub(crate) fn new(kinds: Kinds, clock: WallClock, chance: Chance, faults: Faults) -> Arc<Self> {
        let storage = Mutex::new(Storage::new(kinds.resources()));
        let definitions = kinds.definitions().resource;
        let policy_resources = kinds
            .runs(AdmissionPlugin::ValidatingAdmissionPolicy)
            .then(|| kinds.admission_policies().map(|served| served.resource));
        let mutating_resources = kinds
            .runs(AdmissionPlugin::MutatingAdmissionPolicy)
            .then(|| kinds.mutating_policies().map(|served| served.resource));
        let webhook_resources = kinds.webhook_configurations().map(|served| served.resource);
        let [mutating, validating] = webhook_resources;
        let webhook_resources = [
            kinds.runs(AdmissionPlugin::MutatingAdmissionWebhook).then_some(mutating),
            kinds.runs(AdmissionPlugin::ValidatingAdmissionWebhook).then_some(validating),
        ];
        let stopped = CancellationToken::new();
        let streams = Mutex::new(stopped.child_token());
        Arc::new(Self {
            kinds: RwLock::new(Arc::new(kinds)),
            definitions,
            pending: Mutex::default(),
            kept: OnceLock::new(),
            lost: Mutex::default(),
            names_in_use: Mutex::default(),
            policy_resources,
            policies: Mutex::default(),
            mutating_resources,
            mutating: Mutex::default(),
            webhook_resources,
            webhooks: Mutex::default(),
            webhook_client: webhooks::Client::default(),
            allocations: Mutex::default(),
            clock,
            chance,
            storage,
            recent: Recent::default(),
            changed: Arc::new(Notify::new()),
            streams,
            faults,
            clients: Mutex::default(),
            watching: Arc::default(),
            bookmarks: AtomicU64::new(0),
            watch_buffer: AtomicUsize::new(usize::MAX),
            access: Access::new(),
            enforces_quotas: AtomicBool::new(false),
            admits_service_accounts: AtomicBool::new(false),
            has_state: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            stopped,
        })
    }

    /// Switches quota admission on.
    pub(crate) fn enforce_quotas(&self) {
        self.enforces_quotas.store(true, Ordering::Relaxed);
    }

    pub(crate) fn enforces_quotas(&self) -> bool {
        self.enforces_quotas.load(Ordering::Relaxed)
    }

    /// Switches the admission of service accounts on.
    pub(crate) fn admit_service_accounts(&self) {
        self.admits_service_accounts.store(true, Ordering::Relaxed);
    }

    pub(crate) fn admits_service_accounts(&self) -> bool {
        self.admits_service_accounts.load(Ordering::Relaxed)
    }

    pub(crate) fn kinds(&self) -> Arc<Kinds> {
        Arc::clone(&self.kinds.read())
    }

    /// Replaces the table of kinds by what `update` makes of it, and returns both.
    pub(crate) fn update_kinds(
        &self,
        update: impl FnOnce(&Kinds) -> Option<Kinds>,
    ) -> Option<(Arc<Kinds>, Arc<Kinds>)> {
        let mut kinds = self.kinds.write();
        let before = Arc::clone(&kinds);
        *kinds = Arc::new(update(&before)?);
        Some((before, Arc::clone(&kinds)))
    }

    /// Returns the mark of the task that carries out the effects of definitions, if there are any
    /// and no task does so yet.
    pub(crate) fn start_settling(self: &Arc<Self>) -> Option<Settling> {
        let mut pending = self.pending.lock();
        if pending.names.is_empty() || pending.is_running {
            return None;
        }
        pending.is_running = true;
        Some(Settling { core: Arc::clone(self), is_done: false })
    }

    /// Takes the names of the definitions that were written.
    pub(crate) fn take_written_definitions(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.pending.lock().names)
    }

    /// Returns the names of the definitions that were written.
    pub(crate) fn written_definitions(&self) -> BTreeSet<String> {
        self.pending.lock().names.clone()
    }

    /// Sets the objects that the server creates again if they are deleted.
    pub(crate) fn keep(&self, kept: Vec<(ResourceId, String)>) {
        self.kept.set(kept).expect("the objects are set once");
    }

    fn keeps(&self, resource: ResourceId, key: &str) -> bool {
        let kept = self.kept.get().map_or(&[][..], Vec::as_slice);
        kept.iter().any(|(kind, name)| *kind == resource && name == key)
    }

    /// Takes the resources of the deleted objects that the server creates again.
    pub(crate) fn take_lost(&self) -> Vec<ResourceId> {
        std::mem::take(&mut self.lost.lock())
    }

    /// Looks at a definition again, as after a write.
    pub(crate) fn revisit_definition(&self, name: &str) {
        self.pending.lock().names.insert(name.to_owned());
    }

    /// Drops the history of a resource; see [`Storage::reopen`].
    pub(crate) fn reopen(
        &self,
        resource: ResourceId,
        reread: impl Fn(&Arc<Stored>) -> Arc<Stored>,
    ) {
        self.storage.lock().reopen(resource, reread);
        self.changed.notify_waiters();
    }

    /// Calls `read` with the storage. The lock is held during the call, so `read` must be short.
    pub(crate) fn read<R>(&self, read: impl FnOnce(&Storage) -> R) -> R {
        read(&self.storage.lock())
    }

    /// Returns the objects of a resource at exactly `revision`, which must not be in the future.
    pub(crate) fn objects_at(
        &self,
        resource: ResourceId,
        revision: u64,
    ) -> std::result::Result<Objects, TooOld> {
        let mut storage = self.storage.lock();
        storage.compact_if_due(Instant::now());
        storage.objects_at(resource, revision)
    }

    pub(crate) fn pin(&self, resource: ResourceId, revision: u64, objects: &Objects) {
        self.storage.lock().pin(resource, revision, objects);
    }

    pub(crate) fn get(&self, resource: ResourceId, key: &str) -> Option<Arc<Stored>> {
        self.read(|storage| storage.get(resource, key).cloned())
    }

    /// Returns an object of a kind of the core group. A kind without namespaces has no use for
    /// `namespace`.
    pub(crate) fn find(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let served = self.kinds().find("", "v1", plural)?;
        self.get(served.resource, &served.kind.key(namespace, name))
    }

    /// Returns a stored object in the form that the rules of `served` apply to, with its owners as
    /// in [`Stored::packed_fields`].
    pub(crate) fn fields(&self, served: &Served, stored: &Arc<Stored>) -> Arc<Fields> {
        if served.reads_as_stored(stored) {
            self.recent.fields(stored)
        } else {
            let mut fields = served.read(stored);
            pack_owners(&mut fields);
            Arc::new(fields)
        }
    }

    /// Returns an object as the client sees it: from the watch cache if `from_cache`, else from the
    /// store.
    pub(crate) fn get_visible(
        &self,
        resource: ResourceId,
        key: &str,
        client_view: &ClientView,
        from_cache: bool,
    ) -> Option<Arc<Stored>> {
        let (_, objects) = self.visible_objects(resource, client_view, from_cache);
        objects.get(key).cloned()
    }

    /// Returns the revision and the objects that a client sees: those of the watch cache if
    /// `from_cache`, else the store's. A watch cache that is older than the history shows the
    /// present: it has read the store again.
    pub(crate) fn visible_objects(
        &self,
        resource: ResourceId,
        client_view: &ClientView,
        from_cache: bool,
    ) -> (u64, Objects) {
        self.read(|storage| {
            let now = storage.revision();
            let mut shown = if from_cache { client_view.cached(now) } else { now };
            if let Some(lag) = client_view.lag {
                shown = shown.min(storage.revision_ago(resource, lag, Instant::now()));
            }
            match storage.cached_objects_at(resource, shown) {
                Ok(objects) if shown < now => (shown, objects),
                _ => (now, storage.objects(resource).clone()),
            }
        })
    }

    pub(crate) fn put(
        &self,
        resource: ResourceId,
        key: &str,
        expected: Option<u64>,
        object: Encoded,
    ) -> std::result::Result<Arc<Stored>, Stale> {
        let slot = Slot { key, expected };
        let stored = self.storage.lock().put(resource, slot, &object, Instant::now())?;
        if let Some(fields) = object.into_fields(stored.revision) {
            self.recent.keep(expected, &stored, fields);
        }
        self.after_write(resource, key);
        Ok(stored)
    }

    pub(crate) fn delete(
        &self,
        resource: ResourceId,
        key: &str,
        expected: u64,
    ) -> std::result::Result<Arc<Stored>, Stale> {
        let deleted = self.storage.lock().delete(resource, key, expected, Instant::now())?;
        self.recent.forget(expected);
        if self.keeps(resource, key) {
            self.lost.lock().push(resource);
        }
        self.after_write(resource, key);
        Ok(deleted)
    }

    /// Returns the admission policies that have bindings; `None` if there are none.
    pub(crate) fn policies(&self) -> Option<Arc<Policies>> {
        self.bound(self.policy_resources?, &self.policies)
    }

    /// Returns the policies that change objects and have bindings; `None` if there are none.
    pub(crate) fn mutating_policies(&self) -> Option<Arc<Policies>> {
        self.bound(self.mutating_resources?, &self.mutating)
    }

    fn bound(
        &self,
        [policies, bindings]: [ResourceId; 2],
        cache: &Mutex<policies::Cache>,
    ) -> Option<Arc<Policies>> {
        let (policies, bindings) = self.read(|storage| {
            let bindings = storage.objects(bindings);
            (!bindings.is_empty()).then(|| (storage.objects(policies).clone(), bindings.clone()))
        })?;
        Some(cache.lock().follow(&policies, &bindings))
    }

    /// Returns the webhooks that are configured; `None` if there are none.
    pub(crate) fn webhooks(&self) -> Option<Arc<Webhooks>> {
        let [mutating, validating] = self.read(|storage| {
            let of = |resource: Option<ResourceId>| resource.map(|id| storage.objects(id));
            let all = self.webhook_resources.map(of);
            let is_used = all.iter().flatten().any(|objects| !objects.is_empty());
            is_used.then(|| all.map(|objects| objects.cloned().unwrap_or_default()))
        })?;
        self.webhooks.lock().follow(&mutating, &validating)
    }

    /// Returns the cluster IPs and node ports in use; `None` if the kind allocates nothing. No
    /// other write of the kind allocates while the caller holds the guard.
    pub(crate) fn allocations(&self, served: &Served) -> Option<MutexGuard<'_, Allocations>> {
        served.home.allocate?;
        let addresses = self.kinds().ip_addresses().resource;
        let mut allocations = self.allocations.lock();
        self.read(|storage| allocations.follow(storage, served.resource, addresses));
        Some(allocations)
    }

    fn after_write(&self, resource: ResourceId, key: &str) {
        if resource == self.definitions {
            self.revisit_definition(key);
        }
        if self.has_state.load(Ordering::Relaxed) && self.read(Storage::has_failed) {
            return self.fail();
        }
        self.changed.notify_waiters();
    }

    /// Stops the server: a write may not survive it.
    fn fail(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
        self.stopped.cancel();
    }

    /// Returns whether a write could not be recorded in the state file.
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
        self.changed.notify_waiters();
    }

    /// Sends a bookmark to every watch that accepts them.
    pub(crate) fn bookmark(&self) {
        self.faults.note("server: bookmarks for all");
        self.bookmarks.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    pub(crate) fn limit_watch_buffer(&self, events: usize) {
        self.faults.note(format!("server: a watch ends if {events} events wait for its client"));
        self.watch_buffer.store(events, Ordering::SeqCst);
    }

    /// Returns the number of events that may wait for the client of a watch.
    pub(crate) fn watch_buffer(&self) -> usize {
        self.watch_buffer.load(Ordering::SeqCst)
    }

    pub(crate) fn bookmarks(&self) -> u64 {
        self.bookmarks.load(Ordering::SeqCst)
    }

    /// Returns a view that is this number of revisions behind.
    pub(crate) fn view(&self, behind: u64) -> LaggingView {
        let revision = self.read(Storage::revision).saturating_sub(behind);
        LaggingView {
            revision: Arc::new(AtomicU64::new(revision)),
            changed: Arc::clone(&self.changed),
        }
    }

    /// Moves a client to a lagging server, or back with `None`. Its watches end.
    pub(crate) fn move_client(&self, name: &str, view: Option<LaggingView>) {
        let where_to = match &view {
            Some(view) => format!("a server that is at {}", view.revision()),
            None => "the server that is up to date".to_owned(),
        };
        self.faults.note(format!("server: {name} moves to {where_to}"));
        let ended = {
            let mut clients = self.clients.lock();
            match view {
                Some(view) => clients.views.insert(name.into(), view),
                None => clients.views.remove(name),
            };
            clients.streams.remove(name)
        };
        if let Some(ended) = ended.and_then(|ended| ended.upgrade()) {
            ended.cancel();
        }
    }

    /// Returns what this client may see.
    pub(crate) fn client_view(&self, client: ClientName) -> ClientView {
        let view = self.clients.lock().views.get(&client.0).cloned();
        ClientView { client: Some(client), view, lag: None }
    }

    /// Fails with 429 while the watch cache is not ready.
    pub(crate) fn check_ready(&self) -> Result<()> {
        match self.clients.lock().ready_at {
            Some(ready_at) if Instant::now() < ready_at => Err(Failure::not_ready()),
            _ => Ok(()),
        }
    }

    pub(crate) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Returns the token that ends the watches of this client early.
    pub(crate) fn watch_end_token(&self, client_view: &ClientView) -> Arc<CancellationToken> {
        let all = self.streams.lock().clone();
        let Some(name) = client_view.client.as_ref().filter(|name| !name.0.is_empty()) else {
            return Arc::new(all);
        };
        let mut clients = self.clients.lock();
        let known = clients.streams.get(&name.0).and_then(Weak::upgrade);
        known.filter(|end| !end.is_cancelled()).unwrap_or_else(|| {
            let end = Arc::new(all.child_token());
            // Clients may have a new name each time, so entries without a watch are removed.
            clients.streams.retain(|_, end| end.strong_count() > 0);
            clients.streams.insert(Arc::clone(&name.0), Arc::downgrade(&end));
            end
        })
    }

    /// Returns the token that counts an open watch until it is dropped.
    pub(crate) fn watching(&self) -> Arc<()> {
        Arc::clone(&self.watching)
    }

    /// Returns the number of open watches.
    pub(crate) fn watches(&self) -> usize {
        Arc::strong_count(&self.watching) - 1
    }

    /// Waits until the watch cache shows a revision; fails with 504 after 3 seconds, as the real
    /// server does.
    pub(crate) async fn wait_for_revision(
        &self,
        revision: u64,
        client_view: &ClientView,
    ) -> Result<()> {
        if tokio::time::timeout(
            FUTURE_REVISION_TIMEOUT,
            self.wait_until_shown(revision, client_view),
        )
        .await
        .is_ok()
        {
            return Ok(());
        }
        let shown = client_view.cached(self.read(Storage::revision));
        Err(Failure::too_large_resource_version(revision, shown))
    }

    async fn wait_until_shown(&self, revision: u64, client_view: &ClientView) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registers before it checks, so that no revision is missed in between.
            changed.as_mut().enable();
            if client_view.cached(self.read(Storage::revision)) >= revision {
                return;
            }
            changed.await;
        }
    }
}

// === impl Settling ===

impl Settling {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Ends the task if no definition was written; returns the names of those that were.
    pub(crate) fn next(&mut self) -> Option<BTreeSet<String>> {
        let mut pending = self.core.pending.lock();
        if pending.names.is_empty() {
            pending.is_running = false;
            self.is_done = true;
            return None;
        }
        Some(std::mem::take(&mut pending.names))
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        // The task was dropped with its runtime: another one goes on.
        if !self.is_done {
            self.core.pending.lock().is_running = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn client_is_known_while_it_watches() {
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let faults = Faults::seeded(1);
        let core =
            Core::new(Kinds::new(Vec::new()), WallClock::new(Some(epoch)), Chance::new(1), faults);
        let end_of = |name: &str| core.watch_end_token(&core.client_view(ClientName(name.into())));
        let stays = end_of("stays");
        for n in 0..1000 {
            drop(end_of(&format!("client-{n}")));
        }
        assert!(core.clients.lock().streams.len() <= 2);
        let view = core.view(0);
        core.move_client("stays", Some(view));
        assert!(stays.is_cancelled());
        assert!(!end_of("stays").is_cancelled());
    }
}
