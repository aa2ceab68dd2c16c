//! The pace of a simulated client: requests take time once they are too many.
//!
//! A request takes no virtual time. So a controller in a hot loop, whose writes cause the next
//! ones, would keep the virtual clock from ever moving, and no oracle could see the loop.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tower::layer::{LayerFn, layer_fn};
use tower::{BoxError, Service};

/// Sends the requests of a client, each after a delay while the client is in a hot loop.
#[derive(Debug, Clone)]
pub(crate) struct Paced<S> {
    inner: S,
    pace: Arc<Mutex<Pace>>,
}

/// The requests of a client at one instant.
#[derive(Debug)]
struct Pace {
    now: Instant,
    /// The number of requests at `now`.
    count: u32,
    is_hot: bool,
}

/// The most requests at one instant that take no time: more than any controller sends that waits
/// for something. With a real clock no two requests have one instant.
const MOST: u32 = 5_000;

/// The time that each request of a hot loop takes, about that of a write to a real cluster.
const DELAY: Duration = Duration::from_millis(10);

/// The time without a request after which a loop is over.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the layer of one client.
pub(crate) fn layer<S>() -> LayerFn<impl Fn(S) -> Paced<S>> {
    layer_fn(|inner| Paced { inner, pace: Arc::new(Mutex::new(Pace::new(Instant::now()))) })
}

// === impl Pace ===

impl Pace {
    fn new(now: Instant) -> Self {
        Self { now, count: 0, is_hot: false }
    }

    /// Counts a request. Returns the time that it takes; `None` if it takes none.
    fn delay(&mut self, now: Instant) -> Option<Duration> {
        if now != self.now {
            self.is_hot &= now.saturating_duration_since(self.now) < PAUSE;
            (self.now, self.count) = (now, 0);
        }
        self.count += 1;
        self.is_hot |= self.count > MOST;
        self.is_hot.then_some(DELAY)
    }
}

// === impl Paced ===

impl<S, Q> Service<Q> for Paced<S>
where
    S: Service<Q, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send + 'static,
    Q: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Q) -> Self::Future {
        let Some(delay) = self.pace.lock().delay(Instant::now()) else {
            return Box::pin(self.inner.call(request));
        };
        // The service that is ready takes the request; its clone becomes ready by itself.
        let next = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, next);
        Box::pin(async move {
            sleep(delay).await;
            ready.call(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_one_instant_take_time_once_they_are_too_many() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        for _ in 0..2 {
            assert!((0..MOST).all(|_| pace.delay(now).is_none()));
            for _ in 0..3 {
                assert_eq!(pace.delay(now), Some(DELAY));
                now += DELAY;
            }
            now += PAUSE;
        }
    }

    #[test]
    fn requests_at_many_instants_take_no_time() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        let times = (0..3 * MOST).map(|number| now + Duration::from_nanos(number.into()));
        assert!(times.into_iter().all(|now| pace.delay(now).is_none()));
    }
}
