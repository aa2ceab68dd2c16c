//! The connections to one server that have the same client certificate and the same kind of
//! requests.
//!
//! A server that speaks HTTP/2 gets one connection for all requests. hyper's pool serves the
//! others: HTTP/1.1 has one request per connection at a time.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{self, BoxFuture, WeakShared};
use http::uri::Scheme;
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Either};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::Body;
use parking_lot::Mutex;
use tower::{BoxError, Service};

use super::connect_timeout::{ConnectTimeout, Connector};
use super::http2::{Failure, Http2, PING_AFTER, WhenFull};
use super::http2_body::Http2Body;
use super::http2_usage::{InFlight, PING_TIMEOUT};

/// The time after which an unused connection is closed: Go's.
///
/// `http.Transport.IdleConnTimeout` of client-go's transports.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// The body of an answer, of either protocol.
pub(super) type PoolBody = Either<Http2Body, Incoming>;

/// The connections of one kind. Clones share them; they are opened when a request needs them.
pub(super) struct Pool<C> {
    shared: Arc<Shared<C>>,
}

struct Shared<C> {
    connector: ConnectTimeout<C>,
    /// Used when TLS has not selected HTTP/2. Each of its connections may select it after all.
    http1: HyperClient<ConnectTimeout<C>, Body>,
    when_full: WhenFull,
    /// The lock is held to copy a handle.
    state: Mutex<State>,
}

/// The protocol that the server speaks, as far as it is known.
enum State {
    /// There is no connection.
    Closed,
    /// All requests wait for one attempt. It is dropped with the last of them.
    Connecting(WeakShared<Connecting>),
    Known(Protocol),
}

#[derive(Clone)]
enum Protocol {
    Http1,
    Http2(Http2),
}

type Connecting = BoxFuture<'static, Result<Protocol, ConnectError>>;

/// The reason why no connection was established, for all requests that waited for it.
#[derive(Debug, Clone)]
struct ConnectError(Arc<dyn std::error::Error + Send + Sync>);

// === impl Pool ===

impl<C: Connector> Pool<C> {
    pub(super) fn new(connector: ConnectTimeout<C>, when_full: WhenFull) -> Self {
        let http1 = HyperClient::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .http2_keep_alive_interval(PING_AFTER)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .build(connector.clone());
        let state = Mutex::new(State::Closed);
        Self { shared: Arc::new(Shared { connector, http1, when_full, state }) }
    }

    /// Sends a request and waits for the head of the answer.
    ///
    /// A body that is a stream is read to its end before it is sent with HTTP/2.
    pub(super) async fn request(
        self,
        request: Request<Body>,
    ) -> Result<Response<PoolBody>, Failure> {
        if needs_http1(&request) {
            return self.over_http1(request).await;
        }
        match self.open(request.uri()).await? {
            None => self.over_http1(request).await,
            Some((connection, in_flight)) => {
                let answer = connection.send(collected(request).await?, in_flight).await?;
                Ok(answer.map(Either::Left))
            }
        }
    }

    async fn over_http1(&self, request: Request<Body>) -> Result<Response<PoolBody>, Failure> {
        match self.shared.http1.request(request).await {
            Ok(answer) => Ok(answer.map(Either::Right)),
            // The name look-up, TCP, the proxy and the TLS handshake.
            Err(error) if error.is_connect() => Err(Failure::NotSent(error.into())),
            Err(error) => Err(Failure::NoAnswer(error.into())),
        }
    }

    /// Returns an open connection with room for a request, or `None` if the server speaks HTTP/1.1.
    ///
    /// A connection that has ended is replaced once. If the new one ends before it was used, the
    /// request fails: nothing was sent. A full one is replaced each time: it is full of other
    /// requests.
    async fn open(&self, server: &Uri) -> Result<Option<(Http2, InFlight)>, Failure> {
        let mut has_ended = false;
        loop {
            let protocol = self.protocol(server).await?;
            let Protocol::Http2(mut connection) = protocol else { return Ok(None) };
            let reserved = connection.reserve(self.shared.when_full);
            let is_full = reserved.is_none();
            if let Some(in_flight) = reserved
                && (has_ended || connection.is_open().await)
            {
                return Ok(Some((connection, in_flight)));
            }
            has_ended |= !is_full;
            self.forget(&connection);
        }
    }

    /// Waits for the attempt that is under way, or begins one.
    async fn protocol(&self, server: &Uri) -> Result<Protocol, Failure> {
        let connecting = {
            let mut state = self.shared.state.lock();
            match &*state {
                State::Known(protocol) => return Ok(protocol.clone()),
                State::Connecting(attempt) => attempt.upgrade(),
                State::Closed => None,
            }
            .unwrap_or_else(|| self.begin(server, &mut state))
        };
        connecting.await.map_err(|error| Failure::NotSent(error.into()))
    }

    fn begin(&self, server: &Uri, state: &mut State) -> future::Shared<Connecting> {
        let connecting = connect(Arc::clone(&self.shared), server.clone());
        let connecting = connecting.boxed().shared();
        *state = connecting.downgrade().map_or(State::Closed, State::Connecting);
        connecting
    }

    /// Removes a connection that takes no more requests, unless another request has replaced it.
    fn forget(&self, past: &Http2) {
        let mut state = self.shared.state.lock();
        if let State::Known(Protocol::Http2(current)) = &*state
            && current.is_same(past)
        {
            *state = State::Closed;
        }
    }
}

/// Opens a connection to `server` and stores it in the pool.
async fn connect<C: Connector>(
    shared: Arc<Shared<C>>,
    server: Uri,
) -> Result<Protocol, ConnectError> {
    let mut connector = shared.connector.clone();
    let connected = async {
        poll_fn(|cx| connector.poll_ready(cx)).await?;
        let stream = connector.call(server).await?;
        if !stream.connected().is_negotiated_h2() {
            return Ok(Protocol::Http1);
        }
        Ok::<_, BoxError>(Protocol::Http2(Http2::open(stream).await?))
    };
    let protocol = connected.await.map_err(|error| ConnectError(error.into()));
    *shared.state.lock() = protocol.clone().map_or(State::Closed, State::Known);
    protocol
}

/// Returns true if no connection for the request selects HTTP/2: only TLS does, and upgrades have a
/// connector that does not offer it.
fn needs_http1(request: &Request<Body>) -> bool {
    let is_https = request.uri().scheme() == Some(&Scheme::HTTPS);
    !is_https || request.headers().contains_key(header::UPGRADE)
}

/// Reads the body of `request` to its end. Most bodies are bytes already.
async fn collected(request: Request<Body>) -> Result<Request<Bytes>, Failure> {
    let (head, body) = request.into_parts();
    match body.collect().await {
        Ok(body) => Ok(Request::from_parts(head, body.to_bytes())),
        Err(error) => Err(Failure::NotSent(error.into())),
    }
}

impl<C> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

// === impl ConnectError ===

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests;
