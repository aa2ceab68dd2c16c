//! Quantities in JSON values.

use homeostat_quantity::Quantity;
use serde_json::Value;

/// Returns the quantity in a string or a number, and `None` for anything else.
pub(crate) fn read(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        // Go has the text of the number, which rarely has a sign after the `e`.
        Value::Number(number) => number.to_string().replace("e+", "e").parse().ok(),
        _ => None,
    }
}

/// The decimal digits that always fit into 64 bits.
const DIGITS_OF_64_BITS: usize = 18;

fn digits(quantity: &Quantity) -> usize {
    let text = quantity.to_string();
    text.trim_start_matches('-').find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Returns the warning about a number of bytes that is no whole number.
pub(crate) fn fraction_warning(
    value: Option<&Value>,
    at: impl FnOnce() -> String,
) -> Option<String> {
    let bytes = read(value?)?;
    let milli = bytes.milli_value();
    // Upstream computes with 64 bits unless the number needs more digits, and does not look at
    // what is too large.
    let is_unseen = milli == i64::MAX && digits(&bytes) <= DIGITS_OF_64_BITS;
    (milli % 1000 != 0 && !is_unseen).then(|| {
        format!("{}: fractional byte value \"{bytes}\" is invalid, must be an integer", at())
    })
}
