//! HTTP/1.1 through an in-memory pipe: real framing, no socket, and a clock that may be paused.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use homeostat_faults::FaultLayer;
use http::{Request, Uri};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use kube_client::Client;
use kube_client::client::Body;
use tokio::io::DuplexStream;
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;
use tower::{Layer as _, Service, service_fn};

use crate::listener::{Executor, serve_http1};
use crate::server::ApiServer;

/// HTTP/1.1 connections to a server through in-memory pipes; made by [`ApiServer::duplex`].
/// Dropping it closes every connection.
///
/// The server's [faults](ApiServer::faults) act on its end of the pipe: a cut reply is a chunk that
/// never completes, and a lost reply is a connection that closes.
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::ApiServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::new();
/// let duplex = server.duplex().capacity(100);
/// assert_eq!(duplex.client().apiserver_version().await?.minor, "37");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping it closes every connection"]
pub struct Duplex {
    server: ApiServer,
    executor: Executor,
    capacity: usize,
    _stop: DropGuard,
}

/// Opens connections: a pipe for each, and a task that serves its other end.
#[derive(Clone)]
struct Connector {
    server: ApiServer,
    capacity: usize,
    layer: FaultLayer,
    executor: Executor,
}

/// The client's end of a pipe.
struct Pipe(TokioIo<DuplexStream>);

/// The default number of bytes in flight in each direction: the usual size of a socket's buffer.
const CAPACITY: usize = 64 * 1024;

// === impl ApiServer ===

impl ApiServer {
    /// Serves HTTP/1.1 through in-memory pipes: the framing of a real connection, under a clock
    /// that may be paused.
    pub fn duplex(&self) -> Duplex {
        Duplex::new(self.clone())
    }
}

// === impl Duplex ===

impl Duplex {
    fn new(server: ApiServer) -> Self {
        // Cancelled with this value; the server continues.
        let stopped = server.stopped().child_token();
        let executor = Executor { tasks: TaskTracker::new(), stopped: stopped.clone() };
        Self { server, executor, capacity: CAPACITY, _stop: stopped.drop_guard() }
    }

    /// Sets the number of bytes that may be in flight in each direction of later connections, at
    /// least 1. Smaller capacities split a reply into more pieces. The default is 64 KiB.
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = bytes.max(1);
        self
    }

    /// Returns a client without a name. It does not retry.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the client starts a task.
    pub fn client(&self) -> Client {
        self.through(self.server.faults().layer())
    }

    /// Returns a client with a name. It does not retry.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the client starts a task.
    pub fn client_as(&self, name: &str) -> Client {
        self.through(self.server.faults().layer_as(name))
    }

    fn through(&self, layer: FaultLayer) -> Client {
        let (server, executor) = (self.server.clone(), self.executor.clone());
        let capacity = self.capacity;
        let connector = Connector { server, capacity, layer, executor: executor.clone() };
        let mut builder = legacy::Client::builder(executor);
        // A pool timer would wake a paused clock.
        builder.pool_idle_timeout(None);
        let transport = builder.build::<_, Body>(connector);
        let absolute = service_fn(move |mut request: Request<Body>| {
            let transport = transport.clone();
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            let uri = format!("http://pipe{path}").parse::<Uri>();
            async move {
                *request.uri_mut() = uri.map_err(io::Error::other)?;
                transport.request(request).await.map_err(io::Error::other)
            }
        });
        Client::new(absolute, "default")
    }
}

// === impl Connector ===

impl Service<Uri> for Connector {
    type Response = Pipe;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Pipe>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let (ours, theirs) = tokio::io::duplex(self.capacity);
        let service = self.layer.layer(self.server.service());
        hyper::rt::Executor::execute(&self.executor, serve_http1(TokioIo::new(theirs), service));
        std::future::ready(Ok(Pipe(TokioIo::new(ours))))
    }
}

// === impl Pipe ===

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl hyper::rt::Read for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl hyper::rt::Write for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
