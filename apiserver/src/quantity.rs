//! Quantities in JSON values.

use homeostat_quantity::Quantity;
use serde_json::Value;

/// Returns the quantity in a string or a number, and `None` for anything else.
pub(crate) fn read(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Returns the warning about a number of bytes that is no whole number.
pub(crate) fn fraction_warning(
    value: Option<&Value>,
    at: impl FnOnce() -> String,
) -> Option<String> {
    let bytes = read(value?)?;
    (bytes.milli_value() % 1000 != 0).then(|| {
        format!("{}: fractional byte value \"{bytes}\" is invalid, must be an integer", at())
    })
}
