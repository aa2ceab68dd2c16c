//! The open connections of a listener: a bounded number, each with timeouts.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use homeostat_faults::FaultService;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, Id, JoinSet};
#[cfg(feature = "tls")]
use tokio::time::timeout;
use tokio::time::{Instant, sleep};
use tower::Service as _;

use super::Executor;
use super::activity::{Activity, Limits};
use super::body::{PacedBody, TimedBody};
#[cfg(feature = "tls")]
use super::tls::Acceptor;
use crate::access::ClientCertificate;
use crate::server::ApiService;

/// The server behind its faults, for a socket.
pub(super) type Handler = FaultService<ApiService<TimedBody>>;

/// The layer between a socket and HTTP.
#[derive(Clone)]
pub(super) enum Transport {
    Plain,
    #[cfg(feature = "tls")]
    Tls(Acceptor),
}

/// The serving side of one connection.
#[derive(Clone)]
struct Session {
    service: Handler,
    certificate: Option<ClientCertificate>,
    executor: Executor,
    limits: Limits,
    activity: Arc<Activity>,
}

/// The open connections. Dropping it closes them.
pub(super) struct Connections {
    transport: Transport,
    tasks: JoinSet<()>,
    open: HashMap<Id, (AbortHandle, Arc<Activity>)>,
    executor: Executor,
    limits: Limits,
}

/// The largest head of a request over HTTP/2, in bytes: kube-apiserver's limit. A selector can be
/// long, and Go's client sends no head that is larger than the server permits.
const MAX_HEAD: u32 = 1024 * 1024;
/// The most headers of a request over HTTP/1.1. A proxy may impersonate a user in hundreds of
/// groups, each in a header of its own.
const MAX_HEADERS: usize = 1000;

// === impl Connections ===

impl Connections {
    pub(super) fn new(executor: Executor, limits: Limits, transport: Transport) -> Self {
        Self { transport, tasks: JoinSet::new(), open: HashMap::new(), executor, limits }
    }

    /// Returns true if another connection can be accepted.
    pub(super) fn has_room(&self) -> bool {
        self.open.len() < self.limits.connections
    }

    /// Serves a new connection. If it takes the last place, the most idle connection is closed.
    pub(super) fn open(&mut self, stream: TcpStream, service: Handler) {
        let activity = Activity::new(Instant::now());
        let session = Session {
            service,
            certificate: None,
            executor: self.executor.clone(),
            limits: self.limits,
            activity: Arc::clone(&activity),
        };
        let transport = self.transport.clone();
        let task = self.tasks.spawn(async move {
            // Replies are small and a client waits for each, so that none should wait for more
            // data.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "failed to set TCP_NODELAY, replies may be delayed");
            }
            match transport {
                Transport::Plain => serve(stream, session).await,
                #[cfg(feature = "tls")]
                Transport::Tls(acceptor) => serve_tls(stream, &acceptor, session).await,
            }
        });
        if self.open.len() + 1 >= self.limits.connections {
            self.close_most_idle();
        }
        self.open.insert(task.id(), (task, activity));
    }

    /// Waits until a connection has ended. Never returns if there is none.
    pub(super) async fn wait_for_end(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => drop(self.open.remove(&id)),
            Some(Err(error)) => drop(self.open.remove(&error.id())),
            None => std::future::pending().await,
        }
    }

    /// Closes the connection that has been idle for longest. Closes none if all are busy.
    pub(super) fn close_most_idle(&self) {
        let quiet = self.open.values().filter(|(task, _)| !task.is_finished());
        let quiet = quiet.filter_map(|(task, activity)| Some((activity.quiet_since()?, task)));
        if let Some((_, task)) = quiet.min_by_key(|(since, _)| *since) {
            task.abort();
        }
    }
}

/// Serves one connection after the TLS handshake, if that succeeds in time.
#[cfg(feature = "tls")]
async fn serve_tls(stream: TcpStream, acceptor: &Acceptor, session: Session) {
    match timeout(session.limits.head, acceptor.accept(stream)).await {
        Ok(Ok((stream, certificate))) => serve(stream, Session { certificate, ..session }).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("closing a connection without a handshake"),
    }
}

/// Serves one connection until it ends or is overdue.
async fn serve<Io>(stream: Io, session: Session)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (limits, activity) = (session.limits, Arc::clone(&session.activity));
    let mut builder = auto::Builder::new(session.executor.clone());
    // The check of overdue connections covers the head: hyper's own limit begins only once it knows
    // the protocol.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None);
    builder.http1().max_headers(MAX_HEADERS);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(limits.streams);
    builder.http2().max_header_list_size(MAX_HEAD);
    let handler = service_fn(move |request| answer(session.clone(), request));
    let connection = builder.serve_connection(TokioIo::new(stream), handler);
    tokio::pin!(connection);
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended early");
                }
                return;
            }
            () = sleep(limits.check_interval()) => {
                if let Some(reason) = activity.overdue(&limits, Instant::now()) {
                    tracing::debug!(reason, "closing overdue connection");
                    return;
                }
            }
        }
    }
}

async fn answer(
    mut session: Session,
    request: Request<Incoming>,
) -> io::Result<Response<PacedBody>> {
    let guard = session.activity.begin();
    let mut request = request.map(|body| TimedBody::new(body, session.limits.body));
    if let Some(certificate) = session.certificate {
        request.extensions_mut().insert(certificate);
    }
    // The boxed error would keep the compiler from proving that the connection's future is `Send`.
    let reply = session.service.call(request).await.map_err(io::Error::other)?;
    Ok(reply.map(|body| PacedBody::new(body, guard)))
}
