//! Connects events of the caches to a reconciler.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use homeostat_expectations::GroupResource;
use homeostat_informer::{Event, Object};
use homeostat_workqueue::{Queue, QueueBuilder, default_controller_rate_limiter};
use kube_client::Resource;

use crate::any_controller::{AnyController, TimerCallback};
use crate::enqueue::Enqueue;
use crate::key_source::KeySource;
use crate::read_your_writes::ReadYourWrites;
use crate::request::Trigger;
use crate::target::Target;
use crate::watch::Watch;
use crate::work_limit::WorkLimit;
use crate::worker::ErrorPolicy;

use self::event_sources::{EventSources, Expectations, Subscribed};

pub use self::primary::{NoPrimary, Primary};

mod builder;
mod event_sources;
mod primary;
mod queue_options;
mod sources;

/// Long enough for 500 creates at 5 per second, five times over, and short enough that a reconcile
/// that hangs is noticed.
const DEFAULT_RECONCILE_TIMEOUT: Duration = Duration::from_secs(600);

/// A reconciler with its queue and its event handlers. A [`Manager`](crate::Manager) runs it.
///
/// It has one queue and, when the manager runs it, one task per worker. Its handlers run in the
/// informers' tasks. Dropping it ends its subscriptions.
///
/// # Examples
///
/// ```no_run
/// # use homeostat::{Action, Controller, Manager, Reconciler, Request};
/// # use homeostat::{SharedInformerFactory, shutdown_signal};
/// # use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
/// # struct MyReconciler;
/// # impl Reconciler<ReplicaSet> for MyReconciler {
/// #     type Error = std::convert::Infallible;
/// #     async fn reconcile(&self, _: &Request<ReplicaSet>) -> Result<Action, Self::Error> {
/// #         Ok(Action::AwaitChange)
/// #     }
/// # }
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let client = homeostat::client::builder().infer().await?.build();
/// let informers = SharedInformerFactory::new(&client);
/// let controller = Controller::builder("replicaset", &informers.informer::<ReplicaSet>())
///     .owns(&informers.informer::<Pod>())
///     .workers(4)
///     .build(MyReconciler);
/// Manager::new(informers).with(controller).run_until(shutdown_signal()).await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a controller does nothing until a manager runs it"]
pub struct Controller {
    inner: Box<dyn AnyController>,
}

/// A builder of a [`Controller`] for objects of type `K`, made by [`Controller::builder`].
///
/// Every method but [`build`](Self::build) only keeps an option: the order of the calls does not
/// matter.
///
/// # Examples
///
/// A controller that reconciles changes before the initial list, eight keys at a time, and gives
/// each reconcile a minute:
///
/// ```
/// use std::time::Duration;
///
/// use homeostat::{Controller, Priorities};
/// # use homeostat::{Controller as _Controller, Reconciler, SharedIndexInformer};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # fn doc(config_maps: &SharedIndexInformer<ConfigMap>, reconciler: impl Reconciler<ConfigMap>) {
/// let controller = Controller::builder("config-maps", config_maps)
///     .priorities(Priorities::default())
///     .workers(8)
///     .reconcile_timeout(Duration::from_secs(60))
///     .build(reconciler);
/// # }
/// ```
#[doc(alias = "NewControllerManagedBy")]
#[must_use = "a builder does nothing until `build`"]
pub struct ControllerBuilder<T: Target, P = Primary<T>> {
    name: Arc<str>,
    /// The informer of the controller's own objects, if it has one.
    primary: P,
    /// Subscribe to the other informers when all options are known.
    subscribers: Vec<Subscriber<T>>,
    sources: Vec<KeySource<T>>,
    timers: Vec<(Duration, TimerCallback<T>)>,
    expectations: Option<Expectations<T>>,
    /// At least 1.
    workers: usize,
    queue: QueueBuilder<T::Key, Trigger>,
    second_queue: Option<(Arc<str>, usize)>,
    /// The time after which a reconcile is dropped.
    timeout: Duration,
    error_policy: Option<ErrorPolicy<T>>,
    /// `None` retries a key at the priority that it had.
    retry_priority: Option<i32>,
    limit: Option<WorkLimit>,
    writes: Option<ReadYourWrites<T>>,
    /// The kinds whose caches report their versions to a [`ConsistencyStore`].
    ///
    /// [`ConsistencyStore`]: homeostat_expectations::ConsistencyStore
    consistent: Vec<GroupResource>,
}

type Mapper<P, T> = Box<dyn FnMut(&Event<P>, &Enqueue<T>) + Send>;
type Subscriber<T> = Box<dyn FnOnce(&EventSources<T>) -> Subscribed + Send>;

// === impl Controller ===

impl Controller {
    /// Returns a builder for a controller of the objects of `primary`. Each event of an object
    /// enqueues the object's key.
    ///
    /// An object that does not decode into its Rust type is not reconciled until it does: it
    /// exists, and the reconciler could not distinguish it from a deleted one.
    ///
    /// `name` appears in logs, spans and metrics. A manager refuses two controllers of one name.
    ///
    /// `primary` is an informer, or a [`Watch`] of it.
    pub fn builder<K: Object>(
        name: impl Into<Arc<str>>,
        primary: impl Into<Watch<K>>,
    ) -> ControllerBuilder<K> {
        ControllerBuilder::new(name.into(), Primary::new(primary.into()))
    }

    /// Returns a builder for a controller whose queue holds keys of an author's type: keys of
    /// several kinds, for example. [`Target`] has an example.
    ///
    /// It has no primary: every key comes from a mapper, a source or a timer. The reconciler
    /// checks itself for objects that do not decode ([`Lister::opaque`](crate::Lister::opaque)).
    pub fn for_keys<T: Target>(name: impl Into<Arc<str>>) -> ControllerBuilder<T, NoPrimary> {
        ControllerBuilder::new(name.into(), NoPrimary(PhantomData))
    }

    pub(crate) fn into_inner(self) -> Box<dyn AnyController> {
        self.inner
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.inner.name()).finish_non_exhaustive()
    }
}

// === impl ControllerBuilder ===

impl<T: Target, P> ControllerBuilder<T, P> {
    fn new(name: Arc<str>, primary: P) -> Self {
        let queue = Queue::builder().name(Arc::clone(&name)).causes(Trigger::merge);
        Self {
            queue: queue.rate_limiter(default_controller_rate_limiter()),
            name,
            primary,
            subscribers: Vec::new(),
            sources: Vec::new(),
            timers: Vec::new(),
            expectations: None,
            workers: 1,
            second_queue: None,
            timeout: DEFAULT_RECONCILE_TIMEOUT,
            error_policy: None,
            retry_priority: None,
            limit: None,
            writes: None,
            consistent: Vec::new(),
        }
    }
}

impl<T: Target, P> fmt::Debug for ControllerBuilder<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("name", &self.name)
            .field("queue", &self.queue)
            .field("workers", &self.workers)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Returns the group and resource of a kind, as a [`ConsistencyStore`](crate::ConsistencyStore)
/// names it.
///
/// # Examples
///
/// ```
/// use homeostat::{GroupResource, group_resource};
/// use k8s_openapi::api::core::v1::Pod;
///
/// assert_eq!(group_resource::<Pod>(), GroupResource::new("", "pods"));
/// ```
pub fn group_resource<Kind: Resource<DynamicType = ()>>() -> GroupResource {
    GroupResource::new(Kind::group(&()), Kind::plural(&()))
}
