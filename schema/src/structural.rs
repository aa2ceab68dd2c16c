//! The rules of a structural schema, with the texts of `apiextensions-apiserver`.

use serde_json::{Value, json};

use crate::constraints::Pattern;
use crate::field_error::FieldError;
use crate::open_api::{flag, members, type_of};

/// Checks `openAPIV3Schema` at the path `at`, such as
/// `spec.versions[0].schema.openAPIV3Schema`. The errors are sorted.
///
/// # Examples
///
/// ```
/// use homeostat_schema::check_structural;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"spec": {}}});
/// let errors = check_structural(&schema, "schema");
/// assert_eq!(errors[0].field, "schema.properties[spec].type");
/// assert_eq!(
///     errors[0].message,
///     "Required value: must not be empty for specified object fields",
/// );
/// ```
pub fn check_structural(schema: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check(schema, Level::Root, at, &mut errors);
    check_complete(schema, schema, at, at, &mut errors);
    errors.sort_by_key(ToString::to_string);
    errors
}

/// The place of a schema inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

fn check(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let type_name = type_of(schema);
    if type_name == "array" && schema.get("items").is_none() {
        errors.push(FieldError::required(format!("{at}.items"), "must be specified"));
    }
    if let Some(items) = schema.get("items") {
        check(items, Level::Item, &format!("{at}.items"), errors);
    }
    for (name, field) in members(schema, "properties").into_iter().flatten() {
        check(field, Level::Field, &format!("{at}.properties[{name}]"), errors);
    }
    if let Some(values) = schema.get("additionalProperties") {
        let at = format!("{at}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(at.as_str(), "must not be used at the root"));
        }
        if values.is_object() {
            check(values, Level::Field, &at, errors);
        }
    }
    check_extensions(schema, at, errors);
    check_values(schema, is_int_or_string(schema), first_is_int_or_string(schema), at, errors);
    check_type(schema, level, at, errors);
    check_metadata(schema, level, at, errors);
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let empty = members(schema, "properties").is_none_or(serde_json::Map::is_empty);
    if embedded && !preserve && empty {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{at}.properties"), detail));
    }
}

fn check_type(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let type_name = type_of(schema);
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let path = format!("{at}.type");
    if embedded && type_name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match type_name {
            "" => FieldError::required(path.as_str(), detail),
            other => FieldError::invalid(path.as_str(), &other.into(), detail),
        });
    } else if type_name.is_empty()
        && !flag(schema, "x-kubernetes-int-or-string")
        && !flag(schema, "x-kubernetes-preserve-unknown-fields")
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(path.as_str(), detail));
    }
    if embedded && schema.get("additionalProperties").is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(format!("{at}.additionalProperties"), detail));
    }
    if level == Level::Root && !type_name.is_empty() && type_name != "object" {
        errors.push(FieldError::invalid(path, &type_name.into(), "must be object at the root"));
    }
}

fn check_metadata(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let checked = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
    let Some(fields) = members(schema, "properties") else { return };
    for name in ["kind", "apiVersion"] {
        let Some(field) = fields.get(name).filter(|_| checked) else { continue };
        if type_of(field) != "string" {
            let path = format!("{at}.properties[{name}].type");
            errors.push(FieldError::invalid(path, &type_of(field).into(), "must be string"));
        }
    }
    let Some(metadata) = fields.get("metadata") else { return };
    let path = format!("{at}.properties[metadata]");
    if checked && type_of(metadata) != "object" {
        let path = format!("{path}.type");
        errors.push(FieldError::invalid(path, &type_of(metadata).into(), "must be object"));
    }
    if level == Level::Root && !restricts_only_names(metadata) {
        let detail = "must not specify anything other than name and generateName, but metadata is \
                      implicitly specified";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn restricts_only_names(metadata: &Value) -> bool {
    let Some(declared) = metadata.as_object() else { return true };
    declared.iter().all(|(name, value)| match name.as_str() {
        "type" | "default" => true,
        "properties" => value.as_object().is_none_or(|fields| {
            fields.keys().all(|name| matches!(name.as_str(), "name" | "generateName"))
        }),
        _ => false,
    })
}

fn check_extensions(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(schema, name) {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{at}.{name}"), &json!(true), detail));
        }
    }
}

/// Checks the conditions of a schema. Those of the int-or-string patterns may name types.
fn check_values(
    schema: &Value,
    skip_any_of: bool,
    skip_first_all_of: bool,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skip_any_of {
            continue;
        }
        let list = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, condition) in list.enumerate() {
            let skip = name == "allOf" && index == 0 && skip_first_all_of;
            check_nested(condition, skip, &format!("{at}.{name}[{index}]"), errors);
        }
    }
    if let Some(not) = schema.get("not") {
        check_nested(not, false, &format!("{at}.not"), errors);
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Err(reason) = Pattern::new(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {reason}");
        errors.push(FieldError::invalid(format!("{at}.pattern"), &pattern.into(), &detail));
    }
}

fn check_nested(condition: &Value, skip_any_of: bool, at: &str, errors: &mut Vec<FieldError>) {
    check_values(condition, skip_any_of, false, at, errors);
    if let Some(items) = condition.get("items") {
        check_nested(items, false, &format!("{at}.items"), errors);
    }
    let fields = members(condition, "properties");
    for (name, field) in fields.into_iter().flatten() {
        check_nested(field, false, &format!("{at}.properties[{name}]"), errors);
    }
    for (name, text) in FORBIDDEN {
        let set = match condition.get(name) {
            None | Some(Value::Null) => false,
            Some(_) if name == "default" => true,
            Some(Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            Some(_) => true,
        };
        if set {
            errors.push(FieldError::forbidden(format!("{at}.{name}"), text));
        }
    }
    if fields.is_some_and(|fields| fields.contains_key("metadata")) {
        let path = format!("{at}.properties[metadata]");
        errors.push(FieldError::forbidden(path, "must not be specified in a nested context"));
    }
}

/// Fields that a condition must not have, with their texts.
const FORBIDDEN: [(&str, &str); 13] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

/// Checks that each field and list in the conditions of `schema` is in `declared`, too.
fn check_complete(
    schema: &Value,
    declared: &Value,
    at: &str,
    declared_at: &str,
    errors: &mut Vec<FieldError>,
) {
    for name in ["allOf", "anyOf", "oneOf"] {
        let list = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, condition) in list.enumerate() {
            let at = format!("{at}.{name}[{index}]");
            check_declared(condition, declared, &at, declared_at, errors);
        }
    }
    if let Some(not) = schema.get("not") {
        check_declared(not, declared, &format!("{at}.not"), declared_at, errors);
    }
}

fn check_declared(
    condition: &Value,
    declared: &Value,
    at: &str,
    declared_at: &str,
    errors: &mut Vec<FieldError>,
) {
    check_complete(condition, declared, at, declared_at, errors);
    let mut check_part = |part: &Value, declared: Option<&Value>, name: &str| {
        let (at, path) = (format!("{at}.{name}"), format!("{declared_at}.{name}"));
        if let Some(declared) = declared {
            check_declared(part, declared, &at, &path, errors);
        } else {
            errors.push(FieldError::required(path, &format!("because it is defined in {at}")));
        }
    };
    for (name, field) in members(condition, "properties").into_iter().flatten() {
        let declared = members(declared, "properties").and_then(|fields| fields.get(name));
        check_part(field, declared, &format!("properties[{name}]"));
    }
    if let Some(items) = condition.get("items") {
        check_part(items, declared.get("items"), "items");
    }
}

fn is_int_or_string(schema: &Value) -> bool {
    schema.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

fn first_is_int_or_string(schema: &Value) -> bool {
    schema.get("allOf").and_then(|list| list.get(0)).is_some_and(is_int_or_string)
}
