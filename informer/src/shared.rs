//! [`SharedIndexInformer`]: joins the parts, and owns their tasks.

mod status;
mod transform;
mod waiting;

use std::{fmt, hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::transform::Transformed;
pub use self::{
    status::{HandlerStatus, InformerPhase, InformerStatus},
    waiting::{Unsynced, UntilError},
};
use crate::{
    backoff::BackoffConfig,
    delta_fifo::DeltaFifo,
    dispatcher::{self, HandlerOptions, HandlerTask, Outlet, Owner, Subscription},
    event::Event,
    index::Index,
    inside::{self, is_inside},
    list_watch::ListWatch,
    lister::Lister,
    metrics::{Labels, Measured, Metrics},
    object::{Object, ObjectMeta, ResourceVersion},
    reflector::{
        ErrorHandler, Health, Reflector, ReflectorError,
        state::{PAGE_SIZE, State, StateConfig},
    },
    store::Store,
};

/// Keeps a local copy of one kind, in step with the server, and tells every handler about every change of it.
///
/// A clone is one more handle on the same informer. Nothing runs until [`start`](Self::start); when the last handle
/// is dropped, everything that runs ends. Listers and indices stay readable, but do not keep it running.
///
/// Once the wire is well again after any fault, the copy equals the server, and every handler has seen a valid
/// sequence of events that leads there. A handler is told after the copy has changed, so what it looks up is at least
/// as new as what it is told.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use homeostat_informer::{Event, SharedIndexInformer, testing::ScriptedListWatch};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let server = ScriptedListWatch::<Pod>::new();
/// let pods = SharedIndexInformer::builder(server.clone()).name("pods").build();
/// let lister = pods.lister();
/// let by_node = pods.index(|pod: &Pod| pod.spec.as_ref()?.node_name.clone());
/// let subscription = pods.add_handler("print", |event: Event<Pod>| println!("{event:?}"));
/// pods.start();
///
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("a".into());
/// let watch = server.expect_watch().await.serve(vec![pod], "7");
/// pods.synced().await;
/// assert_eq!((lister.len(), by_node.get("node-1").len()), (1, 0));
/// # drop(watch);
/// subscription.remove().await;
/// pods.stop().await;
/// # }
/// ```
pub struct SharedIndexInformer<K: Object> {
    shared: Arc<Shared<K>>,
}

/// Settings of a [`SharedIndexInformer`].
#[must_use = "nothing is made before `build`"]
pub struct Builder<K: Object> {
    list_watch: Arc<dyn ListWatch<K>>,
    name: Option<Arc<str>>,
    seed: u64,
    config: StateConfig,
    labels: Option<Labels>,
    error_handler: Option<ErrorHandler>,
    fifo: DeltaFifo<K>,
}

/// What the handles share. The tasks hold parts of it, never all of it, so that it is dropped with the last handle.
struct Shared<K: Object> {
    name: Arc<str>,
    store: Arc<Store<K>>,
    fifo: Arc<DeltaFifo<K>>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    synced: watch::Sender<bool>,
    lifecycle: Mutex<Lifecycle<K>>,
    /// Cancelled to end every task.
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// `New` → `Running` → `Stopped`, or `New` → `Stopped`.
enum Lifecycle<K: Object> {
    New { reflector: Box<Reflector<K>>, handlers: Vec<HandlerTask<K>> },
    Running,
    Stopped,
}

// === impl SharedIndexInformer ===

impl<K: Object> SharedIndexInformer<K> {
    /// An informer of what `list_watch` lists.
    pub fn builder(list_watch: impl ListWatch<K>) -> Builder<K> {
        Builder {
            list_watch: Arc::new(list_watch),
            name: None,
            seed: 0,
            config: StateConfig {
                page_size: PAGE_SIZE,
                watch_list: true,
                backoff: BackoffConfig::default(),
            },
            labels: None,
            error_handler: None,
            fifo: DeltaFifo::in_order(),
        }
    }

    /// What this informer is called in messages.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Starts following the server. Does nothing if it has been started or stopped before.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(&self) {
        let shared = &self.shared;
        let mut lifecycle = shared.lifecycle.lock();
        if !matches!(*lifecycle, Lifecycle::New { .. }) {
            return;
        }
        let Lifecycle::New { reflector, handlers } =
            std::mem::replace(&mut *lifecycle, Lifecycle::Running)
        else {
            unreachable!("looked at above, under the same lock")
        };
        let (fifo, store) = (Arc::clone(&reflector.fifo), Arc::clone(&shared.store));
        let (synced, metrics) = (shared.synced.clone(), Arc::clone(&shared.metrics));
        let health = Arc::clone(&shared.health);
        for handler in handlers {
            shared.tasks.spawn(inside::run(handler.run()));
        }
        shared.spawn(async move {
            while let Some(batch) = fifo.pop().await {
                let taken = metrics.taken(|| batch.deltas.len() + fifo.len());
                let whole = store.apply_batch(batch);
                metrics.applied(&taken, || (fifo.len(), health.left_out()), &store);
                synced.send_if_modified(|synced| whole && !std::mem::replace(synced, true));
            }
        });
        shared.spawn(reflector.run());
    }

    /// Stops for good, and waits until every task has ended, running handlers included. Others go on.
    ///
    /// What was read stays readable, as it was. To begin again takes a new informer, with handlers of its own: a
    /// [`SharedInformerFactory`](crate::SharedInformerFactory) that is asked again makes one.
    ///
    /// From inside of a handler, or of other code that an informer calls, it does not wait: it might wait for itself. What
    /// runs then ends when it returns.
    ///
    /// # Cancel safety
    /// It stops either way; only the waiting ends.
    pub async fn stop(&self) {
        self.shared.stop.cancel();
        let previous = std::mem::replace(&mut *self.shared.lifecycle.lock(), Lifecycle::Stopped);
        drop(previous);
        self.shared.tasks.close();
        if !is_inside() {
            self.shared.tasks.wait().await;
        }
    }

    /// Reads the cache.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(Arc::clone(&self.shared.store))
    }

    /// Finds objects by values that `function` computes from each; before or after there are objects.
    ///
    /// The function should be quick and must be pure. If it panics, that object has no known value: see
    /// [`Index::has_opaque`]. Nothing is locked while it runs.
    pub fn index<V, I>(&self, function: impl Fn(&K) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        V: Eq + Hash + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        Index::new(&self.shared.store, function)
    }

    /// Like [`index`](Self::index), over what every object has, also one that does not fit its Rust type.
    pub fn index_by_metadata<V, I>(
        &self,
        function: impl Fn(&ObjectMeta) -> I + Send + Sync + 'static,
    ) -> Index<K, V>
    where
        V: Eq + Hash + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        Index::by_metadata(&self.shared.store, function)
    }

    /// Calls `callback` with everything that is there, and then with every change, in order and without a gap.
    ///
    /// A name is enough to say how; [`HandlerOptions`] says more. The handler has a task of its own: it may be slow
    /// without holding up anybody, but it must not block its thread. A panic costs it one event. It may be added at any
    /// time; after the informer has stopped it is never called.
    pub fn add_handler(
        &self,
        options: impl Into<HandlerOptions<K>>,
        callback: impl FnMut(Event<K>) + Send + 'static,
    ) -> Subscription {
        let store = &self.shared.store;
        let owner = self.shared.owner();
        self.subscribe(dispatcher::handler(options.into(), owner, store, Box::new(callback)))
    }

    /// Calls `callback` with each version of the server that the cache has reached, in order and after the cache has
    /// changed: that of a list, of events, deletions included, and of bookmarks. What was reached before comes first.
    ///
    /// A version goes back only when a list does: then the server has another history. For the rest, it is as
    /// [`add_handler`](Self::add_handler). Nothing is said about which of two handlers is told first.
    pub fn add_version_handler(
        &self,
        name: impl Into<Arc<str>>,
        callback: impl FnMut(&ResourceVersion) + Send + 'static,
    ) -> Subscription {
        let owner = self.shared.owner();
        self.subscribe(dispatcher::version_handler(name.into(), owner, Box::new(callback)))
    }

    fn subscribe(
        &self,
        (outlet, task, subscription): (Outlet<K>, HandlerTask<K>, Subscription),
    ) -> Subscription {
        let shared = &self.shared;
        match &mut *shared.lifecycle.lock() {
            Lifecycle::New { handlers, .. } => {
                shared.store.add_outlet(outlet);
                handlers.push(task);
            }
            Lifecycle::Running => {
                shared.store.add_outlet(outlet);
                shared.tasks.spawn(inside::run(task.run()));
            }
            Lifecycle::Stopped => {}
        }
        subscription
    }

    /// Whether the informer has been stopped: it does not start again.
    pub fn is_stopped(&self) -> bool {
        self.shared.stop.is_cancelled()
    }

    /// What went wrong last, unless something has succeeded since. Its text says verb, resource and reason.
    pub fn last_error(&self) -> Option<Arc<ReflectorError>> {
        self.shared.health.last_error()
    }

    /// The state of the server that the cache has reached.
    pub fn store_resource_version(&self) -> Option<ResourceVersion> {
        self.shared.store.resource_version()
    }

    /// How often an index function panicked.
    pub fn index_panics(&self) -> u64 {
        self.shared.store.index_panics()
    }
}

impl<K: Object> Clone for SharedIndexInformer<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Object> fmt::Debug for SharedIndexInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedIndexInformer")
            .field("name", &self.shared.name)
            .field("synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}

// === impl Builder ===

impl<K: Object> Builder<K> {
    /// What the informer is called in messages. The default is what is listed: `pods in namespace shop`.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Where the random source begins that spreads waits and watch time-outs. Equal seeds give equal runs; give each
    /// process another one.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How long to wait before a server that did not answer well is asked again.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.config.backoff = backoff;
        self
    }

    /// How many objects to ask for at once when listing. The default is 500.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.config.page_size = objects;
        self
    }

    /// Whether the whole state is asked for as a watch that begins with it. The default is yes: that is cheaper for
    /// both sides. A server that cannot do it is noticed, and listed.
    pub fn watch_list(mut self, watch_list: bool) -> Self {
        self.config.watch_list = watch_list;
        self
    }

    /// Changes each object as it comes from the server, before the cache or a handler sees it: to drop what nobody
    /// reads, for example. Namespace, name, uid and resource version must stay.
    ///
    /// The last one given comes last. An object whose change panics becomes one that does not fit its type.
    pub fn transform(mut self, function: impl Fn(&mut K) + Send + Sync + 'static) -> Self
    where
        K: Clone,
    {
        let function = Arc::new(function);
        self.list_watch = Arc::new(Transformed { list_watch: self.list_watch, function });
        self
    }

    /// Records metrics, under the names that Kubernetes' dashboards expect: with `name`, a name for all informers of
    /// this process, and with the resource that this one follows. Two informers may not have both in common.
    ///
    /// The recorder must be there before the informer is built. [`HISTOGRAM_BUCKETS`](crate::HISTOGRAM_BUCKETS) is for
    /// exporters.
    pub fn metrics(mut self, name: &str, resource: &kube_core::GroupVersionResource) -> Self {
        self.labels = Some(Labels::new(name, resource));
        self
    }

    /// Calls `handler` with each error between the informer and its server, an expired version included, before the
    /// informer waits or asks again. It should be quick; a panic of it ends nothing.
    pub fn error_handler(
        mut self,
        handler: impl Fn(&ReflectorError) + Send + Sync + 'static,
    ) -> Self {
        self.error_handler = Some(Box::new(handler));
        self
    }

    /// What queues between the reflector and the cache. The default is [`DeltaFifo::in_order`]: a list changes the cache
    /// in one step, and two objects are never seen in an order in which the server did not have them. With
    /// [`DeltaFifo::coalescing`] neither holds, and a version is reached when nothing waits any more.
    pub fn delta_fifo(mut self, fifo: DeltaFifo<K>) -> Self {
        self.fifo = fifo;
        self
    }

    /// Makes the informer. Nothing runs before it is started.
    pub fn build(self) -> SharedIndexInformer<K> {
        let store = Arc::new(Store::new());
        let health = Arc::new(Health::new(self.error_handler));
        let name = self.name.unwrap_or_else(|| self.list_watch.target());
        let fifo = Arc::new(self.fifo);
        let list_watch = match &self.labels {
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
        let lifecycle = Lifecycle::New { reflector: Box::new(reflector), handlers: Vec::new() };
        SharedIndexInformer {
            shared: Arc::new(Shared {
                name,
                store,
                fifo,
                metrics: Arc::new(Metrics::new(self.labels)),
                health,
                synced: watch::Sender::new(false),
                lifecycle: Mutex::new(lifecycle),
                stop: CancellationToken::new(),
                tasks: TaskTracker::new(),
            }),
        }
    }
}

impl<K: Object> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

// === impl Shared ===

impl<K: Object> Shared<K> {
    fn owner(&self) -> Owner<'_> {
        Owner { stop: &self.stop, metrics: &self.metrics }
    }

    /// Spawns a task that ends when the informer stops.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(inside::run(async move {
            stop.run_until_cancelled_owned(task).await;
        }));
    }
}

impl<K: Object> Drop for Shared<K> {
    fn drop(&mut self) {
        // The tasks see this when they are polled next. Whoever has to wait for that calls `stop`.
        self.stop.cancel();
    }
}
