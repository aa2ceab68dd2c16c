//! [`SharedIndexInformer`]: joins the parts of the pipeline, and owns their tasks.
//!
//! The informer runs two tasks of its own, the reflector and the [`ApplyTask`], and one for each
//! handler. Handles share [`Shared`]; tasks hold only the parts that they need, so that dropping
//! the last handle ends them. Every task is marked for [`callback`], so that `stop` called by one
//! of them does not wait for itself.

mod builder;
mod failure;
mod handlers;
mod status;
mod stream;
mod transform;
mod waiting;
mod weak;

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use homeostat_core::user_code;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::builder::InformerBuilder;
use self::failure::Failure;
pub use self::stream::{EventStream, Lagged, Overflow};
pub use self::waiting::{Unsynced, WaitError};
pub use self::weak::WeakInformer;
use crate::apply::{Applier, ApplyTask};
use crate::callback;
use crate::callback::in_callback;
use crate::delta_fifo::DeltaFifo;
use crate::index::Index;
use crate::list_watch::ListWatch;
use crate::lister::Lister;
use crate::metrics::Metrics;
use crate::object::{Object, ObjectMeta, ResourceVersion};
use crate::processor::HandlerTask;
use crate::reflector::{Health, Reflector};
use crate::status::{InformerTask, ReflectorError};
use crate::store::Store;

/// Keeps a local copy of one kind in step with the server, and delivers every change to every
/// handler.
///
/// A clone is another handle on the same informer. No task runs before [`start`](Self::start). When
/// the last handle is dropped, every task ends. Listers and indices stay readable, and do not keep
/// the informer running.
///
/// Once the connection works again after any fault, the copy equals the server, and every handler
/// has received a valid sequence of events that leads there. A handler receives an event after the
/// copy has changed: an object that the handler looks up is at least as new as the event.
///
/// Use it for one kind that a controller reads often or reacts to. Use a
/// [`SharedInformerFactory`](crate::SharedInformerFactory) instead for several kinds, or when
/// several controllers of a process read the same kind. For a single read, a client's `get` costs
/// less than a copy of the kind.
///
/// It costs one watch, one copy of the kind in memory, two tasks, and a task for each handler.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use homeostat_informer::{Event, SharedIndexInformer};
/// use homeostat_informer::testing::ScriptedListWatch;
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
/// pods.wait_for_sync().await;
/// assert_eq!((lister.len(), by_node.get("node-1").len()), (1, 0));
/// # drop(watch);
/// subscription.remove().await;
/// pods.stop().await;
/// # }
/// ```
#[doc(alias = "NewSharedIndexInformer")]
#[doc(alias = "SharedInformer")]
pub struct SharedIndexInformer<K: Object> {
    shared: Arc<Shared<K>>,
}

/// The state that the handles share. A task holds parts of it, never all of it: it is dropped with
/// the last handle.
struct Shared<K: Object> {
    /// For logs and errors; it identifies nothing.
    name: Arc<str>,
    store: Arc<Store<K>>,
    applier: Arc<Applier<K>>,
    fifo: Arc<DeltaFifo<K>>,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    /// True once the initial list is in the store; never false again.
    synced: watch::Sender<bool>,
    /// Locked before the locks of the applier and the store.
    lifecycle: Mutex<Lifecycle<K>>,
    /// Cancelled to end every task.
    stop: CancellationToken,
    /// The boundary around the tasks.
    failure: Arc<Failure>,
    /// Every task of the informer. Closed by `stop`, which waits until it is empty.
    tasks: TaskTracker,
}

/// `New` → `Running` → `Stopped`, or `New` → `Stopped`.
///
/// Changed only under its lock, by `start` and `stop`. A task that ends by itself does not change
/// it.
enum Lifecycle<K: Object> {
    /// Not started. → `Running` by `start`, `Stopped` by `stop`.
    ///
    /// Holds what the tasks will own, since no task runs yet.
    New { reflector: Box<Reflector<K>>, handlers: Vec<HandlerTask<K>> },
    /// The tasks run, in this runtime. → `Stopped` by `stop`.
    Running(Handle),
    /// No task starts any more.
    Stopped,
}

// === impl SharedIndexInformer ===

impl<K: Object> SharedIndexInformer<K> {
    /// Returns the settings of an informer of what `list_watch` lists.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn doc(client: kube_client::Client) {
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::list_watch::KubeListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let list_watch = KubeListWatch::<Pod>::new(client, Some("shop"));
    /// let pods = SharedIndexInformer::builder(list_watch).build();
    /// assert_eq!(&**pods.name(), "pods in namespace shop");
    /// # }
    /// ```
    pub fn builder(list_watch: impl ListWatch<K>) -> InformerBuilder<K> {
        InformerBuilder::new(Arc::new(list_watch))
    }

    /// Returns the name that logs and errors use for this informer.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.name
    }

    /// Starts following the server. Does nothing if the informer was started or stopped before.
    ///
    /// Returns at once; [`wait_for_sync`](Self::wait_for_sync) waits for the initial list. Handlers
    /// and indices may be added before or after.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime. The informer is then as before and can be started later.
    #[doc(alias = "Run")]
    #[doc(alias = "RunWithContext")]
    pub fn start(&self) {
        let shared = &self.shared;
        let mut lifecycle = shared.lifecycle.lock();
        if !matches!(*lifecycle, Lifecycle::New { .. }) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            panic!(
                "informer {} cannot start outside of a tokio runtime: call `start` in an async \
                 function or after `Runtime::enter`",
                shared.name
            );
        };
        let Lifecycle::New { reflector, handlers } =
            std::mem::replace(&mut *lifecycle, Lifecycle::Running(runtime.clone()))
        else {
            unreachable!("looked at above, under the same lock")
        };
        let apply = ApplyTask {
            applier: Arc::clone(&shared.applier),
            fifo: Arc::clone(&shared.fifo),
            metrics: Arc::clone(&shared.metrics),
            health: Arc::clone(&shared.health),
            synced: shared.synced.clone(),
        };
        for handler in handlers {
            shared.spawn_handler(handler, &runtime);
        }
        shared.spawn(InformerTask::Apply, apply.run());
        shared.spawn(InformerTask::Reflector, reflector.run());
    }

    /// Stops for good, and waits until every task has ended, running handlers included.
    ///
    /// The cache stays readable as it was. A stopped informer cannot start again: build another
    /// one, with handlers of its own. A [`SharedInformerFactory`](crate::SharedInformerFactory)
    /// builds one for the next caller of `informer`.
    ///
    /// Called from a handler, or from other code that an informer calls, it does not wait, because
    /// it could wait for itself. The calls that are running then are the last.
    ///
    /// # Cancel safety
    ///
    /// The informer stops once this future was polled. If the future is dropped then, only the wait
    /// ends.
    #[doc(alias = "Shutdown")]
    pub async fn stop(&self) {
        self.shared.end();
        let previous = std::mem::replace(&mut *self.shared.lifecycle.lock(), Lifecycle::Stopped);
        // The drop of the list-watch is the author's code; a task would contain its panic, too.
        if user_code("drop", || drop(previous)).is_err() {
            let informer = &*self.shared.name;
            tracing::error!(informer, "the drop of a list-watch panicked; its memory is lost");
        }
        self.shared.tasks.close();
        if !in_callback() {
            self.shared.tasks.wait().await;
        }
    }

    /// Returns a reader of the cache.
    ///
    /// It can be taken before the start, and is empty until the initial list is in the cache. Each
    /// call returns another handle on the same cache.
    #[doc(alias = "GetStore")]
    #[doc(alias = "GetIndexer")]
    pub fn lister(&self) -> Lister<K> {
        Lister::new(Arc::clone(&self.shared.store))
    }

    /// Adds an index: it finds objects by the values that `function` computes from each. Indices
    /// can be added at any time.
    ///
    /// Keep the result: an index is removed with its last handle.
    ///
    /// The function must be pure and should be quick. It must not capture a handle on this
    /// informer, which would keep it running for good: use a [`WeakInformer`]. If it panics for an
    /// object, the values of that object are unknown: see [`Index::has_opaque`]. No lock is held
    /// while it runs.
    ///
    /// An index that is added while the informer runs is filled in pieces of 1024 objects, so
    /// readers and the watch wait for at most one piece. The call itself returns when the index is
    /// complete.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let by_node = pods.index(|pod: &Pod| pod.spec.as_ref()?.node_name.clone());
    /// assert!(by_node.get("node-1").is_empty());
    /// ```
    #[doc(alias = "AddIndexers")]
    pub fn index<V, I>(&self, function: impl Fn(&K) -> I + Send + Sync + 'static) -> Index<K, V>
    where
        V: Eq + Hash + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        Index::new(&self.shared.store, function)
    }

    /// Adds an index over metadata, which objects that do not fit their Rust type have as well. See
    /// [`index`](Self::index).
    ///
    /// Use it for labels, owner references and annotations: a count by such an index stays exact
    /// although an object cannot be decoded.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::{ObjectMeta, SharedIndexInformer};
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let app = |metadata: &ObjectMeta| metadata.labels.as_ref()?.get("app").cloned();
    /// let by_app = pods.index_by_metadata(app);
    /// assert!(by_app.keys("web").is_empty());
    /// ```
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

    /// Returns true if the informer was stopped or has failed. It does not start again.
    #[doc(alias = "IsStopped")]
    pub fn is_stopped(&self) -> bool {
        self.shared.stop.is_cancelled()
    }

    /// Returns the last failure, or `None` if a request has succeeded since. Its text names the
    /// verb, the resource and the reason.
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn last_error(&self) -> Option<Arc<ReflectorError>> {
        self.shared.health.last_error()
    }

    /// Returns the server's version that the cache has reached.
    ///
    /// `None` before the initial list. The same as [`Lister::resource_version`].
    #[doc(alias = "LastSyncResourceVersion")]
    pub fn store_resource_version(&self) -> Option<ResourceVersion> {
        self.shared.store.resource_version()
    }

    /// Returns the number of panics of index functions.
    ///
    /// All indices of the informer count together, from its build on. A number above 0 is a bug of
    /// an index function; each panic is caught.
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

// === impl Shared ===

impl<K: Object> Shared<K> {
    /// Ends every task. The labels of the metrics are free before: a thread that sees the informer
    /// as stopped may build its successor at once.
    fn end(&self) {
        self.metrics.release();
        self.stop.cancel();
    }

    /// Spawns a task that ends when the informer stops. A panic of it stops the informer.
    fn spawn(&self, task: InformerTask, work: impl Future<Output = ()> + Send + 'static) {
        let (stop, failure) = (self.stop.clone(), Arc::clone(&self.failure));
        self.tasks.spawn(callback::mark(async move {
            let work = async move {
                stop.run_until_cancelled_owned(work).await;
            };
            failure.contain(task, work).await;
        }));
    }
}

impl<K: Object> Drop for Shared<K> {
    fn drop(&mut self) {
        // The tasks end at their next poll. A caller that must wait for that calls `stop`.
        self.end();
    }
}
