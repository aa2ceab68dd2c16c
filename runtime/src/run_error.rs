//! [`RunError`]: the errors of a manager.
//!
//! The errors are values that compare equal, so that tests can name them: errors of the author's
//! code are kept as text.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::status::InformerFailure;

use crate::leader_election::LeadershipLost;

/// The number of names that an error's text lists.
const LISTED: usize = 10;

/// The error of a manager that did not run or stop in order.
///
/// Every variant means that all tasks have ended or were dropped, except those that block their
/// threads: exit with a code other than 0. After [`Undrained`](Self::Undrained) nothing is lost,
/// because the next process lists all objects.
///
/// # Examples
///
/// A program that accepts keys that are left, because the next process lists all objects:
///
/// ```no_run
/// use homeostat::{Manager, RunError, shutdown_signal};
///
/// # async fn doc(manager: Manager) -> Result<(), RunError> {
/// match manager.run_until(shutdown_signal()).await {
///     Err(RunError::Undrained { keys, .. }) => {
///         tracing::warn!(keys, "stopped before the queues were empty");
///         Ok(())
///     }
///     outcome => outcome,
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Two controllers or runnables have the same name, so that their logs and metrics would mix.
    #[error("two controllers or runnables have the name {name:?}")]
    #[non_exhaustive]
    NameTaken {
        /// The name.
        name: Arc<str>,
    },
    /// An informer was stopped from outside before its cache was complete.
    #[error("an informer was stopped before its cache was complete")]
    InformerStopped,
    /// A task of an informer panicked. Its cache does not follow the server any more.
    #[error(transparent)]
    InformerFailed(#[from] InformerFailure),
    /// Caches were not complete within the [sync timeout](crate::Manager::sync_timeout).
    #[error("failed to sync caches within {timeout:?}: {}", Names(.unsynced))]
    #[non_exhaustive]
    NeverSynced {
        /// The timeout.
        timeout: Duration,
        /// Each cache that is not complete, with its last error.
        unsynced: Vec<String>,
    },
    /// A worker panicked outside of its reconciler: in the `Clone`, `Eq` or `Hash` of the author's
    /// key type, in the function of [`fair_by`](crate::ControllerBuilder::fair_by), or because of a
    /// bug in this library.
    #[error("a worker panicked: {message}")]
    #[non_exhaustive]
    WorkerPanicked {
        /// The panic's message.
        message: String,
    },
    /// A runnable or a service returned an error or panicked.
    #[error("{name} failed: {error}")]
    #[non_exhaustive]
    RunnableFailed {
        /// The runnable's name.
        name: Arc<str>,
        /// The error with its causes.
        error: String,
    },
    /// Keys were left when the drain timeout had passed.
    #[error(
        "{keys} keys were not reconciled within the drain timeout of {timeout:?}: {}", Names(.left)
    )]
    #[non_exhaustive]
    Undrained {
        /// The number of keys that were queued or being reconciled.
        keys: usize,
        /// The drain timeout.
        timeout: Duration,
        /// The keys, each behind its controller's name.
        left: Vec<String>,
    },
    /// A part did not stop in time: a mapper, a runnable or a timer that blocks. It was dropped or
    /// left.
    #[error("did not stop in time: {}", Names(.parts))]
    #[non_exhaustive]
    Hung {
        /// The parts.
        parts: Vec<String>,
    },
    /// Another replica may lead now. The workers were aborted. The program should exit: its
    /// supervisor starts it again, and it becomes a candidate again.
    #[error(transparent)]
    LeadershipLost(#[from] LeadershipLost),
}

/// Prints names in one line, the first ten of them.
///
/// An error of 1,000 keys stays readable; the complete list is in its field.
struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = &self.0[..self.0.len().min(LISTED)];
        f.write_str(&listed.join(", "))?;
        match self.0.len() - listed.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_ten_keys_and_counts_the_rest() {
        let left = |n: usize| (0..n).map(|n| format!("web ns/{n}")).collect();
        let error =
            |n| RunError::Undrained { keys: n, timeout: Duration::from_secs(25), left: left(n) };
        assert_eq!(
            error(1).to_string(),
            "1 keys were not reconciled within the drain timeout of 25s: web ns/0"
        );
        assert!(error(12).to_string().ends_with("web ns/9 and 2 more"), "{}", error(12));
    }
}
