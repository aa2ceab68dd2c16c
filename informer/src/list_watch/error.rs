//! Why a list or a watch failed, in words that name the verb, the resource and the reason.

use std::{fmt, sync::Arc, time::Duration};

/// Whatever went wrong below us.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A server's "no": the Status that it answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// Kubernetes' word for it, such as `Forbidden` or `Expired`; empty if the answer was no Status.
    pub reason: String,
    /// The server's explanation.
    pub message: String,
    /// How long the server asks to wait before the next request.
    pub retry_after: Option<Duration>,
    /// The machine-readable causes, such as `ResourceVersionTooLarge`.
    pub causes: Vec<String>,
}

/// Why a list failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The server answered, and the answer is no.
    #[error("cannot list {target}: {refusal}")]
    Refused {
        /// What was listed.
        target: Arc<str>,
        /// The answer.
        refusal: Refusal,
    },
    /// There was no answer, or it broke off.
    #[error("cannot list {target}: {source}")]
    Unreachable {
        /// What was listed.
        target: Arc<str>,
        /// Why.
        source: BoxError,
    },
    /// There was no answer in time.
    #[error("cannot list {target}: no answer within {deadline:?}")]
    TimedOut {
        /// What was listed.
        target: Arc<str>,
        /// How long we waited.
        deadline: Duration,
    },
    /// The answer is no list of Kubernetes objects.
    #[error("cannot list {target}: the answer is no list: {error}")]
    Corrupt {
        /// What was listed.
        target: Arc<str>,
        /// What is wrong with it.
        error: String,
    },
}

/// Why a watch could not be opened, or ended before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The server answered the request with a no.
    #[error("cannot watch {target}: {refusal}")]
    Refused {
        /// What was watched.
        target: Arc<str>,
        /// The answer.
        refusal: Refusal,
    },
    /// The server ended the running watch with an error event.
    #[error("watch of {target} ended by the server: {refusal}")]
    Ended {
        /// What was watched.
        target: Arc<str>,
        /// The error event.
        refusal: Refusal,
    },
    /// The request got no answer.
    #[error("cannot watch {target}: {source}")]
    Unreachable {
        /// What was watched.
        target: Arc<str>,
        /// Why.
        source: BoxError,
    },
    /// The running watch broke off.
    #[error("watch of {target} broke off: {source}")]
    Torn {
        /// What was watched.
        target: Arc<str>,
        /// Why.
        source: BoxError,
    },
    /// The server sent something that is no watch event.
    #[error("watch of {target} is corrupt: {error}")]
    Corrupt {
        /// What was watched.
        target: Arc<str>,
        /// What is wrong with it.
        error: String,
    },
    /// Nothing came for longer than a server may be silent.
    #[error("watch of {target} is silent for {deadline:?}")]
    Silent {
        /// What was watched.
        target: Arc<str>,
        /// How long we waited.
        deadline: Duration,
    },
    /// The watch did not say in time that its initial state is complete.
    #[error("watch of {target} did not complete its initial state")]
    Incomplete {
        /// What was watched.
        target: Arc<str>,
    },
}

// === impl Refusal ===

impl Refusal {
    /// A refusal with this status, reason and message.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            retry_after: None,
            causes: Vec::new(),
        }
    }

    /// The same, with a time to wait.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// The resource version asked for, or the place in a list, is out of the server's memory.
    pub fn is_expired(&self) -> bool {
        self.code == 410 || matches!(&*self.reason, "Expired" | "Gone")
    }

    /// The server has not reached the resource version that was asked for.
    pub fn is_too_large_resource_version(&self) -> bool {
        self.causes.iter().any(|cause| cause == "ResourceVersionTooLarge")
            || ((self.code == 504 || self.reason == "Timeout")
                && self.message.contains("Too large resource version"))
    }

    /// We may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.code == 403
    }

    /// The server does not know who we are.
    pub fn is_unauthorized(&self) -> bool {
        self.code == 401
    }

    /// There is no such kind.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// The server is busy.
    pub fn is_too_many_requests(&self) -> bool {
        self.code == 429
    }

    /// The server does not understand the request: another form of it may work, the same one will not.
    pub fn is_bad_request(&self) -> bool {
        matches!(self.code, 400 | 422)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            401 => f.write_str("unauthorized")?,
            403 => f.write_str("forbidden")?,
            404 => f.write_str("not found")?,
            410 => f.write_str("expired")?,
            429 => f.write_str("too many requests")?,
            code if self.reason.is_empty() => write!(f, "status {code}")?,
            code => write!(f, "status {code} ({})", self.reason)?,
        }
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.message) }
    }
}

// === impl ListError ===

/// The predicates that callers branch on, the same for both errors.
macro_rules! predicates {
    ($error:ty) => {
        impl $error {
            /// The resource version asked for, or the place in a list, is out of the server's memory (410).
            pub fn is_expired(&self) -> bool {
                self.refusal().is_some_and(Refusal::is_expired)
            }

            /// The server has not reached the resource version that was asked for (504).
            pub fn is_too_large_resource_version(&self) -> bool {
                self.refusal().is_some_and(Refusal::is_too_large_resource_version)
            }

            /// We may not do this (403).
            pub fn is_forbidden(&self) -> bool {
                self.refusal().is_some_and(Refusal::is_forbidden)
            }

            /// The server does not know who we are (401).
            pub fn is_unauthorized(&self) -> bool {
                self.refusal().is_some_and(Refusal::is_unauthorized)
            }

            /// There is no such kind (404).
            pub fn is_not_found(&self) -> bool {
                self.refusal().is_some_and(Refusal::is_not_found)
            }

            /// The server is busy (429).
            pub fn is_too_many_requests(&self) -> bool {
                self.refusal().is_some_and(Refusal::is_too_many_requests)
            }

            /// How long the server asks to wait.
            pub fn retry_after(&self) -> Option<Duration> {
                self.refusal().and_then(|refusal| refusal.retry_after)
            }
        }
    };
}

predicates!(ListError);
predicates!(WatchError);

impl ListError {
    /// What the server answered, if it did.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}

// === impl WatchError ===

impl WatchError {
    /// What the server answered, if it did.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } | Self::Ended { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_list_says_verb_resource_and_why() {
        let error = ListError::Refused {
            target: "pods in namespace shop".into(),
            refusal: Refusal::new(403, "Forbidden", "pods is forbidden: User \"u\" cannot list"),
        };
        assert_eq!(
            error.to_string(),
            "cannot list pods in namespace shop: forbidden: pods is forbidden: User \"u\" cannot list"
        );
        assert!(error.is_forbidden() && !error.is_expired());
    }

    #[test]
    fn expiry_is_known_by_code_and_by_reason() {
        assert!(Refusal::new(410, "", "").is_expired());
        assert!(Refusal::new(0, "Expired", "").is_expired());
        assert!(Refusal::new(0, "Gone", "").is_expired());
        assert!(!Refusal::new(500, "InternalError", "").is_expired());
    }

    #[test]
    fn too_large_version_is_known_by_cause_and_by_text() {
        let mut refusal = Refusal::new(504, "Timeout", "");
        assert!(!refusal.is_too_large_resource_version());
        refusal.causes.push("ResourceVersionTooLarge".into());
        assert!(refusal.is_too_large_resource_version());
        let text = "Timeout: Too large resource version: 9, current: 2";
        assert!(Refusal::new(504, "Timeout", text).is_too_large_resource_version());
    }
}
