//! The canonical form of a quantity.

use crate::amount::Amount;
use crate::format::Format;

/// Writes the canonical form: no fraction, and the largest suffix that leaves a whole number.
///
/// A binary quantity is written in the decimal form if it is not whole, or below 1024 in magnitude.
pub(crate) fn canonical(amount: &Amount, format: Format) -> String {
    if *amount == Amount::ZERO {
        return "0".to_owned();
    }
    let sign = if amount.sign().is_lt() { "-" } else { "" };
    if format == Format::BinarySI && amount.is_integer() && !amount.is_within(1024) {
        let (number, suffix) = binary(amount);
        return format!("{sign}{number}{suffix}");
    }
    let (number, power) = decimal(amount);
    match Format::decimal_suffix(power) {
        Some(suffix) if format != Format::DecimalExponent => format!("{sign}{number}{suffix}"),
        _ if power == 0 => format!("{sign}{number}"),
        // There is no suffix above E. The exponent form is the one that every reader takes for the
        // same number.
        _ => format!("{sign}{number}e{power}"),
    }
}

/// The digits, and the power of 1000 by which they are multiplied.
fn decimal(amount: &Amount) -> (String, i32) {
    let (billionths, _) = amount.magnitude_in(0);
    let mut digits = billionths.to_string();
    let mut power = -9;
    while digits.ends_with("000") {
        digits.truncate(digits.len() - 3);
        power += 3;
    }
    (digits, power)
}

/// The digits, and the power of 1024 by which they are multiplied, of a whole amount.
fn binary(amount: &Amount) -> (String, &'static str) {
    let (mut number, _) = amount.magnitude_in(9);
    let mut suffix = "";
    for larger in Format::binary_suffixes() {
        let mut quotient = number.clone();
        if quotient.divide(1024) != 0 {
            break;
        }
        (number, suffix) = (quotient, larger);
    }
    (number.to_string(), suffix)
}
