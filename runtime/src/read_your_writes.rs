//! [`ReadYourWrites`]: no reconcile starts on a cache that is older than the key's own writes.
//!
//! A layer of the client sees the `resourceVersion` of each write's answer. It runs in the task of
//! the reconcile, which has a task-local record of its key. So the author's code calls nothing.
//!
//! ```text
//!  reconcile ─▶ client ─▶ layer ─▶ server            informer ─▶ version handler
//!                           │ wrote_at(key, kind, version)            │ reached(kind, version)
//!                           └───────────▶ ConsistencyStore ◀──────────┘
//!                                              │ keys that waited
//!  worker: wait(key)? ◀────────────────────────┴──▶ queue
//! ```
//!
//! Kubernetes' `ConsistencyStore` (KEP-5647) needs a call of the author after each write. Here the
//! layer makes it.

mod layer;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use homeostat_expectations::{ConsistencyStore, GroupResource, Readiness};
use homeostat_informer::{Object, ResourceVersion, SharedIndexInformer, Subscription};
use http::Request;
use kube_client::client::Body;
use kube_client::{Client, Resource};
use tokio::time::Instant;
use tower::Layer;

pub use self::layer::{RecordWrites, RecordWritesLayer};
use self::layer::{WRITTEN, Written};
use crate::any_informer::AnyInformer;
use crate::target::Target;
use crate::text::Guarded;

/// Delays each reconcile until the caches show the key's own writes.
///
/// 1. Name the [`cache`](Self::cache) of each kind that the reconciler reads and writes.
/// 2. Give the client its [`layer`](Self::layer): it records the version of each write that a
///    reconcile sends.
/// 3. Pass it to
///    [`ControllerBuilder::read_your_writes`](crate::ControllerBuilder::read_your_writes).
///
/// A key whose writes are not in the caches is not reconciled. The cache wakes it when it shows
/// them; nothing polls. A log line names a cache that is 5 s late or more.
///
/// A cache should see all that the reconciler writes of its kind. A write outside of the cache's
/// scope (another namespace, a label that it does not select) delays the key until the cache
/// reports a later version: with another object, or with a bookmark, which servers send about once
/// a minute.
///
/// It sees writes that return a version: creations, updates, patches, and deletions that leave the
/// object with a finalizer or a grace period. It does not see a write whose reply is lost, and
/// requests of tasks that the reconciler spawns. Use
/// [`UidTrackingExpectations`](crate::UidTrackingExpectations) for objects with generated names.
///
/// Clones share their records. One record serves one controller: the caches of two would report
/// their versions out of order, as those of a restored server, and the writes would be forgotten.
///
/// It costs one entry per key with writes that its caches do not show yet, and the buffering of the
/// answers of writes.
///
/// # Examples
///
/// ```no_run
/// use homeostat::{Controller, Manager, ReadYourWrites, SharedInformerFactory, shutdown_signal};
/// # use homeostat::{Reconciler, kube_client::Client};
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
///
/// # async fn doc<R: Reconciler<ConfigMap>>(new_reconciler: impl Fn(Client) -> R)
/// #     -> Result<(), Box<dyn std::error::Error>> {
/// let builder = homeostat::client::builder().infer().await?;
/// let informers = SharedInformerFactory::new(&builder.clone().build());
/// let (maps, secrets) = (informers.informer::<ConfigMap>(), informers.informer::<Secret>());
/// let writes = ReadYourWrites::<ConfigMap>::new("copier").cache(&maps).cache(&secrets);
/// let controller = Controller::builder("copier", &maps)
///     .owns(&secrets)
///     .read_your_writes(&writes)
///     .build(new_reconciler(builder.layer(&writes.layer()).build()));
/// Manager::new(informers).with(controller).run_until(shutdown_signal()).await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "ConsistencyStore")]
pub struct ReadYourWrites<T: Target> {
    controller: Arc<str>,
    store: ConsistencyStore<T::Key, ()>,
    caches: Vec<Cache>,
    /// True if a controller has the record.
    is_used: Arc<AtomicBool>,
}

/// An informer whose objects a reconciler writes, without its type.
#[derive(Clone)]
struct Cache {
    resource: GroupResource,
    informer: Arc<dyn AnyInformer>,
    /// Adds a version handler to the informer.
    subscribe: Subscribe,
}

/// Erases the type of the informer's objects.
type Subscribe = Arc<dyn Fn(Arc<str>, VersionHandler) -> Subscription + Send + Sync>;
/// It is called for each version that a cache reaches, in the informer's task of this handler.
type VersionHandler = Box<dyn FnMut(&ResourceVersion) + Send>;

// === impl ReadYourWrites ===

impl<T: Target> ReadYourWrites<T> {
    /// Returns a record without caches. `controller` is the prefix of its metrics: see
    /// [`ConsistencyStore`].
    pub fn new(controller: impl Into<Arc<str>>) -> Self {
        let controller = controller.into();
        let store = ConsistencyStore::new(&controller, []);
        Self { controller, store, caches: Vec::new(), is_used: Arc::default() }
    }

    /// Waits for writes of the kind of `informer`. Call it before clones are made: they would not
    /// know the cache.
    ///
    /// # Panics
    ///
    /// Panics if it has a cache of this kind already. The older one of the two would look like that
    /// of a restored server, and the writes would be forgotten.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::{ReadYourWrites, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    ///
    /// fn writes(secrets: &SharedIndexInformer<Secret>) -> ReadYourWrites<ConfigMap> {
    ///     ReadYourWrites::new("copier").cache(secrets)
    /// }
    /// ```
    #[must_use]
    #[track_caller]
    pub fn cache<K: Object>(mut self, informer: &SharedIndexInformer<K>) -> Self
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        let resource = GroupResource::new(K::Kind::group(&()), K::Kind::plural(&()));
        let is_new = self.caches.iter().all(|cache| cache.resource != resource);
        assert!(is_new, "ReadYourWrites has a cache of {resource} already");
        let own = informer.clone();
        self.caches.push(Cache {
            resource,
            informer: Arc::new(informer.clone()),
            subscribe: Arc::new(move |name, handler| own.add_version_handler(name, handler)),
        });
        let resources = self.caches.iter().map(|cache| cache.resource.clone());
        self.store = ConsistencyStore::new(&self.controller, resources);
        self.is_used = Arc::default();
        self
    }

    /// Returns the layer for the client of the reconciler.
    ///
    /// It buffers the answer of each write. The layer itself belongs to no controller: several
    /// controllers may share a client that has it once.
    ///
    /// A write outside of a reconcile, and a read, pass unchanged and are not buffered.
    pub fn layer(&self) -> RecordWritesLayer {
        RecordWritesLayer::default()
    }

    /// Returns a client that sends through `client` and has the [`layer`](Self::layer), for a
    /// controller that is given a client.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(self.layer().layer(service), namespace)
    }

    /// Subscribes to the versions of the caches. `wake` gets the keys that waited.
    ///
    /// It is called once, when the controller is built. A version handler has its own task, so that
    /// a slow handler of events does not delay it.
    ///
    /// # Panics
    ///
    /// Panics if another controller has the record.
    pub(crate) fn subscribe(
        &self,
        name: &Arc<str>,
        wake: impl Fn(&Arc<dyn AnyInformer>, Vec<T::Key>) + Clone + Send + 'static,
    ) -> Vec<(Arc<dyn AnyInformer>, Subscription)> {
        let is_first = !self.is_used.swap(true, Ordering::Relaxed);
        assert!(is_first, "another controller has this ReadYourWrites already: make one for each");
        let subscribed = self.caches.iter().map(|cache| {
            let Cache { resource, informer, subscribe } = cache.clone();
            let (store, wake, of) = (self.store.clone(), wake.clone(), Arc::clone(&informer));
            let handler = move |version: &ResourceVersion| {
                wake(&of, store.reached(&resource, version.as_str()));
            };
            let subscription = subscribe(Arc::clone(name), Box::new(handler));
            (informer, subscription)
        });
        subscribed.collect()
    }

    /// Returns the time for which the key must wait for its own writes, or `None`.
    ///
    /// A cache that is late by 5 s or more is logged, and the wait grows with each call: the key is
    /// not reconciled on the old cache.
    pub(crate) fn wait(&self, key: &T::Key) -> Option<Duration> {
        match self.store.ready(key, &()) {
            Readiness::Ready => None,
            Readiness::Waiting { until, .. } => {
                Some(until.saturating_duration_since(Instant::now()))
            }
            Readiness::Overdue { missing } => {
                let late = missing.map(|missing| missing.to_string()).unwrap_or_default();
                let wait = self.store.still_late(key, &());
                let key = Guarded(key);
                tracing::warn!(%key, late, ?wait, "cache does not show own writes, waiting for it");
                Some(wait)
            }
        }
    }

    /// Runs `reconcile` with a record of the writes of `key`.
    ///
    /// # Cancel safety
    ///
    /// A write whose answer has been read to its end is recorded, also if the reconcile is dropped
    /// later.
    pub(crate) async fn recording<F: Future>(&self, key: &T::Key, reconcile: F) -> F::Output {
        let (store, key) = (self.store.clone(), key.clone());
        let written: Written =
            Arc::new(move |resource, version| store.wrote_at(&key, &(), resource, version));
        WRITTEN.scope(written, reconcile).await
    }
}

impl<T: Target> Clone for ReadYourWrites<T> {
    fn clone(&self) -> Self {
        let Self { controller, store, caches, is_used } = self;
        let (controller, is_used) = (Arc::clone(controller), Arc::clone(is_used));
        Self { controller, store: store.clone(), caches: caches.clone(), is_used }
    }
}

impl<T: Target> fmt::Debug for ReadYourWrites<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resources: Vec<_> = self.caches.iter().map(|cache| &cache.resource).collect();
        f.debug_struct("ReadYourWrites").field("resources", &resources).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tracing::subscriber::with_default;

    use super::*;
    use crate::text::Textless;

    #[tokio::test(start_paused = true)]
    async fn late_cache_is_logged_for_a_key_without_a_text() {
        let maps = GroupResource::new("", "configmaps");
        let store = ConsistencyStore::new("test", [maps.clone()]);
        let writes =
            ReadYourWrites::<Textless> { store: store.clone(), ..ReadYourWrites::new("test") };
        drop(store.reached(&maps, "1"));
        store.wrote_at(&Textless, &(), &maps, "2");
        assert_eq!(writes.wait(&Textless), Some(Duration::from_secs(5)));
        tokio::time::advance(Duration::from_secs(5)).await;
        let log = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
        assert_eq!(with_default(log, || writes.wait(&Textless)), Some(Duration::from_secs(10)));
    }
}
