//! [`Failure`]: a reconcile that failed.

use std::time::Duration;

use crate::reconcile_metrics::Reconciled;
use crate::request::Request;
use crate::target::Target;
use crate::terminal::OnError;
use crate::text::Guarded;

/// A failed reconcile, and the treatment of its key.
///
/// It is logged once, by [`log`](Self::log).
pub(super) struct Failure {
    pub(super) error: ReconcileError,
    pub(super) on_error: OnError,
}

/// The error of a reconcile.
///
/// It holds text, not the author's error: the error is formatted and dropped inside the boundary of
/// [`user_future`](homeostat_core::user_future), where a panic of its `Display` or `Drop` is caught
/// too.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconcileError {
    #[error("{0}")]
    Failed(String),
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
    #[error("panicked: {0}")]
    Panicked(String),
}

// === impl Failure ===

impl Failure {
    /// Returns a failure that is retried with the back-off of the rate limiter.
    pub(super) fn back_off(error: ReconcileError) -> Self {
        Self { error, on_error: OnError::BackOff }
    }

    /// Returns the result for the metrics.
    pub(super) fn reconciled(&self) -> Reconciled {
        match (&self.error, self.on_error) {
            (ReconcileError::Panicked(_), _) => Reconciled::Panic,
            (_, OnError::AwaitChange) => Reconciled::TerminalError,
            _ => Reconciled::Error,
        }
    }

    /// Logs a failure: an error for a panic, which is a bug, and for a key that is not retried; a
    /// warning otherwise.
    pub(super) fn log<T: Target>(&self, controller: &str, request: &Request<T>) {
        let (key, attempt, error) = (Guarded(request.key()), request.attempt(), &self.error);
        if self.on_error == OnError::AwaitChange {
            tracing::error!(
                %controller, %key, attempt, %error,
                "failed to reconcile, not retrying before a change"
            );
        } else if matches!(error, ReconcileError::Panicked(_)) {
            tracing::error!(%controller, %key, attempt, %error, "failed to reconcile, retrying");
        } else {
            tracing::warn!(%controller, %key, attempt, %error, "failed to reconcile, retrying");
        }
    }
}
