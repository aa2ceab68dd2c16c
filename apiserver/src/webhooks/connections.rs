//! Connections to the servers of webhooks. They are kept for the next call.
//!
//! A connection has no task: its user polls it, and one that is kept is only stored. So a server
//! that is dropped leaves nothing behind, and a call that is cancelled closes its connection.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tower::BoxError;

/// The longest reply that is read, in bytes. The longest object and a patch for it fit.
const MAX_REPLY: usize = 16 << 20;
/// The number of connections that are kept: what client-go keeps for one server. The oldest ones
/// are closed first.
const MAX_KEPT: usize = 25;
/// The time after which a connection is not used again, as in Go's default transport.
const MAX_IDLE: Duration = Duration::from_secs(90);

/// The server of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The host and the port to connect to.
    pub(super) dialed: (String, u16),
    /// The name that the server's certificate must have.
    pub(super) host: String,
    /// The value of the header `Host`.
    pub(super) authority: String,
    /// Certificates of the authorities of the server, in PEM.
    pub(super) authorities: Vec<u8>,
}

/// The open connections that no call uses, the oldest ones first.
#[derive(Debug, Default)]
pub(super) struct Connections {
    kept: Mutex<Vec<Kept>>,
}

#[derive(Debug)]
struct Kept {
    place: Place,
    since: Instant,
    connection: Connection,
}

/// An open connection, of HTTP/1.1.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>,
    /// True once the driver has ended.
    is_closed: bool,
}

/// The reason why a request has no reply.
#[derive(Debug)]
pub(super) enum SendError {
    Request(hyper::Error),
    /// The body of the reply is incomplete or too long.
    Body(BoxError),
}

// === impl Place ===

impl Place {
    /// Returns the server of a URL, or `None` if the URL has none.
    pub(super) fn of_url(url: &str, authorities: &[u8]) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(443);
        let (dialed, authority) = ((host.clone(), port), authority.to_string());
        Some(Self { dialed, host, authority, authorities: authorities.to_owned() })
    }
}

// === impl Connections ===

impl Connections {
    /// Takes the last connection to a server that is still open.
    pub(super) async fn take(&self, place: &Place) -> Option<Connection> {
        while let Some(mut connection) = self.last(place) {
            if connection.is_open().await {
                return Some(connection);
            }
        }
        None
    }

    fn last(&self, place: &Place) -> Option<Connection> {
        let mut kept = self.kept.lock();
        let now = Instant::now();
        kept.retain(|one| now - one.since < MAX_IDLE);
        let at = kept.iter().rposition(|one| one.place == *place)?;
        Some(kept.remove(at).connection)
    }

    /// Keeps a connection whose call has ended.
    pub(super) fn keep(&self, place: Place, connection: Connection) {
        if connection.is_closed {
            return;
        }
        let mut kept = self.kept.lock();
        if kept.len() == MAX_KEPT {
            kept.remove(0);
        }
        kept.push(Kept { place, since: Instant::now(), connection });
    }
}

// === impl Connection ===

impl Connection {
    pub(super) async fn open<S>(stream: S) -> hyper::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver: Box::pin(driver), is_closed: false })
    }

    /// Returns true if the server has not closed the connection.
    async fn is_open(&mut self) -> bool {
        poll_fn(|context| match self.driver.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(false),
            Poll::Pending => self.sender.poll_ready(context).map(|ready| ready.is_ok()),
        })
        .await
    }

    /// Sends a request, and reads the reply.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, SendError> {
        let Self { sender, driver, is_closed } = self;
        let exchange = async {
            let reply = sender.send_request(request).await.map_err(SendError::Request)?;
            let (head, body) = reply.into_parts();
            let body = Limited::new(body, MAX_REPLY).collect().await.map_err(SendError::Body)?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let mut exchange = std::pin::pin!(exchange);
        loop {
            tokio::select! {
                biased;
                reply = &mut exchange => return reply,
                _ = &mut *driver, if !*is_closed => *is_closed = true,
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("sender", &self.sender).finish_non_exhaustive()
    }
}
