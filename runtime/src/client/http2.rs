//! One HTTP/2 connection, on which many requests are under way at once.
//!
//! It uses h2 directly. hyper's client is built on h2 too, and adds a channel, two tasks and the
//! locks of a pool to each request; it also writes the head of a request before its body. See
//! `docs/decisions/0002-transport.md` for what that costs.
//!
//! ```text
//! request ── send ──> h2's queues ── drive ──> socket
//! answer  <── Http2Body ── h2's buffers <── drive ──┘
//! ```

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use h2::{Ping, PingPong, Reason};
use http::header::{self, HeaderName, HeaderValue};
use http::{Request, Response};
use hyper::rt::{Executor, Read, Write};
use hyper_util::rt::TokioExecutor;
use tokio::time::{Instant, sleep_until, timeout};
use tower::BoxError;

use super::http2_body::Http2Body;
use super::http2_socket::Socket;
use super::http2_usage::{InFlight, PING_TIMEOUT, Usage};

/// A connection with a request on it that was silent for 15 s is pinged, and closed after
/// [`PING_TIMEOUT`], 10 s, without an answer (Go: 30 s, 15 s). A request on a dead connection fails
/// after 25 s.
///
/// A shorter period costs a frame per connection more often; a longer one leaves a dead connection
/// undetected while an informer waits.
pub(super) const PING_AFTER: Duration = Duration::from_secs(15);

/// The bytes of one answer that the server may send ahead: Go's number. 1,000 pods of a watch fit.
const STREAM_WINDOW: u32 = 4 << 20;
/// The same for all answers of one connection: 16 answers that are not read do not block the
/// others.
const CONNECTION_WINDOW: u32 = 64 << 20;
/// The requests that a connection takes until the server's own limit arrives: a kube-apiserver's
/// limit, and what Go's clients assume.
const REQUESTS_AT_ONCE: usize = 100;
/// The bytes of the head of an answer. Kubernetes' heads have a few hundred.
const MAX_HEAD: u32 = 16 << 10;

/// Headers that belong to one connection of HTTP/1.1. HTTP/2 forbids them.
const OF_HTTP1: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// A handle on an open connection. It closes when its last handle, request and answer are dropped.
#[derive(Clone)]
pub(super) struct Http2 {
    requests: SendRequest<Bytes>,
    usage: Arc<Usage>,
}

/// The way of a request if the server allows no more on the connection.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum WhenFull {
    /// It waits: those in flight end soon.
    Waits,
    /// It opens a connection, which later requests use too. The full one stays open until its
    /// requests have ended. Watches do not end: the 101st informer would never start, because a
    /// kube-apiserver allows 100 requests on a connection.
    Connects,
}

/// The error of a request that got no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing was sent.
    NotSent(BoxError),
    /// The server has said that it did not process the request: it closes the connection, or
    /// refuses the stream (RFC 9113, 8.7).
    NotProcessed(BoxError),
    /// The server may have carried the request out.
    NoAnswer(BoxError),
}

/// Pings a connection that is in use and silent.
struct KeepAlive<S> {
    ping_pong: PingPong,
    socket: Socket<S>,
    usage: Weak<Usage>,
}

// === impl Http2 ===

impl Http2 {
    /// Sends the preface of HTTP/2 over `stream` and starts the task of the connection.
    ///
    /// # Errors
    ///
    /// If the preface cannot be sent.
    pub(super) async fn open<S>(stream: S) -> Result<Self, BoxError>
    where
        S: Read + Write + Send + Unpin + 'static,
    {
        let socket = Socket::new(stream);
        let (requests, mut connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_max_send_streams(REQUESTS_AT_ONCE)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(MAX_HEAD)
            .handshake(socket.clone())
            .await?;
        poll_fn(|cx| socket.poll_send(cx)).await?;
        let usage = Arc::new(Usage::default());
        let keep_alive = connection.ping_pong().map(|ping_pong| KeepAlive {
            ping_pong,
            socket: socket.clone(),
            usage: Arc::downgrade(&usage),
        });
        TokioExecutor::new().execute(drive(connection, socket, keep_alive));
        Ok(Self { requests, usage })
    }

    /// Returns true if requests can be sent: the connection is not closed, and the server has not
    /// announced that it will close it.
    pub(super) async fn is_open(&mut self) -> bool {
        // h2 answers at once: it waits only for an earlier request of the same handle.
        poll_fn(|cx| self.requests.poll_ready(cx)).await.is_ok()
    }

    /// Counts a request that will be sent. Returns `None` if it must not wait until another has
    /// ended, and would.
    ///
    /// It counts before it is sent, so that requests at the same time do not exceed the server's
    /// limit together.
    pub(super) fn reserve(&self, when_full: WhenFull) -> Option<InFlight> {
        let limit = match when_full {
            WhenFull::Waits => usize::MAX,
            // A server that allows none is not connected to again and again.
            WhenFull::Connects => self.requests.current_max_send_streams().max(1),
        };
        Usage::reserve(&self.usage, limit)
    }

    /// Returns true if both are handles on one connection.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.usage, &other.usage)
    }

    /// Sends a request that was counted and waits for the head of the answer.
    ///
    /// Head and body leave together: both are in h2's queues before the connection's task runs.
    /// More requests than the server allows at once wait in these queues.
    ///
    /// # Cancel safety
    ///
    /// A request that is dropped is cancelled on the server (`RST_STREAM`).
    pub(super) async fn send(
        mut self,
        request: Request<Bytes>,
        in_flight: InFlight,
    ) -> Result<Response<Http2Body>, Failure> {
        let (head, body) = prepare(request);
        let (answer, mut sending) = self
            .requests
            .send_request(head, body.is_empty())
            .map_err(|error| Failure::NotSent(error.into()))?;
        if !body.is_empty() {
            // An error here is one of the connection, which `answer` returns too.
            drop(sending.send_data(body, true));
        }
        match answer.await {
            Ok(answer) => {
                let length = answer.headers().get(header::CONTENT_LENGTH);
                let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
                Ok(answer.map(|body| Http2Body::new(body, length, in_flight)))
            }
            Err(error) if is_unprocessed(&error) => Err(Failure::NotProcessed(error.into())),
            Err(error) => Err(Failure::NoAnswer(in_flight.explain(error))),
        }
    }
}

/// Returns true if the server promises that it did not process the request. h2 returns `GOAWAY` for
/// the streams behind the last one that the server names.
fn is_unprocessed(error: &h2::Error) -> bool {
    let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (error.is_go_away() || is_refused)
}

/// Returns the head and the body of `request` in the form that HTTP/2 requires.
fn prepare(request: Request<Bytes>) -> (Request<()>, Bytes) {
    let (mut head, body) = request.into_parts();
    for name in &OF_HTTP1 {
        head.headers.remove(name);
    }
    if !body.is_empty() {
        head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    (Request::from_parts(head, ()), body)
}

/// Moves frames between h2 and the socket until the connection ends: the peer closes it, it is
/// dead, or its last owner is gone.
async fn drive<S>(
    connection: Connection<Socket<S>, Bytes>,
    socket: Socket<S>,
    keep_alive: Option<KeepAlive<S>>,
) where
    S: Read + Write + Send + Unpin + 'static,
{
    let mut connection = pin!(connection);
    let exchange = poll_fn(|cx| {
        let ended = connection.as_mut().poll(cx).map(drop);
        // h2 has written all that it could.
        match socket.poll_send(cx) {
            Poll::Ready(Err(_)) => Poll::Ready(()),
            _ => ended,
        }
    });
    let dead = async {
        match keep_alive {
            Some(keep_alive) => keep_alive.until_dead().await,
            None => pending().await,
        }
    };
    tokio::select! {
        biased;
        // Requests on the connection get the error too, and report it.
        () = exchange => {}
        () = dead => {}
    }
}

// === impl KeepAlive ===

impl<S> KeepAlive<S> {
    /// Returns when a ping was not answered in time.
    async fn until_dead(mut self) {
        loop {
            let silent_at = self.socket.last_read() + PING_AFTER;
            if Instant::now() < silent_at {
                sleep_until(silent_at).await;
            } else if self.is_idle() {
                // TCP probes it. The first request waits for its ping no longer than this.
                sleep_until(Instant::now() + PING_AFTER).await;
            } else if self.is_dead().await {
                return;
            }
        }
    }

    fn is_idle(&self) -> bool {
        let usage = self.usage.upgrade();
        usage.is_none_or(|usage| usage.is_idle())
    }

    /// Sends a ping and waits for its answer.
    async fn is_dead(&mut self) -> bool {
        match timeout(PING_TIMEOUT, self.ping_pong.ping(Ping::opaque())).await {
            Ok(Ok(_)) => false,
            // The connection is ending, and returns its error itself.
            Ok(Err(_)) => pending().await,
            Err(_) => {
                if let Some(usage) = self.usage.upgrade() {
                    usage.set_silent();
                }
                true
            }
        }
    }
}
