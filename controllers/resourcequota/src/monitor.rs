//! [`Monitor`]: the evaluators, the informers that quotas need, and the counts (upstream:
//! `QuotaMonitor`).

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use homeostat::{CancellationToken, Discovered, Discovery, KeySource, Lister, Object};
use homeostat_core::GroupResource;
use homeostat_quantity::ResourceName;
use homeostat_quota::{DeviceClassMapping, Evaluator, Recount as Calculation, Registry, Usage};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify as Bell;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use crate::caches::{CacheOptions, Caches, CountError, Notice, Notify, device_classes};
use crate::change::Changes;
use crate::names::NamesInUse;
use crate::needs::{Needs, may_be_mapped, needed};
use crate::plan::Recount;
use crate::quota::{CachedQuota, QuotaKey};
use crate::requested::Requested;
use crate::served::{Served, ServedResources, after};

/// The quotas and their queues.
#[derive(Clone)]
pub(crate) struct Quotas {
    pub(crate) lister: Lister<CachedQuota>,
    pub(crate) requested: Requested<QuotaKey>,
    /// Adds to `resourcequota_priority`.
    pub(crate) priority: KeySource<CachedQuota>,
}

/// The evaluators and their informers.
pub(crate) struct Monitor {
    discovery: Discovery,
    caches: Caches,
    quotas: Quotas,
    changes: Changes,
    registry: RwLock<Arc<Registry>>,
    served: RwLock<ServedResources>,
    names: Mutex<NamesInUse>,
    /// Rung when the names that quotas have, or the mapping of device classes, changed.
    names_changed: Bell,
    timing: Timing,
}

/// The shortest time between two changes of what is followed. The first new name of a burst is
/// followed at once.
const FOLLOW_PERIOD: Duration = Duration::from_millis(100);

/// The periods of the monitor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// The period of discovery, and the time after which an informer that has not synced is
    /// reported.
    pub(crate) discovery: Duration,
    /// The time for which an informer runs after the last quota that needs it.
    pub(crate) linger: Duration,
}

/// The counts of one quota.
pub(crate) struct Counted {
    pub(crate) usage: Usage<CountError>,
    /// True if an evaluator's cache is not complete, so that its names were not counted.
    pub(crate) is_incomplete: bool,
}

// === impl Quotas ===

impl Quotas {
    /// Requests a full recount of each quota that `is_concerned`.
    fn recount(&self, is_concerned: impl Fn(&CachedQuota) -> bool) {
        for quota in self.lister.list().iter().filter(|quota| is_concerned(quota)) {
            let key = quota.key();
            self.requested.request(&key, Recount::Full);
            self.priority.add(key);
        }
    }
}

// === impl Monitor ===

impl Monitor {
    pub(crate) fn new(
        discovery: Discovery,
        options: &CacheOptions,
        quotas: Quotas,
        changes: Changes,
        timing: Timing,
    ) -> Arc<Self> {
        Arc::new_cyclic(|monitor: &Weak<Self>| {
            let own = monitor.clone();
            let notify: Notify = Arc::new(move |notice| Self::note_of(&own, notice));
            Self {
                discovery,
                caches: Caches::new(options, &notify),
                quotas,
                changes,
                registry: RwLock::new(Arc::new(Registry::new(options.gates))),
                served: RwLock::default(),
                names: Mutex::default(),
                names_changed: Bell::new(),
                timing,
            }
        })
    }

    /// Returns the present evaluators.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry.read())
    }

    /// Returns true if some evaluator counts `name`.
    pub(crate) fn is_counted(&self, name: &ResourceName) -> bool {
        let names = std::slice::from_ref(name);
        !self.registry().matching_resources(names, &self.caches.mapping()).is_empty()
    }

    /// Returns true if `quota` has a limit on `resource`.
    ///
    /// Upstream looks at the limits of the status alone. The cache may be older than the write of
    /// the first status: then a change would be lost.
    pub(crate) fn limits(&self, quota: &CachedQuota, resource: &GroupResource) -> bool {
        let registry = self.registry();
        let matches = |evaluator: &Evaluator| {
            let names: Vec<_> = quota.all_names().into_iter().collect();
            !evaluator.matching_resources(&names, &self.caches.mapping()).is_empty()
        };
        registry.get(resource).is_some_and(matches)
    }

    /// Sets the names that a quota limits; none for a quota that is gone.
    pub(crate) fn set_names(&self, key: &QuotaKey, names: BTreeSet<ResourceName>) {
        if self.names.lock().set(key, names) {
            self.names_changed.notify_one();
        }
    }

    /// Counts the usage of a quota.
    pub(crate) fn count(&self, quota: &CachedQuota, now: Timestamp) -> Counted {
        let mut names = quota.names();
        let wanted = names.len();
        if !self.knows_mapping() {
            // Pods alone are not their usage, and their claims are not known yet.
            names.retain(|name| !may_be_mapped(name));
        }
        let (registry, mapping) = (self.registry(), self.caches.mapping());
        let scopes = quota.scopes();
        let calculation =
            Calculation { registry: &registry, classes: &mapping, scopes: &scopes, now };
        let mut usage = calculation.calculate_usage(&names, |evaluator, tally| {
            match self.served.read().get(evaluator.resource()) {
                Some(Served::At(_)) => {}
                Some(Served::Gone) => return Ok(()),
                Some(Served::Uncountable) | None => {
                    return Err(CountError::NotSynced(evaluator.resource().clone()));
                }
            }
            self.caches.count(evaluator, quota.namespace(), now, tally)
        });
        let all = usage.errors.len();
        // Their sync enqueues the quota, so a retry would be of no use.
        usage.errors.retain(|error| !matches!(error, CountError::NotSynced(_)));
        let is_incomplete = usage.errors.len() < all || names.len() < wanted;
        Counted { usage, is_incomplete }
    }

    /// Returns true if it is known which names device classes map to claims.
    fn knows_mapping(&self) -> bool {
        match self.served.read().get(&device_classes()) {
            Some(Served::Gone) => true,
            Some(Served::At(_)) => self.caches.has_complete_mapping(),
            Some(Served::Uncountable) | None => false,
        }
    }

    /// Notes a message of the caches, unless the monitor is gone.
    fn note_of(monitor: &Weak<Self>, notice: Notice) {
        if let Some(monitor) = monitor.upgrade() {
            monitor.note(notice);
        }
    }

    fn note(&self, notice: Notice) {
        match notice {
            Notice::Changed(change, recount) => self.changes.add(change, recount),
            Notice::Synced(resource) => {
                tracing::debug!(%resource, "quota monitor synced");
                if resource == device_classes() {
                    self.remapped(&self.caches.complete_mapping());
                }
                self.recount_for(&resource);
            }
            Notice::Mapped(names) => self.remapped(&names),
        }
    }

    /// Requests a recount of each quota that limits one of `names`, whose device classes changed.
    fn remapped(&self, names: &BTreeSet<ResourceName>) {
        if names.is_empty() {
            return;
        }
        self.names_changed.notify_one();
        self.quotas.recount(|quota| quota.spec.hard.names().any(|it| names.contains(it)));
    }

    /// Requests a recount of each quota whose limits depend on `resource`.
    fn recount_for(&self, resource: &GroupResource) {
        let (registry, mapping) = (self.registry(), self.caches.mapping());
        self.quotas.recount(|quota| needed(&quota.names(), &registry, &mapping).contains(resource));
    }

    /// Runs until `stop` is cancelled, then stops all informers and joins their tasks.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<(), Infallible> {
        tracing::info!("QuotaMonitor running");
        let work = async { tokio::join!(self.keep_discovering(), self.keep_following()) };
        stop.run_until_cancelled(work).await;
        tracing::info!("QuotaMonitor stopping");
        self.caches.stop().await;
        tracing::info!("QuotaMonitor stopped monitors");
        Ok(())
    }

    /// Reads the served resources in each period.
    async fn keep_discovering(&self) {
        let mut ticks = interval(self.timing.discovery);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut reported = BTreeSet::new();
        loop {
            ticks.tick().await;
            match self.discovery.discover().await {
                Ok(discovered) => self.apply(&discovered),
                Err(error) => tracing::warn!(%error, "discovery failed, keeping the resources"),
            }
            self.report_unsynced(&mut reported);
        }
    }

    /// Takes over what discovery has found: evaluators for new resources, and the new versions.
    fn apply(&self, discovered: &Discovered) {
        for (group_version, error) in &discovered.failed {
            tracing::warn!(
                group_version, %error,
                "discovery failed for a group version, keeping its resources"
            );
        }
        let mut registry = self.registry();
        let mut always: Vec<_> = registry.iter().map(|it| it.resource().clone()).collect();
        always.push(device_classes());
        let served = after(&self.served.read(), discovered, always.into_iter());
        for (resource, _) in served.iter().filter(|(_, it)| matches!(it, Served::At(_))) {
            // Device classes are followed for claims. They are in no namespace, so no quota counts
            // them.
            let is_new = registry.get(resource).is_none() && *resource != device_classes();
            if is_new && Arc::make_mut(&mut registry).add_counter(resource.clone()) {
                tracing::info!(%resource, "QuotaMonitor created object count evaluator");
            }
        }
        *self.registry.write() = registry;
        let former = std::mem::replace(&mut *self.served.write(), served.clone());
        if former == served {
            return;
        }
        let changed =
            |(resource, it): &(&GroupResource, &Served)| former.get(*resource) != Some(it);
        let gone = served.iter().filter(changed).filter(|(_, it)| **it == Served::Gone);
        gone.for_each(|(resource, _)| self.recount_for(resource));
        self.names_changed.notify_one();
    }

    /// Starts and stops informers as the names of the quotas change.
    async fn keep_following(&self) {
        let mut needs = Needs::new(self.timing.linger);
        loop {
            let next = self.follow(&mut needs);
            sleep(FOLLOW_PERIOD).await;
            let lingered = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.names_changed.notified() => {}
                () = lingered => {}
            }
        }
    }

    fn follow(&self, needs: &mut Needs) -> Option<Instant> {
        let names = self.names.lock().names();
        let mapping: Arc<DeviceClassMapping> = self.caches.mapping();
        let (running, next) =
            needs.update(needed(&names, &self.registry(), &mapping), Instant::now());
        let served = self.served.read();
        let at = |resource: &GroupResource| match served.get(resource) {
            Some(Served::At(version)) => Some(version.clone()),
            _ => None,
        };
        let list: Vec<_> = running.iter().filter_map(at).collect();
        drop(served);
        tracing::debug!(resources = list.len(), "quota synced monitors");
        self.caches.follow(list);
        next
    }

    /// Logs each resource that has not synced within the period, once.
    fn report_unsynced(&self, reported: &mut BTreeSet<String>) {
        let unsynced = self.caches.unsynced();
        let late: Vec<_> =
            unsynced.iter().filter(|it| it.since.elapsed() >= self.timing.discovery).collect();
        reported.retain(|name| late.iter().any(|it| *it.unsynced.name == **name));
        for resource in late {
            if reported.insert(resource.unsynced.name.to_string()) {
                tracing::warn!(
                    error = %resource,
                    "Timed out waiting for quota monitor sync, the names of this resource keep \
                     their usage"
                );
            }
        }
    }
}
