//! The connections of a listener: so many, and none for ever.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::{Instant, sleep};
use tower::Service as _;

use super::Executor;
use super::activity::{Activity, Limits};
use super::body::{Answer, Patient};
use crate::faults::FaultService;
use crate::server::ApiService;

/// The server, behind its faults, on a socket.
pub(super) type Handler = FaultService<ApiService<Patient>>;

/// The connections that are open. Dropping it closes them.
pub(super) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, (AbortHandle, Arc<Activity>)>,
    executor: Executor,
    limits: Limits,
}

// === impl Connections ===

impl Connections {
    pub(super) fn new(executor: Executor, limits: Limits) -> Self {
        Self { tasks: JoinSet::new(), open: HashMap::new(), executor, limits }
    }

    /// Whether one more can be taken.
    pub(super) fn has_room(&self) -> bool {
        self.open.len() < self.limits.connections
    }

    /// Takes one more. Who takes the last place has another one end, if there is one that is idle.
    pub(super) fn open(&mut self, stream: TcpStream, service: Handler) {
        let activity = Activity::new(Instant::now());
        let (executor, limits) = (self.executor.clone(), self.limits);
        let task =
            self.tasks.spawn(serve(stream, service, executor, limits, Arc::clone(&activity)));
        if self.open.len() + 1 >= self.limits.connections {
            self.end_quietest();
        }
        self.open.insert(task.id(), (task, activity));
    }

    /// Waits until one has ended; for ever, if there is none.
    pub(super) async fn one_less(&mut self) {
        match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => drop(self.open.remove(&id)),
            Some(Err(error)) => drop(self.open.remove(&error.id())),
            None => std::future::pending().await,
        }
    }

    /// Ends the one that has been asked for nothing for the longest time. All may be busy: then none ends.
    pub(super) fn end_quietest(&self) {
        let quiet = self.open.values().filter(|(task, _)| !task.is_finished());
        let quiet = quiet.filter_map(|(task, activity)| Some((activity.quiet_since()?, task)));
        if let Some((_, task)) = quiet.min_by_key(|(since, _)| *since) {
            task.abort();
        }
    }
}

/// Serves one connection, until it ends or too little happens on it.
async fn serve(
    stream: TcpStream,
    service: Handler,
    executor: Executor,
    limits: Limits,
    activity: Arc<Activity>,
) {
    // Replies are small and awaited: none should wait for more to send.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection is slower than it could be");
    }
    let mut builder = auto::Builder::new(executor);
    // How long a head may take is looked after here: hyper's own limit begins only once it knows the protocol.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(limits.streams);
    let asked = Arc::clone(&activity);
    let handler =
        service_fn(move |request| answer(service.clone(), request, Arc::clone(&asked), limits));
    let connection = builder.serve_connection(TokioIo::new(stream), handler);
    tokio::pin!(connection);
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            () = sleep(limits.look_every()) => {
                if let Some(why) = activity.overdue(&limits, Instant::now()) {
                    tracing::debug!(why, "a connection is closed");
                    return;
                }
            }
        }
    }
}

async fn answer(
    mut service: Handler,
    request: Request<Incoming>,
    activity: Arc<Activity>,
    limits: Limits,
) -> io::Result<Response<Answer>> {
    let ongoing = activity.begin();
    let request = request.map(|body| Patient::new(body, limits.body));
    // A boxed error keeps the compiler from seeing that the connection's future can be sent.
    let reply = service.call(request).await.map_err(io::Error::other)?;
    Ok(reply.map(|body| Answer::new(body, ongoing)))
}
