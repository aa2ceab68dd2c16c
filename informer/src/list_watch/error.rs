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

mod api_error;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub use self::api_error::ApiError;

/// An error of a lower layer: the transport, TLS or authentication.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

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

// === impl ListError ===

/// Implements the predicates that both errors share.
macro_rules! predicates {
    ($error:ty) => {
        impl $error {
            /// Returns true if the server no longer has the requested resource version or
            /// continue token (410).
            pub fn is_expired(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_expired)
            }

            /// Returns true if the requested resource version is ahead of the server (504).
            pub fn is_too_large_resource_version(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_too_large_resource_version)
            }

            /// Returns true if the client is not authorized (403).
            pub fn is_forbidden(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_forbidden)
            }

            /// Returns true if the client is not authenticated (401).
            pub fn is_unauthorized(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_unauthorized)
            }

            /// Returns true if the server does not serve this resource (404).
            pub fn is_not_found(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_not_found)
            }

            /// Returns true if the server is overloaded (429).
            pub fn is_too_many_requests(&self) -> bool {
                self.api_error().is_some_and(ApiError::is_too_many_requests)
            }

            /// Returns the time since `sent` if no answer arrived or the answer fell silent, and
            /// zero otherwise. It is part of the wait before the next request, which spaces
            /// requests.
            pub(crate) fn time_without_answer(&self, sent: Instant) -> Duration {
                if self.is_unanswered() { sent.elapsed() } else { Duration::ZERO }
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
    /// Returns true if the list got no complete answer.
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
    /// Returns true if the watch was not accepted, or fell silent.
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
