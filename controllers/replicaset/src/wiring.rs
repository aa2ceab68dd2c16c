//! Joins the parts: caches, handlers, reconciler, recorder; and runs them.

use std::future::Future;
use std::time::Duration;

use homeostat::expectations::UidTrackingExpectations;
use homeostat::kube_client::Client;
use homeostat::owner::controller_of;
use homeostat::{
    ConsistencyStore, Controller, EventRecorder, Manager, ObjectMeta, SharedIndexInformer,
    SharedInformerFactory,
};
use jiff::Timestamp;

use crate::clock::Clock;
use crate::events::{COMPONENT, Events};
use crate::gates::FeatureGates;
use crate::handlers::PodEvents;
use crate::plan::Rules;
use crate::pod::Pod;
use crate::reconcile::{Caches, OwnerName, ReplicaSetController, owner_name};
use crate::replica_set::ReplicaSet;
use crate::requests::Requests;
use crate::settled::{pods_resource, sets_resource};

/// A cache that is not complete after this time has a reason that somebody may be waiting to read.
const SAY_FIRST: Duration = Duration::from_secs(2);

/// How the controller works.
///
/// # Examples
/// ```
/// use homeostat_replicaset::Options;
///
/// let options = Options { workers: 20, ..Options::default() };
/// assert_eq!(options.burst_replicas, 500);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// How many `ReplicaSet`s are looked at at the same time. Upstream's `--concurrent-replicaset-syncs`: 5.
    pub workers: usize,
    /// How many pods one pass makes or deletes at most. Upstream's constant: 500.
    pub burst_replicas: usize,
    /// Which gated behaviours act.
    pub gates: FeatureGates,
    /// What the wall clock shows now, for a run that is to be repeated: from then on time is tokio's. Unless told: the
    /// machine's clock.
    pub epoch: Option<Timestamp>,
    /// Where chance comes from, for a run that is to be repeated.
    pub seed: Option<u64>,
    /// After this time without complete caches, [`run`] gives up. Two minutes: controller-runtime's number.
    pub sync_timeout: Duration,
    /// How long [`run`] waits at the end for passes that are under way. Ten seconds; Kubernetes kills after thirty.
    pub drain_timeout: Duration,
}

/// Why [`run`] ended other than asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The API server did not give what the controller needs to begin.
    #[error("gave up after {} s: {trouble}", .after.as_secs())]
    #[non_exhaustive]
    NeverSynced {
        /// How long was tried.
        after: Duration,
        /// What kept failing.
        trouble: String,
    },
    /// The controller ended, but not in order.
    #[error(transparent)]
    Manager(#[from] homeostat::RunError),
}

/// The two caches, to be asked what keeps them.
struct Sources {
    sets: SharedIndexInformer<ReplicaSet>,
    pods: SharedIndexInformer<Pod>,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 5,
            burst_replicas: 500,
            gates: FeatureGates::default(),
            epoch: None,
            seed: None,
            sync_timeout: Duration::from_secs(120),
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// The controller, over informers that it may share with others, and the recorder of its events: shut that down
/// after the manager has ended.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub fn controller(
    client: Client,
    informers: &SharedInformerFactory,
    options: Options,
) -> (Controller, EventRecorder) {
    let sources = Sources::of(informers);
    let recorder = recorder(client.clone(), &options);
    let expectations = UidTrackingExpectations::new("replicaset");
    let written = [sets_resource(), pods_resource()];
    let consistency = ConsistencyStore::new("replicaset_controller", written);
    let reconciler = ReplicaSetController {
        requests: Requests::new(client),
        events: Events::new(recorder.clone()),
        caches: sources.caches(),
        expectations: expectations.clone(),
        consistency: consistency.clone(),
        rules: Rules {
            burst: options.burst_replicas.max(1),
            heed_costs: options.gates.pod_deletion_cost,
        },
        report_terminating: options.gates.terminating_replicas,
        clock: Clock::new(options.epoch),
        age_ratio: metrics::histogram!("replicaset_controller_sorting_deletion_age_ratio"),
    };
    let mut pod_events = PodEvents::new(sources.sets.lister(), expectations);
    let controller = Controller::builder("replicaset", &sources.sets)
        .watches(&sources.pods, move |event, enqueue| {
            pod_events.handle(event, &mut |key, delay| match delay {
                None => enqueue.add(key),
                Some(delay) => enqueue.add_after(key, delay),
            });
        })
        .consistency(&consistency, &sources.sets)
        .consistency(&consistency, &sources.pods)
        .workers(options.workers)
        .build(reconciler);
    for name in options.gates.unknown {
        tracing::warn!(gate = name, "this feature gate means nothing here: ignored");
    }
    (controller, recorder)
}

/// Runs the controller until `shutdown`, and then to the end of what it was doing.
///
/// # Errors
///
/// When the API server does not let it begin within [`Options::sync_timeout`], or not everything ended in order.
///
/// # Cancel safety
///
/// Dropped, it drops the passes that are under way; a request that was sent may have been carried out.
///
/// # Panics
///
/// Outside of a tokio runtime.
pub async fn run(
    client: Client,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    let informers = factory(&client, &options);
    let sources = Sources::of(&informers);
    let (sync_timeout, drain_timeout) = (options.sync_timeout, options.drain_timeout);
    let (controller, events) = controller(client, &informers, options);
    let manager = Manager::new(informers).with(controller).drain_timeout(drain_timeout);
    let mut gave_up = None;
    let ended = manager
        .run_until(async {
            tokio::select! {
                biased;
                () = shutdown => {}
                error = sources.give_up_after(sync_timeout) => gave_up = Some(error),
            }
        })
        .await;
    events.shut_down().await;
    match gave_up {
        Some(error) => Err(error),
        None => Ok(ended?),
    }
}

fn factory(client: &Client, options: &Options) -> SharedInformerFactory {
    let mut builder = SharedInformerFactory::builder(client.clone());
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

// === impl Sources ===

impl Sources {
    fn of(informers: &SharedInformerFactory) -> Self {
        Self { sets: informers.informer(), pods: informers.informer() }
    }

    fn caches(&self) -> Caches {
        Caches {
            sets: self.sets.lister(),
            pods: self.pods.lister(),
            owned: self.pods.index_by_metadata(owner_of),
            orphans: self.pods.index_by_metadata(orphan_in),
            siblings: self.sets.index_by_metadata(controller_uid),
        }
    }

    /// Ends with an error when the caches take too long to be complete, and otherwise never. What keeps them is said
    /// early; after that the manager repeats it.
    async fn give_up_after(&self, timeout: Duration) -> RunError {
        let early = SAY_FIRST.min(timeout);
        let synced = async {
            self.sets.synced().await;
            self.pods.synced().await;
        };
        let too_late = async {
            tokio::time::sleep(early).await;
            let left = timeout.saturating_sub(early);
            tracing::error!("cannot begin: {}; trying for {} s", self.trouble(), left.as_secs());
            tokio::time::sleep(left).await;
        };
        tokio::select! {
            biased;
            () = synced => std::future::pending().await,
            () = too_late => RunError::NeverSynced { after: timeout, trouble: self.trouble() },
        }
    }

    fn trouble(&self) -> String {
        let sets = self.sets.last_error().map(|error| error.to_string());
        let pods = self.pods.last_error().map(|error| error.to_string());
        sets.or(pods)
            .unwrap_or_else(|| "the API server has not answered the first list yet".to_owned())
    }
}

/// The uid of what manages a `ReplicaSet`.
pub(crate) fn controller_uid(set: &ObjectMeta) -> Option<Box<str>> {
    controller_of(set).map(|owner| owner.uid.as_str().into())
}

/// The `ReplicaSet` that a pod names as its controller.
pub(crate) fn owner_of(pod: &ObjectMeta) -> Option<OwnerName> {
    let owner = controller_of(pod).filter(|owner| owner.kind == "ReplicaSet")?;
    Some(owner_name(pod.namespace.as_deref(), &owner.name, &owner.uid))
}

/// The namespace of a pod that nobody controls.
pub(crate) fn orphan_in(pod: &ObjectMeta) -> Option<Box<str>> {
    let namespace = || pod.namespace.as_deref().unwrap_or_default().into();
    controller_of(pod).is_none().then(namespace)
}
