//! The policy in front of a transport: rate limit, in-flight limit, timeouts, retries.
//!
//! An attempt first gets its permit, then its turn, then is sent. The permit comes first: a request
//! that waits for a permit has taken no token, so that the rate is not spent on requests that do
//! not start.
//!
//! ```text
//!  request ─▶ permit ─▶ rate ─▶ transport ─▶ answer ─▶ body with idle timeout
//!     ▲                                        │
//!     └───────── pause ◀──── may be repeated ◀─┘
//! ```
//!
//! Each attempt takes a permit and a token of its own, so that retries count against both limits.
//! The pause between attempts holds neither.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, header};
use http_body::Body as _;
use kube_client::client::Body;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt};

use crate::last_reconciles::call_started;

use super::error::TransportError;
use super::limiter::Limiter;
use super::measured::Requests;
use super::requests::{copy, is_long_running, is_watch};
use super::retry::{Attempts, Outcome, retry_after};
use super::throttling::Throttling;
use super::timeout::IdleTimeout;
use super::transport::{Transport, TransportBody};

/// The time in which the server has to accept a watch. It answers at once, before the first event;
/// an informer waits for nothing else, so that a lost request should cost it little.
const WATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// A transport that limits the rate and the number of requests, and repeats those that may be
/// repeated.
#[derive(Debug, Clone)]
pub(super) struct RateLimitedTransport {
    transport: Transport,
    limits: Arc<Limits>,
}

/// Shared by all clones of one client: a limit counts for all of them together.
///
/// The rate and the number of requests in flight are separate limits: the first protects the server
/// from many short requests, the second from slow ones that pile up.
#[derive(Debug)]
pub(super) struct Limits {
    pub(super) rate: Option<Limiter>,
    /// One permit for each request that awaits its answer. Watches take none, because they would
    /// keep it for minutes.
    pub(super) in_flight: Semaphore,
    pub(super) user_agent: HeaderValue,
    /// The time between a request and its answer, and between two parts of the answer.
    pub(super) timeout: Duration,
    /// The server's URL, for errors.
    pub(super) server: Arc<str>,
    pub(super) throttling: Throttling,
    pub(super) metrics: Requests,
}

type Answer = Result<Response<TransportBody>, BoxError>;

// === impl RateLimitedTransport ===

impl RateLimitedTransport {
    /// Puts the limits in front of a transport.
    pub(super) fn new(transport: Transport, limits: Limits) -> Self {
        Self { transport, limits: Arc::new(limits) }
    }

    /// Sends the request, and repeats it while [`Attempts`] allows. A body that is a stream is sent
    /// once.
    ///
    /// The request keeps a `User-Agent` that the caller has set.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, its permit is returned at once. The server may have carried out
    /// the request.
    async fn send(self, mut request: Request<Body>) -> Answer {
        let agent = &self.limits.user_agent;
        request.headers_mut().entry(header::USER_AGENT).or_insert_with(|| agent.clone());
        let is_watch = is_watch(request.uri());
        let mut attempts = Attempts::new(request.method(), is_watch);
        loop {
            let copy = copy(&request);
            let answer = self.attempt(request, is_watch).await;
            let Some(next) = copy else { return answer };
            let Some(pause) = attempts.pause_after(outcome(&answer)) else {
                return answer;
            };
            let (method, uri) = (next.method(), next.uri());
            self.limits.metrics.retried(method, code(&answer));
            tracing::debug!(%method, %uri, ?pause, "retrying the request");
            drop(answer); // Its body would hold the connection.
            tokio::time::sleep(pause).await;
            request = next;
        }
    }

    /// Waits for a permit and for the rate, then sends the request once. The permit is returned
    /// with the headers of the answer; the body is read without it.
    ///
    /// A watch takes no permit, but a token of the rate.
    async fn attempt(&self, request: Request<Body>, is_watch: bool) -> Answer {
        let _permit = if is_watch {
            None
        } else {
            let permit = self.limits.in_flight.acquire().await;
            Some(permit.expect("the semaphore is never closed"))
        };
        self.wait_for_turn(request.method()).await;
        self.send_once(request, is_watch).await
    }

    /// Waits for the rate limiter.
    async fn wait_for_turn(&self, method: &Method) {
        let Some(rate) = &self.limits.rate else { return };
        let start = Instant::now();
        rate.admit().await;
        let waited = start.elapsed();
        self.limits.throttling.record(waited);
        self.limits.metrics.throttled(method, waited);
    }

    /// Sends the request and waits for the answer's headers, at most for the timeout.
    ///
    /// A request that times out is dropped, which resets its HTTP/2 stream. The timeout of the body
    /// starts again with each part, so that a long list that arrives steadily is not cut off.
    async fn send_once(&self, request: Request<Body>, is_watch: bool) -> Answer {
        let Limits { timeout, server, metrics, .. } = &*self.limits;
        let method = request.method().clone();
        let is_long_running = is_long_running(request.uri());
        let (timeout, start) = (*timeout, Instant::now());
        let call = call_started(&method, request.uri());
        metrics.sent(&method, request.body().size_hint().exact());
        let for_answer = if is_watch { timeout.min(WATCH_TIMEOUT) } else { timeout };
        let sending = self.transport.clone().oneshot(request);
        let answer = tokio::time::timeout(for_answer, sending).await.unwrap_or_else(|_| {
            let (server, timeout) = (server.to_string(), for_answer);
            Err(TransportError::TimedOut { server, timeout }.into())
        });
        metrics.answered(&method, code(&answer), start.elapsed());
        if let Some(call) = call {
            call.answered(code(&answer));
        }
        // A refusal has an end.
        if is_long_running && code(&answer).is_none_or(|code| code < 300) {
            return answer;
        }
        let size = metrics.answer_size(&method);
        let limit = |body| IdleTimeout::wrap(body, timeout, Arc::clone(server), size);
        answer.map(|response| response.map(limit))
    }
}

impl Service<Request<Body>> for RateLimitedTransport {
    type Response = Response<TransportBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Each request waits for itself. `Client` has one worker in front of this service: if the
        // service waited here, a watch could not overtake requests that are throttled.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

/// Returns what the retry rules need to know of an answer. An unknown error counts as a broken
/// connection: a write is then not repeated.
fn outcome(answer: &Answer) -> Outcome {
    match answer {
        Ok(response) => Outcome::Answered {
            status: response.status(),
            retry_after: retry_after(response.headers()),
        },
        Err(error) => match error.downcast_ref::<TransportError>() {
            Some(
                TransportError::Unreachable { .. }
                | TransportError::NoCredentials { .. }
                | TransportError::InvalidUrl { .. },
            ) => Outcome::Unreachable,
            Some(TransportError::NotProcessed { .. }) => Outcome::NotProcessed,
            Some(TransportError::TimedOut { .. }) => Outcome::TimedOut,
            _ => Outcome::Broken,
        },
    }
}

/// Returns the status code of an answer, or `None` for an error.
fn code(answer: &Answer) -> Option<u16> {
    answer.as_ref().ok().map(|response| response.status().as_u16())
}
