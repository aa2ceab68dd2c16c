//! The options of the controllers, their construction from the parts, and their run.

use std::future::Future;
use std::time::Duration;

use homeostat::expectations::UidTrackingExpectations;
use homeostat::informer::Scope;
use homeostat::kube_client::Client;
use homeostat::{
    ConsistencyStore, Controller, EventRecorder, LOW_PRIORITY, Manager, Priorities, RunError,
    SharedIndexInformer, SharedInformerFactory, Watch, WorkLimit, group_resource,
};
use homeostat_core::WallClock;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ReplicationController;

use crate::caches::Caches;
use crate::events::Events;
use crate::gates::FeatureGates;
use crate::kind::WorkloadKind;
use crate::left_statuses::LeftStatuses;
use crate::own_writes::{OwnWrites, pods_resource};
use crate::plan::Rules;
use crate::pod::Pod;
use crate::pod_events::PodEvents;
use crate::reconciler::ReplicaController;
use crate::requests::Requests;
use crate::selection::Controllers;
use crate::workload::Workload;

/// kube-controller-manager resyncs its informers every 12 to 24 hours.
const RESYNC: Duration = Duration::from_secs(12 * 3600);

/// Ages of deleted pods as multiples of that of the youngest ready pod. Upstream's name and
/// buckets, for both kinds.
const AGE_RATIO: &str = "replicaset_controller_sorting_deletion_age_ratio";

/// The histograms of the controllers with their buckets, for
/// [`Program::histogram`](homeostat::cli::Program::histogram).
pub const HISTOGRAMS: [(&str, &[f64]); 1] = [(AGE_RATIO, &[0.25, 0.5, 1.0, 2.0, 4.0, 8.0])];

/// The options of the controllers.
///
/// # Examples
///
/// ```
/// use homeostat_replicaset::Options;
///
/// let options = Options { workers: 20, ..Options::default() };
/// assert_eq!(options.burst_replicas, 500);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The controllers that run (default: that of `ReplicaSet`s).
    pub controllers: Controllers,
    /// The number of `ReplicaSet`s that are reconciled concurrently (default 5, as upstream's
    /// `--concurrent-replicaset-syncs`).
    pub workers: usize,
    /// The number of `ReplicationController`s that are reconciled concurrently (default 5, as
    /// upstream's `--concurrent-rc-syncs`).
    pub rc_workers: usize,
    /// The namespaces whose objects are reconciled, each by a controller with caches of its own.
    /// They share the workers. Empty (the default) means all.
    pub namespaces: Vec<String>,
    /// The maximum number of pods that one pass creates or deletes (default 500, upstream's
    /// `BurstReplicas`).
    pub burst_replicas: usize,
    /// The feature gates.
    pub gates: FeatureGates,
    /// The current wall time for a reproducible run; from then on tokio's time is counted. `None`
    /// (the default) uses the machine's clock.
    pub epoch: Option<Timestamp>,
    /// The seed of jitter for a reproducible run. `None` (the default) takes a random seed.
    pub seed: Option<u64>,
    /// The time for the initial lists after which [`run`] returns an error (default 2 minutes,
    /// controller-runtime's `CacheSyncTimeout`).
    pub sync_timeout: Duration,
    /// The time at shutdown for running passes (default 10 s; Kubernetes kills a container after 30
    /// s).
    pub drain_timeout: Duration,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            controllers: Controllers::default(),
            workers: 5,
            rc_workers: 5,
            namespaces: Vec::new(),
            burst_replicas: 500,
            gates: FeatureGates::default(),
            epoch: None,
            seed: None,
            sync_timeout: Duration::from_secs(120),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Returns the controller of `ReplicaSet`s for a [`Manager`] that may run others with the same
/// informers, and the recorder of its events. Call [`EventRecorder::shut_down`] after the manager
/// has ended.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn controller(
    client: Client,
    informers: &SharedInformerFactory,
    options: &Options,
) -> (Controller, EventRecorder) {
    let crew = Crew { name: ReplicaSet::CONTROLLER.into(), workers: options.workers, limit: None };
    controller_of::<ReplicaSet>(client, informers, options, &crew)
}

/// Returns the controller of `ReplicationController`s, as [`controller`] does that of
/// `ReplicaSet`s. Both share the cache of pods if they have the same informers.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn replication_controller(
    client: Client,
    informers: &SharedInformerFactory,
    options: &Options,
) -> (Controller, EventRecorder) {
    let name = ReplicationController::CONTROLLER.into();
    let crew = Crew { name, workers: options.rc_workers, limit: None };
    controller_of::<ReplicationController>(client, informers, options, &crew)
}

fn controller_of<K: WorkloadKind>(
    client: Client,
    informers: &SharedInformerFactory,
    options: &Options,
    crew: &Crew,
) -> (Controller, EventRecorder) {
    let sets: SharedIndexInformer<Workload<K>> = informers.informer();
    let pods: SharedIndexInformer<Pod> = informers.informer();
    let recorder = recorder::<K>(client.clone(), options);
    let expectations = UidTrackingExpectations::new(&crew.name);
    let written = [group_resource::<K>(), pods_resource()];
    let consistency = ConsistencyStore::new(K::METRICS, written);
    let requests = Requests::new(client);
    let caches = Caches::new(&sets, &pods);
    let reconciler = ReplicaController {
        events: Events::new(recorder.clone()),
        own_writes: OwnWrites {
            expectations: expectations.clone(),
            consistency: consistency.clone(),
            requests: requests.clone(),
            owned: caches.owned.clone(),
        },
        left_statuses: LeftStatuses::default(),
        requests,
        caches,
        rules: Rules {
            burst: options.burst_replicas.max(1),
            use_deletion_costs: options.gates.pod_deletion_cost,
        },
        report_terminating: reports_terminating::<K>(options),
        compare_versions: options.gates.stale_controller_consistency,
        clock: WallClock::new(options.epoch),
        age_ratio: age_ratio(),
        blocked: blocked::<K>(),
    };
    let mut controller = Controller::builder(crew.name.as_str(), Watch::of(&sets).resync(RESYNC))
        .owns_with(&pods, PodEvents::new(sets.lister()))
        .expecting(&expectations)
        .consistency(&consistency, &sets)
        .consistency(&consistency, &pods)
        .workers(crew.workers)
        // A thousand sets whose pods are refused do not delay one that changes.
        .priorities(Priorities::default())
        .retry_priority(LOW_PRIORITY);
    if let Some(limit) = &crew.limit {
        controller = controller.work_limit(limit);
    }
    (controller.build(reconciler), recorder)
}

fn age_ratio() -> metrics::Histogram {
    let text = "Ratio of the ages of deleted pods to the age of the youngest ready pod";
    metrics::describe_histogram!(AGE_RATIO, text);
    metrics::histogram!(AGE_RATIO)
}

fn blocked<K: WorkloadKind>() -> metrics::Counter {
    let name = format!("{}_undecodable_pod_skips_total", K::METRICS);
    let text = "Number of passes that changed no pods because one of them does not decode";
    metrics::describe_counter!(name.clone(), text);
    metrics::counter!(name)
}

/// Returns true if the status of kind `K` has the number of pods that are being deleted.
fn reports_terminating<K: WorkloadKind>(options: &Options) -> bool {
    K::REPORTS_TERMINATING && options.gates.terminating_replicas
}

/// Returns a manager of the controllers that [`Options::controllers`] names: add leader election
/// and services to it, and run it.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn manager(client: Client, options: &Options) -> Manager {
    for name in &options.gates.unknown {
        tracing::warn!(gate = %name, "unknown feature gate, ignoring it");
    }
    let everywhere = factory(&client, options, None);
    let manager = Manager::new(everywhere.clone())
        .sync_timeout(options.sync_timeout)
        .drain_timeout(options.drain_timeout);
    let limits = (WorkLimit::new(options.workers), WorkLimit::new(options.rc_workers));
    if options.namespaces.is_empty() {
        return with_controllers(manager, client, (&everywhere, None), options, &limits);
    }
    options.namespaces.iter().fold(manager, |manager, namespace| {
        let informers = factory(&client, options, Some(namespace));
        let scope = (&informers, Some(namespace.as_str()));
        with_controllers(manager, client.clone(), scope, options, &limits)
    })
}

/// Adds the controllers of one namespace, or of all.
fn with_controllers(
    mut manager: Manager,
    client: Client,
    (informers, namespace): (&SharedInformerFactory, Option<&str>),
    options: &Options,
    (sets, rcs): &(WorkLimit, WorkLimit),
) -> Manager {
    if options.controllers.replica_set {
        let crew = Crew::of::<ReplicaSet>(namespace, options.workers, sets);
        let (controller, events) =
            controller_of::<ReplicaSet>(client.clone(), informers, options, &crew);
        manager = manager.with(controller).recorder(&events);
    }
    if options.controllers.replication_controller {
        let crew = Crew::of::<ReplicationController>(namespace, options.rc_workers, rcs);
        let (controller, events) =
            controller_of::<ReplicationController>(client, informers, options, &crew);
        manager = manager.with(controller).recorder(&events);
    }
    manager
}

/// The name and the workers of one controller.
struct Crew {
    name: String,
    workers: usize,
    /// Shared by the controllers of several namespaces.
    limit: Option<WorkLimit>,
}

// === impl Crew ===

impl Crew {
    /// Returns the crew for the objects of kind `K` in `namespace`, or everywhere.
    fn of<K: WorkloadKind>(namespace: Option<&str>, workers: usize, limit: &WorkLimit) -> Self {
        let name = match namespace {
            Some(namespace) => format!("{}/{namespace}", K::CONTROLLER),
            None => K::CONTROLLER.to_owned(),
        };
        Self { name, workers, limit: namespace.map(|_| limit.clone()) }
    }
}

/// Runs the controllers until `shutdown` is ready, then stops in order.
///
/// # Errors
///
/// Returns an error if the initial lists do not complete within [`Options::sync_timeout`], or if
/// a controller does not stop in order.
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
/// use homeostat_replicaset::Options;
///
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let client = homeostat::client::builder().infer().await?.build();
/// homeostat_replicaset::run(client, Options::default(), homeostat::shutdown_signal()).await?;
/// # Ok(())
/// # }
/// ```
pub async fn run(
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    manager(client, &options).run_until(shutdown).await
}

fn factory(client: &Client, options: &Options, namespace: Option<&str>) -> SharedInformerFactory {
    let series = "homeostat-replicaset";
    let builder = SharedInformerFactory::builder(client.clone());
    let mut builder = match namespace {
        Some(namespace) => builder
            .scope(Scope::namespace(namespace))
            .metrics(format!("{series} in namespace {namespace}")),
        None => builder.metrics(series),
    };
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    builder.build()
}

fn recorder<K: WorkloadKind>(client: Client, options: &Options) -> EventRecorder {
    let mut builder = EventRecorder::builder(client, K::COMPONENT);
    if let Some(epoch) = options.epoch {
        builder = builder.epoch(epoch);
    }
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last case of upstream's `TestCalculateStatus`.
    #[test]
    fn replication_controller_reports_no_terminating_pods() {
        let mut options = Options::default();
        assert!(reports_terminating::<ReplicaSet>(&options));
        assert!(!reports_terminating::<ReplicationController>(&options));
        options.gates.terminating_replicas = false;
        assert!(!reports_terminating::<ReplicaSet>(&options));
    }
}
