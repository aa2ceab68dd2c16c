//! The server on a socket.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::{Layer as _, Service as _};

use crate::faults::{FaultService, ResponseBody};
use crate::server::{ApiServer, ApiService};

/// An address at which a server can be reached. Dropping it closes the socket and every connection.
#[derive(Debug)]
#[must_use = "dropping a listener closes it"]
pub struct Listener {
    address: SocketAddr,
    _accepting: JoinSet<()>,
    _stop: DropGuard,
}

/// Runs what hyper spawns, until its owner goes.
#[derive(Debug, Clone)]
pub(crate) struct Executor {
    pub(crate) tasks: TaskTracker,
    pub(crate) stopped: CancellationToken,
}

// === impl Listener ===

impl Listener {
    pub(crate) async fn bind(server: ApiServer, address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        // Ends with the listener; the server lives on.
        let stopped = server.stopped().child_token();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(socket, server, stopped.clone()));
        Ok(Self { address, _accepting: accepting, _stop: stopped.drop_guard() })
    }

    /// The address, with the port that was taken.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The base of every URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig file, for kubectl and every other client.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: homeostat\n  cluster:\n    server: {}\nusers:\n- name: \
             homeostat\n  user: {{}}\ncontexts:\n- name: homeostat\n  context:\n    cluster: homeostat\n    user: \
             homeostat\n    namespace: default\ncurrent-context: homeostat\n",
            self.url()
        )
    }
}

async fn accept(socket: TcpListener, server: ApiServer, stopped: CancellationToken) {
    let mut connections = JoinSet::new();
    let executor = Executor { tasks: TaskTracker::new(), stopped };
    loop {
        tokio::select! {
            biased;
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) => {
                    let service = server.faults().layer().layer(server.service());
                    connections.spawn(serve(stream, service, executor.clone()));
                }
                // Out of file descriptors, most likely: some connection has to end first.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// The server, behind its faults.
type Handler = FaultService<ApiService<Incoming>>;

async fn serve(stream: TcpStream, service: Handler, executor: Executor) {
    // Replies are small and awaited: none should wait for more to send.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection is slower than it could be");
    }
    let mut builder = auto::Builder::new(executor);
    builder.http1().timer(TokioTimer::new());
    builder.http2().timer(TokioTimer::new());
    let handler = service_fn(move |request| answer(service.clone(), request));
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), handler).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Serves one connection that is no socket.
pub(crate) async fn serve_http1<Io>(stream: Io, service: Handler)
where
    Io: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let handler = service_fn(move |request| answer(service.clone(), request));
    let connection = http1::Builder::new().serve_connection(stream, handler);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(
    mut service: Handler,
    request: Request<Incoming>,
) -> io::Result<Response<ResponseBody>> {
    // A boxed error keeps the compiler from seeing that the connection's future can be sent.
    service.call(request).await.map_err(io::Error::other)
}

// === impl Executor ===

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        let stopped = self.stopped.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                _ = task => {}
            }
        });
    }
}
