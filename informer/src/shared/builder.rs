//! [`InformerBuilder`]: the settings of an informer.

use std::fmt;
use std::sync::Arc;

use metrics::Counter;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::failure::Failure;
use super::transform::Transformed;
use super::{Lifecycle, Shared, SharedIndexInformer};
use crate::apply::Applier;
use crate::backoff::BackoffConfig;
use crate::delta_fifo::DeltaFifo;
use crate::list_watch::ListWatch;
use crate::metrics::{Labels, Measured, Metrics};
use crate::object::Object;
use crate::reflector::state::{State, StateConfig};
use crate::reflector::{ErrorHandler, Health, Reflector};
use crate::status::ReflectorError;
use crate::store::Store;
use crate::timeouts::TimeoutConfig;

/// The settings of a [`SharedIndexInformer`].
///
/// Made by [`SharedIndexInformer::builder`]. Each setting has a default that suits a controller: a
/// list-watch is the only thing that must be given.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_informer::testing::ScriptedListWatch;
/// use homeostat_informer::{BackoffConfig, SharedIndexInformer};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let mut backoff = BackoffConfig::default();
/// backoff.max = Duration::from_secs(10);
/// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new())
///     .name("pods")
///     .backoff(backoff)
///     .transform(|pod: &mut Pod| pod.metadata.managed_fields = None)
///     .build();
/// assert_eq!(&**pods.name(), "pods");
/// ```
#[doc(alias = "SharedIndexInformerOptions")]
#[must_use = "call `build`"]
pub struct InformerBuilder<K: Object> {
    list_watch: Arc<dyn ListWatch<K>>,
    /// `None`: the text of the list-watch's target.
    name: Option<Arc<str>>,
    seed: Option<u64>,
    config: StateConfig,
    /// `None`: no metrics.
    labels: Option<Labels>,
    error_handler: Option<ErrorHandler>,
    fifo: DeltaFifo<K>,
}

// === impl InformerBuilder ===

impl<K: Object> InformerBuilder<K> {
    pub(super) fn new(list_watch: Arc<dyn ListWatch<K>>) -> Self {
        Self {
            list_watch,
            name: None,
            seed: None,
            config: StateConfig::default(),
            labels: None,
            error_handler: None,
            fifo: DeltaFifo::in_order(),
        }
    }

    /// Sets the name that logs and errors use. The default describes the collection: `pods in
    /// namespace shop`.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the seed of the random source that spreads waits and watch timeouts. Equal seeds give
    /// equal runs. By default the operating system seeds it, so that the clients of a server that
    /// restarts do not return in step.
    ///
    /// Set it in a test that compares two runs. Do not set a constant in production: replicas with
    /// one seed retry in step.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the wait before a failed request is repeated. See [`BackoffConfig`] for the defaults.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.config.backoff = backoff;
        self
    }

    /// Sets the number of objects per page of a list. The default is 500, client-go's. With 0, a
    /// list is requested in one piece.
    #[doc(alias = "WatchListPageSize")]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.config.page_size = objects;
        self
    }

    /// Sets whether the initial state is requested as a watch that begins with it
    /// (`sendInitialEvents`). The default is true: this takes less memory on both sides. If the
    /// server does not support it, the informer falls back to a list.
    #[doc(alias = "WatchListClient")]
    pub fn watch_list(mut self, watch_list: bool) -> Self {
        self.config.watch_list = watch_list;
        self
    }

    /// Sets the limits of the requests. See [`TimeoutConfig`] for the defaults.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use homeostat_informer::{SharedIndexInformer, TimeoutConfig};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let mut timeouts = TimeoutConfig::default();
    /// timeouts.initial_events = Duration::from_secs(600);
    /// let server = ScriptedListWatch::<Pod>::new();
    /// let pods = SharedIndexInformer::builder(server).timeouts(timeouts).build();
    /// assert!(!pods.has_synced());
    /// ```
    #[doc(alias = "MinWatchTimeout")]
    pub fn timeouts(mut self, timeouts: TimeoutConfig) -> Self {
        self.config.timeouts = timeouts;
        self
    }

    /// Sets whether the first list may be served from the server's cache (`resourceVersion=0`), as
    /// client-go's is. The default is false: the first list is the newest state.
    ///
    /// Use it with API servers before 1.31, which read every other list from etcd, and with many
    /// clients of one collection. The first state may then be old, even older than one that this
    /// process has seen before a restart. It has no effect on a watch-list; see
    /// [`watch_list`](Self::watch_list).
    pub fn list_from_cache(mut self, from_cache: bool) -> Self {
        self.config.from_cache = from_cache;
        self
    }

    /// Changes each object before the cache or a handler sees it, for example to drop fields that
    /// nothing reads. Namespace, name, uid and resource version must stay.
    ///
    /// Several functions run in the order in which they were given. An object whose function panics
    /// becomes one that does not fit its type.
    #[doc(alias = "SetTransform")]
    #[doc(alias = "TransformFunc")]
    pub fn transform(mut self, function: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Clone,
    {
        let function = Arc::new(function);
        self.list_watch = Arc::new(Transformed { list_watch: self.list_watch, function });
        self
    }

    /// Records metrics under the names that Kubernetes' dashboards expect. The labels are `name`,
    /// which all informers of a process may share, and the resource.
    ///
    /// No two informers may have both in common: the second one logs an error when it is built, and
    /// records nothing. The labels are free again when the first one begins to stop, has failed or
    /// was dropped.
    ///
    /// Install the recorder before the informer is built.
    /// [`HISTOGRAM_BUCKETS`](crate::metrics::HISTOGRAM_BUCKETS) holds the buckets for exporters.
    /// Without this call no metrics are recorded.
    pub fn metrics(mut self, name: &str, resource: &kube_core::GroupVersionResource) -> Self {
        self.labels = Some(Labels::new(name, resource));
        self
    }

    /// Calls `handler` with each failure of a list or watch, including an expired version, before
    /// the informer waits or retries. It should be quick. Its panic is logged and ends nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new())
    ///     .error_handler(|error| eprintln!("{error}"))
    ///     .build();
    /// assert!(pods.last_error().is_none());
    /// ```
    #[doc(alias = "SetWatchErrorHandler")]
    #[doc(alias = "WatchErrorHandler")]
    pub fn error_handler(
        mut self,
        handler: impl Fn(&ReflectorError) + Send + Sync + 'static,
    ) -> Self {
        self.error_handler = Some(Box::new(handler));
        self
    }

    /// Sets the queue between the reflector and the cache. The default is [`DeltaFifo::in_order`]:
    /// a list changes the cache in one step, and the cache passes only through states that the
    /// server had. With [`DeltaFifo::coalescing`] neither holds, and a version counts as reached
    /// when the queue is empty.
    ///
    /// Use the coalescing queue if objects change faster than the store applies them and
    /// intermediate states do not matter.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::fifo::DeltaFifo;
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new())
    ///     .delta_fifo(DeltaFifo::coalescing())
    ///     .build();
    /// assert!(!pods.has_synced());
    /// ```
    pub fn delta_fifo(mut self, fifo: DeltaFifo<K>) -> Self {
        self.fifo = fifo;
        self
    }

    /// Builds the informer. No task runs before it is started.
    ///
    /// Needs no tokio runtime. Call [`start`](SharedIndexInformer::start) in one.
    #[doc(alias = "NewSharedIndexInformer")]
    #[doc(alias = "NewSharedIndexInformerWithOptions")]
    pub fn build(self) -> SharedIndexInformer<K> {
        let store = Arc::new(Store::new());
        let name = self.name.unwrap_or_else(|| self.list_watch.target());
        let reserved = self.labels.and_then(Labels::reserve);
        let labels = reserved.as_ref().map(|reserved| &reserved.labels);
        let errors = labels.map_or_else(Counter::noop, Labels::errors);
        let health = Arc::new(Health::new(Arc::clone(&name), errors, self.error_handler));
        let fifo = Arc::new(self.fifo);
        let list_watch = match labels {
            Some(labels) => Arc::new(Measured::new(self.list_watch, labels)),
            None => self.list_watch,
        };
        let reflector = Reflector {
            list_watch,
            fifo: Arc::clone(&fifo),
            store: Arc::clone(&store),
            state: State::new(self.config, self.seed),
            health: Arc::clone(&health),
        };
        let (stop, metrics) = (CancellationToken::new(), Arc::new(Metrics::new(reserved)));
        let lifecycle = Lifecycle::New { reflector: Box::new(reflector), handlers: Vec::new() };
        SharedIndexInformer {
            shared: Arc::new(Shared {
                name: Arc::clone(&name),
                applier: Arc::new(Applier::new(Arc::clone(&store))),
                store,
                fifo,
                failure: Arc::new(Failure::new(name, stop.clone(), Arc::clone(&metrics))),
                metrics,
                health,
                synced: watch::Sender::new(false),
                lifecycle: Mutex::new(lifecycle),
                stop,
                tasks: TaskTracker::new(),
            }),
        }
    }
}

impl<K: Object> fmt::Debug for InformerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("name", &self.name)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
