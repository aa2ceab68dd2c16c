//! The transport that breaks.

use std::{
    fmt,
    future::{self, Future},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::sleep;
use tower::{BoxError, Service};

use super::{
    ResponseBody, Shared,
    call::{Call, Verb},
    rules::Fault,
    watch,
};

/// A transport whose requests go through [`Faults`](super::Faults).
#[derive(Clone)]
pub struct FaultService<S> {
    inner: S,
    shared: Arc<Shared>,
}

type Reply = Result<Response<ResponseBody>, BoxError>;

// === impl FaultService ===

impl<S> FaultService<S> {
    pub(super) fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl<S: fmt::Debug> fmt::Debug for FaultService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, RequestBody, B> Service<Request<RequestBody>> for FaultService<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Reply> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let call = Call::parse(request.method(), request.uri());
        // The guard is gone before the inner service is called.
        let fault = self.shared.rules.lock().decide(&call);
        let shared = Arc::clone(&self.shared);
        match fault {
            None => {
                let sent = self.inner.call(request);
                Box::pin(async move { Ok(pass(sent.await.map_err(Into::into)?, &shared, &call)) })
            }
            Some(Fault::LoseReply) => {
                let sent = self.inner.call(request);
                Box::pin(async move { lose(sent.await.map_err(Into::into)?, &shared, &call).await })
            }
            Some(Fault::DelayReply(delay)) => {
                let sent = self.inner.call(request);
                Box::pin(async move {
                    let reply = sent.await.map_err(Into::into)?;
                    shared.rules.lock().record(format!("{call}: {}", Fault::DelayReply(delay)));
                    sleep(delay).await;
                    Ok(pass(reply, &shared, &call))
                })
            }
            Some(fault) => {
                shared.rules.lock().record(format!("{call}: {fault}"));
                Box::pin(answer_unsent(fault))
            }
        }
    }
}

/// What becomes of a request that is not sent.
async fn answer_unsent(fault: Fault) -> Reply {
    match fault {
        Fault::Refuse(refusal) => Ok(refusal.response()),
        Fault::Hang => future::pending().await,
        _ => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "injected by a fault").into()),
    }
}

/// Waits for the whole reply, so that whatever was asked has been done, and loses it.
async fn lose<B: Body<Data = Bytes>>(reply: Response<B>, shared: &Shared, call: &Call) -> Reply {
    let status = reply.status();
    // A watch has no end to wait for; its answer is the header.
    if call.verb != Verb::Watch {
        drop(reply.into_body().collect().await);
    }
    shared.rules.lock().record(format!("{call}: {} ({status})", Fault::LoseReply));
    Err(io::Error::new(io::ErrorKind::ConnectionReset, "injected by a fault").into())
}

/// The reply as it came; the events of a watch can be broken later.
fn pass<B>(reply: Response<B>, shared: &Arc<Shared>, call: &Call) -> Response<ResponseBody>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let is_watch = call.verb == Verb::Watch && reply.status().is_success();
    reply.map(|body| {
        let body = body.map_err(Into::into).boxed_unsync();
        if is_watch { watch::open(shared, &call.resource, body) } else { body }
    })
}
