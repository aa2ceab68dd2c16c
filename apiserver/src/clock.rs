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
        self.random.lock().uuid().to_string()
    }

    /// Returns the id of a request.
    pub(crate) fn audit_id(&self) -> HeaderValue {
        HeaderValue::from_str(self.audit.lock().uuid().as_str()).expect("the id is ASCII")
    }

    /// Returns the uid of a review that a webhook is sent.
    pub(crate) fn review_id(&self) -> String {
        self.audit.lock().uuid().to_string()
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
