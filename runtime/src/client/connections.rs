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

use http::{Request, Response, StatusCode, header};
use hyper_util::client::legacy::connect::HttpConnector;
use kube_client::client::Body;
use parking_lot::Mutex;
use tower::{BoxError, Service};

use super::connect_timeout::{ConnectTimeout, Connector, Connectors};
use super::credentials::{Credentials, Identity, Loaded, same_identity};
use super::error::TransportError;
use super::http2::{Failure, PING_AFTER, WhenFull};
use super::pool::{Pool, PoolBody};
use super::requests::{copy, is_long_running};

/// The same for HTTP/1.1, which has no pings: TCP probes, 5 s apart.
const PROBE_PERIOD: Duration = Duration::from_secs(5);
const PROBES: u32 = 2;
/// The same for data that the server does not acknowledge.
///
/// It is the sum of [`PING_AFTER`] and of the timeout of a ping, so that both kinds of connections
/// fail after the same time.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(25);

/// A service that sends requests to one server, with credentials. Clones share the connections.
///
/// A request that is answered with 401 is sent again if the credentials have changed since.
#[derive(Clone)]
pub(super) struct Connections<C> {
    shared: Arc<Shared<C>>,
}

/// The lock of `pools` is held to copy a handle, never while a request is sent.
struct Shared<C> {
    connectors: Connectors<ConnectTimeout<C>>,
    credentials: Arc<Credentials>,
    pools: Mutex<Pools<C>>,
    /// The server's URL, for errors.
    server: String,
}

/// The connections that were opened with one client certificate. A new certificate gets new ones:
/// the server keeps the certificate of a connection. The old ones end with their last request.
///
/// Watches, followed logs and other answers without an end have separate connections: a connection
/// takes 100 requests at once, and calls wait for a place on theirs. Also, the API server closes
/// the watch of a client that reads too slowly. On a connection that hundreds of writes share, a
/// watch is slow even if its reader is fast, because the server interleaves their frames. See
/// `docs/decisions/0002-transport.md`.
struct Pools<C> {
    identity: Option<Arc<Identity>>,
    /// For all other requests.
    calls: Pool<C>,
    /// For watches, and other answers without an end.
    watches: Pool<C>,
    /// For requests that turn their connection into another protocol, such as `exec` over a
    /// WebSocket. HTTP/2 has no such requests: its connection belongs to all of them.
    upgrades: Pool<C>,
}

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

impl<C: Connector> Connections<C> {
    pub(super) fn new(
        connectors: Connectors<ConnectTimeout<C>>,
        credentials: Arc<Credentials>,
        server: String,
    ) -> Self {
        let pools = Mutex::new(Pools::new(&connectors, None));
        Self { shared: Arc::new(Shared { connectors, credentials, pools, server }) }
    }

    /// The request is copied only if the credentials can change and its body is no stream.
    ///
    /// # Errors
    ///
    /// `NoCredentials` if they cannot be loaded, `Unreachable` if no connection could be opened,
    /// `NotProcessed` if the server did not look at the request, `Broken` if a connection failed
    /// after the request may have been sent.
    async fn send(self, request: Request<Body>) -> Result<Response<PoolBody>, TransportError> {
        let credentials = &self.shared.credentials;
        let used = credentials.get_for_request().await.map_err(|source| {
            TransportError::NoCredentials { server: self.shared.server.clone(), source }
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
    ) -> Result<Response<PoolBody>, TransportError> {
        if let Some(authorization) = &credentials.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        let pool = self.pool(credentials, &request);
        pool.request(request).await.map_err(|error| self.transport_error(error))
    }

    /// Returns the pool for `request` of connections with the certificate of `credentials`.
    ///
    /// Takes the lock for a comparison of two pointers. A new certificate replaces all pools;
    /// requests on the old connections go on.
    fn pool(&self, credentials: &Loaded, request: &Request<Body>) -> Pool<C> {
        let mut pools = self.shared.pools.lock();
        if !same_identity(pools.identity.as_ref(), credentials.identity.as_ref()) {
            *pools = Pools::new(&self.shared.connectors, credentials.identity.clone());
        }
        let pool = if request.headers().contains_key(header::UPGRADE) {
            &pools.upgrades
        } else if is_long_running(request.uri()) {
            &pools.watches
        } else {
            &pools.calls
        };
        pool.clone()
    }

    /// Sorts an error by the question that a retry depends on: was anything sent?
    fn transport_error(&self, failure: Failure) -> TransportError {
        let server = self.shared.server.clone();
        match failure {
            Failure::NotSent(source) => TransportError::Unreachable { server, source },
            Failure::NotProcessed(source) => TransportError::NotProcessed { server, source },
            Failure::NoAnswer(source) => TransportError::Broken { server, source },
        }
    }
}

impl<C: Connector> Service<Request<Body>> for Connections<C> {
    type Response = Response<PoolBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<PoolBody>, BoxError>> + Send>>;

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

impl<C: Connector> Pools<C> {
    /// Creates empty pools. Connections are opened when a request needs them.
    fn new(connectors: &Connectors<ConnectTimeout<C>>, identity: Option<Arc<Identity>>) -> Self {
        let Connectors { any, http1 } = connectors;
        Self {
            identity,
            calls: Pool::new(any.clone(), WhenFull::Waits),
            watches: Pool::new(any.clone(), WhenFull::Connects),
            upgrades: Pool::new(http1.clone(), WhenFull::Waits),
        }
    }
}
