//! The controller, built from its parts: two caches, an index, a queue, a reconciler.

use std::future::Future;
use std::time::Duration;

use homeostat::informer::Scope;
use homeostat::kube_client::Client;
use homeostat::workqueue::{BucketRateLimiter, ExponentialFailureRateLimiter, MaxOfRateLimiter};
use homeostat::{
    Controller, EventRecorder, Manager, ObjectKey, RateLimiter, ReadYourWrites, RunError,
    SharedInformerFactory, Watch,
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;

use crate::foo::Foo;
use crate::reconcile::FooReconciler;
use crate::reported::Reported;
use crate::requests::Requests;

/// The options of the controller. The defaults are upstream's.
///
/// # Examples
///
/// ```
/// use homeostat_sample::Options;
///
/// let options = Options { workers: 10, ..Options::default() };
/// assert_eq!(options.resync.as_secs(), 30);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of Foos that are reconciled concurrently (default 2).
    pub workers: usize,
    /// The period after which each Foo is reconciled again without a change (default 30 s).
    pub resync: Duration,
    /// The only namespace whose Foos are reconciled. `None` (the default) means all.
    pub namespace: Option<String>,
    /// The time for the initial lists after which [`run`] returns an error (default 2 minutes).
    pub sync_timeout: Duration,
    /// The current wall time for a reproducible run. `None` (the default) uses the machine's clock.
    pub epoch: Option<Timestamp>,
    /// The seed of jitter for a reproducible run. `None` (the default) takes a random seed.
    pub seed: Option<u64>,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            workers: 2,
            resync: Duration::from_secs(30),
            namespace: None,
            sync_timeout: Duration::from_secs(120),
            epoch: None,
            seed: None,
        }
    }
}

/// Returns the controller for a [`Manager`] that may run others with the same informers, and the
/// recorder of its events for [`Manager::recorder`].
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn controller(
    client: Client,
    informers: &SharedInformerFactory,
    options: &Options,
) -> (Controller, EventRecorder) {
    // One cache per kind. Another controller of the factory that needs Deployments shares this one.
    let foos = informers.informer::<Foo>();
    let deployments = informers.informer::<Deployment>();

    // A Foo does not own a Deployment whose name is taken. This index finds it nevertheless.
    let foos_by_deployment = foos.index(|foo: &Foo| Some(deployment_key(foo)));

    // No pass starts on a cache that does not show what the last pass has written.
    let writes = ReadYourWrites::new("sample").cache(&foos).cache(&deployments);
    let events = recorder(client.clone(), options);
    let reconciler = FooReconciler {
        foos: foos.lister(),
        deployments: deployments.lister(),
        requests: Requests::new(writes.client(client)),
        events: events.clone(),
        reported: Reported::default(),
    };
    let controller = Controller::builder("sample", Watch::of(&foos).resync(options.resync))
        .owns(&deployments)
        .watches(&deployments, move |event, enqueue| {
            for foo in foos_by_deployment.keys(&event.key()) {
                enqueue.add(foo);
            }
        })
        .read_your_writes(&writes)
        .rate_limiter(rate_limiter())
        .workers(options.workers)
        .build(reconciler);
    (controller, events)
}

/// Returns a manager of the controller alone: add leader election and services to it, and run it.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn manager(client: Client, options: &Options) -> Manager {
    let mut factory = SharedInformerFactory::builder(client.clone());
    if let Some(namespace) = &options.namespace {
        factory = factory.scope(Scope::namespace(namespace));
    }
    if let Some(seed) = options.seed {
        factory = factory.seed(seed);
    }
    let informers = factory.build();
    let (controller, events) = controller(client, &informers, options);
    Manager::new(informers).with(controller).recorder(&events).sync_timeout(options.sync_timeout)
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
/// use homeostat_sample::Options;
///
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let client = homeostat::client::builder().infer().await?.build();
/// homeostat_sample::run(client, &Options::default(), homeostat::shutdown_signal()).await?;
/// # Ok(())
/// # }
/// ```
pub async fn run(
    client: Client,
    options: &Options,
    shutdown: impl Future<Output = ()>,
) -> Result<(), RunError> {
    manager(client, options).run_until(shutdown).await
}

/// Returns the key of the Deployment that `foo` names.
fn deployment_key(foo: &Foo) -> ObjectKey<Deployment> {
    ObjectKey::new(foo.metadata.namespace.as_deref(), &foo.spec.deployment_name)
}

/// Returns upstream's limiter: the longer of a back-off per Foo and a bucket for all.
fn rate_limiter() -> MaxOfRateLimiter<ObjectKey<Foo>> {
    let per_foo =
        ExponentialFailureRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1000));
    MaxOfRateLimiter::new([
        Box::new(per_foo) as Box<dyn RateLimiter<ObjectKey<Foo>>>,
        Box::new(BucketRateLimiter::new(50.0, 300)),
    ])
}

fn recorder(client: Client, options: &Options) -> EventRecorder {
    let mut builder = EventRecorder::builder(client, "sample-controller");
    if let Some(epoch) = options.epoch {
        builder = builder.epoch(epoch);
    }
    if let Some(seed) = options.seed {
        builder = builder.seed(seed);
    }
    builder.build()
}
