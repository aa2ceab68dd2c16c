//! The parts of the specification that Kubernetes supports.

use serde_json::{Value, json};

use super::around::Around;
use crate::field_error::FieldError;
use crate::open_api::{flag, members, type_of};

pub(super) const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The types that a schema may state.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The parts of the specification that Kubernetes does not support.
const UNSUPPORTED: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

/// Returns true if no part of a schema uses what is not supported. Otherwise the real server does
/// not check whether the schema is structural.
pub(super) fn is_readable(schema: &Value) -> bool {
    let has = |name: &&str| match (*name, schema.get(*name)) {
        (_, None) => false,
        ("additionalItems", Some(value)) => !value.is_null(),
        (_, Some(value)) => is_set(value),
    };
    let drops_unknown = schema.get(PRESERVE) == Some(&json!(false));
    let has_list = schema.get("items").is_some_and(Value::is_array);
    if UNSUPPORTED.iter().chain(&["$schema"]).any(has) || drops_unknown || has_list {
        return false;
    }
    let one = ["items", "additionalProperties", "not"];
    let one = one.iter().filter_map(|name| schema.get(name));
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|name| schema.get(name)?.as_array());
    let fields = members(schema, "properties").into_iter().flatten().map(|(_, field)| field);
    one.chain(lists.flatten()).chain(fields).all(is_readable)
}

/// Returns true if a field of a schema is given: some may be false or empty.
pub(super) fn is_given(name: &str, value: &Value) -> bool {
    match name {
        "additionalItems" | "additionalProperties" | "default" | "$ref" => !value.is_null(),
        _ => is_set(value),
    }
}

/// Returns true if a field of a schema has a value that Go does not take for an absent one.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// Reports what Kubernetes does not support of the specification.
pub(super) fn check_supported(
    schema: &Value,
    around: &Around,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let type_name = type_of(schema);
    if !type_name.is_empty() && !TYPES.contains(&type_name) {
        let allowed = TYPES.map(Value::from);
        let path = format!("{at}.type");
        errors.push(FieldError::not_supported(path, &type_name.into(), &allowed));
    }
    if let Some(reason) = around.no_default.filter(|_| schema.get("default").is_some()) {
        let detail = format!("must not be set {reason}");
        errors.push(FieldError::forbidden(format!("{at}.default"), &detail));
    }
    for name in UNSUPPORTED {
        if schema.get(name).is_some_and(|value| is_given(name, value)) {
            let detail = format!("{name} is not supported");
            errors.push(FieldError::forbidden(format!("{at}.{name}"), &detail));
        }
    }
    if type_name == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(format!("{at}.type"), detail));
    }
    if schema.get("items").is_some_and(Value::is_array) {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{at}.items"), detail));
    }
    if around.is_meta && flag(schema, "x-kubernetes-embedded-resource") {
        let path = format!("{at}.x-kubernetes-embedded-resource");
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(path, detail));
    }
    if flag(schema, "uniqueItems") {
        let detail =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{at}.uniqueItems"), detail));
    }
}
