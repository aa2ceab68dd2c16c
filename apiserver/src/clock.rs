//! Wall time and chance, both given by the builder: the same seed and epoch give the same run.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Wall time that advances with tokio's clock, so that tests can pause it.
#[derive(Debug)]
pub(crate) struct Clock {
    epoch: Timestamp,
    started: Instant,
}

/// The source of uids, generated names and watch timeouts.
#[derive(Debug)]
pub(crate) struct Chance {
    state: Mutex<u64>,
}

// === impl Clock ===

impl Clock {
    pub(crate) fn new(epoch: Timestamp) -> Self {
        Self { epoch, started: Instant::now() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let elapsed =
            SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

/// A time as `metav1.Time` writes it: whole seconds, UTC.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time as `metav1.MicroTime` writes it.
pub(crate) fn rfc3339_micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

// === impl Chance ===

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: Mutex::new(seed) }
    }

    /// The next 64 bits (splitmix64: tiny, and good enough for names).
    pub(crate) fn next(&self) -> u64 {
        let mut state = self.state.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..end`; 0 if that is empty.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// A number in `[0, 1)`.
    pub(crate) fn fraction(&self) -> f64 {
        let bits = u32::try_from(self.next() >> 32).expect("half of the bits are left");
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    /// A random uid in the form of a version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:x}{:03x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            8 + ((b >> 62) & 0x3),
            (b >> 48) & 0xfff,
            b & 0xffff_ffff_ffff,
        )
    }

    /// The five characters that `generateName` appends; the alphabet has no vowels, so that no words appear.
    pub(crate) fn name_suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.next();
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            let at = usize::try_from(bits % ALPHABET.len() as u64).expect("the alphabet is short");
            suffix.push(char::from(ALPHABET[at]));
            bits /= ALPHABET.len() as u64;
        }
        suffix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_names() {
        let (one, two) = (Chance::new(7), Chance::new(7));
        assert_eq!(one.uid(), two.uid());
        assert_eq!(one.name_suffix(), two.name_suffix());
        assert_eq!(one.uid().len(), 36);
    }

    #[tokio::test(start_paused = true)]
    async fn wall_time_follows_the_paused_clock() {
        let clock = Clock::new("2026-01-01T00:00:00Z".parse().unwrap());
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        assert_eq!(rfc3339(clock.now()), "2026-01-01T00:01:01Z");
    }
}
