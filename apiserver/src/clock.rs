//! Wall time and randomness, both set by the builder: equal seeds and epochs give equal runs.

use homeostat_core::{Random, parse_go_duration};
use http::HeaderValue;
use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use parking_lot::Mutex;

/// Randomness that requests share: uids, generated names, watch timeouts and faults.
#[derive(Debug)]
pub(crate) struct Chance {
    random: Mutex<Random>,
    /// The source of audit ids: reads, which take one too, change no generated name.
    audit: Mutex<Random>,
}

/// Distinguishes the audit ids of a seed from its uids.
const AUDIT_SEED: u64 = 0x6175_6469_7400_0001;

/// Formats a time as `metav1.Time` does: whole seconds, UTC.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    const WHOLE_SECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
    WHOLE_SECONDS.timestamp_to_string(&time)
}

/// Writes the day of a time in UTC: `2026-01-01`.
pub(crate) fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

/// Formats a time as `metav1.MicroTime` does.
pub(crate) fn rfc3339_micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Checks a duration of Go, such as `1h30m`. The error is Go's.
pub(crate) fn check_go_duration(text: &str) -> Result<(), String> {
    const UNITS: [&str; 8] = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"];
    let invalid = || format!("time: invalid duration \"{text}\"");
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let unit = rest.trim_start_matches(is_number);
        let number = &rest[..rest.len() - unit.len()];
        if number.matches('.').count() > 1 || !number.contains(|letter: char| letter != '.') {
            return Err(invalid());
        }
        rest = unit.trim_start_matches(|letter: char| !is_number(letter));
        let unit = &unit[..unit.len() - rest.len()];
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration \"{text}\""));
        }
        if !UNITS.contains(&unit) {
            return Err(format!("time: unknown unit \"{unit}\" in duration \"{text}\""));
        }
    }
    // What is left is too long.
    parse_go_duration(text).map(drop).map_err(|_| invalid())
}

/// Returns a random UUID of version 4. It is written without a formatter: each reply has one.
fn uuid(source: &Mutex<Random>) -> [u8; 36] {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let (a, b) = {
        let mut random = source.lock();
        (random.bits(), random.bits())
    };
    let high = (a & !0xf000) | 0x4000;
    let low = (b & (u64::MAX >> 4)) | ((8 + (b >> 62)) << 60);
    let mut bits = (u128::from(high) << 64) | u128::from(low);
    let mut text = [b'-'; 36];
    for at in (0..text.len()).rev().filter(|at| !HYPHENS.contains(at)) {
        text[at] = b"0123456789abcdef"[usize::try_from(bits & 0xf).expect("a digit")];
        bits >>= 4;
    }
    text
}

// === impl Chance ===

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        let source = |seed| Mutex::new(Random::new(Some(seed)));
        Self { random: source(seed), audit: source(seed ^ AUDIT_SEED) }
    }

    /// Returns a number in `0..end`, or 0 if `end` is 0.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.random.lock().below(end)
    }

    /// Returns a random uid in the form of a version 4 UUID.
    pub(crate) fn uid(&self) -> String {
        uuid(&self.random).iter().copied().map(char::from).collect()
    }

    /// Returns the id of a request.
    pub(crate) fn audit_id(&self) -> HeaderValue {
        HeaderValue::from_bytes(&uuid(&self.audit)).expect("the id is ASCII")
    }

    /// Returns the uid of a review that a webhook is sent.
    pub(crate) fn review_id(&self) -> String {
        uuid(&self.audit).iter().copied().map(char::from).collect()
    }

    /// Returns the five characters that `generateName` appends. Upstream's alphabet has no vowels,
    /// so that no words appear.
    pub(crate) fn name_suffix(&self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut random = self.random.lock();
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
        assert_eq!(one.audit_id(), other.audit_id());
    }

    #[test]
    fn uids_have_version_4_and_the_usual_variant() {
        let chance = Chance::new(7);
        for _ in 0..1000 {
            let uid = chance.uid();
            let groups: Vec<usize> = uid.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{uid}");
            let digit = |at: usize| char::from(uid.as_bytes()[at]);
            assert!(digit(14) == '4' && "89ab".contains(digit(19)), "{uid}");
        }
    }

    #[test]
    fn audit_id_changes_no_uid() {
        let (one, other) = (Chance::new(7), Chance::new(7));
        let id = one.audit_id();
        assert_eq!(one.uid(), other.uid());
        assert_ne!(id, one.uid());
    }

    #[test]
    fn times_have_the_precision_of_their_type() {
        let time = "2026-01-01T00:01:01.25Z".parse().unwrap();
        assert_eq!(rfc3339(time), "2026-01-01T00:01:01Z");
        assert_eq!(day(time), "2026-01-01");
        assert_eq!(rfc3339_micros(time), "2026-01-01T00:01:01.250000Z");
    }
}
