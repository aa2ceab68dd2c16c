//! The handle, its builder, and the tower service.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use jiff::Timestamp;
use kube_client::Client;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::{BoxError, Service};

use crate::api;
use crate::clock::{Chance, Clock};
use crate::core::Core;
use crate::http::{self as wire, Body};
use crate::kinds::{Kind, Kinds};
use crate::listener::Listener;

/// A Kubernetes API server in this process.
///
/// This is a handle: cloning it is cheap, and all clones, clients and services are of the same server. The server ends
/// when the last of them is gone.
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::ApiServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::builder().seed(7).build();
/// let version = server.client().apiserver_version().await?;
/// assert_eq!(version.minor, "37");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

/// Configures an [`ApiServer`].
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    seed: u64,
    epoch: Option<Timestamp>,
    kinds: Vec<Kind>,
}

/// The server as a [`tower::Service`] of requests with a body of type `B`.
///
/// Each request runs in a task of its own: what has been asked for is done, though the caller drops the reply.
pub struct ApiService<B> {
    server: ApiServer,
    name: Option<HeaderValue>,
    body: PhantomData<fn(B)>,
}

/// The reply to one request.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct ReplyFuture {
    task: tokio::task::JoinHandle<Response<Body>>,
}

/// The name of the client that sent a request in process: an extension of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientName(pub Arc<str>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) core: Arc<Core>,
    /// The tasks of the requests. They end by themselves, or when the last handle goes.
    tasks: TaskTracker,
    _stop: DropGuard,
}

// === impl ClientName ===

impl ClientName {
    /// The name that a request comes with, as an extension or as the product of its `User-Agent`; empty if it has none.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        if let Some(name) = request.extensions().get::<Self>() {
            return name.clone();
        }
        let agent = request.headers().get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        Self(agent.split(['/', ' ']).next().unwrap_or_default().into())
    }
}

// === impl Builder ===

impl Builder {
    /// Where uids, generated names and the length of watches come from: the same seed gives the same.
    ///
    /// The default is 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The wall time at which the server starts. From then on it advances with tokio's clock.
    ///
    /// The default is the time at which it is built, so that clients that look at the real time understand it.
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Serves a further kind.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Starts the server: empty, but for the namespaces that every cluster has.
    pub fn build(self) -> ApiServer {
        let epoch = self.epoch.unwrap_or_else(Timestamp::now);
        let core = Core::new(Kinds::new(self.kinds), Clock::new(epoch), Chance::new(self.seed));
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            api::create_namespace(&core, name);
        }
        let stop = core.stopped.clone().drop_guard();
        ApiServer { inner: Arc::new(Inner { core, tasks: TaskTracker::new(), _stop: stop }) }
    }
}

// === impl ApiServer ===

impl ApiServer {
    /// A server with the usual settings.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Configures a server.
    pub fn builder() -> Builder {
        Builder { seed: 0, epoch: None, kinds: Vec::new() }
    }

    /// A client in process, whose default namespace is `default`. It does not retry.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: the client starts a task.
    pub fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    /// A client with a name: its requests carry it as their `User-Agent` and as a [`ClientName`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: the client starts a task.
    pub fn client_as(&self, name: &str) -> Client {
        let mut service = self.service();
        // A name that no header can hold is left out: it is only told, never checked.
        service.name = HeaderValue::from_str(name).ok();
        Client::new(service, "default")
    }

    /// The server as a service, for any kind of request body.
    pub fn service<B>(&self) -> ApiService<B> {
        ApiService { server: self.clone(), name: None, body: PhantomData }
    }

    /// Serves HTTP/1.1 and HTTP/2 without TLS at `address`; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, nothing listens.
    pub async fn listen(&self, address: SocketAddr) -> std::io::Result<Listener> {
        Listener::bind(self.clone(), address).await
    }

    /// Forgets the past, as a compaction of etcd does: lists and watches from before now are answered with 410. Watches
    /// that are open go on.
    pub fn compact(&self) {
        self.inner.core.compact();
    }

    /// Does what a restart does: what is stored stays, open watches end, and the past is forgotten.
    pub fn restart(&self) {
        self.inner.core.restart();
    }

    fn call<B>(&self, request: Request<B>) -> ReplyFuture
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let core = Arc::clone(&self.inner.core);
        let task = self.inner.tasks.spawn(async move {
            let stopped = core.stopped.clone();
            tokio::select! {
                biased;
                response = wire::serve(core, request) => response,
                () = stopped.cancelled() => unavailable(),
            }
        });
        ReplyFuture { task }
    }

    pub(crate) fn stopped(&self) -> CancellationToken {
        self.inner.core.stopped.clone()
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

fn unavailable() -> Response<Body> {
    let mut response = Response::new(Body::full("the server is gone\n"));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

// === impl ApiService ===

impl<B> Clone for ApiService<B> {
    fn clone(&self) -> Self {
        Self { server: self.server.clone(), name: self.name.clone(), body: PhantomData }
    }
}

impl<B> fmt::Debug for ApiService<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiService").field("server", &self.server).finish_non_exhaustive()
    }
}

impl<B> Service<Request<B>> for ApiService<B>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = ReplyFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if let Some(name) = &self.name {
            let text = name.to_str().unwrap_or_default();
            request.extensions_mut().insert(ClientName(text.into()));
            request.headers_mut().insert(header::USER_AGENT, name.clone());
        }
        self.server.call(request)
    }
}

// === impl ReplyFuture ===

impl Future for ReplyFuture {
    type Output = Result<Response<Body>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(cx).map_err(Into::into)
    }
}
