//! Durations in Go's syntax, as flags and objects of Kubernetes have them.

/// The error of a text that is no duration in Go's syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GoDurationError {
    /// The text has no unit, or is no number.
    #[error("write numbers with units, as 300ms, 15s, 1.5h or 1h30m")]
    Syntax,
    /// The duration is longer than 292 years, the longest one of Go.
    #[error("longer than 292 years")]
    TooLong,
}

/// The units with their nanoseconds. A unit comes before its prefixes.
///
/// Both signs for micro are allowed: U+00B5 and U+03BC.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration in Go's syntax (`time.ParseDuration`), such as `1h30m`, `-1.5h`, `300ms` or
/// `0`. Returns its nanoseconds. Digits below a nanosecond are cut off.
///
/// # Errors
///
/// Fails if the text has no unit or is no number, and if the duration is longer than 292 years.
///
/// # Examples
///
/// ```
/// use homeostat_core::{GoDurationError, parse_go_duration};
///
/// assert_eq!(parse_go_duration("-1h30m"), Ok(-5_400_000_000_000));
/// assert_eq!(parse_go_duration("15"), Err(GoDurationError::Syntax));
/// ```
#[doc(alias = "ParseDuration")]
pub fn parse_go_duration(text: &str) -> Result<i64, GoDurationError> {
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(GoDurationError::Syntax);
    }
    let mut nanoseconds: i128 = 0;
    while !rest.is_empty() {
        let (part, after) = parse_part(rest).ok_or(GoDurationError::Syntax)?;
        nanoseconds = nanoseconds.saturating_add(part);
        rest = after;
    }
    let signed = if is_negative { -nanoseconds } else { nanoseconds };
    i64::try_from(signed).map_err(|_| GoDurationError::TooLong)
}

/// Parses one number and its unit. Returns the nanoseconds and the rest of the text.
///
/// Returns `None` if there is no digit or no unit.
fn parse_part(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let &(unit, scale) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
    // More digits than an i128 has are longer than 292 years.
    let whole = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(i128::MAX) };
    let digits = &fraction[..fraction.len().min(18)];
    let power = 10_i128.pow(u32::try_from(digits.len()).unwrap_or(18));
    let fraction = digits.parse().unwrap_or(0_i128) * i128::from(scale) / power;
    let total = whole.saturating_mul(i128::from(scale)).saturating_add(fraction);
    Some((total, &rest[unit.len()..]))
}

/// Splits after the leading decimal digits, of which there may be none.
fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_parsed() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("-0", 0),
            ("0s", 0),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("-1h30m", -5_400_000_000_000),
            ("5m0s", 300_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("300ms", 300_000_000),
            ("10us", 10_000),
            ("10µs", 10_000),
            ("10μs", 10_000),
            ("7ns", 7),
            ("0.9ns", 0),
            ("0.0000000000005h", 1),
            ("0000000000000000000000000000007ns", 7),
            ("2540400h", 9_145_440_000_000_000_000),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse_go_duration(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn text_without_number_or_unit_is_refused() {
        let others = ["", "+", "-", "15", "s", ".s", "1 s", "1d", "1h-5m", "1e3s", "fast", "½s"];
        for text in others.into_iter().chain(["--5s", "-+5s", "1.2.3s", "1h 5m", " 1s"]) {
            assert_eq!(parse_go_duration(text), Err(GoDurationError::Syntax), "{text}");
        }
    }

    #[test]
    fn duration_above_292_years_is_refused() {
        let digits = "9".repeat(60);
        for text in ["9999999h", "-9999999h", "9223372036854775808ns", &format!("{digits}h")] {
            assert_eq!(parse_go_duration(text), Err(GoDurationError::TooLong), "{text}");
        }
    }
}
