//! The operations of a JSON patch.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};

use super::{check_names, json_number};
use crate::cel::{StructValue, Value};

/// The largest number that every reader of JSON knows exactly.
const MAX_EXACT: i64 = (1 << 53) - 1;

/// Returns the operations that a list of patches states.
///
/// # Errors
///
/// Returns the reason if a value has no form in JSON.
pub(super) fn operations(list: &Value<'_>) -> Result<Vec<Json>, String> {
    let items = list.items().ok_or("JSONPatchType.expression should evaluate to array")?;
    items.iter().map(operation).collect()
}

fn operation(item: &Value<'_>) -> Result<Json, String> {
    let Value::Struct(patch) = item else {
        let kind = item.type_name();
        return Err(format!(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch: cannot \
             convert {kind}"
        ));
    };
    let text = |name: &str| match patch.field(name) {
        Some(Value::String(text)) => text.to_string(),
        _ => String::new(),
    };
    let mut operation = Map::new();
    operation.insert("op".to_owned(), json!(text("op")));
    operation.insert("path".to_owned(), json!(text("path")));
    let from = text("from");
    if !from.is_empty() {
        operation.insert("from".to_owned(), json!(from));
    }
    if let Some(value) = patch.field("value") {
        if let Value::Struct(object) = value {
            check_names(object)?;
        }
        let failed = |why| {
            format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}"
            )
        };
        operation.insert("value".to_owned(), json_of(value).map_err(failed)?);
    }
    Ok(Json::Object(operation))
}

/// Returns a value as JSON, as cel-go converts it to a `google.protobuf.Value`.
fn json_of(value: &Value<'_>) -> Result<Json, String> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(number) if number.unsigned_abs() > MAX_EXACT.unsigned_abs() => {
            json!(number.to_string())
        }
        Value::Int(number) => json!(number),
        Value::Uint(number) if *number > MAX_EXACT.unsigned_abs() => json!(number.to_string()),
        Value::Uint(number) => json!(number),
        Value::Double(number) => json_number(*number),
        Value::String(text) => json!(&**text),
        Value::Bytes(bytes) => json!(STANDARD.encode(bytes)),
        Value::Duration(_) | Value::Timestamp(_) => json!(value.written()),
        Value::Struct(object) => Json::Object(members(object)?),
        Value::Items(..) | Value::Values(..) | Value::Object(..) => value.json(),
        Value::List(items) => items.iter().map(json_of).collect::<Result<_, _>>()?,
        Value::Map(entries) => {
            let entry = |(key, value): &(Value<'_>, Value<'_>)| {
                let key = match key {
                    Value::String(name) => name.to_string(),
                    other => other.show(),
                };
                Ok((key, json_of(value)?))
            };
            Json::Object(entries.iter().map(entry).collect::<Result<_, String>>()?)
        }
        Value::Type(_) => return Err("type conversion not supported for 'type'".to_owned()),
        other => {
            let name = other.type_name();
            let name = name.rsplit('.').next().unwrap_or(name);
            return Err(format!("type conversion error from '{name}' to '*structpb.Value'"));
        }
    })
}

fn members(object: &StructValue<'_>) -> Result<Map<String, Json>, String> {
    let member = |(name, value): &(&str, Value<'_>)| Ok(((*name).to_owned(), json_of(value)?));
    object.fields().iter().map(member).collect()
}
