//! How long to wait before asking a server again that did not answer well.
//!
//! Pure: time and chance come from outside.

use std::time::Duration;

/// The numbers of a back-off. The default is client-go's: 800 ms, doubled up to 30 s, each spread over twice its
/// length so that the clients of a server that comes back do not all come at once.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BackoffConfig {
    /// The first step.
    pub initial: Duration,
    /// The longest step, before it is spread.
    pub max: Duration,
    /// A step `d` becomes a wait in `[d, d · (1 + jitter))`.
    pub jitter: f64,
    /// After this long without trouble the next step is the first again. Shorter, and a server that accepts every
    /// watch and soon drops it would never be left in peace.
    pub reset_after: Duration,
}

/// The longest that a server's `Retry-After` is believed.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// The steps of one client.
#[derive(Debug)]
pub(crate) struct Backoff {
    config: BackoffConfig,
    /// The step that comes next, before it is spread; in `[initial, max]`.
    step: Duration,
}

/// A small seeded random source (`SplitMix64`), so that a run can be repeated.
#[derive(Debug)]
pub(crate) struct Chance(u64);

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
    pub(crate) fn new(config: BackoffConfig) -> Self {
        Self { config, step: config.initial.min(config.max) }
    }

    /// The next wait, not shorter than what the server asked for.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>, chance: &mut Chance) -> Duration {
        let step = self.step;
        self.step = step.saturating_mul(2).min(self.config.max);
        let jitter = self.config.jitter.clamp(0.0, 100.0) * chance.fraction();
        // Numbers that make no sense, or no duration, must not end the informer.
        let spread = Duration::try_from_secs_f64(step.as_secs_f64() * jitter).unwrap_or(step);
        match retry_after.map(|after| after.min(MAX_RETRY_AFTER)) {
            Some(after) if after > step => after.saturating_add(spread.min(self.config.initial)),
            _ => step.saturating_add(spread),
        }
    }

    /// Told that all went well for `lived`.
    pub(crate) fn healthy(&mut self, lived: Duration) {
        if lived >= self.config.reset_after {
            self.step = self.config.initial.min(self.config.max);
        }
    }
}

// === impl Chance ===

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[0, 1)`.
    pub(crate) fn fraction(&mut self) -> f64 {
        let bits = u32::try_from(self.next() >> 32).unwrap_or_default();
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    /// A duration in `[low, high)`.
    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        low + high.saturating_sub(low).mul_f64(self.fraction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(backoff: &mut Backoff, chance: &mut Chance) -> f64 {
        backoff.next(None, chance).as_secs_f64()
    }

    #[test]
    fn steps_double_up_to_the_longest_and_are_spread() {
        let (mut backoff, mut chance) = (Backoff::new(BackoffConfig::default()), Chance::new(7));
        for step in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let wait = seconds(&mut backoff, &mut chance);
            assert!((step..2.0 * step).contains(&wait), "{wait} for {step}");
        }
    }

    #[test]
    fn only_two_healthy_minutes_start_over() {
        let (mut backoff, mut chance) = (Backoff::new(BackoffConfig::default()), Chance::new(7));
        for _ in 0..9 {
            seconds(&mut backoff, &mut chance);
        }
        backoff.healthy(Duration::from_secs(119));
        assert!(seconds(&mut backoff, &mut chance) >= 30.0);
        backoff.healthy(Duration::from_secs(120));
        assert!(seconds(&mut backoff, &mut chance) < 1.6);
    }

    #[test]
    fn server_that_asks_for_time_gets_it_within_reason() {
        let (mut backoff, mut chance) = (Backoff::new(BackoffConfig::default()), Chance::new(7));
        let wait = backoff.next(Some(Duration::from_secs(10)), &mut chance);
        assert!((10.0..10.8).contains(&wait.as_secs_f64()), "{wait:?}");
        let wait = backoff.next(Some(Duration::MAX), &mut chance);
        assert!((300.0..300.8).contains(&wait.as_secs_f64()), "{wait:?}");
    }

    #[test]
    fn no_setting_makes_it_panic() {
        for jitter in [f64::NAN, f64::INFINITY, -1.0] {
            for longest in [Duration::ZERO, Duration::MAX] {
                let config = BackoffConfig {
                    initial: longest,
                    max: longest,
                    jitter,
                    ..BackoffConfig::default()
                };
                let (mut backoff, mut chance) = (Backoff::new(config), Chance::new(7));
                assert!(backoff.next(None, &mut chance) >= longest);
                backoff.next(Some(Duration::MAX), &mut chance);
            }
        }
    }

    #[test]
    fn same_seed_gives_the_same_waits() {
        let waits = |seed| {
            let (mut backoff, mut chance) =
                (Backoff::new(BackoffConfig::default()), Chance::new(seed));
            [(); 8].map(|()| backoff.next(None, &mut chance))
        };
        assert_eq!(waits(3), waits(3));
        assert_ne!(waits(3), waits(4));
    }
}
