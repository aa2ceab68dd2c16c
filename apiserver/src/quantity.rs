//! Quantities of resources (`1500m`, `64Mi`, `2e3`): read, compared, and written in their one canonical form.

use std::fmt;

use serde_json::Value;

/// An amount of a resource, with the notation that it was given in.
///
/// Amounts are whole billionths, as in the real server: what is smaller is rounded up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    nano: i128,
    notation: Notation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `m`, `k`, `M`
    Decimal,
    /// `Ki`, `Mi`
    Binary,
    /// `e3`
    Exponent,
}

/// Why a text is no quantity, in the real server's words.
pub(crate) const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
pub(crate) const UNKNOWN_SUFFIX: &str = "unable to parse quantity's suffix";

const NANO: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// More digits than this are beyond every limit.
const MOST_DIGITS: usize = 30;

// === impl Quantity ===

impl Quantity {
    /// The quantity in a JSON value: a string or a number.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text).ok(),
            Value::Number(number) => Self::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end =
            unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(MALFORMED);
        }
        let (factor, notation) = factor_of(suffix)?;
        let nano = factor.apply(whole, fraction);
        Ok(Self { nano: if negative { -nano } else { nano }, notation })
    }

    pub(crate) fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Whether it is a whole number.
    pub(crate) fn is_whole(self) -> bool {
        self.nano % NANO == 0
    }

    pub(crate) fn nano(self) -> i128 {
        self.nano
    }
}

/// What a suffix multiplies by.
#[derive(Debug, Clone, Copy)]
enum Factor {
    Ten(i32),
    Two(u32),
}

fn factor_of(suffix: &str) -> Result<(Factor, Notation), &'static str> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Ok((Factor::Ten(*power), Notation::Decimal));
    }
    if let Some(at) = (1_u32..).zip(BINARY).find(|(_, known)| *known == suffix) {
        return Ok((Factor::Two(10 * at.0), Notation::Binary));
    }
    if let Some(power) = suffix.strip_prefix(['e', 'E']) {
        let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let power = power.parse().map_err(|_| UNKNOWN_SUFFIX)?;
            return Ok((Factor::Ten(power), Notation::Exponent));
        }
    }
    let known = |c: char| "eEinumkKMGTP".contains(c);
    let rest = suffix.trim_start_matches(known);
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    let fits = rest.bytes().all(|byte| byte.is_ascii_digit());
    Err(if fits { UNKNOWN_SUFFIX } else { MALFORMED })
}

// === impl Factor ===

impl Factor {
    /// The amount in billionths, rounded up; as much as there can be when it is more than that.
    fn apply(self, whole: &str, fraction: &str) -> i128 {
        let most = i128::from(i64::MAX) * NANO;
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.len() > MOST_DIGITS {
            return most;
        }
        // Digits that do not fit cannot change more than the rounding.
        let kept = fraction.len().min(MOST_DIGITS - whole.len());
        let digits = format!("{whole}{}", &fraction[..kept]);
        let mantissa: i128 = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(most) };
        let behind = i32::try_from(kept).unwrap_or(0);
        let (power, doubled) = match self {
            Self::Ten(power) => (power.saturating_add(9).saturating_sub(behind), Some(mantissa)),
            Self::Two(power) => (9 - behind, mantissa.checked_mul(1 << power)),
        };
        let Some(amount) = doubled else { return most };
        if amount == 0 {
            return 0;
        }
        if power >= 0 {
            let factor = 10_i128.checked_pow(power.unsigned_abs());
            factor.and_then(|factor| amount.checked_mul(factor)).unwrap_or(most)
        } else {
            let divisor = 10_i128.checked_pow(power.unsigned_abs());
            divisor.map_or(1, |divisor| amount / divisor + i128::from(amount % divisor != 0))
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return f.write_str("0");
        }
        let small = self.nano.abs() < 1024 * NANO;
        if self.notation == Notation::Binary && !small {
            return write_binary(f, self.nano);
        }
        let (mut number, mut power) = (self.nano, -9);
        while number % 1000 == 0 {
            number /= 1000;
            power += 3;
        }
        if self.notation == Notation::Exponent {
            return if power == 0 { write!(f, "{number}") } else { write!(f, "{number}e{power}") };
        }
        while power > 18 {
            number = number.saturating_mul(1000);
            power -= 3;
        }
        let suffix =
            DECIMAL.iter().find(|(_, known)| *known == power).map_or("", |(suffix, _)| *suffix);
        write!(f, "{number}{suffix}")
    }
}

fn write_binary(f: &mut fmt::Formatter<'_>, nano: i128) -> fmt::Result {
    let rounded = nano / NANO + (nano % NANO).signum();
    let (mut number, mut at) = (rounded, 0);
    while number % 1024 == 0 && at < BINARY.len() {
        number /= 1024;
        at += 1;
    }
    write!(f, "{number}{}", at.checked_sub(1).map_or("", |at| BINARY[at]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantities_have_one_form() {
        for (text, expected) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Ki", "1Mi"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("1500", "1500"),
            ("10000", "10k"),
            ("+3", "3"),
            ("-1", "-1"),
            ("0.0000000001", "1n"),
            (".5", "500m"),
            ("100000000000000000000000000000000000000000", "9223372036854775807"),
            ("0Mi", "0"),
            ("2E", "2E"),
        ] {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), expected, "{text}");
        }
        for (text, why) in [
            ("", MALFORMED),
            ("x", MALFORMED),
            ("1x", MALFORMED),
            ("1mm", UNKNOWN_SUFFIX),
            ("1.2.3", MALFORMED),
        ] {
            assert_eq!(Quantity::parse(text).unwrap_err(), why, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic_and_the_one_form_is_stable(text in "[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,12}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let shown = quantity.to_string();
                prop_assert_eq!(Quantity::parse(&shown).unwrap().to_string(), shown);
            }
        }
    }
}
