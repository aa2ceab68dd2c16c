//! The rules for the schema of a `CustomResourceDefinition`, with the texts of
//! `apiextensions-apiserver`.

use serde_json::Map as JsonMap;
use serde_json::Value;
use serde_json::json;

use crate::defaults::{Defaults, MetadataCheck, Place};
use crate::field_error::FieldError;
use crate::open_api::flag;
use crate::open_api::members;
use crate::open_api::texts;
use crate::rules;
use crate::shown;
use crate::structural::check_structural;

/// The types that a schema may state.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The fields that may stand at the root if the status is a subresource: the name in JSON, and the
/// name in messages.
const AT_ROOT: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// Checks `openAPIV3Schema` of a definition at the path `at`. `has_status` states whether the
/// version has a status subresource.
///
/// # Examples
///
/// ```
/// use homeostat_schema::check_open_api;
/// use serde_json::json;
///
/// let list = json!({"type": "array", "x-kubernetes-list-type": "map", "items": {
///     "type": "object", "properties": {"name": {"type": "string"}},
/// }});
/// let schema = json!({"type": "object", "properties": {"list": list}});
/// let errors = check_open_api(&schema, "schema", false);
/// assert_eq!(
///     errors[0].to_string(),
///     "schema.properties[list].x-kubernetes-list-map-keys: Required value: must not be empty if \
///      x-kubernetes-list-type is map",
/// );
/// ```
pub fn check_open_api(schema: &Value, at: &str, has_status: bool) -> Vec<FieldError> {
    check_open_api_with(schema, at, has_status, &|_| None)
}

/// Checks `openAPIV3Schema` as [`check_open_api`] does, and the defaults of metadata as well.
///
/// `check_metadata` returns the problem of the metadata of an object, which a default is part of.
///
/// # Examples
///
/// ```
/// use homeostat_schema::check_open_api_with;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"pod": {
///     "type": "object", "x-kubernetes-embedded-resource": true, "properties": {
///         "metadata": {"type": "object", "properties": {
///             "name": {"type": "string", "default": "a/b"},
///         }},
///     },
/// }}});
/// let has_slash = |name: &str| name.contains('/').then(|| "a slash".to_owned());
/// let errors = check_open_api_with(&schema, "schema", false, &|object| {
///     has_slash(object["metadata"]["name"].as_str()?)
/// });
/// assert_eq!(
///     errors[0].to_string(),
///     "schema.properties[pod].properties[metadata].properties[name].default: Invalid value: \
///      \"a/b\": must result in valid metadata: a slash",
/// );
/// ```
pub fn check_open_api_with(
    schema: &Value,
    at: &str,
    has_status: bool,
    check_metadata: &MetadataCheck<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_status {
        check_root(schema, at, &mut errors);
    }
    if flag(schema, "nullable") {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(format!("{at}.nullable"), detail));
    }
    let mut found = Vec::new();
    check(schema, &Around { is_root: true, ..Around::default() }, at, &mut found);
    let mut structural = Vec::new();
    let is_readable = is_readable(schema);
    if is_readable {
        structural = check_structural(schema, at);
        if structural.is_empty() {
            let defaults = Defaults { check_metadata };
            defaults.check(schema, Place::ROOT, at, &mut structural);
        }
        if structural.is_empty() {
            let rules = rules::check_rules(schema, at, &found);
            found.extend(rules);
        }
    }
    errors.extend(structural);
    errors.extend(found);
    if !is_readable && errors.is_empty() {
        // Each other part that is not supported has an error of its own.
        let detail = "OpenAPIV3Schema 'schema' is not supported";
        errors.push(FieldError::invalid(at, &json!(""), detail));
    }
    errors
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The parts of the specification that Kubernetes does not support.
const UNSUPPORTED: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

/// Returns whether no part of a schema uses what is not supported. Otherwise the real server does
/// not check whether the schema is structural.
fn is_readable(schema: &Value) -> bool {
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

/// Reports what may not stand at the root if the status is a subresource: a check of the status
/// alone would not see it.
fn check_root(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let type_name = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    if !type_name.is_empty() && type_name != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the \
                      status subresource is enabled";
        errors.push(FieldError::invalid(format!("{at}.type"), &type_name.into(), detail));
        return;
    }
    let known = |name: &String| AT_ROOT.iter().any(|(known, _)| known == name);
    let fields = schema.as_object().into_iter().flatten();
    if fields.filter(|(name, value)| is_given(name, value)).any(|(name, _)| !known(name)) {
        let names: Vec<&str> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is \
             enabled",
            names.join(" ")
        );
        errors.push(FieldError::invalid(at, &shown::schema(schema), &detail));
    }
}

/// Returns whether a field of a schema is given: some may be false or empty.
fn is_given(name: &str, value: &Value) -> bool {
    match name {
        "additionalItems" | "additionalProperties" | "default" | "$ref" => !value.is_null(),
        _ => is_set(value),
    }
}

/// Returns whether a field of a schema has a value that Go does not take for an absent one.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// The context of a schema.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    is_root: bool,
    /// True inside `apiVersion`, `kind` and `metadata` of an object.
    is_meta: bool,
    /// The reason why a default is forbidden.
    no_default: Option<&'static str>,
}

fn check(schema: &Value, around: &Around, at: &str, errors: &mut Vec<FieldError>) {
    check_supported(schema, around, at, errors);
    let inner = Around { is_root: false, ..*around };
    check_fields(schema, around, at, errors);
    for (name, part) in [("not", schema.get("not"))] {
        if let Some(part) = part.filter(|part| part.is_object()) {
            check(part, &inner, &format!("{at}.{name}"), errors);
        }
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        let list = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, part) in list.enumerate() {
            check(part, &inner, &format!("{at}.{name}[{index}]"), errors);
        }
    }
    check_named(schema, "definitions", &inner, at, errors);
    match schema.get("items") {
        Some(items @ Value::Object(_)) => check(items, &inner, &format!("{at}.items"), errors),
        Some(Value::Array(list)) => {
            for (index, items) in list.iter().enumerate() {
                check(items, &inner, &format!("{at}.items[{index}]"), errors);
            }
        }
        _ => {}
    }
    check_named(schema, "dependencies", &inner, at, errors);
    if schema.get(PRESERVE) == Some(&json!(false)) {
        let path = format!("{at}.{PRESERVE}");
        errors.push(FieldError::invalid(path, &json!(false), "must be true or undefined"));
    }
    check_map_type(schema, at, errors);
    check_list_type(schema, at, errors);
    check_rules(schema, at, errors);
}

/// Checks schemas that stand under names.
fn check_named(schema: &Value, part: &str, inner: &Around, at: &str, errors: &mut Vec<FieldError>) {
    for (name, named) in members(schema, part).into_iter().flatten() {
        if named.is_object() {
            check(named, inner, &format!("{at}.{part}[{name}]"), errors);
        }
    }
}

/// Reports what Kubernetes does not support of the specification.
fn check_supported(schema: &Value, around: &Around, at: &str, errors: &mut Vec<FieldError>) {
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

fn check_fields(schema: &Value, around: &Around, at: &str, errors: &mut Vec<FieldError>) {
    let no_fields = JsonMap::new();
    let fields = members(schema, "properties").unwrap_or(&no_fields);
    let inner = Around { is_root: false, ..*around };
    if let Some(values) = schema.get("additionalProperties").filter(|values| !values.is_null()) {
        let path = format!("{at}.additionalProperties");
        if !fields.is_empty() && *values != json!(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(path.as_str(), detail));
        }
        let in_meta = "inside additionalProperties applying to object metadata";
        let no_default = if around.is_meta { Some(in_meta) } else { inner.no_default };
        if values.is_object() {
            check(values, &Around { no_default, ..inner }, &path, errors);
        }
    }
    let is_object = around.is_root || flag(schema, "x-kubernetes-embedded-resource");
    for (name, field) in fields {
        let mut inner = inner;
        if is_object && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
            inner.is_meta = true;
            if around.is_root {
                inner.no_default = Some(match name.as_str() {
                    "metadata" => "in top-level metadata",
                    "kind" => "in top-level kind",
                    _ => "in top-level apiVersion",
                });
            }
        }
        check(field, &inner, &format!("{at}.properties[{name}]"), errors);
    }
}

fn check_map_type(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let name = "x-kubernetes-map-type";
    let Some(map_type) = schema.get(name).and_then(Value::as_str) else { return };
    let detail = "must be object if x-kubernetes-map-type is specified";
    check_expected_type(schema, "object", detail, at, errors);
    if !matches!(map_type, "atomic" | "granular") {
        let allowed = [json!("atomic"), json!("granular")];
        let path = format!("{at}.{name}");
        errors.push(FieldError::not_supported(path, &map_type.into(), &allowed));
    }
}

/// Reports a type that an extension does not allow; returns whether there was one.
fn check_expected_type(
    schema: &Value,
    expected: &str,
    detail: &str,
    at: &str,
    errors: &mut Vec<FieldError>,
) -> bool {
    let (path, found) = (format!("{at}.type"), type_of(schema));
    if found == expected {
        return false;
    }
    errors.push(match found {
        "" => FieldError::required(path, detail),
        found => FieldError::invalid(path, &found.into(), detail),
    });
    true
}

fn check_list_type(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let name = "x-kubernetes-list-type";
    let list_type = schema.get(name).and_then(Value::as_str);
    let path = format!("{at}.{name}");
    if let Some(list_type) = list_type {
        let detail = "must be array if x-kubernetes-list-type is specified";
        let wrong = check_expected_type(schema, "array", detail, at, errors);
        if !wrong && list_type == "set" {
            check_set_items(schema, at, errors);
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            let allowed = [json!("atomic"), json!("set"), json!("map")];
            errors.push(FieldError::not_supported(path.as_str(), &list_type.into(), &allowed));
        }
    }
    let has_keys = texts(schema.get("x-kubernetes-list-map-keys")).next().is_some();
    if has_keys && list_type != Some("map") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(path, detail),
            Some(other) => FieldError::invalid(path, &other.into(), detail),
        });
    }
    if list_type == Some("map") {
        check_keys(schema, at, errors);
    }
    if let Some(list_type @ ("set" | "map")) = list_type {
        check_key_values(schema, list_type, at, errors);
    }
}

fn check_set_items(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = schema.get("items") else { return };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let stated = |name: &str| items.get(name).and_then(Value::as_str);
    let shown = json!(stated("x-kubernetes-list-type"));
    let name = match type_of(items) {
        "array" if stated("x-kubernetes-list-type").is_some_and(|is| is != "atomic") => {
            "x-kubernetes-list-type"
        }
        "object" if stated("x-kubernetes-map-type") != Some("atomic") => "x-kubernetes-map-type",
        _ => return,
    };
    errors.push(FieldError::invalid(format!("{at}.items.{name}"), &shown, detail));
}

fn check_keys(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let name = "x-kubernetes-list-map-keys";
    let path = format!("{at}.{name}");
    let keys: Vec<&str> = texts(schema.get(name)).collect();
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(path.as_str(), detail));
    }
    let Some(items) = schema.get("items") else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(format!("{at}.items"), detail));
        return;
    };
    if type_of(items) != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        let path = format!("{at}.items.type");
        errors.push(FieldError::invalid(path, &type_of(items).into(), detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        match members(items, "properties").and_then(|fields| fields.get(*key)) {
            Some(field) if matches!(type_of(field), "array" | "object") => {
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let path = format!("{at}.items.properties[{key}].type");
                errors.push(FieldError::invalid(path, &type_of(items).into(), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(path.as_str(), &json!(keys), detail));
            }
        }
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(path.as_str(), &json!(keys), detail));
        }
    }
}

/// Reports keys that an item may lack.
fn check_key_values(schema: &Value, list_type: &str, at: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = schema.get("items") else { return };
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(format!("{at}.items.nullable"), &detail));
    }
    if list_type != "map" {
        return;
    }
    let required: Vec<&str> = texts(items.get("required")).collect();
    for key in texts(schema.get("x-kubernetes-list-map-keys")) {
        let Some(field) = members(items, "properties").and_then(|fields| fields.get(key)) else {
            continue;
        };
        let path = format!("{at}.items.properties[{key}]");
        if !required.contains(&key) && field.get("default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                          default or be a required property";
            errors.push(FieldError::required(format!("{path}.default"), detail));
        }
        if flag(field, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{path}.nullable"), detail));
        }
    }
}

/// Checks the texts of the rules of a schema, not their expressions.
fn check_rules(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let at = format!("{at}.x-kubernetes-validations[{index}]");
        let stated = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
        let (expression, message) = (stated("rule").trim(), stated("message").trim());
        let is_multiline = |text: &str| text.contains(['\n', '\r']);
        let shown = || Value::from(stated("message"));
        if expression.is_empty() {
            errors.push(FieldError::required(format!("{at}.rule"), "rule is not specified"));
        } else if !stated("message").is_empty() && message.is_empty() {
            let detail = "must be non-empty if specified";
            errors.push(FieldError::invalid(format!("{at}.message"), &shown(), detail));
        } else if is_multiline(message) {
            let detail = "must not contain line breaks";
            errors.push(FieldError::invalid(format!("{at}.message"), &shown(), detail));
        } else if is_multiline(expression) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(format!("{at}.message"), detail));
        }
        let reason = rule.get("reason").and_then(Value::as_str);
        let reasons = [
            "FieldValueDuplicate",
            "FieldValueForbidden",
            "FieldValueInvalid",
            "FieldValueRequired",
        ];
        if let Some(reason) = reason.filter(|reason| !reasons.contains(reason)) {
            let allowed = reasons.map(Value::from);
            let path = format!("{at}.reason");
            errors.push(FieldError::not_supported(path, &reason.into(), &allowed));
        }
        rules::check_texts(rule, schema, &at, errors);
    }
}

fn type_of(schema: &Value) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_errors(field: &Value, expected: &[&str]) {
        let schema = json!({"type": "object", "properties": {"f": field}});
        let errors = check_open_api(&schema, "s", false);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn default_must_fit_its_schema() {
        assert_errors(
            &json!({"type": "integer", "minimum": 3, "default": 1}),
            &["s.properties[f].default: Invalid value: 1:  in body should be greater than or \
                 equal to 3"],
        );
        let object = json!({"type": "object", "default": {"b": 1}, "properties": {"a": {
            "type": "string"}}});
        let unknown =
            r#"s.properties[f].default: Invalid value: {"b":1}: must not have unknown fields"#;
        assert_errors(&object, &[unknown]);
        assert_errors(&json!({"type": "string", "default": "x"}), &[]);
    }

    #[test]
    fn default_must_follow_rules_and_be_an_object_where_one_is_embedded() {
        assert_errors(
            &json!({"type": "string", "default": "b",
                "x-kubernetes-validations": [{"rule": "self == 'a'"}]}),
            &["s.properties[f].default: Invalid value: \"b\": failed rule: self == 'a'"],
        );
        assert_errors(
            &json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true, "default": {"kind": "A"}}),
            &["s.properties[f].default.apiVersion: Required value"],
        );
    }

    #[test]
    fn default_within_metadata_must_be_valid_there() {
        let object = |metadata: Value| {
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                "kind": {"type": "string", "default": "Bad Kind"},
                "metadata": {"type": "object", "properties": metadata}}})
        };
        let seen = std::cell::RefCell::new(Vec::new());
        let owners = json!({"type": "array", "items": {"type": "object", "properties": {
            "uid": {"type": "string", "default": "u", "maxLength": 0}}}});
        let list = json!({"type": "array", "items": object(json!({"ownerReferences": owners}))});
        let schema = json!({"type": "object", "properties": {"f": list}});
        let check = |object: &JsonMap<String, Value>| {
            seen.borrow_mut().push(Value::Object(object.clone()));
            None
        };
        let errors = check_open_api_with(&schema, "s", false, &check);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let at = "s.properties[f].items.properties";
        assert!(texts[0].starts_with(&format!(
            "{at}[kind].default: Invalid value: \"Bad Kind\": must result in valid metadata: kind: "
        )));
        let uid = "[metadata].properties[ownerReferences].items.properties[uid]";
        assert!(texts[1].starts_with(&format!("{at}{uid}.default: Too long")), "{texts:?}");
        let metadata = json!({"ownerReferences": [{"uid": "u"}]});
        let expected =
            json!({"apiVersion": "validation/v1", "kind": "Validation", "metadata": metadata});
        assert_eq!(*seen.borrow(), [expected]);
    }

    #[test]
    fn broken_part_hides_only_the_rules_around_it() {
        let rule = json!([{"rule": "foo"}]);
        assert_errors(
            &json!({"type": "object", "x-kubernetes-validations": rule, "properties": {
                "a": {"type": "string", "x-kubernetes-validations": rule},
                "b": {"type": "array", "uniqueItems": true, "items": {"type": "string"}},
            }}),
            &[
                "s.properties[f].properties[b].uniqueItems: Forbidden: uniqueItems cannot be set \
                 to true since the runtime complexity becomes quadratic",
                "s.properties[f].properties[a].x-kubernetes-validations[0].rule: Invalid value: \
                 {\"FieldPath\":\"\",\"Message\":\"\",\"MessageExpression\":\"\",\
                 \"OptionalOldSelf\":null,\"Reason\":null,\"Rule\":\"foo\"}: compilation \
                 failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n \
                 | foo\n | ^",
            ],
        );
    }

    #[test]
    fn unsupported_parts_are_forbidden() {
        assert_errors(
            &json!({"type": "string", "$ref": "#/x", "id": "y"}),
            &[
                "s.properties[f].id: Forbidden: id is not supported",
                "s.properties[f].$ref: Forbidden: $ref is not supported",
            ],
        );
        assert_errors(
            &json!({"type": "object", "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"}}),
            &["s.properties[f].additionalProperties: Forbidden: additionalProperties and \
                 properties are mutual exclusive"],
        );
    }

    #[test]
    fn key_of_a_list_map_is_required_or_has_a_default() {
        assert_errors(
            &json!({"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "properties": {
                "name": {"type": "string"}}}}),
            &["s.properties[f].items.properties[name].default: Required value: this property is \
                 in x-kubernetes-list-map-keys, so it must have a default or be a required \
                 property"],
        );
    }
}
