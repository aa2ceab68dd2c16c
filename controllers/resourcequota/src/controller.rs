//! The controller's options, its construction from the parts, and its run.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat::{
    Controller, Discovery, Enqueue, Event, KeySource, Manager, OnError, ReadYourWrites, RunError,
    SharedIndexInformer, SharedInformerFactory,
};
use homeostat_core::WallClock;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::caches::CacheOptions;
use crate::change::{Change, Changes};
use crate::gates::FeatureGates;
use crate::monitor::{Monitor, Quotas, Timing};
use crate::plan::Recount;
use crate::quota::{CachedQuota, QuotaKey, Urgency, urgency_of};
use crate::reconciler::QuotaController;
use crate::replenishment::ReplenishmentController;
use crate::requested::Requested;
use crate::sync_error::SyncError;
use crate::unfit::Unfit;

/// The options of the controller.
///
/// # Examples
///
/// ```
/// use homeostat_resourcequota::Options;
///
/// let options = Options { sync_period: None, ..Options::default() };
/// assert_eq!(options.workers, 5);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of quotas that are recounted concurrently, for each of the two queues (default 5,
    /// as upstream's `--concurrent-resource-quota-syncs`).
    pub workers: usize,
    /// The period of the recount of all quotas (default 5 minutes, as upstream's
    /// `--resource-quota-sync-period`). `None` disables it.
    pub sync_period: Option<Duration>,
    /// The feature gates.
    pub gates: FeatureGates,
    /// The period of discovery (default 30 s, at least 1 s). For as long a status waits for a cache
    /// that it needs.
    pub discovery_period: Duration,
    /// The time for which an informer runs after the last quota that needs it (default 10 minutes).
    pub linger: Duration,
    /// The current wall time for a reproducible run; from then on tokio's time is counted. `None`
    /// (the default) uses the machine's clock.
    pub epoch: Option<Timestamp>,
    /// The seed of jitter for a reproducible run. `None` (the default) takes a random seed.
    pub seed: Option<u64>,
    /// The time for the initial list of quotas after which [`run`] returns an error (default 2
    /// minutes, controller-runtime's `CacheSyncTimeout`).
    pub sync_timeout: Duration,
    /// The time at shutdown for running passes (default 10 s; Kubernetes kills a container after 30
    /// s).
    pub drain_timeout: Duration,
}

/// The parts that the handlers of quotas share.
#[derive(Clone)]
struct Handlers {
    monitor: Arc<Monitor>,
    requested: Requested<QuotaKey>,
    unfit: Arc<Unfit<CachedQuota>>,
}

// === impl Options ===

impl Options {
    /// Returns the period of discovery, cut to what a timer allows.
    fn discovery(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
        self.discovery_period.clamp(Duration::from_secs(1), LONGEST)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 5,
            sync_period: Some(Duration::from_secs(300)),
            gates: FeatureGates::default(),
            discovery_period: Duration::from_secs(30),
            linger: Duration::from_secs(600),
            epoch: None,
            seed: None,
            sync_timeout: Duration::from_secs(120),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Returns a manager of the controller: add leader election and services to it, and run it.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn manager(client: Client, options: Options) -> Manager {
    let informers = factory(&client, &options);
    let quotas = informers.informer::<CachedQuota>();
    let clock = WallClock::new(options.epoch);
    let (requested, changes) = (Requested::new(), Changes::new());
    let primary = KeySource::new("replenishment");
    let priority = KeySource::of_second_queue("quota monitor");
    let of_monitor = Quotas {
        lister: quotas.lister(),
        requested: requested.clone(),
        priority: priority.clone(),
    };
    let monitor = monitor(&client, &options, of_monitor, (changes.clone(), clock));
    let handlers = Handlers {
        monitor: Arc::clone(&monitor),
        requested: requested.clone(),
        unfit: Arc::new(Unfit::new()),
    };
    let replenishment =
        Controller::for_keys::<Change>("resource_quota_controller_resource_changes")
            .source(&changes.source)
            .build(ReplenishmentController {
                monitor: Arc::clone(&monitor),
                changes: changes.clone(),
                quotas: quotas.index(|quota: &CachedQuota| quota.metadata.namespace.clone()),
                requested,
                primary: primary.clone(),
                clock,
            });
    let sources = [&primary, &priority];
    let controller = quota_controller(client, &options, &quotas, (handlers, clock), sources);
    for name in options.gates.unknown {
        tracing::warn!(gate = %name, "unknown feature gate, ignoring it");
    }
    Manager::new(informers)
        .with(controller)
        .with(replenishment)
        .with_runnable("quota monitor", move |stop| monitor.run(stop))
        .sync_timeout(options.sync_timeout)
        .drain_timeout(options.drain_timeout)
}

/// Returns the monitor of the resources that quotas name.
fn monitor(
    client: &Client,
    options: &Options,
    quotas: Quotas,
    (changes, clock): (Changes, WallClock),
) -> Arc<Monitor> {
    let caches = CacheOptions {
        client: client.clone(),
        gates: options.gates.quota,
        clock,
        seed: options.seed,
    };
    let timing = Timing { discovery: options.discovery(), linger: options.linger };
    Monitor::new(Discovery::new(client.clone()), &caches, quotas, changes, timing)
}

/// Returns the controller of the two quota queues.
fn quota_controller(
    client: Client,
    options: &Options,
    quotas: &SharedIndexInformer<CachedQuota>,
    (handlers, clock): (Handlers, WallClock),
    sources: [&KeySource<CachedQuota>; 2],
) -> Controller {
    let writes = ReadYourWrites::<CachedQuota>::new("resourcequota").cache(quotas);
    let reconciler = QuotaController {
        client: writes.client(client),
        quotas: quotas.lister(),
        requested: handlers.requested.clone(),
        monitor: Arc::clone(&handlers.monitor),
        clock,
        patience: options.discovery(),
        started: Instant::now(),
        memory: Mutex::default(),
    };
    let of_event = handlers.clone();
    let mut builder = Controller::builder("resourcequota_primary", quotas)
        .second_queue("resourcequota_priority", options.workers)
        .primary(move |event, enqueue| of_event.handle(event, enqueue))
        .read_your_writes(&writes)
        .error_policy(|_, error| error.downcast_ref().map_or(OnError::BackOff, SyncError::on_error))
        .workers(options.workers);
    for source in sources {
        builder = builder.source(source);
    }
    if let Some(period) = options.sync_period {
        let lister = quotas.lister();
        builder = builder.every(period, move |enqueue| {
            for key in lister.keys() {
                handlers.requested.request(&key, Recount::Full);
                enqueue.add(key);
            }
        });
    } else {
        tracing::info!("periodic quota controller resync disabled");
    }
    builder.build(reconciler)
}

/// Runs the controller until `shutdown` is ready, then stops in order.
///
/// # Errors
///
/// Returns an error if the initial list of quotas does not complete within
/// [`Options::sync_timeout`], or if the controller does not stop in order.
///
/// # Cancel safety
///
/// Dropping the future drops the running passes. The server may carry out a request that was sent.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
///
/// # Examples
///
/// ```no_run
/// use homeostat_resourcequota::Options;
///
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let client = homeostat::client::builder().infer().await?.build();
/// homeostat_resourcequota::run(client, Options::default(), homeostat::shutdown_signal()).await?;
/// # Ok(())
/// # }
/// ```
pub async fn run(
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    manager(client, options).run_until(shutdown).await
}

fn factory(client: &Client, options: &Options) -> SharedInformerFactory {
    let mut builder = SharedInformerFactory::builder(client.clone());
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    builder.build()
}

// === impl Handlers ===

impl Handlers {
    /// Enqueues the quota of an event (upstream: `addQuota`), and notes its names.
    fn handle(&self, event: &Event<CachedQuota>, enqueue: &Enqueue<CachedQuota>) {
        let key = event.key();
        match event {
            Event::Added { object: quota, .. } | Event::Updated { new: quota, .. } => {
                self.monitor.set_names(&key, quota.all_names());
            }
            _ => self.monitor.set_names(&key, BTreeSet::new()),
        }
        // No pass counts a quota that does not fit.
        let fits_again = self.unfit.note(event).then_some(Urgency::Primary);
        let urgency = urgency_of(event, |name| self.monitor.is_counted(name)).or(fits_again);
        let Some(urgency) = urgency else {
            // A write whose reply was lost: a pass since then may have found nothing to raise,
            // since the cache did not show the write.
            if matches!(event, Event::Updated { old, new } if new.has_fallen_since(old)) {
                self.requested.request(&key, Recount::RaiseOnly);
                enqueue.add(key);
            }
            return;
        };
        self.requested.request(&key, Recount::Full);
        match urgency {
            Urgency::Primary => enqueue.add(key),
            Urgency::Priority => enqueue.to_second_queue().add(key),
        }
    }
}
