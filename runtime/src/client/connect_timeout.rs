//! The way in which connections are opened, and how long it may take.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::Connection;
use tower::{BoxError, Service};

/// The limit for the connect timeout of a config, whose default is 30 s. A lost packet then costs
/// one attempt, not half a minute.
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A service that opens connections to a server: TCP, proxy, TLS.
pub(super) trait Connector:
    Service<
        Uri,
        Response: Connection + Read + Write + Send + Unpin + 'static,
        Future: Send + 'static,
        Error: Into<BoxError>,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

/// The connectors of one client. They differ in the protocols that the TLS handshake offers.
#[derive(Debug, Clone)]
pub(super) struct Connectors<C> {
    /// Offers HTTP/2 and HTTP/1.1.
    pub(super) any: C,
    /// Offers HTTP/1.1 alone.
    pub(super) http1: C,
}

/// A connector with a timeout that includes the TLS handshake.
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

impl<C> Connector for C where
    C: Service<
            Uri,
            Response: Connection + Read + Write + Send + Unpin + 'static,
            Future: Send + 'static,
            Error: Into<BoxError>,
        > + Clone
        + Send
        + Sync
        + 'static
{
}

// === impl Connectors ===

impl<C> Connectors<C> {
    /// Gives each connector the same timeout.
    pub(super) fn with_timeout(self, timeout: Option<Duration>) -> Connectors<ConnectTimeout<C>> {
        Connectors {
            any: ConnectTimeout::new(self.any, timeout),
            http1: ConnectTimeout::new(self.http1, timeout),
        }
    }
}

// === impl ConnectTimeout ===

impl<C> ConnectTimeout<C> {
    /// Returns `inner` with the timeout of a config, cut to [`MAX_CONNECT_TIMEOUT`].
    pub(super) fn new(inner: C, timeout: Option<Duration>) -> Self {
        Self { inner, timeout: timeout.unwrap_or(MAX_CONNECT_TIMEOUT).min(MAX_CONNECT_TIMEOUT) }
    }
}

impl<C: Connector> Service<Uri> for ConnectTimeout<C> {
    type Response = C::Response;
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
                Ok(connected) => connected.map_err(Into::into),
                Err(_) => Err(ConnectTimedOut(timeout).into()),
            }
        })
    }
}
