//! Log lines about the client's own rate limit: at most one each minute.
//!
//! The words `client-side throttling, not priority and fairness` are client-go's: operators search
//! for them. client-go logs a wait of 1 s or more once per second at most; with that, a controller
//! that is always throttled fills its log.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A request that waits longer than this for the client's own rate limit is counted: it explains a
/// slow controller.
const LONG: Duration = Duration::from_secs(1);

/// The period of one log line.
const PERIOD: Duration = Duration::from_secs(60);

/// The long waits since the last log line.
#[derive(Debug, Default)]
pub(super) struct Throttling {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The time of the last line.
    logged: Option<Instant>,
    pending: Waits,
}

/// Waits that one log line summarizes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) requests: u64,
    pub(super) longest: Duration,
    pub(super) total: Duration,
}

// === impl Throttling ===

impl Throttling {
    /// Counts a request that waited for `waited`, and logs a summary if one is due.
    pub(super) fn record(&self, waited: Duration) {
        let Some(waits) = self.due(waited, Instant::now()) else { return };
        let Waits { requests, longest, total } = waits;
        tracing::info!(
            requests,
            ?longest,
            ?total,
            "requests were delayed by client-side throttling, not priority and fairness"
        );
    }

    /// Returns the waits to log now: the first long wait at once, the others once per period.
    ///
    /// A wait below [`LONG`] is not counted, but can make the line for earlier ones due.
    fn due(&self, waited: Duration, now: Instant) -> Option<Waits> {
        let mut state = self.state.lock();
        if waited >= LONG {
            state.pending.requests += 1;
            state.pending.longest = state.pending.longest.max(waited);
            state.pending.total = state.pending.total.saturating_add(waited);
        }
        let is_due = state.logged.is_none_or(|logged| now.duration_since(logged) >= PERIOD);
        if !is_due || state.pending.requests == 0 {
            return None;
        }
        state.logged = Some(now);
        Some(std::mem::take(&mut state.pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn throttling_is_logged_once_per_minute() {
        let throttling = Throttling::default();
        let seconds = Duration::from_secs;
        let start = Instant::now();
        let waits = |requests, longest, total| {
            Some(Waits { requests, longest: seconds(longest), total: seconds(total) })
        };
        assert_eq!(throttling.due(seconds(0), start), None);
        assert_eq!(throttling.due(seconds(2), start), waits(1, 2, 2));
        for n in 1..=30 {
            assert_eq!(throttling.due(seconds(3), start + seconds(n)), None);
        }
        assert_eq!(throttling.due(seconds(0), start + seconds(60)), waits(30, 3, 90));
        assert_eq!(throttling.due(seconds(0), start + seconds(120)), None);
    }
}
