//! [`ApiError`]: the `Status` of an API server.

use std::fmt;
use std::time::Duration;

/// The `Status` with which an API server refused a request or ended a watch.
///
/// Use it in a [`ListWatch`](crate::list_watch::ListWatch) or a test to answer like an API server.
/// Branch on the predicates, not on `reason`: some servers and proxies send a code without a
/// reason, and an `ERROR` event may have a reason without a code. In an error without a code, the
/// predicates read the reason.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_informer::list_watch::ApiError;
///
/// let busy = ApiError::new(429, "TooManyRequests", "slow down")
///     .with_retry_after(Duration::from_secs(7));
/// assert!(busy.is_too_many_requests());
/// assert_eq!(busy.to_string(), "too many requests: slow down");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "APIStatus")]
#[doc(alias = "StatusError")]
pub struct ApiError {
    /// The HTTP status code. It is 0 for an error event that carries none.
    pub code: u16,
    /// The `reason` of the Status, such as `Forbidden` or `Expired`. Empty if the answer was not a
    /// Status.
    pub reason: String,
    /// The `message` of the Status.
    pub message: String,
    /// The time to wait before the next request: the header `Retry-After`, or else
    /// `details.retryAfterSeconds`.
    pub retry_after: Option<Duration>,
    /// The `details.causes[].reason` values, such as `ResourceVersionTooLarge`.
    pub causes: Vec<String>,
    /// Boxed, because it is rare and an error should be small.
    offered: Option<Box<Offered>>,
}

/// The part of a Status that only an expired list has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Offered {
    continue_token: String,
}

// === impl ApiError ===

impl ApiError {
    /// Returns an error with this status code, reason and message, no causes and no time to wait.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            retry_after: None,
            causes: Vec::new(),
            offered: None,
        }
    }

    /// Sets the time to wait before the next request.
    ///
    /// An informer that backs off waits at least this long, up to 5 minutes.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Sets the `metadata.continue` of a 410 for an expired continue token: the list can be
    /// continued with it, but from a later version.
    ///
    /// A custom list-watch sets it with a 410 answer, and the informer continues the list with it.
    #[must_use]
    pub fn with_continue_token(mut self, token: impl Into<String>) -> Self {
        self.offered = Some(Box::new(Offered { continue_token: token.into() }));
        self
    }

    /// Returns the token with which an expired list can be continued from a later version.
    pub fn continue_token(&self) -> Option<&str> {
        self.offered.as_ref().map(|offered| &*offered.continue_token)
    }

    /// Returns true for status 410, or for the reason `Expired` or `Gone`: the server no longer
    /// has the requested resource version or continue token.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(&*self.reason, "Expired" | "Gone")
    }

    /// Returns true if the requested resource version is ahead of the server: cause
    /// `ResourceVersionTooLarge`, or a timeout whose message says so, as API servers 1.17.0 to
    /// 1.18.5 send it.
    pub fn is_too_large_resource_version(&self) -> bool {
        self.causes.iter().any(|cause| cause == "ResourceVersionTooLarge")
            || ((self.code == 504 || self.reason == "Timeout")
                && self.message.contains("Too large resource version"))
    }

    /// Returns true for status 403: the client is not authorized.
    pub fn is_forbidden(&self) -> bool {
        self.is(403, "Forbidden")
    }

    /// Returns true for status 401: the client is not authenticated.
    pub fn is_unauthorized(&self) -> bool {
        self.is(401, "Unauthorized")
    }

    /// Returns true for status 404: the server does not serve this resource.
    pub fn is_not_found(&self) -> bool {
        self.is(404, "NotFound")
    }

    /// Returns true for status 429: the server is overloaded.
    pub fn is_too_many_requests(&self) -> bool {
        self.is(429, "TooManyRequests")
    }

    /// Returns true for status 400 or 422: the server rejects these parameters. The same request
    /// fails again; another form of it may succeed.
    pub fn is_bad_request(&self) -> bool {
        self.is(400, "BadRequest") || self.is(422, "Invalid")
    }

    /// Returns true for this status code, or without a code for this reason.
    fn is(&self, code: u16, reason: &str) -> bool {
        self.code == code || self.code == 0 && self.reason == reason
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            401 => f.write_str("unauthorized")?,
            403 => f.write_str("forbidden")?,
            404 => f.write_str("not found, its definition or its API group may be missing")?,
            410 => f.write_str("expired")?,
            429 => f.write_str("too many requests")?,
            0 if self.reason.is_empty() => f.write_str("unknown reason")?,
            0 => f.write_str(&self.reason)?,
            code if self.reason.is_empty() => write!(f, "status {code}")?,
            code => write!(f, "status {code} ({})", self.reason)?,
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}
