//! The server's handle, and the tower service.

mod builder;
mod faults;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
#[cfg(feature = "tls")]
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use homeostat_faults::{ClientName, Faults, RequestInfo, RequestObject, RuleSet};
use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Request, Response, StatusCode};
use jiff::Timestamp;
use kube_client::Client;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::{BoxError, Layer as _, Service};

use crate::access::{Caller, User};
use crate::api;
use crate::core::Core;
#[cfg(feature = "tls")]
use crate::credentials::Credentials;
use crate::http::DocumentCache;
use crate::reply::Body;
use crate::view::ClientView;
use faults::{RequestFaults, ServerAction};

pub use builder::Builder;
pub use faults::ServerFault;

/// A Kubernetes API server in this process.
///
/// This is a handle: a clone refers to the same server, as do all clients and services. The server
/// ends when the last of them is dropped.
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

/// The server as a [`tower::Service`] of requests with a body of type `B`.
///
/// Each request runs in a task of its own. It is carried out even if the caller drops the reply.
pub struct ApiService<B> {
    server: ApiServer,
    caller: Caller,
    body: PhantomData<fn(B)>,
}

/// The reply to one request.
///
/// # Cancel safety
///
/// The server carries out the request even if this future is dropped.
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct ReplyFuture {
    task: tokio::task::JoinHandle<Response<Body>>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) core: Arc<Core>,
    documents: Arc<DocumentCache>,
    /// Certificates of authorities of clients, in PEM.
    #[cfg(feature = "tls")]
    client_authorities: String,
    /// The certificate that TLS shows, if the server does not make it.
    #[cfg(feature = "tls")]
    serving: Option<Credentials>,
    /// The value of the header `Strict-Transport-Security` of each reply.
    transport_security: Option<HeaderValue>,
    /// The faults that the server itself injects.
    rules: RuleSet<ServerAction>,
    /// The tasks of the requests. They end when the request is answered, or when the last handle is
    /// dropped.
    tasks: TaskTracker,
    _stop: DropGuard,
}

// === impl ApiServer ===

impl ApiServer {
    /// Starts a server with the default settings.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns the certificates of further authorities of clients, in PEM.
    #[cfg(feature = "tls")]
    pub(crate) fn client_authorities(&self) -> &str {
        &self.inner.client_authorities
    }

    /// Returns the certificate that TLS shows, if the server does not make it.
    #[cfg(feature = "tls")]
    pub(crate) fn serving_credentials(&self) -> Option<&Credentials> {
        self.inner.serving.as_ref()
    }

    /// Sets the address of the server in documents about it, if it has none yet.
    #[cfg(feature = "tls")]
    pub(crate) fn set_address(&self, address: SocketAddr) {
        self.inner.core.access.set_address(address);
    }

    /// Publishes the authorities of client certificates, in PEM.
    #[cfg(feature = "tls")]
    pub(crate) fn publish_authorities(&self, certificates: &str) {
        api::publish_authorities(&self.inner.core, certificates);
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Returns an in-process client with the default namespace `default`. It does not retry. Its
    /// requests pass through the server's [faults](Self::faults), as those of all clients do.
    ///
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the client starts a task.
    pub fn client(&self) -> Client {
        Client::new(self.faults().layer().layer(self.service()), "default")
    }

    /// Returns an in-process client with a name. Its requests carry the name as their `User-Agent`
    /// and as a [`ClientName`], and [`Calls::by`](homeostat_faults::Calls::by) selects them.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the client starts a task.
    pub fn client_as(&self, name: &str) -> Client {
        Client::new(self.faults().layer_as(name).layer(self.service()), "default")
    }

    /// Returns an in-process client that acts for a user. Its name is that of the user, as with
    /// [`client_as`](Self::client_as).
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the client starts a task.
    pub fn client_of(&self, user: User) -> Client {
        let layer = self.faults().layer_as(user.name());
        Client::new(layer.layer(self.service_of(user)), "default")
    }

    /// Issues a bearer token for a user. It is random and never expires. Requests over a socket
    /// send it in the header `Authorization`.
    pub fn token_of(&self, user: User) -> String {
        self.inner.core.access.issue(user)
    }

    /// Returns the time of the server's clock, for clients that should agree with it.
    pub fn now(&self) -> Timestamp {
        self.inner.core.clock.now()
    }

    /// Waits until the server stops because it cannot write its [state](Builder::state) file. From
    /// then on it answers each request with 503.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if this future is dropped.
    pub async fn wait_for_failure(&self) {
        self.inner.core.stopped.cancelled().await;
    }

    /// Returns the number of open watches. A watch ends when the server notices that its client is
    /// gone.
    pub fn watches(&self) -> usize {
        self.inner.core.watches()
    }

    /// Returns the faults that apply to the clients of this server, and the trace of all their
    /// requests. Faults that only the server can carry out are methods of the server; they appear
    /// in the same trace.
    pub fn faults(&self) -> Faults {
        self.inner.core.faults.clone()
    }

    /// Returns the server as a service for any type of request body. The faults do not apply to it.
    /// Its requests act for an administrator unless they carry a token.
    pub fn service<B>(&self) -> ApiService<B> {
        self.service_for(Caller::InProcess(self.inner.core.access.admin()))
    }

    /// Returns the server as a service whose requests act for a user unless they carry a token.
    /// The faults do not apply to it.
    pub fn service_of<B>(&self, user: User) -> ApiService<B> {
        self.service_for(Caller::InProcess(Arc::new(user)))
    }

    /// Returns the service for requests of one origin.
    pub(crate) fn service_for<B>(&self, caller: Caller) -> ApiService<B> {
        ApiService { server: self.clone(), caller, body: PhantomData }
    }

    /// Returns true if the credentials of a request name its user.
    pub(crate) fn is_authenticating(&self) -> bool {
        self.inner.core.access.authenticates()
    }

    fn call<B>(&self, caller: Caller, mut request: Request<B>) -> ReplyFuture
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let core = Arc::clone(&self.inner.core);
        let documents = Arc::clone(&self.inner.documents);
        let client = ClientName::of(&request);
        let injected = RequestFaults::draw(&self.inner.rules, || {
            let query = request.uri().query().unwrap_or_default();
            let info = RequestInfo::parse(request.method(), request.uri().path(), query);
            (client.clone(), info, RequestObject::of(&request))
        });
        request.extensions_mut().insert(caller);
        request
            .extensions_mut()
            .insert(ClientView { lag: injected.lag, ..core.client_view(client) });
        let (tasks, security) = (self.inner.tasks.clone(), self.inner.transport_security.clone());
        let task = self.inner.tasks.spawn(async move {
            let stopped = core.stopped.clone();
            injected.before.iter().for_each(|fault| faults::inject(&core, fault));
            // It is large. In a box, the task that tokio moves a few times is small.
            let served = Box::pin(crate::http::serve(Arc::clone(&core), documents, request));
            tokio::select! {
                biased;
                mut response = served => {
                    if let Some(security) = security {
                        response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, security);
                    }
                    if core.has_failed() {
                        return unavailable();
                    }
                    injected.after.iter().for_each(|fault| faults::inject(&core, fault));
                    api::serve_changed_definitions(&core);
                    if let Some(settling) = core.start_settling() {
                        tasks.spawn(api::settle(settling));
                    }
                    for resource in core.take_lost() {
                        tasks.spawn(api::recreate(Arc::clone(&core), resource));
                    }
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
        Self { server: self.server.clone(), caller: self.caller.clone(), body: PhantomData }
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
        self.server.call(self.caller.clone(), request)
    }
}

// === impl ReplyFuture ===

impl Future for ReplyFuture {
    type Output = Result<Response<Body>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(cx).map_err(Into::into)
    }
}
