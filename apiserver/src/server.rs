//! The handle, its builder, and the tower service.

mod trouble;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use jiff::Timestamp;
use kube_client::Client;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::{BoxError, Layer as _, Service};

use crate::api;
use crate::clock::{Chance, Clock};
use crate::core::Core;
use crate::duplex::Duplex;
use crate::faults::{self, Faults};
use crate::http::{self as wire, Body};
use crate::kinds::{Kind, Kinds};
use crate::listener::Listener;
use crate::view::Sight;

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
    seed: Option<u64>,
    epoch: Option<Timestamp>,
    kinds: Vec<Kind>,
}

/// The server as a [`tower::Service`] of requests with a body of type `B`.
///
/// Each request runs in a task of its own: what has been asked for is done, though the caller drops the reply.
pub struct ApiService<B> {
    server: ApiServer,
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

/// When a server with a seed starts: 2026-01-01T00:00:00Z.
const AGREED: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Keeps the faults' chance apart from that of names and uids.
const FAULTS: u64 = 0x6661_756c_7473_2121;

/// So much of a `User-Agent` is a name.
const LONGEST_NAME: usize = 256;

// === impl ClientName ===

impl ClientName {
    /// The name that a request comes with, as an extension or as the product of its `User-Agent`; empty if it has none.
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        if let Some(name) = request.extensions().get::<Self>() {
            return name.clone();
        }
        let agent = request.headers().get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let product = agent.split(['/', ' ']).next().unwrap_or_default();
        // Header values that are text are ASCII.
        Self(product.get(..LONGEST_NAME).unwrap_or(product).into())
    }
}

// === impl Builder ===

impl Builder {
    /// Where uids, generated names, the length of watches and all chance among the [faults](ApiServer::faults) come
    /// from: the same seed gives the same.
    ///
    /// A server with a seed also starts at the same time in every run, unless [`epoch`](Self::epoch) says when. Without
    /// one the seed is 0, and the time is the real one.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The wall time at which the server starts. From then on it advances with tokio's clock.
    ///
    /// The default is the time at which it is built, so that clients that look at the real time understand it; with a
    /// [`seed`](Self::seed) it is the first second of 2026.
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
        let epoch = self.epoch.unwrap_or_else(|| self.seed.map_or_else(Timestamp::now, |_| AGREED));
        let seed = self.seed.unwrap_or(0);
        // Another stream of chance than that of the names, so that a fault more changes no name.
        let faults = Faults::seeded(seed ^ FAULTS);
        let chance = Chance::new(seed);
        let core = Core::new(Kinds::new(self.kinds), Clock::new(epoch), chance, faults);
        api::populate(&core);
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
        Builder { seed: None, epoch: None, kinds: Vec::new() }
    }

    /// A client in process, whose default namespace is `default`. It does not retry. Its requests pass the server's
    /// [faults](Self::faults), as those of every client of this server do.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: the client starts a task.
    pub fn client(&self) -> Client {
        Client::new(self.faults().layer().layer(self.service()), "default")
    }

    /// A client with a name: its requests carry it as their `User-Agent` and as a [`ClientName`], and
    /// [`Calls::by`](crate::faults::Calls::by) tells them from others.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime: the client starts a task.
    pub fn client_as(&self, name: &str) -> Client {
        Client::new(self.faults().layer_as(name).layer(self.service()), "default")
    }

    /// What the server's clock shows: for clients that are to have the same time.
    pub fn now(&self) -> Timestamp {
        self.inner.core.clock.now()
    }

    /// How many watches are open. One whose client has gone away is not, as soon as that is known.
    pub fn watches(&self) -> usize {
        self.inner.core.watches()
    }

    /// What can be done to the clients of this server: faults on the conversation, and the trace of all of them. What
    /// only the server can do is a method of the server, and goes into the same trace.
    pub fn faults(&self) -> Faults {
        self.inner.core.faults.clone()
    }

    /// The server as a service, for any kind of request body. No fault of the conversation touches it.
    pub fn service<B>(&self) -> ApiService<B> {
        ApiService { server: self.clone(), body: PhantomData }
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

    /// HTTP/1.1 through pipes in memory: the framing of a real connection, under a clock that may be paused.
    pub fn duplex(&self) -> Duplex {
        Duplex::new(self.clone())
    }

    fn call<B>(&self, mut request: Request<B>) -> ReplyFuture
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let core = Arc::clone(&self.inner.core);
        let client = ClientName::of(&request);
        let orders = core
            .faults
            .orders(|| faults::Call::parse(Arc::clone(&client.0), request.method(), request.uri()));
        request.extensions_mut().insert(Sight { lag: orders.lag, ..core.sight(client) });
        let task = self.inner.tasks.spawn(async move {
            let stopped = core.stopped.clone();
            orders.before.iter().for_each(|trouble| trouble::undergo(&core, trouble));
            let served = wire::serve(Arc::clone(&core), request);
            tokio::select! {
                biased;
                response = served => {
                    orders.after.iter().for_each(|trouble| trouble::undergo(&core, trouble));
                    response
                }
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
        Self { server: self.server.clone(), body: PhantomData }
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

    fn call(&mut self, request: Request<B>) -> Self::Future {
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
