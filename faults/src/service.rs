//! The service that injects faults into requests and replies.

use std::fmt;
use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::Body;
use tower::{BoxError, Service};

use crate::client_name::ClientName;
use crate::object_match::RequestObject;
use crate::pending_request::{PendingRequest, Reply};
use crate::request_body;
use crate::request_info::ClientRequest;
use crate::response_body::ResponseBody;
use crate::shared::Shared;

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

/// A request that was sent to the inner service, or is sent later.
enum Dispatch<Sent, S, Request> {
    Sent(Sent),
    Deferred(S, Request),
}

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
        let pending = PendingRequest::new(
            Arc::clone(&self.shared),
            info,
            request.uri(),
            self.generation,
            plan,
        );
        pending.record_sent();
        // An undelayed request is sent now and not when the reply is polled.
        let dispatch = if pending.is_sent_at_once() {
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
