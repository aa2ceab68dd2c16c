//! The parts of an apply configuration as JSON.
//!
//! Upstream takes Go's own values out of those of CEL, and looks into lists and maps only where
//! they are fields of an object. A map in a list stays a value of CEL, which no type accepts.

use homeostat_core::go_quote;
use serde_json::{Map, Value as Json, json};

use super::json_number;
use crate::cel::{StructValue, Value};

/// Returns the fields of an object.
///
/// # Errors
///
/// Returns the reason if a map has a key that is no text.
pub(super) fn members(object: &StructValue<'_>) -> Result<Map<String, Json>, String> {
    let member = |(name, value): &(&str, Value<'_>)| {
        let value = member(value)
            .map_err(|error| format!("fail to convert field {}: {error}", go_quote(name)))?;
        Ok(((*name).to_owned(), value))
    };
    object.fields().iter().map(member).collect()
}

fn member(value: &Value<'_>) -> Result<Json, String> {
    match value {
        Value::List(items) => Ok(items.iter().map(plain).collect()),
        Value::Map(entries) => {
            let entry = |(key, value): &(Value<'_>, Value<'_>)| match key {
                Value::String(name) => Ok((name.to_string(), plain(value))),
                other => Err(format!(
                    "map key {} is of type {}, not string",
                    go_quoted(other),
                    other.go_type_name()
                )),
            };
            entries.iter().map(entry).collect::<Result<Map<_, _>, _>>().map(Json::Object)
        }
        other => Ok(plain(other)),
    }
}

/// Returns Go's value of a value. What is none in JSON becomes a value that does not fit the types
/// that upstream's value does not fit, either.
fn plain(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(number) => json!(number),
        Value::Uint(number) => json!(number),
        Value::Double(number) => json_number(*number),
        Value::String(text) => json!(&**text),
        Value::Bytes(bytes) => json!(bytes.to_vec()),
        Value::Duration(nanos) => json!(nanos),
        Value::Optional(Some(inner)) => plain(inner),
        Value::Items(..) | Value::Values(..) | Value::Object(..) => value.json(),
        Value::Struct(object) => members(object).map_or_else(Json::String, Json::Object),
        // Values of CEL in a list or a map.
        Value::List(items) => json!(shown_list(items)),
        Value::Map(entries) => json!(shown_map(entries)),
        Value::Type(name) => json!(name),
        other => json!({other.type_name(): null}),
    }
}

/// Returns Go's `%q` of a key.
fn go_quoted(key: &Value<'_>) -> String {
    match key {
        Value::Int(number) => {
            let letter = u32::try_from(*number).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
            match letter {
                '\0'..='\x1f' | '\x7f' => format!("'\\x{:02x}'", u32::from(letter)),
                letter => format!("'{letter}'"),
            }
        }
        other => other.type_name().to_owned(),
    }
}

fn shown_list(items: &[Value<'_>]) -> String {
    let items: Vec<String> = items.iter().map(shown).collect();
    format!("[{}]", items.join(" "))
}

fn shown_map(entries: &[(Value<'_>, Value<'_>)]) -> String {
    let entries: Vec<String> =
        entries.iter().map(|(key, value)| format!("{}:{}", shown(key), shown(value))).collect();
    format!("map[{}]", entries.join(" "))
}

fn shown(value: &Value<'_>) -> String {
    match plain(value) {
        Json::String(text) => text,
        other => other.to_string(),
    }
}
