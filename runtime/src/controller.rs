//! Joins what happens in the caches to a reconciler.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use homeostat_expectations::{ConsistencyStore, GroupResource, UidTrackingExpectations};
use homeostat_informer::{
    Event, Lister, Object, ObjectKey, ResourceVersion, SharedIndexInformer, Subscription, Uid,
};
use homeostat_workqueue::{Priorities, Queue, RateLimiter};
use kube_client::Resource;
use tokio_util::sync::CancellationToken;

use crate::any_informer::AnyInformer;
use crate::enqueue::{Enqueue, Inbox};
use crate::owned::{Observer, owner_in};
use crate::reconciler::{Change, Reconciler, Why};
use crate::run::{Assembled, Run};
use crate::worker::Worker;

/// Long enough for 500 creates at 5 a second, five times over; short enough that a reconcile that hangs is noticed.
const DEFAULT_RECONCILE_TIMEOUT: Duration = Duration::from_secs(600);

/// A reconciler with its queue and what fills it. A [`Manager`](crate::Manager) runs it.
///
/// # Examples
///
/// ```no_run
/// # use homeostat::{Action, Controller, Manager, Reconciler, Request, SharedInformerFactory, shutdown_signal};
/// # use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
/// # struct MyReconciler;
/// # impl Reconciler<ReplicaSet> for MyReconciler {
/// #     type Error = std::convert::Infallible;
/// #     async fn reconcile(&self, _: &Request<ReplicaSet>) -> Result<Action, Self::Error> { Ok(Action::AwaitChange) }
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
    inner: Box<dyn Run>,
}

/// Makes a [`Controller`] for objects of type `K`.
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<K: Object> {
    name: Arc<str>,
    primary: SharedIndexInformer<K>,
    primary_mapper: Mapper<K, K>,
    /// What subscribes to the other informers, once the queue is there and all options are known.
    sources: Vec<Source<K>>,
    expectations: Option<Expectations<K>>,
    workers: usize,
    queue: homeostat_workqueue::Builder<ObjectKey<<K as Object>::Kind>>,
    timeout: Duration,
}

type Consistency<K> = ConsistencyStore<ObjectKey<<K as Object>::Kind>, Uid>;
type Expectations<K> = UidTrackingExpectations<ObjectKey<<K as Object>::Kind>, Uid>;
type Mapper<P, K> = Box<dyn FnMut(&Event<P>, &Enqueue<K>) + Send>;
type Source<K> = Box<dyn FnOnce(&Wiring<K>) -> (Box<dyn AnyInformer>, Subscription) + Send>;

/// What a source is joined to.
struct Wiring<K: Object> {
    controller: Arc<str>,
    inbox: Inbox<K>,
    owners: Lister<K>,
    expectations: Option<Expectations<K>>,
}

// === impl Controller ===

impl Controller {
    /// Starts a controller whose objects are those of `primary`: each of their events asks for its own key.
    ///
    /// An object that does not fit its Rust type is not reconciled: it is not gone, but its reconciler could not tell.
    ///
    /// The name appears in logs and spans; make it unique in the process.
    pub fn builder<K: Object>(
        name: impl Into<Arc<str>>,
        primary: &SharedIndexInformer<K>,
    ) -> Builder<K> {
        let name = name.into();
        Builder {
            queue: Queue::builder().name(Arc::clone(&name)),
            name,
            primary: primary.clone(),
            primary_mapper: Box::new(|event, enqueue| enqueue.add(event.key())),
            sources: Vec::new(),
            expectations: None,
            workers: 1,
            timeout: DEFAULT_RECONCILE_TIMEOUT,
        }
    }

    pub(crate) fn into_inner(self) -> Box<dyn Run> {
        self.inner
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.inner.name()).finish_non_exhaustive()
    }
}

// === impl Builder ===

impl<K: Object> Builder<K> {
    /// Lets `mapper` decide what each event of the primary asks for, instead of its own key.
    pub fn primary(mut self, mapper: impl FnMut(&Event<K>, &Enqueue<K>) + Send + 'static) -> Self {
        self.primary_mapper = Box::new(mapper);
        self
    }

    /// Asks for the owner of each object of `informer` that changes: the one that its controller reference names, by kind,
    /// group, name and UID, if it is in the primary's cache. When a reference moves, both owners are asked for.
    pub fn owns<P: Object>(mut self, informer: &SharedIndexInformer<P>) -> Self
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        let informer = informer.clone();
        self.sources.push(Box::new(move |wiring| wiring.own(&informer)));
        self
    }

    /// Keeps `expectations` in step with the objects that this controller [`owns`](Self::owns): one that is new lowers its
    /// owner's creations; one that is gone, or going, its deletions. That happens before the owner is asked for.
    ///
    /// A deletion is often told twice, as going and as gone: so these are expectations that know uids. Lower others by a
    /// mapper of [`watches`](Self::watches).
    pub fn expecting(mut self, expectations: &Expectations<K>) -> Self {
        self.expectations = Some(expectations.clone());
        self
    }

    /// Keeps `store` in step with what `informer`'s cache shows, and asks for the keys that waited for it: they are
    /// reconciled as soon as the cache is as new as what was written for them. Name each cache that the reconciler reads
    /// and writes, the primary included.
    pub fn consistency<P: Object>(
        mut self,
        store: &Consistency<K>,
        informer: &SharedIndexInformer<P>,
    ) -> Self
    where
        P::Kind: Resource<DynamicType = ()>,
    {
        let (store, informer) = (store.clone(), informer.clone());
        self.sources.push(Box::new(move |wiring| wiring.consistency(store, &informer)));
        self
    }

    /// Lets `mapper` decide what each event of another `informer` asks for.
    pub fn watches<P: Object>(
        mut self,
        informer: &SharedIndexInformer<P>,
        mapper: impl FnMut(&Event<P>, &Enqueue<K>) + Send + 'static,
    ) -> Self {
        let informer = informer.clone();
        self.sources.push(Box::new(move |wiring| {
            let name = Arc::clone(informer.name());
            let related = move |change| Why::Related { informer: Arc::clone(&name), change };
            wiring.subscribe(&informer, mapper, related)
        }));
        self
    }

    /// Lets `n` keys be reconciled at the same time (at least one; 1 unless told).
    pub fn workers(mut self, n: usize) -> Self {
        self.workers = n.max(1);
        self
    }

    /// Decides how long a key that failed waits. Unless told: 5 ms, doubled with each failure, up to 1,000 s.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectKey<K::Kind>>) -> Self {
        self.queue = self.queue.rate_limiter(limiter);
        self
    }

    /// Reconciles what has changed before what was only listed at the start or told once more by a resync, without letting
    /// that starve. A retry keeps its key's priority. Mappers can ask at other ones: [`Enqueue::at_priority`].
    pub fn priorities(mut self, priorities: Priorities) -> Self {
        self.queue = self.queue.priorities(priorities);
        self
    }

    /// Lets the keys of one priority take turns by this, for example by their namespace: none waits for all that are queued
    /// in another. What counts is the hash of what is returned.
    pub fn fair_by<D: Hash>(
        mut self,
        dimension: impl Fn(&ObjectKey<K::Kind>) -> D + Send + Sync + 'static,
    ) -> Self {
        self.queue = self.queue.fair_by(dimension);
        self
    }

    /// Ends a reconcile that takes longer, as if it had failed. Unless told: ten minutes.
    ///
    /// It is dropped where it stands: a request that it sent may have been carried out.
    pub fn reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The controller, subscribed to its informers. Nothing is reconciled before a [`Manager`](crate::Manager) runs it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, if one of the informers runs already.
    pub fn build<R: Reconciler<K>>(self, reconciler: R) -> Controller {
        let wiring = Wiring {
            controller: Arc::clone(&self.name),
            inbox: Inbox::new(self.queue.build()),
            owners: self.primary.lister(),
            expectations: self.expectations,
        };
        let mut informers: Vec<Box<dyn AnyInformer>> = Vec::new();
        let mut subscriptions = Vec::new();
        // The primary comes first: an owned object's event finds its owner only in the cache.
        let primary = wiring.subscribe(&self.primary, self.primary_mapper, Why::Itself);
        let sources = self.sources.into_iter().map(|source| source(&wiring));
        for (informer, subscription) in std::iter::once(primary).chain(sources) {
            informers.push(informer);
            subscriptions.push(subscription);
        }
        let worker = Worker {
            controller: self.name,
            inbox: wiring.inbox,
            primary: wiring.owners,
            reconciler: Arc::new(reconciler),
            timeout: self.timeout,
            cancellation: CancellationToken::new(),
        };
        Controller {
            inner: Box::new(Assembled::new(worker, self.workers, informers, subscriptions)),
        }
    }
}

impl<K: Object> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("queue", &self.queue)
            .field("workers", &self.workers)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

// === impl Wiring ===

impl<K: Object> Wiring<K> {
    fn subscribe<P: Object>(
        &self,
        informer: &SharedIndexInformer<P>,
        mut mapper: impl FnMut(&Event<P>, &Enqueue<K>) + Send + 'static,
        why: impl Fn(Change) -> Why + Send + 'static,
    ) -> (Box<dyn AnyInformer>, Subscription) {
        let inbox = self.inbox.clone();
        let handler = move |event: Event<P>| {
            mapper(&event, &inbox.enqueue(&event, why(Change::of(&event))));
        };
        let subscription = informer.add_handler(Arc::clone(&self.controller), handler);
        (Box::new(informer.clone()), subscription)
    }

    fn consistency<P: Object>(
        &self,
        store: Consistency<K>,
        informer: &SharedIndexInformer<P>,
    ) -> (Box<dyn AnyInformer>, Subscription)
    where
        P::Kind: Resource<DynamicType = ()>,
    {
        let why = Why::CaughtUp { informer: Arc::clone(informer.name()) };
        let inbox = self.inbox.clone();
        let resource = group_resource::<P::Kind>();
        let handler = move |version: &ResourceVersion| {
            for key in store.reached(&resource, version.as_str()) {
                inbox.add(key, 0, why.clone());
            }
        };
        let subscription = informer.add_version_handler(Arc::clone(&self.controller), handler);
        (Box::new(informer.clone()), subscription)
    }

    fn own<P: Object>(
        &self,
        informer: &SharedIndexInformer<P>,
    ) -> (Box<dyn AnyInformer>, Subscription)
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        let owners = self.owners.clone();
        let mut observer = self.expectations.clone().map(Observer::new);
        let mapper = move |event: &Event<P>, enqueue: &Enqueue<K>| {
            let owner = owner_in(&owners, event.metadata());
            if let (Some(observer), Some(owner)) = (&mut observer, &owner) {
                observer.observe(event, owner);
            }
            if let Event::Updated { old, .. } = event
                && let Some((key, _)) = owner_in(&owners, old.metadata())
                && owner.as_ref().map(|(now, _)| now) != Some(&key)
            {
                enqueue.add(key);
            }
            if let Some((key, _)) = owner {
                enqueue.add(key);
            }
        };
        let name = Arc::clone(informer.name());
        self.subscribe(informer, mapper, move |change| Why::Related {
            informer: Arc::clone(&name),
            change,
        })
    }
}

/// What a [`ConsistencyStore`] calls the resource of a kind.
pub fn group_resource<Kind: Resource<DynamicType = ()>>() -> GroupResource {
    GroupResource::new(Kind::group(&()), Kind::plural(&()))
}
