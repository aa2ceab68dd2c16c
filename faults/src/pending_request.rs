//! [`PendingRequest`]: a request and its reply, with the faults that they meet.

use std::sync::Arc;
use std::{future, io};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{Response, Uri};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Collected, Full, StreamBody};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use crate::fault::Fault;
use crate::payload;
use crate::request_info::{ClientRequest, Verb, is_set};
use crate::response_body::ResponseBody;
use crate::shared::Shared;
use crate::state::{Action, RequestPlan};
use crate::stream::{open, reset};

/// One request and the faults that it meets.
pub(crate) struct PendingRequest {
    shared: Arc<Shared>,
    request: ClientRequest,
    generation: u64,
    plan: RequestPlan,
    path: String,
    /// True if the reply may have no end: a watch, or a log that is followed.
    is_endless: bool,
}

/// The reply that the client gets.
pub(crate) type Reply = Result<Response<ResponseBody>, BoxError>;

// === impl PendingRequest ===

impl PendingRequest {
    /// Returns the request to `uri`, which meets the faults of `plan`.
    pub(crate) fn new(
        shared: Arc<Shared>,
        request: ClientRequest,
        uri: &Uri,
        generation: u64,
        plan: RequestPlan,
    ) -> Self {
        let (path, is_endless) = (uri.path().to_owned(), is_endless(&request, uri));
        Self { shared, request, generation, plan, path, is_endless }
    }

    /// Returns true if no fault delays or replaces the request.
    pub(crate) fn is_sent_at_once(&self) -> bool {
        self.plan.action.sends_at_once()
    }

    /// Records that the client has sent the request, if traffic is traced.
    pub(crate) fn record_sent(&self) {
        if self.plan.is_traced {
            self.record_traffic("sent");
        }
    }

    /// Injects the faults before the request is sent. Returns the reply if it is not sent.
    pub(crate) async fn before(&self) -> Option<Reply> {
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
    pub(crate) fn liveness(&self) -> impl Fn() -> bool + Send + use<> {
        let (shared, client) = (Arc::clone(&self.shared), Arc::clone(&self.request.client));
        let generation = self.generation;
        move || !shared.state.lock().has_crashed(&client, generation)
    }

    /// Returns false once the client has crashed.
    fn is_alive(&self) -> bool {
        !self.shared.state.lock().has_crashed(&self.request.client, self.generation)
    }

    /// Injects the faults into the reply.
    pub(crate) async fn after<B>(self, reply: Result<Response<B>, BoxError>) -> Reply
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
        match fault {
            Fault::LoseReply => {
                self.take(reply, fault).await;
                Err(reset())
            }
            Fault::WithholdReply => {
                self.take(reply, fault).await;
                future::pending().await
            }
            Fault::ReplaceReply(error) => {
                self.take(reply, fault).await;
                Ok(error.response(&self.request))
            }
            Fault::DelayReply(delay) => {
                self.record_hit(&fault.to_string());
                sleep(*delay).await;
                self.pass(reply).await
            }
            Fault::TruncateReply(at) => {
                Ok(self.take(reply, fault).await.map(|body| truncated(body, *at)))
            }
            Fault::CorruptReply(at) => {
                Ok(self.take(reply, fault).await.map(|body| corrupt(&body, *at)))
            }
            _ => self.pass(reply).await,
        }
    }

    /// Reads the complete reply, and records that `fault` hits it.
    async fn take<B: Body<Data = Bytes>>(
        &self,
        reply: Response<B>,
        fault: &Fault,
    ) -> Response<Bytes> {
        let reply = self.collect(reply).await;
        self.record_hit(&format!("{fault} ({})", reply.status()));
        reply
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
