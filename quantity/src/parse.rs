//! Reads quantities: the grammar, the suffixes, the errors.

use crate::amount::Amount;
use crate::format::Format;
use crate::limbs::Limbs;

/// The largest exponent, in either direction, that a [`Quantity`](crate::Quantity) accepts, as in
/// `1e1000`.
///
/// A short text must not stand for a long number: apimachinery accepts `1e2147483648` and never
/// returns.
pub const MAX_EXPONENT: i32 = 1000;

/// Decimals of at most this many digits are read by apimachinery's fast path, which keeps their
/// text.
const FAST_DIGITS: usize = 18;

/// The reason why a text is not a quantity, in apimachinery's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text does not have the form of a number and a suffix (`ErrFormatWrong`).
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The number has no digit (`ErrNumeric`).
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown, or its exponent is beyond [`MAX_EXPONENT`] (`ErrSuffix`).
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The meaning of a text.
pub(crate) struct Parsed {
    pub(crate) amount: Amount,
    pub(crate) format: Format,
    /// True if the text is written out again as it is.
    pub(crate) is_kept: bool,
}

/// A text, split.
struct Parts<'a> {
    negative: bool,
    /// The digits before the point, without leading zeros; `0` if none are left.
    whole: &'a str,
    /// The digits after the point.
    fraction: &'a str,
    /// True if the number has a digit at all.
    has_digit: bool,
    suffix: &'a str,
}

/// The meaning of a suffix.
#[derive(Clone, Copy)]
enum Factor {
    /// 10^n
    Ten(i32),
    /// 2^n
    Two(u32),
}

/// Reads a quantity.
pub(crate) fn parse(text: &str) -> Result<Parsed, ParseQuantityError> {
    let parts = split(text)?;
    let (factor, format) = interpret(parts.suffix).ok_or(ParseQuantityError::Suffix)?;
    let is_fast = is_fast(&parts, factor);
    if !is_fast && !parts.has_digit {
        return Err(ParseQuantityError::Numeric);
    }
    let (amount, format) = amount(&parts, factor, format);
    Ok(Parsed { amount, format, is_kept: is_fast && is_kept(&parts, factor) })
}

/// Returns the power of ten of the last digit of a text that [`parse`] has accepted.
pub(crate) fn last_power(text: &str) -> i32 {
    let Ok(parts) = split(text) else { return 0 };
    match interpret(parts.suffix) {
        Some((Factor::Ten(power), _)) => power.saturating_sub_unsigned(fraction_digits(&parts)),
        _ => 0,
    }
}

fn split(text: &str) -> Result<Parts<'_>, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (written, rest) = split_digits(unsigned);
    let significant = written.trim_start_matches('0');
    let whole = if significant.is_empty() { "0" } else { significant };
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !split_digits(exponent).1.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let has_digit = !written.is_empty() || !fraction.is_empty();
    Ok(Parts { negative, whole, fraction, has_digit, suffix })
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn interpret(suffix: &str) -> Option<(Factor, Format)> {
    if let Some(power) = Format::decimal_power(suffix) {
        return Some((Factor::Ten(power), Format::DecimalSI));
    }
    if let Some(power) = Format::binary_power(suffix) {
        return Some((Factor::Two(power), Format::BinarySI));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (power.unsigned_abs() <= MAX_EXPONENT.unsigned_abs())
        .then_some((Factor::Ten(power), Format::DecimalExponent))
}

/// Returns true if apimachinery computes the quantity in an `int64`. Only such a quantity can keep
/// its text.
fn is_fast(parts: &Parts<'_>, factor: Factor) -> bool {
    match factor {
        Factor::Ten(power) => {
            let digits = parts.whole.len() + parts.fraction.len();
            digits <= FAST_DIGITS && power.saturating_sub_unsigned(fraction_digits(parts)) >= -9
        }
        // apimachinery leaves room for the three decimal digits of each factor of 1024.
        Factor::Two(power) => {
            parts.fraction.is_empty() && parts.whole.len() + 3 * (power as usize / 10) <= 14
        }
    }
}

/// Returns true if a text of the fast path is written out again as it is.
///
/// The test is apimachinery's. It accepts texts that are not canonical, such as `1.500` and `007`.
fn is_kept(parts: &Parts<'_>, factor: Factor) -> bool {
    match factor {
        Factor::Two(_) => parts.whole.parse().is_ok_and(|value: u64| !value.is_multiple_of(8)),
        Factor::Ten(power) => {
            let digits = [parts.whole, parts.fraction].concat();
            let power = power.saturating_sub_unsigned(fraction_digits(parts));
            power % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
        }
    }
}

fn fraction_digits(parts: &Parts<'_>) -> u32 {
    u32::try_from(parts.fraction.len()).unwrap_or(u32::MAX)
}

/// Computes the amount, and the format that it has after rounding.
fn amount(parts: &Parts<'_>, factor: Factor, format: Format) -> (Amount, Format) {
    let small = small_magnitude(parts, factor).and_then(|small| i128::try_from(small).ok());
    let amount = match small {
        Some(small) => Amount::Small(if parts.negative { -small } else { small }),
        None => Amount::new(parts.negative, magnitude(parts, factor)),
    };
    if format != Format::BinarySI {
        return (amount, format);
    }
    let largest = Amount::scaled(i64::MAX, 9);
    let size = if parts.negative { amount.negated() } else { amount };
    let is_fraction = size.sign().is_gt() && size.is_within(1);
    let format = if is_fraction { Format::DecimalSI } else { Format::BinarySI };
    let size = size.min(largest);
    (if parts.negative { size.negated() } else { size }, format)
}

/// Computes the magnitude in billionths, rounded up, if no step leaves 128 bits.
fn small_magnitude(parts: &Parts<'_>, factor: Factor) -> Option<u128> {
    let digits = parts.whole.bytes().chain(parts.fraction.bytes());
    let value = digits
        .clone()
        .try_fold(0_u128, |sum, byte| sum.checked_mul(10)?.checked_add(u128::from(byte - b'0')))?;
    let (value, power) = match factor {
        Factor::Ten(power) => (value, power),
        Factor::Two(power) => (value.checked_mul(1 << power)?, 0),
    };
    let power = power.checked_add(9)?.checked_sub_unsigned(fraction_digits(parts))?;
    let unit = 10_u128.checked_pow(power.unsigned_abs())?;
    if power >= 0 { value.checked_mul(unit) } else { Some(value.div_ceil(unit)) }
}

/// Computes the magnitude in billionths, rounded up.
fn magnitude(parts: &Parts<'_>, factor: Factor) -> Limbs {
    let digits = [parts.whole, parts.fraction].concat();
    let mut magnitude = Limbs::from_digits(digits.as_bytes());
    let power = match factor {
        Factor::Ten(power) => power,
        Factor::Two(power) => {
            magnitude.multiply(1 << power);
            0
        }
    };
    let power = i64::from(power) + 9 - i64::from(fraction_digits(parts));
    let places = usize::try_from(power.unsigned_abs()).unwrap_or(usize::MAX);
    if power >= 0 {
        magnitude.scale_up(places);
    } else {
        magnitude.scale_down_rounding_up(places);
    }
    magnitude
}
