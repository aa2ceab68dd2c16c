//! The controller's options, its construction from the parts, and its run.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use homeostat::informer::Scope;
use homeostat::informer::list_watch::KubeListWatch;
use homeostat::kube_client::Client;
use homeostat::{
    Controller, EventRecorder, Manager, RunError, SharedIndexInformer, SharedInformerFactory, Watch,
};
use jiff::Timestamp;

use crate::caches::Caches;
use crate::claim::Claim;
use crate::deleted_uids::DeletedUids;
use crate::events::{COMPONENT, Events};
use crate::gates::FeatureGates;
use crate::handlers::Handlers;
use crate::key::Key;
use crate::metrics::{ClaimCounts, Creates, MetricNames};
use crate::pod::Pod;
use crate::pods_with_claims::PodsWithClaims;
use crate::reconciler::ClaimController;
use crate::requests::Requests;
use crate::status_writer::StatusWriter;
use crate::template::Template;

/// kube-controller-manager resyncs its informers every 12 to 24 hours.
const RESYNC: Duration = Duration::from_secs(12 * 3600);

/// The name of the controller and of its queue: upstream's.
const NAME: &str = "resource_claim";

/// The options of the controller.
///
/// # Examples
///
/// ```
/// use homeostat_resourceclaim::Options;
///
/// let options = Options { workers: 10, ..Options::default() };
/// assert!(options.gates.admin_access);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of pods and claims that are reconciled concurrently (default 50, as upstream's
    /// `--concurrent-resourceclaim-syncs`).
    pub workers: usize,
    /// The only namespace whose pods and claims are reconciled. `None` (the default) means all.
    pub namespace: Option<String>,
    /// The feature gates.
    pub gates: FeatureGates,
    /// The names of the metrics.
    pub metric_names: MetricNames,
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
            workers: 50,
            namespace: None,
            gates: FeatureGates::default(),
            metric_names: MetricNames::default(),
            epoch: None,
            seed: None,
            sync_timeout: Duration::from_secs(120),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Returns the controller for a [`Manager`] that may run others with the same informers, and the
/// recorder of its events. Call [`EventRecorder::shut_down`] after the manager has ended.
///
/// The controller adds an informer of its own to `informers`: that of the pods which use claims, in
/// [`Options::namespace`].
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn controller(
    client: Client,
    informers: &SharedInformerFactory,
    options: Options,
) -> (Controller, EventRecorder) {
    let pods = pods(&client, &options);
    informers.adopt(&pods);
    let claims = informers.informer::<Claim>();
    let templates = informers.informer::<Template>();
    let recorder = recorder(client.clone(), &options);
    let requests = Requests::new(client);
    let caches = Caches::new(&pods, &claims, &templates);
    let deleted = Arc::new(DeletedUids::default());
    warn_about(&options.gates);
    let reconciler = ClaimController {
        writer: StatusWriter::new(requests.clone(), caches.clone()),
        caches: caches.clone(),
        requests,
        deleted: Arc::clone(&deleted),
        events: Events::new(recorder.clone()),
        gates: options.gates,
        creates: Creates { names: options.metric_names },
    };
    let handlers = Handlers { caches, deleted };
    let [of_pods, of_claims, of_templates] = [handlers.clone(), handlers.clone(), handlers];
    let mut counts = ClaimCounts::new(options.metric_names);
    let controller = Controller::for_keys::<Key>(NAME)
        .watches(Watch::of(&pods).resync(RESYNC), move |event, enqueue| {
            of_pods.pod(event, enqueue);
        })
        .watches(Watch::of(&claims).resync(RESYNC), move |event, enqueue| {
            of_claims.claim(event, &mut counts, enqueue);
        })
        .watches(&templates, move |event, enqueue| of_templates.template(event, enqueue))
        .workers(options.workers)
        .build(reconciler);
    (controller, recorder)
}

/// Returns a manager of the controller alone: add leader election and services to it, and run it.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn manager(client: Client, options: Options) -> Manager {
    let informers = factory(&client, &options);
    let (sync_timeout, drain_timeout) = (options.sync_timeout, options.drain_timeout);
    let (controller, events) = controller(client, &informers, options);
    Manager::new(informers)
        .with(controller)
        .recorder(&events)
        .sync_timeout(sync_timeout)
        .drain_timeout(drain_timeout)
}

/// Runs the controller until `shutdown` is ready, then stops in order.
///
/// # Errors
///
/// Returns an error if the initial lists do not complete within [`Options::sync_timeout`], or if
/// the controller does not stop in order.
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
/// use homeostat_resourceclaim::Options;
///
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let client = homeostat::client::builder().infer().await?.build();
/// homeostat_resourceclaim::run(client, Options::default(), homeostat::shutdown_signal()).await?;
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

/// Logs the gates that have no effect.
fn warn_about(gates: &FeatureGates) {
    if gates.pod_groups_requested {
        tracing::warn!(
            "GenericWorkload and DRAWorkloadResourceClaims are not supported and count as false: \
             pods in a PodGroup get no claims"
        );
    }
    for name in &gates.unknown {
        tracing::warn!(gate = %name, "unknown feature gate, ignoring it");
    }
}

fn factory(client: &Client, options: &Options) -> SharedInformerFactory {
    let mut builder = SharedInformerFactory::builder(client.clone());
    if let Some(namespace) = &options.namespace {
        builder = builder.scope(Scope::namespace(namespace));
    }
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    builder.build()
}

/// Returns the informer of the pods that use claims.
fn pods(client: &Client, options: &Options) -> SharedIndexInformer<Pod> {
    let pods = KubeListWatch::new(client.clone(), options.namespace.as_deref());
    let mut builder = SharedIndexInformer::builder(PodsWithClaims::new(pods));
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    builder.build()
}

fn recorder(client: Client, options: &Options) -> EventRecorder {
    let mut builder = EventRecorder::builder(client, COMPONENT);
    if let Some(epoch) = options.epoch {
        builder = builder.epoch(epoch);
    }
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    builder.build()
}
