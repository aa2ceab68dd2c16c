//! Answers that a server gives instead of doing what it was asked.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::ResponseBody;

/// A failure as the API server words it: an HTTP status and a Status object that says why.
#[derive(Debug, Clone)]
pub struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    retry_after: Option<Duration>,
}

// === impl Refusal ===

impl Refusal {
    /// 401: the token has expired.
    pub fn unauthorized() -> Self {
        Self::of(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403: access control forbids it.
    pub fn forbidden() -> Self {
        Self::of(StatusCode::FORBIDDEN, "Forbidden", "forbidden by a fault")
    }

    /// 404: the object, or the resource, is not there.
    pub fn not_found() -> Self {
        Self::of(StatusCode::NOT_FOUND, "NotFound", "not found, says a fault")
    }

    /// 409: another writer came first.
    pub fn conflict() -> Self {
        let message = "Operation cannot be fulfilled: the object has been modified; please apply \
                       your changes to the latest version and try again";
        Self::of(StatusCode::CONFLICT, "Conflict", message)
    }

    /// 409: the name is taken.
    pub fn already_exists() -> Self {
        Self::of(StatusCode::CONFLICT, "AlreadyExists", "already exists, says a fault")
    }

    /// 410: the resource version is too old.
    pub fn expired() -> Self {
        Self::of(StatusCode::GONE, "Expired", "too old resource version: 1 (2)")
    }

    /// 422: the object is not valid.
    pub fn invalid() -> Self {
        Self::of(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", "invalid, says a fault")
    }

    /// 429: come back after so long. The protocol counts in seconds; less is rounded up.
    pub fn too_many_requests(retry_after: Duration) -> Self {
        Self::of(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "too many requests")
            .retry_after(retry_after)
    }

    /// 429: the server has just started, and its watch cache is not filled yet.
    pub fn cache_not_ready() -> Self {
        Self::of(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "storage is (re)initializing")
            .retry_after(Duration::from_secs(1))
    }

    /// 500: the server failed.
    pub fn internal_error() -> Self {
        let message = "Internal error occurred: injected by a fault";
        Self::of(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// 503: the server is starting, or stopping.
    pub fn unavailable() -> Self {
        let message = "the server is currently unable to handle the request";
        Self::of(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 504: the server gave up waiting.
    pub fn timeout() -> Self {
        Self::of(StatusCode::GATEWAY_TIMEOUT, "Timeout", "Timeout: request did not complete")
    }

    /// Any other: an HTTP status, a reason in one word, and a message.
    pub fn of(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), retry_after: None }
    }

    /// Adds when to come back, in the Status and as a header.
    #[must_use]
    pub fn retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// The Status object, as JSON.
    pub(super) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        if let Some(seconds) = self.retry_after_seconds() {
            status["details"] = json!({ "retryAfterSeconds": seconds });
        }
        status
    }

    /// The event that tells it to a watch.
    pub(super) fn event(&self) -> Bytes {
        format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", self.status()).into()
    }

    pub(super) fn response(&self) -> Response<ResponseBody> {
        let body = Full::new(Bytes::from(self.status().to_string()));
        let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    fn retry_after_seconds(&self) -> Option<u64> {
        let after = self.retry_after?;
        Some(after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0)))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code.as_u16(), self.reason)
    }
}
