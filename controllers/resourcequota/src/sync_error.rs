//! [`SyncError`]: the failure of a pass over a quota, and the time of the next one.

use std::time::Duration;

use homeostat::OnError;
use homeostat::client::describe_error;
use homeostat::kube_client::Error;

use crate::caches::CountError;

/// The delay before the first repetition of a failed write. It doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_millis(5);

/// The longest delay before a write is repeated that the server may carry out as it is.
const LONGEST_RETRY: Duration = Duration::from_millis(500);

/// The time between two repetitions of writes of different quotas: 10 in a second.
const RETRY_PERIOD: Duration = Duration::from_millis(100);

/// The failure of a pass. What could be counted is written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error("failed to count: {}", joined(.0))]
    Count(Vec<CountError>),
    #[error("failed to update the status: {}", describe_error(.error))]
    Write {
        #[source]
        error: Box<Error>,
        /// `None` for a write that the server refuses as it is.
        retry_after: Option<Duration>,
    },
}

// === impl SyncError ===

impl SyncError {
    /// Returns the error of a write, after this number of failures of the quota, while this number
    /// of quotas fail.
    pub(crate) fn of_write(error: Error, failures: u32, failing: usize) -> Self {
        let retry_after = may_succeed(&error).then(|| retry_delay(failures, failing));
        Self::Write { error: Box::new(error), retry_after }
    }

    /// Returns the treatment of the key.
    ///
    /// Until a write is repeated the usage is wrong, so a write that the server may carry out as it
    /// is does not wait for the queue's back-off, which grows to 1,000 s.
    pub(crate) fn on_error(&self) -> OnError {
        match self {
            Self::Write { retry_after: Some(delay), .. } => OnError::RetryAfter(*delay),
            Self::Write { retry_after: None, .. } | Self::Count(_) => OnError::BackOff,
        }
    }
}

fn joined(errors: &[CountError]) -> String {
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// Returns true if the server may carry out the write when it gets it again: it was not reached, it
/// did not answer, it is overloaded, or the cache did not show the present version.
fn may_succeed(error: &Error) -> bool {
    match error {
        Error::Api(status) => matches!(status.code, 408 | 409 | 429) || status.code >= 500,
        Error::BuildRequest(_) | Error::SerdeError(_) => false,
        _ => true,
    }
}

/// Returns the delay after this number of failures of one quota, while this number of quotas fail.
///
/// Alone, a quota is written within half a second after the server can write again. Many quotas
/// together cost 10 writes in a second, as the bucket of the queue allows.
fn retry_delay(failures: u32, failing: usize) -> Duration {
    let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
    let own = FIRST_RETRY.saturating_mul(doubled).min(LONGEST_RETRY);
    let others = u32::try_from(failing.saturating_sub(1)).unwrap_or(u32::MAX);
    own.max(RETRY_PERIOD.saturating_mul(others))
}

#[cfg(test)]
mod tests {
    use homeostat::kube_client::core::Status;

    use super::*;

    #[test]
    fn failed_write_is_repeated_within_half_a_second() {
        let delays = [1, 2, 5, 7, 8, 40].map(|failures| retry_delay(failures, 1).as_millis());
        assert_eq!(delays, [5, 10, 80, 320, 500, 500]);
    }

    #[test]
    fn failing_quotas_together_cost_ten_writes_in_a_second() {
        assert_eq!(retry_delay(1, 2), Duration::from_millis(100));
        assert_eq!(retry_delay(40, 4), Duration::from_millis(500));
        assert_eq!(retry_delay(40, 1001), Duration::from_secs(100));
    }

    #[test]
    fn only_a_write_that_may_succeed_as_it_is_avoids_the_back_off() {
        let answered = |code| Error::Api(Status::failure("no", "Reason").with_code(code).boxed());
        for code in [408, 409, 429, 500, 503, 504] {
            assert!(may_succeed(&answered(code)), "{code}");
        }
        for code in [400, 401, 403, 404, 422] {
            assert!(!may_succeed(&answered(code)), "{code}");
        }
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(may_succeed(&Error::Service(reset.into())));
    }
}
