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

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use homeostat_expectations::{ConsistencyStore, GroupResource, Readiness};
use homeostat_informer::{Object, ResourceVersion, SharedIndexInformer, Subscription};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Either, Full};
use kube_client::client::Body;
use kube_client::{Client, Resource};
use serde::Deserialize;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

use crate::any_informer::AnyInformer;
use crate::target::Target;
use crate::text::Guarded;

tokio::task_local! {
    /// Records a write of the reconcile that runs in this task.
    static WRITTEN: Written;
}

/// It has no key in its signature: the key is captured by [`recording`](ReadYourWrites::recording).
type Written = Arc<dyn Fn(&GroupResource, &str) + Send + Sync>;

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

/// A layer of a client that records the versions of writes; see [`ReadYourWrites::layer`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordWritesLayer(());

/// The service of a [`RecordWritesLayer`].
#[derive(Debug, Clone)]
pub struct RecordWrites<S> {
    inner: S,
}

/// Only the version of the answer is read. A field that it needs and does not find counts as empty.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    metadata: AnswerMetadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AnswerMetadata<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

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

// === impl RecordWritesLayer ===

impl<S> Layer<S> for RecordWritesLayer {
    type Service = RecordWrites<S>;

    fn layer(&self, inner: S) -> RecordWrites<S> {
        RecordWrites { inner }
    }
}

// === impl RecordWrites ===

type Recorded<B> = Response<Either<B, Full<Bytes>>>;

impl<S, R, B> Service<Request<R>> for RecordWrites<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Recorded<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Recorded<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    /// The body of a write is buffered to its end before the answer is returned. A failure to read
    /// it is the error of the request.
    fn call(&mut self, request: Request<R>) -> Self::Future {
        let resource = written_resource(&request);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            // The future is polled by the task that sent the request, the reconcile's.
            let written = WRITTEN.try_with(Arc::clone).ok();
            let (Some(resource), Some(written)) = (resource, written) else {
                return Ok(answer.map(Either::Left));
            };
            let (parts, body) = answer.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            if parts.status.is_success()
                && let Ok(answer) = serde_json::from_slice::<Answer<'_>>(&body)
                && !answer.metadata.resource_version.is_empty()
            {
                written(&resource, &answer.metadata.resource_version);
            }
            Ok(Response::from_parts(parts, Either::Right(Full::new(body))))
        })
    }
}

/// Returns the resource that `request` writes, or `None` if it writes nothing.
///
/// A write to a subresource is a write of the resource: it changes the same version. A dry run
/// writes nothing.
fn written_resource<R>(request: &Request<R>) -> Option<GroupResource> {
    let is_write =
        matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun="));
    if !is_write || is_dry {
        return None;
    }
    let segments: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let (group, rest) = match segments.as_slice() {
        ["api", _version, rest @ ..] => ("", rest),
        ["apis", group, _version, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let resource = match rest {
        // The subresources of a namespace: no resource of the core has these names.
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => "namespaces",
        ["namespaces", _, resource, ..] | [resource, ..] => *resource,
        [] => return None,
    };
    Some(GroupResource::new(group.to_owned(), resource.to_owned()))
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

    #[test]
    fn resource_of_a_write_is_read_from_its_path() {
        let written = |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            written_resource(&request)
        };
        let name =
            |group: &'static str, resource: &'static str| Some(GroupResource::new(group, resource));
        assert_eq!(written(Method::POST, "/api/v1/namespaces/ns/pods"), name("", "pods"));
        assert_eq!(written(Method::PUT, "/api/v1/nodes/n/status"), name("", "nodes"));
        assert_eq!(written(Method::DELETE, "/api/v1/namespaces/ns"), name("", "namespaces"));
        for subresource in ["status", "finalize"] {
            let path = format!("/api/v1/namespaces/ns/{subresource}");
            assert_eq!(written(Method::PUT, &path), name("", "namespaces"));
        }
        assert_eq!(
            written(Method::PATCH, "/apis/apps/v1/namespaces/ns/replicasets/a/status?force=true"),
            name("apps", "replicasets")
        );
        assert_eq!(written(Method::GET, "/api/v1/namespaces/ns/pods"), None);
        assert_eq!(written(Method::POST, "/api/v1/namespaces/ns/pods?dryRun=All"), None);
        assert_eq!(written(Method::POST, "/version"), None);
    }
}
