//! The policy around a transport: wait for a turn, send, and send again only where that is safe.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Request, Response, Uri, header};
use kube_client::client::Body;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt};

use super::error::TransportError;
use super::limiter::Limiter;
use super::retry::{Attempts, Outcome, retry_after};
use super::transport::{Transport, TransportBody};

/// A request that its own client holds back for longer explains a slow controller.
const WORTH_SAYING: Duration = Duration::from_secs(1);

/// Sends requests at the allowed rate, the allowed number at a time, and repeats what may be repeated.
#[derive(Debug, Clone)]
pub(super) struct Courteous {
    transport: Transport,
    limits: Arc<Limits>,
}

#[derive(Debug)]
struct Limits {
    rate: Option<Limiter>,
    /// One permit for each request that may await its answer. Watches take none: they would keep it.
    in_flight: Semaphore,
    user_agent: HeaderValue,
}

type Answer = Result<Response<TransportBody>, BoxError>;

// === impl Courteous ===

impl Courteous {
    pub(super) fn new(
        transport: Transport,
        rate: Option<Limiter>,
        in_flight: usize,
        user_agent: HeaderValue,
    ) -> Self {
        let in_flight = Semaphore::new(in_flight.clamp(1, Semaphore::MAX_PERMITS));
        Self { transport, limits: Arc::new(Limits { rate, in_flight, user_agent }) }
    }

    async fn send(self, mut request: Request<Body>) -> Answer {
        let agent = &self.limits.user_agent;
        request.headers_mut().entry(header::USER_AGENT).or_insert_with(|| agent.clone());
        let is_watch = is_watch(request.uri());
        let mut attempts = Attempts::new(request.method(), is_watch);
        loop {
            let spare = copy(&request);
            let answer = self.attempt(request, is_watch).await;
            let Some(next) = spare else { return answer };
            let Some(pause) = attempts.pause_after(outcome(&answer)) else {
                return answer;
            };
            tracing::debug!(method = %next.method(), uri = %next.uri(), ?pause, "sending the request again");
            drop(answer); // Its body would hold the connection.
            tokio::time::sleep(pause).await;
            request = next;
        }
    }

    async fn attempt(&self, request: Request<Body>, is_watch: bool) -> Answer {
        let _permit = if is_watch {
            None
        } else {
            let permit = self.limits.in_flight.acquire().await;
            Some(permit.expect("the semaphore is never closed"))
        };
        if let Some(waited) = self.wait_for_its_turn().await {
            let (method, uri) = (request.method(), request.uri());
            tracing::info!(%method, %uri, ?waited, "held back by this client's own qps and burst");
        }
        self.transport.clone().oneshot(request).await
    }

    /// Returns how long that took, if it took long.
    async fn wait_for_its_turn(&self) -> Option<Duration> {
        let start = Instant::now();
        self.limits.rate.as_ref()?.admit().await;
        Some(start.elapsed()).filter(|waited| *waited >= WORTH_SAYING)
    }
}

impl Service<Request<Body>> for Courteous {
    type Response = Response<TransportBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Waiting belongs to the request, not to the service: `Client` puts one worker in front of it, and a watch must pass
        // while other requests wait.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

fn outcome(answer: &Answer) -> Outcome {
    match answer {
        Ok(response) => Outcome::Answered {
            status: response.status(),
            retry_after: retry_after(response.headers()),
        },
        Err(error) => match error.downcast_ref::<TransportError>() {
            Some(TransportError::Unreachable { .. }) => Outcome::Unreachable,
            _ => Outcome::Broken,
        },
    }
}

/// `None` for a body that streams: it can be sent only once.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let body = request.body().try_clone()?;
    let mut copy = Request::new(body);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    *copy.version_mut() = request.version();
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}

pub(super) fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}
