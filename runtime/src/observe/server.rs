//! The HTTP server of the diagnostics.
//!
//! | Path | Answer |
//! |---|---|
//! | `/healthz`, `/livez` | `ok`, or 500 with the failed checks |
//! | `/readyz` | `ok`, or 500 with the parts that are not ready |
//! | `/metrics` | the text format of Prometheus; 404 without a recorder of this crate |
//! | `/debug` | a page with informers and queues |
//! | `/debug.json` | the same as JSON |
//!
//! The probes answer like those of Kubernetes' components: `ok` without a line feed, or a line with
//! `[-]` for each failed check. There is no authentication and no TLS: bind it to an address that
//! only the cluster reaches.
//!
//! A request reads snapshots and takes each lock for a short time. At most 64 connections are
//! served at once, so that a scraper that leaks connections does not exhaust the file descriptors
//! of the controller.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use homeostat_core::user_code;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Diagnostics, lasting, page};

/// A kubelet, a scraper and a few people. Later connections wait.
const CONNECTIONS: usize = 64;

/// The time for a request and its answer. A client that asks for nothing, or does not read, would
/// otherwise keep its place.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The pause after a failed accept, for example when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A running server, made by [`serve`]. Dropping it closes the address and all connections.
#[must_use = "dropping this stops the server"]
pub struct ObserveServer {
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

/// The error of a server whose address cannot be bound.
#[derive(Debug, thiserror::Error)]
#[error("failed to serve health, metrics and debug pages on {address}: {reason}")]
#[non_exhaustive]
pub struct ServeError {
    /// The address.
    pub address: SocketAddr,
    /// The reason.
    pub reason: io::Error,
}

/// Serves `diagnostics` on `address` over plain HTTP until the returned server is dropped. Port 0
/// selects a free port.
///
/// # Errors
///
/// Returns an error if the address cannot be bound.
///
/// # Cancel safety
///
/// Dropping the future closes the address.
///
/// # Examples
///
/// ```
/// use homeostat::observe::{Diagnostics, serve};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let diagnostics = Diagnostics::new();
/// let server = serve(([127, 0, 0, 1], 0).into(), &diagnostics).await?;
/// assert_ne!(server.address().port(), 0);
/// # Ok(())
/// # }
/// ```
pub async fn serve(
    address: SocketAddr,
    diagnostics: &Diagnostics,
) -> Result<ObserveServer, ServeError> {
    let failed = |reason| ServeError { address, reason };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut tasks = JoinSet::new();
    tasks.spawn(accept_all(listener, diagnostics.clone()));
    Ok(ObserveServer { address, _tasks: tasks })
}

/// Accepts connections until the task is aborted. A failed accept is logged and followed by a
/// pause, because most of these failures last (no file descriptor is left).
async fn accept_all(listener: TcpListener, diagnostics: Diagnostics) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let place = Arc::clone(&places).acquire_owned().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection of an operator");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let diagnostics = diagnostics.clone();
        connections.spawn(async move {
            let _place = place;
            let service = service_fn(move |request| {
                ready(Ok::<_, Infallible>(answered(&diagnostics, &request)))
            });
            // One request each: an idle connection would keep its place too.
            let serving = http1::Builder::new()
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            match timeout(TIMEOUT, serving).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "connection of an operator ended"),
                Err(_) => tracing::debug!(timeout = ?TIMEOUT, "connection of an operator ended"),
            }
        });
    }
}

/// Returns the page, or the panic of a text that an author's code renders: a key, the metrics.
fn answered(diagnostics: &Diagnostics, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let answer = user_code("page", || answer(diagnostics, request));
    answer
        .unwrap_or_else(|panicked| text(StatusCode::INTERNAL_SERVER_ERROR, format!("{panicked}\n")))
}

/// A path with a slash at its end is the same path. `HEAD` is answered like `GET`; hyper sends no
/// body.
fn answer(diagnostics: &Diagnostics, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
    }
    match request.uri().path().trim_end_matches('/') {
        "/healthz" | "/livez" => {
            let failed = diagnostics.failed_liveness();
            checked(failed.into_iter().map(|(name, reason)| format!("{name}: {reason}")))
        }
        "/readyz" => checked(
            diagnostics
                .unready()
                .into_iter()
                .map(|part| format!("{}: {}{}", part.name, part.reason, lasting(part.since))),
        ),
        "/metrics" => match diagnostics.rendered_metrics() {
            Some(metrics) => content("text/plain; version=0.0.4; charset=utf-8", metrics),
            None => text(StatusCode::NOT_FOUND, "this process records no metrics\n".to_owned()),
        },
        "/debug" => content("text/html; charset=utf-8", page::render(&diagnostics.report())),
        "/debug.json" => match serde_json::to_string_pretty(&diagnostics.report()) {
            Ok(json) => content("application/json", json),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
        _ => {
            let paths = "/healthz /livez /readyz /metrics /debug /debug.json\n";
            text(StatusCode::NOT_FOUND, format!("not found; paths: {paths}"))
        }
    }
}

/// Answers `ok`, or one line for each failed check.
fn checked(failed: impl Iterator<Item = String>) -> Response<Full<Bytes>> {
    let lines: Vec<_> = failed.map(|line| format!("[-]{line}\n")).collect();
    if lines.is_empty() {
        return text(StatusCode::OK, "ok".to_owned());
    }
    text(StatusCode::INTERNAL_SERVER_ERROR, lines.concat())
}

/// Returns an answer with plain text.
fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = content("text/plain; charset=utf-8", body);
    *response.status_mut() = status;
    response
}

/// Returns an answer with status 200.
fn content(content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    let content_type = header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

// === impl ObserveServer ===

impl ObserveServer {
    /// Returns the address that the server is bound to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl fmt::Debug for ObserveServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserveServer").field("address", &self.address).finish_non_exhaustive()
    }
}
