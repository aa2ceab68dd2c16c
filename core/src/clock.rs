//! Wall time that a test can pause.
//!
//! Timers of these crates count tokio's time, which a test can pause. A timestamp in an object
//! (`lastTimestamp` of an event, `renewTime` of a lease) needs wall time as well. If it came from
//! the machine, two runs of one test would write different objects.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of wall time: the machine's clock, or a fixed start plus the time that tokio's clock
/// has counted since.
///
/// The second form makes a run repeatable: under tokio's paused clock every timestamp of the run is
/// the same each time. The first form follows corrections of the machine's clock and continues
/// after a suspend; programs use it.
///
/// Use it for timestamps that are stored or shown. Use `tokio::time::Instant` instead for periods
/// and deadlines: wall time goes back when the machine's clock is corrected. A clock is a copy of a
/// few bytes without a lock.
///
/// # Examples
///
/// ```
/// use homeostat_core::WallClock;
///
/// let epoch: jiff::Timestamp = "2026-01-01T00:00:00Z".parse()?;
/// let clock = WallClock::new(Some(epoch));
/// assert!(clock.now() >= epoch);
/// # Ok::<_, jiff::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct WallClock(Source);

/// The source of the time. A clock keeps its source for good.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// The operating system's clock.
    Machine,
    /// `epoch`, and the time that tokio's clock has counted since.
    Counted { epoch: Timestamp, since: Instant },
}

// === impl WallClock ===

impl WallClock {
    /// Returns a clock that starts at `epoch` now and counts tokio's time; with `None`, the
    /// machine's clock.
    ///
    /// # Examples
    ///
    /// A test with a paused clock gets the same timestamp in each run:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), jiff::Error> {
    /// use std::time::Duration;
    ///
    /// use homeostat_core::WallClock;
    ///
    /// let clock = WallClock::new(Some("2026-01-01T00:00:00Z".parse()?));
    /// tokio::time::sleep(Duration::from_secs(90)).await;
    /// assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(epoch: Option<Timestamp>) -> Self {
        Self(
            epoch.map_or(Source::Machine, |epoch| Source::Counted { epoch, since: Instant::now() }),
        )
    }

    /// Returns the time. It saturates at the end of the calendar (the year 9999).
    pub fn now(&self) -> Timestamp {
        match self.0 {
            Source::Machine => Timestamp::now(),
            Source::Counted { epoch, since } => {
                let elapsed =
                    SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
                epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn epoch() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn counted_time_follows_the_paused_clock() {
        let clock = WallClock::new(Some(epoch()));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T00:01:01Z");
    }

    #[test]
    fn counted_time_saturates_at_the_end_of_the_calendar() {
        let since = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        let clock = WallClock(Source::Counted { epoch: Timestamp::MAX, since });
        assert_eq!(clock.now(), Timestamp::MAX);
    }

    #[test]
    fn machine_clock_is_the_default() {
        let before = Timestamp::now();
        assert!(WallClock::new(None).now() >= before);
    }
}
