//! Values as Go's `fmt` shows them in upstream's messages.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns the text of Go's `%v` for a value of structured-merge-diff: `&{text}`.
pub(super) fn shown(value: &Value) -> String {
    let mut text = String::from("&{");
    write_plain(&mut text, value);
    text.push('}');
    text
}

/// Returns the text of Go's `%#v` for a value of structured-merge-diff.
pub(super) fn shown_as_code(value: &Value) -> String {
    let mut text = String::from("&value.valueUnstructured{Value:");
    write_code(&mut text, value);
    text.push('}');
    text
}

/// Returns the name of the Go type that a JSON value is decoded into, for the texts of errors.
///
/// # Examples
///
/// ```
/// let list = serde_json::json!([1]);
/// assert_eq!(homeostat_schema::go_type(&list), "[]interface {}");
/// ```
pub fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn write_plain(into: &mut String, value: &Value) {
    match value {
        Value::Null => into.push_str("<nil>"),
        Value::String(text) => into.push_str(text),
        Value::Bool(_) | Value::Number(_) => {
            let _ = write!(into, "{value}");
        }
        Value::Array(items) => {
            into.push('[');
            for (index, item) in items.iter().enumerate() {
                into.push_str(if index > 0 { " " } else { "" });
                write_plain(into, item);
            }
            into.push(']');
        }
        Value::Object(fields) => {
            into.push_str("map[");
            for (index, (name, value)) in fields.iter().enumerate() {
                into.push_str(if index > 0 { " " } else { "" });
                let _ = write!(into, "{name}:");
                write_plain(into, value);
            }
            into.push(']');
        }
    }
}

fn write_code(into: &mut String, value: &Value) {
    match value {
        Value::Null => into.push_str("interface {}(nil)"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let _ = write!(into, "{value}");
        }
        Value::Array(items) => {
            into.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                into.push_str(if index > 0 { ", " } else { "" });
                write_code(into, item);
            }
            into.push('}');
        }
        Value::Object(fields) => {
            into.push_str("map[string]interface {}{");
            for (index, (name, value)) in fields.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                let _ = write!(into, "{comma}{}:", Value::from(name.as_str()));
                write_code(into, value);
            }
            into.push('}');
        }
    }
}
