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
