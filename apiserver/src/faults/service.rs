//! The transport that breaks.

use std::fmt;
use std::future::{self, Future};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Collected, Full, StreamBody};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

use super::call::{Call, Verb};
use super::rules::Fault;
use super::state::{Fate, Plan};
use super::stream::{open, reset};
use super::{ResponseBody, Shared, told};
use crate::server::ClientName;

/// A transport whose requests go through [`Faults`](super::Faults).
#[derive(Clone)]
pub struct FaultService<S> {
    inner: S,
    shared: Arc<Shared>,
    /// Who sends; none: what the requests themselves say.
    client: Option<Arc<str>>,
    /// When the client was made, among all of these faults.
    born: u64,
}

/// One request on its way.
struct Errand {
    shared: Arc<Shared>,
    call: Call,
    born: u64,
    plan: Plan,
    path: String,
}

/// How far a request has come.
enum Way<Sent, S, Request> {
    Sent(Sent),
    Later(S, Request),
}

type Reply = Result<Response<ResponseBody>, BoxError>;

// === impl FaultService ===

impl<S> FaultService<S> {
    pub(super) fn new(inner: S, shared: Arc<Shared>, client: Option<Arc<str>>) -> Self {
        let born = shared.state.lock().birth();
        Self { inner, shared, client, born }
    }

    /// Finds out who asks, and says so to the server.
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
        let call = Call::parse(client, request.method(), request.uri());
        let plan = self.shared.state.lock().begin(&call, self.born);
        if plan.rewind > 0
            && let Some(uri) = rewound(request.uri(), plan.rewind)
        {
            *request.uri_mut() = uri;
        }
        let path = request.uri().path().to_owned();
        let shared = Arc::clone(&self.shared);
        let errand = Errand { shared, call, born: self.born, plan, path };
        if errand.plan.told {
            errand.tell("asked");
        }
        // What nothing holds up is sent now, not when somebody waits for the reply.
        let way = if errand.plan.fate.sends_at_once() {
            Way::Sent(self.inner.call(request))
        } else {
            // The one that was made ready goes; its clone takes its place.
            let clone = self.inner.clone();
            Way::Later(std::mem::replace(&mut self.inner, clone), request)
        };
        Box::pin(async move {
            if let Some(unsent) = errand.before().await {
                return unsent;
            }
            let reply = match way {
                Way::Sent(sent) => sent.await,
                Way::Later(mut inner, request) => inner.call(request).await,
            };
            errand.after(reply.map_err(Into::into)).await
        })
    }
}

// === impl Errand ===

impl Errand {
    /// What happens before the request is sent; the outcome, if it is not.
    async fn before(&self) -> Option<Reply> {
        if self.plan.rewind > 0 {
            self.record(&Fault::Rewind(self.plan.rewind).to_string());
        }
        let fault = match &self.plan.fate {
            Fate::Pass | Fate::CrashAfter(_) => return None,
            Fate::Frozen => future::pending().await,
            Fate::CrashBefore(reached) => self.crash(reached).await,
            Fate::Meet(fault) => fault,
        };
        match fault {
            Fault::DropRequest => {
                self.record(&fault.to_string());
                let refused =
                    io::Error::new(io::ErrorKind::ConnectionRefused, "injected by a fault");
                Some(Err(refused.into()))
            }
            Fault::LoseRequest => {
                self.record(&fault.to_string());
                Some(Err(reset()))
            }
            Fault::Refuse(refusal) => {
                self.record(&fault.to_string());
                Some(Ok(refusal.response()))
            }
            Fault::Hang => {
                self.record(&fault.to_string());
                future::pending().await
            }
            Fault::DelayRequest(delay) => {
                self.record(&fault.to_string());
                sleep(*delay).await;
                None
            }
            Fault::Shadow(writer) => {
                self.record(&fault.to_string());
                writer.write(&self.call, &self.path, self.plan.number).await;
                None
            }
            _ => None,
        }
    }

    /// What happens to the reply.
    async fn after<B>(self, reply: Result<Response<B>, BoxError>) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if self.shared.state.lock().is_frozen(&self.call.client, self.born) {
            return future::pending().await;
        }
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                if self.plan.told {
                    self.tell(&format!("failed: {error}"));
                }
                return Err(error);
            }
        };
        if let Fate::CrashAfter(reached) = &self.plan.fate {
            drop(self.whole(reply).await);
            return self.crash(reached).await;
        }
        let Fate::Meet(fault) = &self.plan.fate else { return self.pass(reply).await };
        let status = reply.status();
        let words = format!("{fault} ({status})");
        match fault {
            Fault::LoseReply => {
                drop(self.whole(reply).await);
                self.record(&words);
                Err(reset())
            }
            Fault::WithholdReply => {
                drop(self.whole(reply).await);
                self.record(&words);
                future::pending().await
            }
            Fault::ReplaceReply(refusal) => {
                let refusal = refusal.response();
                drop(self.whole(reply).await);
                self.record(&words);
                Ok(refusal)
            }
            Fault::DelayReply(delay) => {
                self.record(&fault.to_string());
                sleep(*delay).await;
                self.pass(reply).await
            }
            Fault::TruncateReply(at) | Fault::CorruptReply(at) if self.call.verb != Verb::Watch => {
                let cut = matches!(fault, Fault::TruncateReply(_));
                let reply = self.whole(reply).await;
                self.record(&words);
                Ok(reply.map(|body| if cut { truncated(body, *at) } else { corrupt(&body, *at) }))
            }
            _ => self.pass(reply).await,
        }
    }

    /// The reply as it came; the events of a watch can be broken later.
    async fn pass<B>(mut self, reply: Response<B>) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if self.call.verb == Verb::Watch && reply.status().is_success() {
            if self.plan.told {
                self.tell(&format!("open ({})", reply.status()));
            }
            let plan = std::mem::take(&mut self.plan.stream);
            return Ok(reply.map(|body| {
                let body = body.map_err(Into::into).boxed_unsync();
                open(&self.shared, (&self.call, self.born), plan, body)
            }));
        }
        if !self.plan.told {
            return Ok(reply.map(|body| body.map_err(Into::into).boxed_unsync()));
        }
        let reply = self.whole(reply).await;
        self.tell(&format!("answered {}, {}", reply.status(), told::bytes(reply.body())));
        Ok(reply.map(full))
    }

    /// Waits for the whole reply, so that whatever was asked has been done.
    async fn whole<B: Body<Data = Bytes>>(&self, reply: Response<B>) -> Response<Bytes> {
        let (parts, body) = reply.into_parts();
        // A watch has no end to wait for; its answer is the header. A body that breaks is as good as lost.
        let bytes = match self.call.verb {
            Verb::Watch => Bytes::new(),
            _ => body.collect().await.map(Collected::to_bytes).unwrap_or_default(),
        };
        Response::from_parts(parts, bytes)
    }

    /// From here on nothing of this client goes on.
    async fn crash<T>(&self, reached: &CancellationToken) -> T {
        {
            let mut state = self.shared.state.lock();
            let born = state.freeze(&self.call.client);
            let when =
                if matches!(self.plan.fate, Fate::CrashBefore(_)) { "before" } else { "after" };
            let words = format!("the client crashes {when} this call");
            state.record(&self.call, Some(self.plan.number), &words);
            drop(state);
            self.shared.watches.freeze(&self.call.client, born + 1);
        }
        reached.cancel();
        future::pending().await
    }

    fn record(&self, words: &str) {
        self.shared.state.lock().record(&self.call, Some(self.plan.number), words);
    }

    fn tell(&self, words: &str) {
        self.shared.state.lock().record_told(&self.call, Some(self.plan.number), words);
    }
}

fn full(bytes: Bytes) -> ResponseBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn truncated(mut bytes: Bytes, at: u64) -> ResponseBody {
    bytes.truncate(usize::try_from(at).unwrap_or(usize::MAX));
    let rest = async {
        // Whoever sends it gets a turn to send what there is.
        tokio::task::yield_now().await;
        Err(reset())
    };
    let frames = stream::iter([Ok(Frame::data(bytes))]).chain(stream::once(rest));
    StreamBody::new(frames).boxed_unsync()
}

fn corrupt(bytes: &Bytes, at: u64) -> ResponseBody {
    full(told::corrupt(bytes, usize::try_from(at).unwrap_or(usize::MAX)))
}

/// The URI of a watch that begins earlier; none when it does not say where it begins.
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
