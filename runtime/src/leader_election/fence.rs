//! Refuses writes of a process that does not lead.
//!
//! An abort ends a task at its next `await`, and a thread that is stopped does not see it. The
//! fence is the last check before the socket: it reads the deadline and nothing else.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response};
use kube_client::client::Body;
use tower::{BoxError, Layer, Service, ServiceExt};

use super::clock::LeaseClock;
use super::state::Moment;
use crate::client::{Transport, TransportBody};

/// A layer for the leader's client that refuses every write once leadership has ended.
///
/// It reads the deadline just before each write is sent, after the client's rate limit and before
/// each repeat: a process that was stopped between its check and its write, and continues after
/// another candidate took over, writes nothing. A write that is under way at the deadline ends with
/// an error; the server may still carry it out. That is what the difference between lease duration
/// and renew deadline (5 s by default) is for.
///
/// Reads pass always: informers stay warm in a process that waits for leadership.
///
/// Use it for the client of all work that only a leader may do. Do not use it for the election's
/// own client: the first write of a candidate is sent before it leads.
///
/// A check costs one atomic load and one reading of the clock. Reads are passed on without a check.
///
/// # Examples
///
/// ```no_run
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// use homeostat::LeaderElector;
///
/// let builder = homeostat::client::builder().infer().await?;
/// // The election has a connection and a rate limit of its own.
/// let elector =
///     LeaderElector::builder(builder.clone().build(), "default", "my-controller").build()?;
/// let client = builder.layer(&elector.fence()).build();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fence {
    shared: Arc<Shared>,
}

/// A [`Transport`] whose writes a [`Fence`] guards.
///
/// [`ClientBuilder::layer`](crate::client::ClientBuilder::layer) makes it; a program does not name
/// it. A write holds one timer until it ends. Clones share the connection and the deadline.
#[derive(Debug, Clone)]
pub struct Fenced {
    inner: Transport,
    fence: Fence,
}

/// A write was refused or ended because this process does not lead.
///
/// The client returns it inside [`kube_client::Error::Service`]. A reconciler passes it on as its
/// error. A retry succeeds only if this process leads again.
///
/// The text says if the server may have carried the write out: the deadline passed while the
/// request was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{method} refused: this process is not the leader{}", outcome(*.in_doubt))]
pub struct NotLeader {
    /// The method of the write, for the text.
    method: &'static str,
    /// True if the request was sent before the fence closed.
    in_doubt: bool,
}

/// Returns the end of the error text.
fn outcome(in_doubt: bool) -> &'static str {
    if in_doubt { "; the server may have carried it out" } else { "" }
}

/// Returns the microseconds of a deadline, rounded down: never longer than leadership.
fn micros_of(until: Moment) -> u64 {
    u64::try_from(until.as_micros()).unwrap_or(u64::MAX)
}

/// The state that all clones of a fence read. The elector alone writes it.
struct Shared {
    clock: LeaseClock,
    /// End of leadership, in microseconds on the clock; 0 while this process does not lead.
    valid_until: AtomicU64,
}

// === impl Fence ===

impl Fence {
    pub(super) fn new(clock: LeaseClock) -> Self {
        Self { shared: Arc::new(Shared { clock, valid_until: AtomicU64::new(0) }) }
    }

    /// Returns true while this process leads.
    ///
    /// Use it for a readiness probe or a log line. It is no substitute for the layer: leadership
    /// may end between this check and a write.
    pub fn is_open(&self) -> bool {
        self.time_left().is_some()
    }

    /// Opens the fence until `valid_until`, or closes it.
    ///
    /// The elector calls it at the start and at the end of leadership. Other tasks see it with
    /// their next write.
    pub(super) fn set(&self, valid_until: Option<Moment>) {
        self.shared.valid_until.store(valid_until.map_or(0, micros_of), Ordering::SeqCst);
    }

    /// Moves the deadline after a renewal. Returns false if the fence was closed before: it stays
    /// closed, because leadership has ended.
    pub(super) fn extend(&self, valid_until: Moment) -> bool {
        let later = |current| (current != 0).then(|| micros_of(valid_until));
        let deadline = &self.shared.valid_until;
        deadline.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later).is_ok()
    }

    /// Returns the time until leadership ends; `None` if it has ended.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let until = Duration::from_micros(self.shared.valid_until.load(Ordering::SeqCst));
        until.checked_sub(self.shared.clock.now()).filter(|left| !left.is_zero())
    }

    /// Waits until leadership has ended.
    ///
    /// A renewal meanwhile moves the deadline, and the wait continues.
    pub(super) async fn closed(&self) {
        while let Some(left) = self.time_left() {
            tokio::time::sleep(left).await;
        }
    }
}

impl Layer<Transport> for Fence {
    type Service = Fenced;

    fn layer(&self, inner: Transport) -> Fenced {
        Fenced { inner, fence: self.clone() }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("time_left", &self.time_left()).finish()
    }
}

// === impl Fenced ===

impl Service<Request<Body>> for Fenced {
    type Response = Response<TransportBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    /// The check is made when the future is first polled, after the client's rate limit and just
    /// before the request is sent.
    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = match *request.method() {
            Method::GET | Method::HEAD | Method::OPTIONS => return self.inner.call(request),
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "write",
        };
        let fence = self.fence.clone();
        let ready = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, ready);
        Box::pin(async move {
            if !fence.is_open() {
                return Err(NotLeader { method, in_doubt: false }.into());
            }
            tokio::select! {
                biased;
                answer = inner.oneshot(request) => answer,
                () = fence.closed() => Err(NotLeader { method, in_doubt: true }.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;
    use tower::service_fn;

    use super::*;

    fn guarded(fence: &Fence, answers_after: Duration) -> Fenced {
        fence.layer(Transport::new(service_fn(move |_: Request<Body>| async move {
            tokio::time::sleep(answers_after).await;
            Ok::<_, BoxError>(Response::new(Full::new(Bytes::new())))
        })))
    }

    fn request(method: Method) -> Request<Body> {
        Request::builder().method(method).uri("/api/v1/pods").body(Body::empty()).unwrap()
    }

    async fn refusal(service: Fenced, method: Method) -> Option<NotLeader> {
        let error = service.oneshot(request(method)).await.err()?;
        Some(*error.downcast::<NotLeader>().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn writes_pass_only_before_the_deadline() {
        let fence = Fence::new(LeaseClock::tokio());
        let service = guarded(&fence, Duration::ZERO);
        let refused = NotLeader { method: "POST", in_doubt: false };
        assert_eq!(refusal(service.clone(), Method::POST).await, Some(refused));
        fence.set(Some(Duration::from_secs(10)));
        assert_eq!(refusal(service.clone(), Method::POST).await, None);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(refusal(service.clone(), Method::POST).await, Some(refused));
        for method in [Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(refusal(service.clone(), method).await.is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn renewal_opens_no_fence_that_was_closed() {
        let fence = Fence::new(LeaseClock::tokio());
        assert!(!fence.extend(Duration::from_secs(10)));
        fence.set(Some(Duration::from_secs(10)));
        assert!(fence.extend(Duration::from_secs(20)));
        assert_eq!(fence.time_left(), Some(Duration::from_secs(20)));
        fence.set(None);
        assert!(!fence.extend(Duration::from_secs(30)) && !fence.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn reads_pass_without_leadership() {
        let service = guarded(&Fence::new(LeaseClock::tokio()), Duration::ZERO);
        assert_eq!(refusal(service, Method::GET).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn write_that_is_under_way_ends_at_the_deadline() {
        let fence = Fence::new(LeaseClock::tokio());
        fence.set(Some(Duration::from_secs(2)));
        let service = guarded(&fence, Duration::from_secs(60));
        let refused = refusal(service, Method::DELETE).await.unwrap();
        assert!(refused.in_doubt);
        assert_eq!(
            refused.to_string(),
            "DELETE refused: this process is not the leader; the server may have carried it out"
        );
        assert_eq!(fence.shared.clock.now().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn renewal_meanwhile_lets_a_slow_write_finish() {
        let fence = Fence::new(LeaseClock::tokio());
        fence.set(Some(Duration::from_secs(2)));
        let service = guarded(&fence, Duration::from_secs(3));
        let renewal = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            fence.set(Some(Duration::from_secs(5)));
        };
        let (refused, ()) = tokio::join!(refusal(service, Method::PUT), renewal);
        assert_eq!(refused, None);
    }
}
