//! The server on a socket: for clients of every kind, the slow and the stuck ones included.

mod activity;
mod body;
mod connections;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::{Layer as _, Service as _};

use self::activity::Limits;
use self::connections::Connections;
use crate::faults::{FaultService, ResponseBody};
use crate::server::{ApiServer, ApiService};

pub(crate) use self::body::Late;

/// An address at which a server can be reached. Dropping it closes the socket and every connection.
///
/// It speaks HTTP/1.1 and HTTP/2 without TLS. Clients that behave badly end, and harm nobody else: a connection is closed
/// when no request has come for 32 s after its start or for 90 s after the last one, or when an answer, a watch's too, has
/// been left unread for 30 s, or when the client closes its side of it, even if it waits for an answer; a body that takes more than 60 s is a request that fails. An HTTP/2 connection has up to 100
/// requests at once. There are up to 4,096 connections; for one more the one that has been idle for the longest goes, and
/// when none is idle the new one waits.
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
        Self::bind_with(server, address, Limits::USUAL).await
    }

    async fn bind_with(server: ApiServer, address: SocketAddr, limits: Limits) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        // Ends with the listener; the server lives on.
        let stopped = server.stopped().child_token();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(socket, server, limits, stopped.clone()));
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

async fn accept(
    socket: TcpListener,
    server: ApiServer,
    limits: Limits,
    stopped: CancellationToken,
) {
    let executor = Executor { tasks: TaskTracker::new(), stopped };
    let mut connections = Connections::new(executor, limits);
    loop {
        tokio::select! {
            biased;
            () = connections.one_less() => {}
            accepted = socket.accept(), if connections.has_room() => match accepted {
                Ok((stream, _)) => {
                    connections.open(stream, server.faults().layer().layer(server.service()));
                }
                // Out of file descriptors, most likely: some connection has to end first.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    connections.end_quietest();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
}

/// The server, behind its faults, on a pipe.
type Handler = FaultService<ApiService<Incoming>>;

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

#[cfg(test)]
mod tests;
