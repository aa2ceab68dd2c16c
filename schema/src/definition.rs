//! The rules for the schema of a `CustomResourceDefinition`, with the texts of
//! `apiextensions-apiserver`.

mod around;
mod collections;
mod root;
mod support;

use serde_json::{Map as JsonMap, Value, json};

use crate::defaults::{Defaults, MetadataCheck, Place};
use crate::field_error::FieldError;
use crate::open_api::{flag, members};
use crate::rules;
use crate::structural::check_structural;
use around::Around;
use collections::{check_list_type, check_map_type};
use root::check_root;
use support::{PRESERVE, check_supported, is_readable};

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

fn check(schema: &Value, around: &Around, at: &str, errors: &mut Vec<FieldError>) {
    check_supported(schema, around, at, errors);
    let inner = Around { is_root: false, ..*around };
    check_fields(schema, around, at, errors);
    if let Some(part) = schema.get("not").filter(|part| part.is_object()) {
        check(part, &inner, &format!("{at}.not"), errors);
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
    rules::check_texts(schema, at, errors);
}

/// Checks schemas that stand under names.
fn check_named(schema: &Value, part: &str, inner: &Around, at: &str, errors: &mut Vec<FieldError>) {
    for (name, named) in members(schema, part).into_iter().flatten() {
        if named.is_object() {
            check(named, inner, &format!("{at}.{part}[{name}]"), errors);
        }
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
