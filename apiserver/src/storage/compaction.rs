//! The compaction of old states by time.

use std::time::Duration;

use tokio::time::Instant;

/// The time between two compactions; kube-apiserver's default.
const PERIOD: Duration = Duration::from_secs(5 * 60);

/// The compactions of a store, one every 5 minutes. Each forgets the states that were no longer the
/// newest at the one before, so that an old state can be listed for 5 to 10 minutes.
///
/// No task runs: the first access after the time of a compaction carries it out. Nothing was
/// written in between, so that it finds the revision of that time.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    /// The time of the next compaction; `None` before the first access.
    next: Option<Instant>,
    /// The revision at the time of the last one.
    seen: u64,
}

// === impl Compaction ===

impl Compaction {
    /// Returns the oldest revision to keep if a compaction is due. `revision` is the present one.
    pub(super) fn due(&mut self, revision: u64, now: Instant) -> Option<u64> {
        let next = *self.next.get_or_insert(now + PERIOD);
        if now < next {
            return None;
        }
        let is_second_due = now >= next + PERIOD;
        let oldest = if is_second_due { revision } else { self.seen };
        let late = (now - next).as_secs() / PERIOD.as_secs() * PERIOD.as_secs();
        self.next = Some(next + PERIOD + Duration::from_secs(late));
        self.seen = revision;
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn state_is_kept_until_second_compaction_after_it() {
        let mut compaction = Compaction::default();
        let start = Instant::now();
        let at = |minutes: u64| start + Duration::from_secs(minutes * 60);
        assert_eq!(compaction.due(1, start), None);
        assert_eq!(compaction.due(7, at(4)), None);
        assert_eq!(compaction.due(8, at(6)), Some(0));
        assert_eq!(compaction.due(8, at(9)), None);
        assert_eq!(compaction.due(9, at(10)), Some(8));
        assert_eq!(compaction.due(9, at(14)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn long_silence_leaves_only_newest_state() {
        let mut compaction = Compaction::default();
        let start = Instant::now();
        let at = |minutes: u64| start + Duration::from_secs(minutes * 60);
        assert_eq!(compaction.due(1, start), None);
        assert_eq!(compaction.due(5, at(21)), Some(5));
        assert_eq!(compaction.due(6, at(24)), None);
        assert_eq!(compaction.due(6, at(25)), Some(5));
    }
}
