//! Wall time and randomness, both set by the builder: equal seeds and epochs give equal runs.

use homeostat_core::Random;
use jiff::Timestamp;
use parking_lot::Mutex;

/// Randomness that requests share: uids, generated names, watch timeouts and faults.
#[derive(Debug)]
pub(crate) struct Chance(Mutex<Random>);

/// Formats a time as `metav1.Time` does: whole seconds, UTC.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats a time as `metav1.MicroTime` does.
pub(crate) fn rfc3339_micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

// === impl Chance ===

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(Random::new(Some(seed))))
    }

    /// Returns a number in `0..end`, or 0 if `end` is 0.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.0.lock().below(end)
    }

    /// Returns a random uid in the form of a version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        let (a, b) = {
            let mut random = self.0.lock();
            (random.bits(), random.bits())
        };
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

    /// Returns the five characters that `generateName` appends. Upstream's alphabet has no vowels,
    /// so that no words appear.
    pub(crate) fn name_suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut random = self.0.lock();
        let mut letter = || {
            let at = random.below(ALPHABET.len() as u64);
            char::from(ALPHABET[usize::try_from(at).expect("the alphabet is short")])
        };
        (0..5).map(|_| letter()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_names() {
        let (one, other) = (Chance::new(7), Chance::new(7));
        assert_eq!(one.uid(), other.uid());
        assert_eq!(one.name_suffix(), other.name_suffix());
        assert_eq!(one.uid().len(), 36);
    }

    #[test]
    fn times_have_the_precision_of_their_type() {
        let time = "2026-01-01T00:01:01.25Z".parse().unwrap();
        assert_eq!(rfc3339(time), "2026-01-01T00:01:01Z");
        assert_eq!(rfc3339_micros(time), "2026-01-01T00:01:01.250000Z");
    }
}
