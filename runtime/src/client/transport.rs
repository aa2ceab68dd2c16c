//! The way to a server: HTTP/2 under TLS where the server speaks it, HTTP/1.1 otherwise, credentials added on the way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{self, Client as HyperClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::Config;
use kube_client::client::{Body, ConfigExt};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use super::courteous::is_watch;
use super::error::{ClientError, TransportError};

#[cfg(feature = "rustls-tls")]
#[path = "transport/tls.rs"]
mod connector;
#[cfg(not(feature = "rustls-tls"))]
#[path = "transport/plain.rs"]
mod connector;

/// Go's client pings a connection that has been silent for 30 s, and gives it up 15 s later.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How much of one answer the server may send ahead: Go's number. A watch that sends 1,000 pods at once stays in it.
const STREAM_WINDOW: u32 = 4 << 20;
/// The same for all answers on a connection: sixteen that nobody reads do not hold up the others.
const CONNECTION_WINDOW: u32 = 64 << 20;

/// kube-client's default, for a config that names none.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The body of an answer, whatever it came through.
pub type TransportBody = UnsyncBoxBody<Bytes, BoxError>;

/// A way to send a request to one server, once. Clones share its connections.
#[derive(Clone)]
pub struct Transport {
    inner: BoxCloneSyncService<Request<Body>, Response<TransportBody>, BoxError>,
}

/// A connector that gives up after a while, TLS handshake included.
#[derive(Debug, Clone)]
struct Deadline<C> {
    inner: C,
    timeout: Duration,
}

/// Sends watches over connections of their own.
///
/// A server closes the watch of a client that takes its events too slowly. On a connection that hundreds of writes share,
/// a watch is slow however fast its reader is: the server writes its frames in between theirs.
#[derive(Debug, Clone)]
struct Apart<S> {
    calls: S,
    watches: S,
}

/// A server that takes connections and then says nothing for this long is as good as none.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
struct TooSlow(Duration);

/// Sets up the way to the server of `config`. Connects when the first request comes.
pub(super) fn connect(config: &Config) -> Result<Transport, ClientError> {
    if let Some(proxy) = &config.proxy_url {
        tracing::warn!(%proxy, server = %config.cluster_url, "proxies are not supported: connecting directly");
    }
    let server = config.cluster_url.to_string();
    let setup = |error: kube_client::Error| ClientError::Setup {
        server: server.clone(),
        source: error.into(),
    };
    let connector = Deadline {
        inner: connector::connector(config, tcp())?,
        timeout: config.connect_timeout.unwrap_or(CONNECT_TIMEOUT),
    };
    // Two pools: what a watch brings does not queue behind the answers to a burst of writes.
    let client = Apart { calls: http_client(connector.clone()), watches: http_client(connector) };
    let name = server.trim_end_matches('/').to_owned();
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(setup)?)
        .layer(config.extra_headers_layer().map_err(setup)?)
        .map_err(move |error| BoxError::from(in_words(&name, error)))
        .service(client);
    Ok(Transport::new(service))
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false); // TLS comes on top of it.
    tcp.set_nodelay(true); // Requests are small, and their answers are waited for.
    tcp.set_keepalive(Some(PING_AFTER)); // HTTP/1.1 has no pings of its own.
    tcp
}

fn http_client<C>(connector: C) -> HyperClient<C, Body>
where
    C: Connect + Clone + Send + Sync + 'static,
{
    HyperClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(connector)
}

fn in_words(server: &str, error: legacy::Error) -> TransportError {
    let server = server.to_owned();
    if error.is_connect() {
        TransportError::Unreachable { server, source: error.into() }
    } else {
        TransportError::Broken { server, source: error.into() }
    }
}

// === impl Transport ===

impl Transport {
    pub(super) fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = service
            .map_response(|response: Response<B>| {
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into);
        Self { inner: BoxCloneSyncService::new(service) }
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<TransportBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.inner.call(request)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

// === impl Apart ===

impl<S> Service<Request<Body>> for Apart<S>
where
    S: Service<Request<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        // A pool of connections is always ready: it connects when it is called.
        std::task::ready!(self.watches.poll_ready(cx))?;
        self.calls.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        let pool = if is_watch(request.uri()) { &mut self.watches } else { &mut self.calls };
        pool.call(request)
    }
}

// === impl Deadline ===

impl<C> Service<Uri> for Deadline<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let timeout = self.timeout;
        let connecting = self.inner.call(server);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected.map_err(Into::into),
                Err(_) => Err(TooSlow(timeout).into()),
            }
        })
    }
}
