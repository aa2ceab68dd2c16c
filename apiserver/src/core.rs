//! The state that all requests share.

mod clients;
mod commands;
mod configured;
mod settling;
mod state_file;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use homeostat_core::WallClock;
use homeostat_faults::Faults;
use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::clients::Clients;
use self::settling::Pending;
pub(crate) use self::settling::Settling;
use crate::access::Access;
use crate::changes::Changes;
use crate::clock::Chance;
use crate::fields::Fields;
use crate::kinds::crd::names_in_use::NamesInUse;
use crate::kinds::{Allocations, Kinds, Served};
use crate::metrics::Metrics;
use crate::object::{Encoded, Stored, pack_owners};
use crate::plugin::AdmissionPlugin;
use crate::recent::Recent;
use crate::storage::{Objects, ResourceId, Slot, Stale, Storage, TooOld};
use crate::view::ClientView;
use crate::{flow_control, grants, policies, webhooks};

/// The state of one server.
#[derive(Debug)]
pub(crate) struct Core {
    /// The kinds that are served now. A request keeps the table that it started with.
    kinds: RwLock<Arc<Kinds>>,
    /// The storage of definitions.
    definitions: ResourceId,
    pending: Mutex<Pending>,
    /// Locked from the read of a stored definition until its kinds are served. The other locks are
    /// taken while this one is held.
    pub(crate) installing: Mutex<()>,
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
    /// The storage of flow schemas, and that of priority levels.
    flow_resources: [ResourceId; 2],
    /// The flow schemas and priority levels, read. No other lock is taken while this one is held.
    flows: Mutex<flow_control::Cache>,
    /// The storage of bindings, of the cluster and of namespaces, then those of roles.
    grant_resources: [ResourceId; 4],
    /// The roles and bindings, read. No other lock is taken while this one is held.
    grants: Mutex<grants::Cache>,
    /// Calls webhooks.
    pub(crate) webhook_client: webhooks::Client,
    /// Locked while a service is written. The lock of the storage is taken while this one is held.
    allocations: Mutex<Allocations>,
    pub(crate) clock: WallClock,
    pub(crate) chance: Chance,
    storage: Mutex<Storage>,
    recent: Recent,
    pub(crate) metrics: Metrics,
    /// Notified at each new revision.
    pub(crate) changes: Arc<Changes>,
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
        let flow_resources = kinds.flow_kinds().map(|served| served.resource);
        let grant_resources = kinds.grant_kinds().map(|served| served.resource);
        let stopped = CancellationToken::new();
        let streams = Mutex::new(stopped.child_token());
        Arc::new(Self {
            kinds: RwLock::new(Arc::new(kinds)),
            definitions,
            pending: Mutex::default(),
            installing: Mutex::default(),
            kept: OnceLock::new(),
            lost: Mutex::default(),
            names_in_use: Mutex::default(),
            policy_resources,
            policies: Mutex::default(),
            mutating_resources,
            mutating: Mutex::default(),
            webhook_resources,
            webhooks: Mutex::default(),
            flow_resources,
            flows: Mutex::default(),
            grant_resources,
            grants: Mutex::default(),
            webhook_client: webhooks::Client::default(),
            allocations: Mutex::default(),
            clock,
            chance,
            storage,
            recent: Recent::default(),
            metrics: Metrics::default(),
            changes: Arc::default(),
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

    /// Replaces the table of kinds by what `update` makes of it, and returns both. `update` may use
    /// the storage: no code waits for the table while it holds that lock.
    pub(crate) fn update_kinds(
        &self,
        update: impl FnOnce(&Kinds) -> Option<Kinds>,
    ) -> Option<(Arc<Kinds>, Arc<Kinds>)> {
        let mut kinds = self.kinds.write();
        let before = Arc::clone(&kinds);
        *kinds = Arc::new(update(&before)?);
        Some((before, Arc::clone(&kinds)))
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

    /// Drops the history of a resource; see [`Storage::reopen`].
    pub(crate) fn reopen(
        &self,
        resource: ResourceId,
        reread: impl Fn(&Arc<Stored>) -> Arc<Stored>,
    ) {
        self.storage.lock().reopen(resource, reread);
        self.changes.notify(resource);
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
    ) -> Result<Objects, TooOld> {
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

    /// Returns the objects of a namespace in the order of their names; in the namespace "" those of
    /// a kind without namespaces.
    pub(crate) fn objects_in(&self, resource: ResourceId, namespace: &str) -> Vec<Arc<Stored>> {
        let all = self.read(|storage| storage.objects(resource).clone());
        let own = all.iter().filter(|(_, stored)| stored.selectable.namespace == namespace);
        own.map(|(_, stored)| Arc::clone(stored)).collect()
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
    ) -> Result<Arc<Stored>, Stale> {
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
    ) -> Result<Arc<Stored>, Stale> {
        let deleted = self.storage.lock().delete(resource, key, expected, Instant::now())?;
        self.recent.forget(expected);
        if self.keeps(resource, key) {
            self.lost.lock().push(resource);
        }
        self.after_write(resource, key);
        Ok(deleted)
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
            self.definition_written(key);
        }
        if self.has_state.load(Ordering::Relaxed) && self.read(Storage::has_failed) {
            return self.fail();
        }
        self.changes.notify(resource);
    }
}
