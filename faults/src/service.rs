//! The service that injects faults into requests and replies.

use std::fmt;
use std::future::{self, Future};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Collected, Full, StreamBody};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

use crate::client_name::ClientName;
use crate::faults::{ResponseBody, Shared};
use crate::object_match::RequestObject;
use crate::payload;
use crate::request_body;
use crate::request_info::{ClientRequest, Verb, is_set};
use crate::rules::Fault;
use crate::state::{Action, RequestPlan};
use crate::stream::{open, reset};

/// A service that injects the faults of a [`Faults`](crate::Faults) into the requests that pass
/// through it; made by [`FaultLayer`](crate::FaultLayer).
#[derive(Clone)]
pub struct FaultService<S> {
    inner: S,
    shared: Arc<Shared>,
    /// The name of the client; `None` takes the name from each request.
    client: Option<Arc<str>>,
    /// The generation of the client among all clients of the same `Faults`.
    generation: u64,
}

/// One request and the faults that it meets.
struct PendingRequest {
    shared: Arc<Shared>,
    request: ClientRequest,
    generation: u64,
    plan: RequestPlan,
    path: String,
    /// True if the reply may have no end: a watch, or a log that is followed.
    is_endless: bool,
}

/// A request that was sent to the inner service, or is sent later.
enum Dispatch<Sent, S, Request> {
    Sent(Sent),
    Deferred(S, Request),
}

type Reply = Result<Response<ResponseBody>, BoxError>;

// === impl FaultService ===

impl<S> FaultService<S> {
    pub(crate) fn new(inner: S, shared: Arc<Shared>, client: Option<Arc<str>>) -> Self {
        let generation = shared.state.lock().next_generation();
        Self { inner, shared, client, generation }
    }

    /// Returns the name of the client and passes it on to the server.
    fn identify<B>(&self, request: &mut Request<B>) -> Arc<str> {
        let Some(name) = &self.client else { return ClientName::of(request).0 };
        request.extensions_mut().insert(ClientName(Arc::clone(name)));
        if let Ok(agent) = HeaderValue::from_str(name) {
            request.headers_mut().entry(header::USER_AGENT).or_insert(agent);
        }
        Arc::clone(name)
    }
}

impl<S: fmt::Debug> fmt::Debug for FaultService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, RequestBody, B> Service<Request<RequestBody>> for FaultService<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    RequestBody: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        let client = self.identify(&mut request);
        let mut info = ClientRequest::parse(client, request.method(), request.uri());
        if self.shared.reads_bodies.load(Ordering::Relaxed)
            && let Some(object) = request_body::object_of(&request)
        {
            request.extensions_mut().insert(RequestObject(Arc::clone(&object)));
            info.object = Some(object);
        }
        let plan = self.shared.state.lock().begin(&info, self.generation);
        if plan.rewind > 0
            && let Some(uri) = rewound(request.uri(), plan.rewind)
        {
            *request.uri_mut() = uri;
        }
        let pending = PendingRequest {
            shared: Arc::clone(&self.shared),
            is_endless: is_endless(&info, request.uri()),
            request: info,
            generation: self.generation,
            plan,
            path: request.uri().path().to_owned(),
        };
        if pending.plan.is_traced {
            pending.record_traffic("sent");
        }
        // An undelayed request is sent now and not when the reply is polled.
        let dispatch = if pending.plan.action.sends_at_once() {
            Dispatch::Sent(self.inner.call(request))
        } else {
            // The service that is ready sends the request; its clone takes its place.
            let clone = self.inner.clone();
            Dispatch::Deferred(std::mem::replace(&mut self.inner, clone), request)
        };
        Box::pin(async move {
            if let Some(reply) = pending.before().await {
                return reply;
            }
            let reply = match dispatch {
                Dispatch::Sent(sent) => sent.await,
                Dispatch::Deferred(mut inner, request) => inner.call(request).await,
            };
            let is_alive = pending.liveness();
            let reply = pending.after(reply.map_err(Into::into)).await;
            // The client may have crashed while the reply was late.
            if is_alive() { reply } else { future::pending().await }
        })
    }
}

// === impl PendingRequest ===

impl PendingRequest {
    /// Injects the faults before the request is sent. Returns the reply if it is not sent.
    async fn before(&self) -> Option<Reply> {
        if self.plan.rewind > 0 {
            self.record(&Fault::Rewind(self.plan.rewind).to_string());
        }
        let fault = match &self.plan.action {
            Action::Pass | Action::CrashAfter(_) => return None,
            Action::Freeze => future::pending().await,
            Action::CrashBefore(reached) => self.crash(reached).await,
            Action::Inject(fault, _) => fault,
        };
        match fault {
            Fault::DropRequest => {
                self.record_hit(&fault.to_string());
                let refused =
                    io::Error::new(io::ErrorKind::ConnectionRefused, "injected by a fault");
                Some(Err(refused.into()))
            }
            Fault::LoseRequest => {
                self.record_hit(&fault.to_string());
                Some(Err(reset()))
            }
            Fault::Refuse(error) => {
                self.record_hit(&fault.to_string());
                Some(Ok(error.response(&self.request)))
            }
            Fault::Hang => {
                self.record_hit(&fault.to_string());
                future::pending().await
            }
            Fault::DelayRequest(delay) => {
                self.record_hit(&fault.to_string());
                sleep(*delay).await;
                None
            }
            Fault::WriteFirst(writer) => {
                match writer.write(&self.request, &self.path, self.plan.number).await {
                    Ok(()) => self.record_hit(&fault.to_string()),
                    Err(why) => {
                        self.record(&format!("another client could not write first ({why})"));
                    }
                }
                None
            }
            _ => None,
        }
    }

    /// Returns a function that returns false once the client has crashed.
    fn liveness(&self) -> impl Fn() -> bool + Send + use<> {
        let (shared, client) = (Arc::clone(&self.shared), Arc::clone(&self.request.client));
        let generation = self.generation;
        move || !shared.state.lock().has_crashed(&client, generation)
    }

    /// Returns false once the client has crashed.
    fn is_alive(&self) -> bool {
        !self.shared.state.lock().has_crashed(&self.request.client, self.generation)
    }

    /// Injects the faults into the reply.
    async fn after<B>(self, reply: Result<Response<B>, BoxError>) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if !self.is_alive() {
            return future::pending().await;
        }
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return Err(self.after_failure(error).await),
        };
        if let Action::CrashAfter(reached) = &self.plan.action {
            drop(self.collect(reply).await);
            return self.crash(reached).await;
        }
        let Action::Inject(fault, _) = &self.plan.action else { return self.pass(reply).await };
        let status = reply.status();
        let message = format!("{fault} ({status})");
        match fault {
            Fault::LoseReply => {
                drop(self.collect(reply).await);
                self.record_hit(&message);
                Err(reset())
            }
            Fault::WithholdReply => {
                drop(self.collect(reply).await);
                self.record_hit(&message);
                future::pending().await
            }
            Fault::ReplaceReply(error) => {
                let replacement = error.response(&self.request);
                drop(self.collect(reply).await);
                self.record_hit(&message);
                Ok(replacement)
            }
            Fault::DelayReply(delay) => {
                self.record_hit(&fault.to_string());
                sleep(*delay).await;
                self.pass(reply).await
            }
            Fault::TruncateReply(at) | Fault::CorruptReply(at) => {
                let cut = matches!(fault, Fault::TruncateReply(_));
                let reply = self.collect(reply).await;
                self.record_hit(&message);
                Ok(reply.map(|body| if cut { truncated(body, *at) } else { corrupt(&body, *at) }))
            }
            _ => self.pass(reply).await,
        }
    }

    /// Injects the faults after the transport has failed. Returns the error that the client gets.
    async fn after_failure(&self, error: BoxError) -> BoxError {
        match &self.plan.action {
            Action::CrashAfter(reached) => self.crash(reached).await,
            Action::Inject(fault @ Fault::WithholdReply, _) => {
                self.record_hit(&format!("{fault} ({error})"));
                future::pending::<()>().await;
            }
            _ => {}
        }
        if self.plan.is_traced {
            self.record_traffic(&format!("failed: {error}"));
        }
        error
    }

    /// Passes the reply on. The body of a watch injects the faults on its events.
    async fn pass<B>(mut self, reply: Response<B>) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if self.request.info.verb == Verb::Watch && reply.status().is_success() {
            if self.plan.is_traced {
                self.record_traffic(&format!("open ({})", reply.status()));
            }
            let plan = std::mem::take(&mut self.plan.stream);
            let reply = reply.map(|body| body.map_err(Into::into).boxed_unsync());
            return Ok(open(&self.shared, (&self.request, self.generation), plan, reply));
        }
        if !self.plan.is_traced || self.is_endless {
            return Ok(reply.map(|body| body.map_err(Into::into).boxed_unsync()));
        }
        let reply = self.collect(reply).await;
        let bytes = payload::describe_bytes(reply.body());
        self.record_traffic(&format!("replied {}, {bytes}", reply.status()));
        Ok(reply.map(full))
    }

    /// Reads the complete reply, so that the server has processed the request.
    async fn collect<B: Body<Data = Bytes>>(&self, reply: Response<B>) -> Response<Bytes> {
        let (parts, body) = reply.into_parts();
        // A body without an end, and one that fails, count as empty.
        let bytes = if self.is_endless {
            Bytes::new()
        } else {
            body.collect().await.map(Collected::to_bytes).unwrap_or_default()
        };
        Response::from_parts(parts, bytes)
    }

    /// Freezes the client: no request is answered and no watch delivers an event from now on.
    async fn crash<T>(&self, reached: &CancellationToken) -> T {
        let is_before = matches!(self.plan.action, Action::CrashBefore(_));
        let when = if is_before { "before this call" } else { "after this call" };
        self.shared.crash(&self.request, Some(self.plan.number), when, reached);
        future::pending().await
    }

    /// Records that the fault of a rule is injected, and counts it.
    fn record_hit(&self, message: &str) {
        if let Action::Inject(_, rule) = &self.plan.action {
            rule.count_hit();
        }
        self.record(message);
    }

    fn record(&self, message: &str) {
        self.shared.state.lock().record(&self.request, Some(self.plan.number), message);
    }

    fn record_traffic(&self, message: &str) {
        let number = Some(self.plan.number);
        self.shared.state.lock().record_traffic(&self.request, number, message);
    }
}

fn full(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn truncated(mut bytes: Bytes, at: u64) -> ResponseBody {
    bytes.truncate(usize::try_from(at).unwrap_or(usize::MAX));
    let rest = async {
        // The consumer gets a turn to send the bytes before the error.
        tokio::task::yield_now().await;
        Err(reset())
    };
    let frames = stream::iter([Ok(Frame::data(bytes))]).chain(stream::once(rest));
    StreamBody::new(frames).boxed_unsync()
}

fn corrupt(bytes: &Bytes, at: u64) -> ResponseBody {
    full(payload::corrupt(bytes, usize::try_from(at).unwrap_or(usize::MAX)))
}

/// Returns true if the reply to a request may have no end.
fn is_endless(request: &ClientRequest, uri: &Uri) -> bool {
    request.info.verb == Verb::Watch
        || request.info.subresource.as_deref() == Some("log")
            && uri.query().is_some_and(|query| is_set(query, "follow"))
}

/// Returns the URI of a watch that starts `by` revisions earlier, or `None` if the URI has no
/// resource version.
fn rewound(uri: &Uri, by: u64) -> Option<Uri> {
    let query = uri.query()?;
    let mut found = false;
    let pairs: Vec<String> = query
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some(("resourceVersion", version)) => match version.parse::<u64>() {
                Ok(version) if version > by => {
                    found = true;
                    format!("resourceVersion={}", version - by)
                }
                _ => pair.to_owned(),
            },
            _ => pair.to_owned(),
        })
        .collect();
    let mut parts = uri.clone().into_parts();
    let path = format!("{}?{}", uri.path(), pairs.join("&"));
    parts.path_and_query = Some(path.parse().ok()?);
    found.then(|| Uri::from_parts(parts).ok()).flatten()
}
