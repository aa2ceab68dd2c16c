//! The errors of a list or a watch. Each text names the verb, the resource and the reason.
//!
//! [`ListError`] and [`WatchError`] share their predicates, so that a caller branches on the cause
//! and not on the variant:
//!
//! ```
//! use homeostat_informer::list_watch::{ApiError, ListError};
//!
//! let error = ListError::Refused {
//!     target: "pods".into(),
//!     error: ApiError::new(410, "Expired", "too old resource version"),
//! };
//! assert!(error.is_expired());
//! assert_eq!(error.to_string(), "cannot list pods: expired: too old resource version");
//! ```
//!
//! An error carries the target, so that a log line is complete without its context. It never
//! carries the content of an object, so that a Secret does not reach a log.
//!
//! The informer's own decisions use the same predicates: an expired version causes a relist, 429 a
//! wait, a version that is too large a request for the newest state.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// An error of a lower layer: the transport, TLS or authentication.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The `Status` with which an API server refused a request or ended a watch.
///
/// Use it in a [`ListWatch`](super::ListWatch) or a test to answer like an API server. Branch on
/// the predicates, not on `reason`: some servers and proxies send a code without a reason, and an
/// `ERROR` event may have a reason without a code. In an error without a code, the predicates read
/// the reason.
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

/// The error of a list request.
///
/// No variant is final: the informer sends another request after each of them. Only the wait and
/// the form of that request differ.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The server refused the request.
    #[error("cannot list {target}: {error}")]
    Refused {
        /// The resource that was listed.
        target: Arc<str>,
        /// The Status of the answer.
        error: ApiError,
    },
    /// The connection failed before the answer was complete.
    #[error("cannot list {target}: {source}")]
    Unreachable {
        /// The resource that was listed.
        target: Arc<str>,
        /// The cause.
        source: BoxError,
    },
    /// No answer arrived within `timeout`.
    #[error("cannot list {target}: no answer within {timeout:?}")]
    TimedOut {
        /// The resource that was listed.
        target: Arc<str>,
        /// The time that was waited.
        timeout: Duration,
    },
    /// The answer is not a list of Kubernetes objects.
    #[error("cannot list {target}: the answer is no list: {error}")]
    Corrupt {
        /// The resource that was listed.
        target: Arc<str>,
        /// The decoding error. It contains no object content.
        error: String,
    },
}

/// The error of a watch request, or of an open watch that did not end regularly.
///
/// `Refused` and `Unreachable` come before the watch is open, `Silent` before or after, all others
/// after. A watch that the server closes after its timeout is not an error.
///
/// # Examples
///
/// ```
/// use homeostat_informer::list_watch::{ApiError, WatchError};
///
/// let target = "pods".into();
/// let ended = WatchError::Ended { target, error: ApiError::new(410, "Expired", "too old") };
/// assert!(ended.is_expired());
/// assert_eq!(ended.to_string(), "watch of pods ended by the server: expired: too old");
///
/// let closed = WatchError::Torn { target: "pods".into(), source: "connection reset".into() };
/// assert!(closed.api_error().is_none(), "no answer of the server");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The server refused the request.
    #[error("cannot watch {target}: {error}")]
    Refused {
        /// The resource that was watched.
        target: Arc<str>,
        /// The Status of the answer.
        error: ApiError,
    },
    /// The server ended the open watch with an `ERROR` event.
    #[error("watch of {target} ended by the server: {error}")]
    Ended {
        /// The resource that was watched.
        target: Arc<str>,
        /// The Status of the `ERROR` event.
        error: ApiError,
    },
    /// The connection failed before an answer arrived.
    #[error("cannot watch {target}: {source}")]
    Unreachable {
        /// The resource that was watched.
        target: Arc<str>,
        /// The cause.
        source: BoxError,
    },
    /// The connection of an open watch failed.
    ///
    /// Every event before it was delivered: the informer resumes after the last one and does not
    /// list.
    #[error("watch of {target} broke off: {source}")]
    Torn {
        /// The resource that was watched.
        target: Arc<str>,
        /// The cause.
        source: BoxError,
    },
    /// The server sent data that is not a watch event.
    ///
    /// Later events may be valid, but one between them may be lost. So the watch ends here.
    #[error("watch of {target} is corrupt: {error}")]
    Corrupt {
        /// The resource that was watched.
        target: Arc<str>,
        /// The decoding error. It contains no object content.
        error: String,
    },
    /// No data arrived for longer than the watch may be silent.
    #[error("watch of {target} is silent for {timeout:?}")]
    Silent {
        /// The resource that was watched.
        target: Arc<str>,
        /// The time that was waited.
        timeout: Duration,
    },
    /// The watch did not complete its initial list in time.
    #[error("watch of {target} did not complete its initial state")]
    Incomplete {
        /// The resource that was watched.
        target: Arc<str>,
    },
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

    /// Returns `true` for status 410, or for the reason `Expired` or `Gone`: the server no longer
    /// has the requested resource version or continue token.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(&*self.reason, "Expired" | "Gone")
    }

    /// Returns `true` if the requested resource version is ahead of the server: cause
    /// `ResourceVersionTooLarge`, or a timeout whose message says so, as API servers 1.17.0 to
    /// 1.18.5 send it.
    pub fn is_too_large_resource_version(&self) -> bool {
        self.causes.iter().any(|cause| cause == "ResourceVersionTooLarge")
            || ((self.code == 504 || self.reason == "Timeout")
                && self.message.contains("Too large resource version"))
    }

    /// Returns `true` for status 403: the client is not authorized.
    pub fn is_forbidden(&self) -> bool {
        self.is(403, "Forbidden")
    }

    /// Returns `true` for status 401: the client is not authenticated.
    pub fn is_unauthorized(&self) -> bool {
        self.is(401, "Unauthorized")
    }

    /// Returns `true` for status 404: the server does not serve this resource.
    pub fn is_not_found(&self) -> bool {
        self.is(404, "NotFound")
    }

    /// Returns `true` for status 429: the server is overloaded.
    pub fn is_too_many_requests(&self) -> bool {
        self.is(429, "TooManyRequests")
    }

    /// Returns `true` for status 400 or 422: the server rejects these parameters. The same request
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

// === impl ListError ===

/// Implements the predicates that both errors share.
macro_rules! predicates {
    ($error:ty) => {
        impl $error {
            /// Returns `true` if the server no longer has the requested resource version or
            /// continue token (410).
            pub fn is_expired(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_expired)
            }

            /// Returns `true` if the requested resource version is ahead of the server (504).
            pub fn is_too_large_resource_version(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_too_large_resource_version)
            }

            /// Returns `true` if the client is not authorized (403).
            pub fn is_forbidden(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_forbidden)
            }

            /// Returns `true` if the client is not authenticated (401).
            pub fn is_unauthorized(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_unauthorized)
            }

            /// Returns `true` if the server does not serve this resource (404).
            pub fn is_not_found(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_not_found)
            }

            /// Returns `true` if the server is overloaded (429).
            pub fn is_too_many_requests(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_too_many_requests)
            }

            /// Returns the time that the server asks the client to wait, if it names one.
            pub fn retry_after(&self) -> Option<Duration> {
                self.api_error().and_then(|error| error.retry_after)
            }
        }
    };
}

predicates!(ListError);
predicates!(WatchError);

impl ListError {
    /// Returns the time since `sent` if the list got no complete answer, and zero otherwise. It is
    /// part of the wait before the next request, which spaces requests.
    pub(crate) fn time_without_answer(&self, sent: Instant) -> Duration {
        if self.is_unanswered() { sent.elapsed() } else { Duration::ZERO }
    }

    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. })
    }

    /// Returns the Status of the server's answer; `None` if the server did not answer.
    pub fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::Refused { error, .. } => Some(error),
            _ => None,
        }
    }
}

// === impl WatchError ===

impl WatchError {
    /// Returns the time since `sent` if the watch was not accepted or fell silent, and zero
    /// otherwise. It is part of the wait before the next request, which spaces requests.
    pub(crate) fn time_without_answer(&self, sent: Instant) -> Duration {
        if self.is_unanswered() { sent.elapsed() } else { Duration::ZERO }
    }

    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Silent { .. })
    }

    /// Returns the Status of the server's answer; `None` if the server did not answer.
    pub fn api_error(&self) -> Option<&ApiError> {
        match self {
            Self::Refused { error, .. } | Self::Ended { error, .. } => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_list_error_names_verb_resource_and_reason() {
        let error = ListError::Refused {
            target: "pods in namespace shop".into(),
            error: ApiError::new(403, "Forbidden", "pods is forbidden: User \"u\" cannot list"),
        };
        assert_eq!(
            error.to_string(),
            "cannot list pods in namespace shop: forbidden: pods is forbidden: User \"u\" cannot \
             list"
        );
        assert!(error.is_forbidden() && !error.is_expired());
    }

    #[test]
    fn expired_status_is_recognized_by_code_or_reason() {
        assert!(ApiError::new(410, "", "").is_expired());
        assert!(ApiError::new(0, "Expired", "").is_expired());
        assert!(ApiError::new(0, "Gone", "").is_expired());
        assert!(!ApiError::new(500, "InternalError", "").is_expired());
    }

    #[test]
    fn status_without_code_is_recognized_by_its_reason() {
        let without_code = |reason: &str| ApiError::new(0, reason, "");
        assert!(without_code("Forbidden").is_forbidden());
        assert!(without_code("Unauthorized").is_unauthorized());
        assert!(without_code("NotFound").is_not_found());
        assert!(without_code("TooManyRequests").is_too_many_requests());
        assert!(without_code("BadRequest").is_bad_request());
        assert!(without_code("Invalid").is_bad_request());
        assert!(!ApiError::new(500, "TooManyRequests", "").is_too_many_requests(), "it has a code");
        assert_eq!(without_code("TooManyRequests").to_string(), "TooManyRequests");
        assert_eq!(without_code("").to_string(), "unknown reason");
    }

    #[test]
    fn too_large_version_is_recognized_by_cause_or_message() {
        let mut error = ApiError::new(504, "Timeout", "");
        assert!(!error.is_too_large_resource_version());
        error.causes.push("ResourceVersionTooLarge".into());
        assert!(error.is_too_large_resource_version());
        let text = "Timeout: Too large resource version: 9, current: 2";
        assert!(ApiError::new(504, "Timeout", text).is_too_large_resource_version());
    }
}
