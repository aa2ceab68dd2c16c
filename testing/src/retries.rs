//! The retries of kube-client's default client, without their jitter.

use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode, header};
use kube_client::client::Body;
use kube_client::client::retry::RetryPolicy;
use tokio::time::Sleep;
use tower::BoxError;
use tower::retry::{Policy, RetryLayer};

/// Repeats a request as kube-client's `RetryPolicy::server_retry` does. That policy draws its
/// jitter from the operating system, so that no two runs of a test would be equal.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProductionRetries {
    retries: u32,
}

/// The number of retries of one request, as in kube-client.
const MAX_RETRIES: u32 = 15;
/// The first delay, as in kube-client; each later one is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(5);

// === impl ProductionRetries ===

impl ProductionRetries {
    pub(crate) fn layer() -> RetryLayer<Self> {
        RetryLayer::new(Self::default())
    }
}

impl<B> Policy<Request<Body>, Response<B>, BoxError> for ProductionRetries {
    type Future = Sleep;

    fn retry(
        &mut self,
        _request: &mut Request<Body>,
        result: &mut Result<Response<B>, BoxError>,
    ) -> Option<Sleep> {
        let response = result.as_ref().ok().filter(|response| is_retryable(response.status()))?;
        if self.retries == MAX_RETRIES {
            return None;
        }
        let delay = FIRST_DELAY * 2_u32.pow(self.retries);
        self.retries += 1;
        Some(tokio::time::sleep(retry_after(response.headers()).unwrap_or(delay).max(delay)))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        let mut policy = RetryPolicy::server_retry();
        Policy::<_, Response<Body>, _>::clone_request(&mut policy, request)
    }
}

fn is_retryable(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}
