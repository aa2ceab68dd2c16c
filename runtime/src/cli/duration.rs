//! Durations in Go's syntax, as the flags of Kubernetes' programs have them.

use std::time::Duration;

use homeostat_core::{GoDurationError, parse_go_duration};

/// The error of a text that is no duration.
///
/// The text of each variant contains the argument, so that a flag's error names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// The text has no unit, or is no number.
    #[error("invalid duration {text:?}: write numbers with units, as 300ms, 15s, 1.5h or 1h30m")]
    #[non_exhaustive]
    Syntax {
        /// The text.
        text: String,
    },
    /// The duration is below zero.
    #[error("duration {text:?} is negative")]
    #[non_exhaustive]
    Negative {
        /// The text.
        text: String,
    },
    /// The duration is above 292 years, the longest one of Go.
    #[error("duration {text:?} is longer than 292 years")]
    #[non_exhaustive]
    TooLong {
        /// The text.
        text: String,
    },
}

/// Parses a duration in Go's syntax (`time.ParseDuration`): `15s`, `1h30m`, `1.5h`, `300ms`, `0`.
///
/// # Errors
///
/// Returns an error that says what is allowed. Negative durations are errors.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat::cli::parse_duration;
///
/// assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
/// assert_eq!(
///     parse_duration("15").unwrap_err().to_string(),
///     "invalid duration \"15\": write numbers with units, as 300ms, 15s, 1.5h or 1h30m"
/// );
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let text = text.to_owned();
    match parse_go_duration(&text) {
        Ok(_) if text.starts_with('-') => Err(DurationError::Negative { text }),
        Ok(nanoseconds) => Ok(Duration::from_nanos(nanoseconds.unsigned_abs())),
        Err(GoDurationError::TooLong) => Err(DurationError::TooLong { text }),
        Err(_) => Err(DurationError::Syntax { text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_parsed() {
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("+1.5ms"), Ok(Duration::from_micros(1500)));
    }

    #[test]
    fn other_texts_are_refused_with_what_is_allowed() {
        for text in ["", "+", "15", "s", ".s", "1 s", "1d", "1h-5m", "1e3s", "fast", "½s"] {
            let error = parse_duration(text).unwrap_err().to_string();
            assert!(error.contains("write numbers with units"), "{text}: {error}");
        }
        assert_eq!(parse_duration("-5s").unwrap_err().to_string(), "duration \"-5s\" is negative");
        for text in ["9999999h", "99999999999999999999999999999999999999999h"] {
            let error = parse_duration(text).unwrap_err();
            assert_eq!(error, DurationError::TooLong { text: text.to_owned() });
        }
    }
}
