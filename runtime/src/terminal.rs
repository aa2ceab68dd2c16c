//! Outcomes of a failed reconcile for its key: [`TerminalError`] and [`OnError`].

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use tower::BoxError;

/// The error of a reconcile that cannot succeed before something changes: an invalid name, or a
/// request that the server refuses with 422.
///
/// The controller reports it and does not retry the key. The next event of the object reconciles it
/// again. It is recognized also when it is a cause of another error.
///
/// Do not use it for what another program may mend without an event of this object, such as a
/// missing namespace or an exceeded quota: return a plain error, which backs off.
///
/// # Examples
///
/// ```
/// use homeostat::{Action, Reconciler, Request, TerminalError};
/// # use homeostat::Lister;
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// # struct Copier { maps: Lister<ConfigMap> }
/// impl Reconciler<ConfigMap> for Copier {
///     type Error = TerminalError;
///
///     async fn reconcile(&self, request: &Request<ConfigMap>) -> Result<Action, TerminalError> {
///         if self.maps.get(request.key()).is_some_and(|map| map.data.is_none()) {
///             return Err(TerminalError::new("data is missing"));
///         }
///         Ok(Action::AwaitChange)
///     }
/// }
///
/// // A wrapper changes nothing.
/// let wrapped = std::io::Error::other(TerminalError::new("data is missing"));
/// assert!(TerminalError::is_cause_of(&wrapped));
/// ```
#[doc(alias = "reconcile.TerminalError")]
#[derive(Debug)]
pub struct TerminalError {
    mark: Mark,
}

/// The cause of a [`TerminalError`], as its `source`.
///
/// A transparent wrapper and `anyhow::Error` hide the type of the error that they hold and show its
/// source. This type is found there.
#[derive(Debug)]
struct Mark(BoxError);

/// The treatment of a key whose reconcile has failed. Every failure is logged and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// Retry after the rate limiter's back-off, which grows with each failure. The default.
    BackOff,
    /// Retry after this time. The number of failures, and so the next back-off, stays the same.
    RetryAfter(Duration),
    /// Do not retry before something changes, as for a [`TerminalError`].
    AwaitChange,
}

// === impl TerminalError ===

impl TerminalError {
    /// Returns a terminal error with this cause.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self { mark: Mark(cause.into()) }
    }

    /// Returns true if `error` or one of its causes is a terminal error.
    pub fn is_cause_of(error: &(dyn StdError + 'static)) -> bool {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if error.is::<Self>() || error.is::<Mark>() {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

impl fmt::Display for TerminalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mark.fmt(f)
    }
}

impl StdError for TerminalError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.mark)
    }
}

// === impl Mark ===

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Mark {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Wrapped {
        #[error(transparent)]
        Transparent(TerminalError),
        #[error("failed to copy")]
        Source(#[source] TerminalError),
        #[error("failed to connect")]
        Other,
    }

    #[test]
    fn terminal_error_is_found_below_every_kind_of_wrapper() {
        let terminal = || TerminalError::new("invalid name");
        assert!(TerminalError::is_cause_of(&terminal()));
        assert!(TerminalError::is_cause_of(&Wrapped::Transparent(terminal())));
        assert!(TerminalError::is_cause_of(&Wrapped::Source(terminal())));
        assert!(!TerminalError::is_cause_of(&Wrapped::Other));
        assert_eq!(terminal().to_string(), "invalid name");
    }
}
