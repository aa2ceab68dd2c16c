//! The connections to one server, with the client's credentials on each request.
//!
//! One request passes these steps: get the credentials, add the `Authorization` header, choose the
//! pool by certificate and by kind of request, send. After a 401 the steps are repeated once with
//! new credentials, if there are any. There is no other retry here: the layer above decides about
//! those.
//!
//! Dead connections are found by HTTP/2 pings and TCP probes. Without them a request on a
//! connection that a firewall has dropped waits for the kernel's timeout of about 15 minutes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{Connect, Connection, HttpConnector};
use hyper_util::client::legacy::{self, Client as HyperClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::Body;
use parking_lot::Mutex;
use tower::{BoxError, Service};

use super::credentials::{Credentials, Identity, Loaded, same_identity};
use super::error::TransportError;
use super::gathered::Gathered;
use super::transport::{copy, is_watch};

/// A connection with a request on it that was silent for 15 s is pinged, and closed after 10 s
/// without an answer (Go: 30 s, 15 s). A request on a dead connection fails after 25 s.
///
/// A shorter period costs a frame per connection more often; a longer one leaves a dead connection
/// undetected while an informer waits.
const PING_AFTER: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The same for HTTP/1.1, which has no pings: TCP probes, 5 s apart.
const PROBE_PERIOD: Duration = Duration::from_secs(5);
const PROBES: u32 = 2;
/// The same for data that the server does not acknowledge.
///
/// It is the sum of [`PING_AFTER`] and [`PING_TIMEOUT`], so that both kinds of connections fail
/// after the same time.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(25);

/// The time after which an unused connection is closed: Go's.
///
/// `http.Transport.IdleConnTimeout` of client-go's transports.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The bytes of one answer that the server may send ahead: Go's number. 1,000 pods of a watch fit.
const STREAM_WINDOW: u32 = 4 << 20;
/// The same for all answers of one connection: 16 answers that are not read do not block the
/// others.
const CONNECTION_WINDOW: u32 = 64 << 20;

/// The limit for the connect timeout of a config, whose default is 30 s. A lost packet then costs
/// one attempt, not half a minute.
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A service that sends requests to one server, with credentials. Clones share the connections.
///
/// A request that is answered with 401 is sent again if the credentials have changed since.
#[derive(Clone)]
pub(super) struct Connections<C> {
    shared: Arc<Shared<C>>,
}

/// The lock of `pools` is held to copy a handle, never while a request is sent.
struct Shared<C> {
    connector: ConnectTimeout<C>,
    credentials: Arc<Credentials>,
    pools: Mutex<Pools<C>>,
    /// The server's URL, for errors.
    server: String,
}

/// The connections that were opened with one client certificate. A new certificate gets new ones:
/// the server keeps the certificate of a connection. The old ones end with their last request.
///
/// Watches have separate connections. The API server closes the watch of a client that reads too
/// slowly. On a connection that hundreds of writes share, a watch is slow even if its reader is
/// fast, because the server interleaves their frames. See `docs/decisions/0002-transport.md`.
struct Pools<C> {
    identity: Option<Arc<Identity>>,
    /// For all requests but watches.
    calls: HyperClient<ConnectTimeout<C>, Body>,
    /// For watches alone.
    watches: HyperClient<ConnectTimeout<C>, Body>,
}

/// A connector with a timeout that includes the TLS handshake. Its streams gather their writes.
#[derive(Debug, Clone)]
pub(super) struct ConnectTimeout<C> {
    inner: C,
    timeout: Duration,
}

/// The error of a connection that was not established within the timeout.
///
/// It counts as unreachable: nothing was sent, so that any request may be repeated.
#[derive(Debug, thiserror::Error)]
#[error("no connection within {0:?}")]
struct ConnectTimedOut(Duration);

/// Returns the connector below TLS and proxies.
///
/// Keep-alive probes find a dead peer on an idle connection, `TCP_USER_TIMEOUT` on one with data
/// that is not acknowledged. The latter exists on Linux only.
pub(super) fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false); // The TLS connector accepts `https` URLs.
    tcp.set_nodelay(true); // Requests are small, and a caller waits for each answer.
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PROBE_PERIOD));
    tcp.set_keepalive_retries(Some(PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
    tcp
}

// === impl Connections ===

impl<C> Connections<C>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    ConnectTimeout<C>: Connect,
{
    pub(super) fn new(
        connector: C,
        timeout: Option<Duration>,
        credentials: Arc<Credentials>,
        server: String,
    ) -> Self {
        let timeout = timeout.unwrap_or(MAX_CONNECT_TIMEOUT).min(MAX_CONNECT_TIMEOUT);
        let connector = ConnectTimeout { inner: connector, timeout };
        let pools = Mutex::new(Pools::new(&connector, None));
        Self { shared: Arc::new(Shared { connector, credentials, pools, server }) }
    }

    /// The request is copied only if the credentials can change and its body is no stream.
    ///
    /// # Errors
    ///
    /// `NoCredentials` if they cannot be loaded, `Unreachable` if no connection could be opened,
    /// `Broken` if a connection failed after the request may have been sent.
    async fn send(self, request: Request<Body>) -> Result<Response<Incoming>, TransportError> {
        let credentials = &self.shared.credentials;
        let used = credentials.get().await.map_err(|source| TransportError::NoCredentials {
            server: self.shared.server.clone(),
            source,
        })?;
        let again = if credentials.can_change() { copy(&request) } else { None };
        let response = self.attempt(request, &used).await?;
        let Some(again) = again.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else {
            return Ok(response);
        };
        match credentials.get_after_refusal(&used).await {
            Some(fresh) => self.attempt(again, &fresh).await,
            None => Ok(response),
        }
    }

    /// A 401 is an answer, not an error.
    async fn attempt(
        &self,
        mut request: Request<Body>,
        credentials: &Loaded,
    ) -> Result<Response<Incoming>, TransportError> {
        if let Some(authorization) = &credentials.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        let pool = self.pool(credentials, is_watch(request.uri()));
        pool.request(request).await.map_err(|error| self.transport_error(error))
    }

    /// Returns the pool of connections with the certificate of `credentials`.
    ///
    /// Takes the lock for a comparison of two pointers. A new certificate replaces both pools;
    /// requests on the old connections go on.
    fn pool(&self, credentials: &Loaded, is_watch: bool) -> HyperClient<ConnectTimeout<C>, Body> {
        let mut pools = self.shared.pools.lock();
        if !same_identity(pools.identity.as_ref(), credentials.identity.as_ref()) {
            *pools = Pools::new(&self.shared.connector, credentials.identity.clone());
        }
        if is_watch { pools.watches.clone() } else { pools.calls.clone() }
    }

    /// Sorts an error by the question that a retry depends on: was anything sent?
    ///
    /// `is_connect` covers the name look-up, TCP, the proxy and the TLS handshake.
    fn transport_error(&self, error: legacy::Error) -> TransportError {
        let server = self.shared.server.clone();
        if error.is_connect() {
            TransportError::Unreachable { server, source: error.into() }
        } else {
            TransportError::Broken { server, source: error.into() }
        }
    }
}

impl<C> Service<Request<Body>> for Connections<C>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    ConnectTimeout<C>: Connect,
{
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(())) // A pool is always ready: it connects when it is called.
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let sending = self.clone().send(request);
        Box::pin(async move { sending.await.map_err(Into::into) })
    }
}

impl<C> fmt::Debug for Connections<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("server", &self.shared.server).finish_non_exhaustive()
    }
}

// === impl Pools ===

impl<C> Pools<C>
where
    C: Clone,
    ConnectTimeout<C>: Connect + Clone,
{
    /// Creates two empty pools. Connections are opened when a request needs them.
    fn new(connector: &ConnectTimeout<C>, identity: Option<Arc<Identity>>) -> Self {
        let pool = || {
            HyperClient::builder(TokioExecutor::new())
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_TIMEOUT)
                .http2_keep_alive_interval(PING_AFTER)
                .http2_keep_alive_timeout(PING_TIMEOUT)
                .http2_initial_stream_window_size(STREAM_WINDOW)
                .http2_initial_connection_window_size(CONNECTION_WINDOW)
                .build(connector.clone())
        };
        Self { identity, calls: pool(), watches: pool() }
    }
}

// === impl ConnectTimeout ===

impl<C> Service<Uri> for ConnectTimeout<C>
where
    C: Service<Uri>,
    C::Response: Connection,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    type Response = Gathered<C::Response>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    /// A connect that times out is dropped with its socket.
    fn call(&mut self, server: Uri) -> Self::Future {
        let timeout = self.timeout;
        let connecting = self.inner.call(server);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected.map(Gathered::new).map_err(Into::into),
                Err(_) => Err(ConnectTimedOut(timeout).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http_body_util::{BodyExt, Empty};
    use hyper::rt::{Read, ReadBufCursor, Write};
    use hyper::service::service_fn;
    use hyper_util::client::legacy::connect::Connected;
    use hyper_util::rt::TokioIo;
    use tokio::io::DuplexStream;
    use tokio::task::JoinSet;

    use super::*;

    /// The client's end of an HTTP/2 connection, with the number of writes to it.
    struct Counted {
        io: TokioIo<DuplexStream>,
        writes: Arc<AtomicUsize>,
    }

    impl Read for Counted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: ReadBufCursor<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.io).poll_read(cx, buffer)
        }
    }

    impl Write for Counted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.writes.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut self.io).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.io).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.io).poll_shutdown(cx)
        }
    }

    impl Connection for Counted {
        fn connected(&self) -> Connected {
            Connected::new().negotiated_h2()
        }
    }

    /// Answers each request when its body has arrived.
    async fn serve(io: DuplexStream) {
        let answer = service_fn(async |request: Request<Incoming>| {
            request.into_body().collect().await?;
            Ok::<_, hyper::Error>(Response::new(Empty::<Bytes>::new()))
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server.serve_connection(TokioIo::new(io), answer).await.unwrap();
    }

    #[tokio::test]
    async fn head_and_body_of_requests_leave_in_one_write() {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let mut server = JoinSet::new();
        server.spawn(serve(theirs));
        let writes = Arc::new(AtomicUsize::new(0));
        let stream = Counted { io: TokioIo::new(ours), writes: Arc::clone(&writes) };
        let stream = Arc::new(Mutex::new(Some(stream)));
        let connect = move |_: Uri| ready(stream.lock().take().ok_or("connected twice"));
        let connector = tower::service_fn(connect);
        let connector = ConnectTimeout { inner: connector, timeout: MAX_CONNECT_TIMEOUT };
        let pools = Pools::new(&connector, None);
        let post = |bytes: usize| {
            let body = Body::from(vec![b'x'; bytes]);
            pools.calls.request(Request::post("http://server/").body(body).unwrap())
        };
        post(1).await.unwrap();
        let settled = writes.load(Ordering::Relaxed);
        // h2 copies short bodies behind their heads. A stream without vectored writes, as this
        // one, gets longer bodies in writes of their own.
        let (first, second) = tokio::join!(post(200), post(200));
        assert_eq!(
            (first.unwrap().status(), second.unwrap().status()),
            (StatusCode::OK, StatusCode::OK)
        );
        assert_eq!(writes.load(Ordering::Relaxed) - settled, 1);
    }
}
