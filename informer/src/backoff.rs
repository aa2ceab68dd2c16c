//! The wait before a failed request is repeated.
//!
//! This module is pure: time and randomness come from outside.
//!
//! The numbers and the rule are those of client-go's reflector: exponential steps with jitter, and
//! a reset after 2 minutes of health. Unlike there, steps without an answer are undone by the next
//! answer. The reset depends on the lifetime of a watch, not on a single
//! success: a server that accepts each watch and drops it at once would otherwise never be backed
//! off from.

use std::time::Duration;

use homeostat_core::Random;

/// The numbers of a back-off. The defaults are client-go's (`reflector.go`).
///
/// The back-off starts at 800 ms and doubles up to 30 s. Each wait is spread over twice its length,
/// so that the clients of a server that restarts do not all connect at once.
///
/// Use it when a cluster needs another pace, with
/// [`InformerBuilder::backoff`](crate::InformerBuilder::backoff). Use the defaults otherwise: from
/// the seventh consecutive wait on, each takes 30 s to 60 s.
///
/// A server that sends `Retry-After` is followed instead if that is longer than the step. At most 5
/// minutes of it count.
///
/// Any values are accepted: a jitter that is negative counts as 0, one that exceeds 100 as 100, and
/// one that is not a number adds one step.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_informer::BackoffConfig;
///
/// let mut backoff = BackoffConfig::default();
/// assert_eq!(backoff.max, Duration::from_secs(30));
/// backoff.max = Duration::from_secs(5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BackoffConfig {
    /// The first step. 800 ms by default.
    pub initial: Duration,
    /// The longest step, before it is spread. 30 s by default.
    pub max: Duration,
    /// A step `d` becomes a random wait in `[d, d · (1 + jitter))`. 1.0 by default.
    pub jitter: f64,
    /// After a watch that lived this long, the next step is the first again. 2 minutes by default:
    /// with a shorter time, the informer would query a server that accepts each watch and soon
    /// drops it without a growing pause.
    pub reset_after: Duration,
}

/// The longest `Retry-After` of a server that is followed.
///
/// A larger value is more often an error of a proxy than a wish of the server, and an informer that
/// sleeps for hours looks dead.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// The back-off of one reflector.
///
/// Only the reflector's state machine changes it, so it needs no lock. It grows with each wait, not
/// with each failure: a failure that is repeated without a wait does not count.
#[derive(Debug)]
pub(crate) struct Backoff {
    config: BackoffConfig,
    /// The next step, before it is spread; in `[initial, max]`.
    step: Duration,
    /// The step to return to when the server answers; `None` if its last request was answered.
    answered: Option<Duration>,
}

// === impl BackoffConfig ===

impl Default for BackoffConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(800),
            max: Duration::from_secs(30),
            jitter: 1.0,
            reset_after: Duration::from_secs(120),
        }
    }
}

// === impl Backoff ===

impl Backoff {
    /// Starts at the first step.
    pub(crate) fn new(config: BackoffConfig) -> Self {
        Self { config, step: config.initial.min(config.max), answered: None }
    }

    /// Returns the next wait. It is not shorter than `retry_after`, which the server asked for.
    ///
    /// Each call doubles the step, up to `max`. With a longer `retry_after`, the jitter is at most
    /// `initial`, because the server chose the time.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>, random: &mut Random) -> Duration {
        let step = self.step;
        self.step = step.saturating_mul(2).min(self.config.max);
        let jitter = self.config.jitter.clamp(0.0, 100.0) * random.fraction();
        // Numbers that make no sense, or no duration, must not end the informer.
        let spread = Duration::try_from_secs_f64(step.as_secs_f64() * jitter).unwrap_or(step);
        match retry_after.map(|after| after.min(MAX_RETRY_AFTER)) {
            Some(after) if after > step => after.saturating_add(spread.min(self.config.initial)),
            _ => step.saturating_add(spread),
        }
    }

    /// Records a request without an answer. The steps that follow are undone by the next answer: an
    /// outage of the network says nothing about the load of the server.
    pub(crate) fn unanswered(&mut self) {
        self.answered.get_or_insert(self.step);
    }

    /// Records an answer of the server, good or bad.
    pub(crate) fn answered(&mut self) {
        self.step = self.answered.take().unwrap_or(self.step);
    }

    /// Resets the step after a watch that lived for `lived`, if that was long enough. The next
    /// answer then returns to no later step.
    pub(crate) fn healthy(&mut self, lived: Duration) {
        if lived >= self.config.reset_after {
            self.step = self.config.initial.min(self.config.max);
            self.answered = self.answered.map(|_| self.step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(backoff: &mut Backoff, random: &mut Random) -> f64 {
        backoff.next(None, random).as_secs_f64()
    }

    #[test]
    fn steps_double_up_to_maximum_and_have_jitter() {
        let (mut backoff, mut random) =
            (Backoff::new(BackoffConfig::default()), Random::new(Some(7)));
        for step in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let wait = seconds(&mut backoff, &mut random);
            assert!((step..2.0 * step).contains(&wait), "{wait} for {step}");
        }
    }

    #[test]
    fn backoff_restarts_after_two_healthy_minutes() {
        let (mut backoff, mut random) =
            (Backoff::new(BackoffConfig::default()), Random::new(Some(7)));
        for _ in 0..9 {
            seconds(&mut backoff, &mut random);
        }
        backoff.healthy(Duration::from_secs(119));
        assert!(seconds(&mut backoff, &mut random) >= 30.0);
        backoff.healthy(Duration::from_secs(120));
        assert!(seconds(&mut backoff, &mut random) < 1.6);
    }

    #[test]
    fn steps_without_an_answer_are_undone_by_the_next_answer() {
        let (mut backoff, mut random) =
            (Backoff::new(BackoffConfig::default()), Random::new(Some(7)));
        seconds(&mut backoff, &mut random);
        for step in [1.6, 3.2, 6.4] {
            backoff.unanswered();
            assert!(seconds(&mut backoff, &mut random) >= step);
        }
        for step in [1.6, 3.2, 6.4] {
            backoff.answered();
            let wait = seconds(&mut backoff, &mut random);
            assert!((step..2.0 * step).contains(&wait), "{wait}: answered failures add up");
        }
    }

    #[test]
    fn answer_after_a_healthy_watch_keeps_the_first_step() {
        let (mut backoff, mut random) =
            (Backoff::new(BackoffConfig::default()), Random::new(Some(7)));
        for _ in 0..9 {
            seconds(&mut backoff, &mut random);
        }
        // The watch that follows falls silent after three minutes.
        backoff.unanswered();
        backoff.healthy(Duration::from_secs(180));
        backoff.answered();
        assert!(seconds(&mut backoff, &mut random) < 1.6);
    }

    #[test]
    fn retry_after_is_honoured_up_to_maximum() {
        let (mut backoff, mut random) =
            (Backoff::new(BackoffConfig::default()), Random::new(Some(7)));
        let wait = backoff.next(Some(Duration::from_secs(10)), &mut random);
        assert!((10.0..10.8).contains(&wait.as_secs_f64()), "{wait:?}");
        let wait = backoff.next(Some(Duration::MAX), &mut random);
        assert!((300.0..300.8).contains(&wait.as_secs_f64()), "{wait:?}");
    }

    #[test]
    fn backoff_never_panics_for_any_setting() {
        for jitter in [f64::NAN, f64::INFINITY, -1.0] {
            for longest in [Duration::ZERO, Duration::MAX] {
                let config = BackoffConfig {
                    initial: longest,
                    max: longest,
                    jitter,
                    ..BackoffConfig::default()
                };
                let (mut backoff, mut random) = (Backoff::new(config), Random::new(Some(7)));
                assert!(backoff.next(None, &mut random) >= longest);
                backoff.next(Some(Duration::MAX), &mut random);
            }
        }
    }

    #[test]
    fn same_seed_gives_the_same_waits() {
        let waits = |seed| {
            let (mut backoff, mut random) =
                (Backoff::new(BackoffConfig::default()), Random::new(Some(seed)));
            [(); 8].map(|()| backoff.next(None, &mut random))
        };
        assert_eq!(waits(3), waits(3));
        assert_ne!(waits(3), waits(4));
    }
}
