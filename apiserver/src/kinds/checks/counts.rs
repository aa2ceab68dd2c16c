//! Numbers of pods, or percentages of all pods.

use std::num::{IntErrorKind, ParseIntError};

use serde_json::Value;

use super::{Causes, NOT_NEGATIVE};
use crate::status::Cause;

/// Returns true if a value means no pod: `0`, `"0%"`, a missing value, or a text that is no number.
pub(super) fn is_none(value: &Value) -> bool {
    let number = match value {
        Value::String(text) => percent_of(text).unwrap_or_else(|| number_of(text)),
        other => other.as_i64().unwrap_or(0),
    };
    number == 0
}

fn percent_of(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| number_of(digits))
}

/// Reads a number as Go's `strconv.Atoi`, whose error the real server ignores: a text that is no
/// number is 0, and one that is too large is the largest number.
fn number_of(text: &str) -> i64 {
    text.parse().unwrap_or_else(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => i64::MAX,
        IntErrorKind::NegOverflow => i64::MIN,
        _ => 0,
    })
}

pub(super) fn count_or_percent(value: &Value, at: &str, causes: Causes<'_>) {
    let detail = match value {
        Value::String(text) if percent_of(text).is_none() => {
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
             '1%',  or '93%', regex used for validation is '[0-9]+%')"
        }
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => NOT_NEGATIVE,
        _ => return,
    };
    causes.push(Cause::invalid(at, value, detail));
}

pub(super) fn at_most_all(value: &Value, at: &str, causes: Causes<'_>) {
    if value.as_str().and_then(percent_of).is_some_and(|percent| percent > 100) {
        causes.push(Cause::invalid(at, value, "must not be greater than 100%"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_that_is_no_number_means_no_pod() {
        for none in [json!(0), json!(null), json!("0%"), json!("00%"), json!(""), json!("5x")] {
            assert!(is_none(&none), "{none}");
        }
        let large = "99999999999999999999";
        for some in [json!(-1), json!("1%"), json!("10"), json!("+5"), json!(large)] {
            assert!(!is_none(&some), "{some}");
        }
    }

    #[test]
    fn percentage_has_digits_only() {
        let found = |value: Value| {
            let mut causes = Vec::new();
            count_or_percent(&value, "a", &mut causes);
            at_most_all(&value, "a", &mut causes);
            causes.len()
        };
        assert_eq!(found(json!("100%")), 0);
        assert_eq!(found(json!("101%")), 1);
        assert_eq!(found(json!("99999999999999999999%")), 1, "too large, and a percentage");
        for wrong in ["+5%", "-5%", "%", "5", "5 %"] {
            assert_eq!(found(json!(wrong)), 1, "{wrong}");
        }
    }
}
