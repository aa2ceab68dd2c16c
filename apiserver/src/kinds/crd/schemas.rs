//! The versions of a definition and their schemas.
//!
//! Where all versions have the same value, the real server checks it once, at the path that it had
//! in `v1beta1`.

use homeostat_schema::{FieldError, check_open_api_with, is_known_format, show_version};
use serde_json::{Value, json};

use super::attributes::{check_column, check_scale, check_selectable};
use crate::fields::{Fields, read_path};
use crate::kinds::embedded::problem_of_metadata;
use crate::names;
use crate::types::Types;

/// The attributes of a version that all versions may share, and their path if they do.
const SHARED: [(&str, &str); 4] = [
    ("schema", "spec.validation"),
    ("subresources", "spec.subresources"),
    ("additionalPrinterColumns", "spec.additionalPrinterColumns"),
    ("selectableFields", "spec.selectableFields"),
];

/// Normalizes the schemas as the real server's encoder does.
pub(super) fn tidy(spec: &mut Fields) {
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten();
    for version in versions {
        let schema = version.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema"));
        if let Some(schema) = schema {
            tidy_inner(schema);
        }
    }
}

/// Normalizes what stands in `items` and `additionalProperties`, whose type is a union.
fn tidy_inner(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("items" | "additionalProperties", Value::Object(inner)) => {
                if let Some(known) = Types::all().named("apiextensions.JSONSchemaProps") {
                    crate::types::normalize_type(known, inner);
                }
                let mut value = Value::Object(std::mem::take(inner));
                tidy_inner(&mut value);
                if let Value::Object(tidied) = value {
                    *inner = tidied;
                }
            }
            ("properties" | "definitions" | "patternProperties", Value::Object(inner)) => {
                inner.values_mut().for_each(tidy_inner);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(inner)) => {
                inner.iter_mut().for_each(tidy_inner);
            }
            ("not", inner) => tidy_inner(inner),
            _ => {}
        }
    }
}

/// Checks that each version has a schema.
pub(super) fn check_presence(versions: &[Value], errors: &mut Vec<FieldError>) {
    for (index, version) in versions.iter().enumerate() {
        if document_of(version).is_none() {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(path, ""));
        }
    }
}

/// Checks what stands in each version.
pub(super) fn check(versions: &[Value], errors: &mut Vec<FieldError>) {
    let has_own_schemas = !is_shared(versions, "schema");
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
        let problems = names::rfc_1035_label(name);
        if !problems.is_empty() {
            let path = format!("{at}.name");
            errors.push(FieldError::invalid(path, &name.into(), &problems.join(",")));
        }
        check_deprecation(version, &at, errors);
        for (key, _) in SHARED.iter().filter(|(key, _)| !is_shared(versions, key)) {
            let path = format!("{at}.{key}");
            let is_alone = !has_own_schemas || document_of(version).is_none();
            if *key == "selectableFields" && is_alone {
                let detail =
                    "may only be set when `version.schema.openAPIV3Schema` is not included";
                check_alone(version, path, detail, errors);
                continue;
            }
            check_attribute(version, key, (&path, has_status(version)), errors);
        }
    }
}

/// Reports selectable fields in one place with the schemas in another.
fn check_alone(version: &Value, path: String, detail: &str, errors: &mut Vec<FieldError>) {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    if fields.is_some_and(|fields| !fields.is_empty()) {
        errors.push(FieldError::invalid(path, &json!(""), detail));
    }
}

/// Checks what all versions have in common.
pub(super) fn check_shared(versions: &[Value], errors: &mut Vec<FieldError>) {
    let Some(first) = versions.first() else { return };
    // The status of any version restricts the schema that all of them have.
    let any_status = versions.iter().any(has_status);
    for (key, path) in SHARED.iter().filter(|(key, _)| is_shared(versions, key)) {
        if *key == "selectableFields" && !is_shared(versions, "schema") {
            let detail = "may only be set when validations.schema is included";
            check_alone(first, (*path).to_owned(), detail, errors);
            continue;
        }
        check_attribute(first, key, (path, any_status), errors);
    }
}

/// Returns true if a version has a default in its schema.
pub(super) fn has_default(version: &Value) -> bool {
    fn has(schema: &Value) -> bool {
        schema.get("default").is_some_and(|default| !default.is_null())
            || inner_schemas(schema).any(has)
    }
    document_of(version).is_some_and(has)
}

/// Returns the versions as the real server's messages show them: Go's struct, without what all
/// versions share.
pub(super) fn internal(versions: &[Value]) -> Value {
    let is_hidden = |key: &str| SHARED.iter().any(|(shared, _)| *shared == key);
    let show = |version| show_version(version, |key| is_hidden(key) && is_shared(versions, key));
    versions.iter().map(show).collect()
}

fn document_of(version: &Value) -> Option<&Value> {
    version.get("schema")?.get("openAPIV3Schema")
}

fn has_status(version: &Value) -> bool {
    let status = version.get("subresources").and_then(|all| all.get("status"));
    status.is_some_and(|status| !status.is_null())
}

fn is_shared(versions: &[Value], key: &str) -> bool {
    let first = versions.first().and_then(|version| version.get(key));
    first.is_some() && versions.iter().all(|version| version.get(key) == first)
}

fn check_attribute(
    version: &Value,
    key: &str,
    (at, has_status): (&str, bool),
    errors: &mut Vec<FieldError>,
) {
    let Some(value) = version.get(key) else { return };
    let document = document_of(version);
    match key {
        "schema" => {
            let Some(document) = document else { return };
            let at = format!("{at}.openAPIV3Schema");
            let check = &problem_of_metadata;
            errors.extend(check_open_api_with(document, &at, has_status, check));
        }
        "subresources" => check_scale(value.get("scale"), at, errors),
        "additionalPrinterColumns" => {
            for (index, column) in value.as_array().into_iter().flatten().enumerate() {
                check_column(column, &format!("{at}[{index}]"), errors);
            }
        }
        _ => check_selectable(value, document, at, errors),
    }
}

fn check_deprecation(version: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut invalid = |detail: &str| {
        let path = format!("{at}.deprecationWarning");
        let mut error = FieldError::invalid(path, &Value::Null, detail);
        // The real server shows it as JSON, which escapes less than Go does.
        error.message = format!("Invalid value: {}: {detail}", json!(warning));
        errors.push(error);
    };
    if version["deprecated"] != true {
        invalid("can only be set for deprecated versions");
        return;
    }
    if warning.len() > 256 {
        invalid("must be <= 256 characters long");
    }
    if warning.is_empty() {
        invalid("must not be an empty string");
    }
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| !names::is_printable(*c)) {
        invalid(&format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {index}"
        ));
    }
}

/// Returns the warnings for the author of a definition: for what `old` did not have.
pub(crate) fn warnings(definition: &Fields, old: Option<&Fields>) -> Vec<String> {
    let known = old.map(all_warnings).unwrap_or_default();
    let mut found = all_warnings(definition);
    found.retain(|warning| !known.contains(warning));
    found
}

fn all_warnings(definition: &Fields) -> Vec<String> {
    let mut found = Found::default();
    let versions = read_path(definition, "spec.versions").and_then(Value::as_array);
    versions.into_iter().flatten().filter_map(document_of).for_each(|schema| found.look(schema));
    found.sets.sort();
    found.sets.dedup();
    let formats = found.formats.iter().map(|format| format!("unrecognized format \"{format}\""));
    let sets = found.sets.iter().map(|kind| {
        format!(
            "x-kubernetes-list-type: set for items of type \"{kind}\" is not supported by \
             server-side apply or CEL validation rules"
        )
    });
    formats.chain(sets).collect()
}

/// The formats and lists that a schema warns about.
#[derive(Debug, Default)]
struct Found {
    formats: Vec<String>,
    sets: Vec<String>,
}

impl Found {
    fn look(&mut self, schema: &Value) {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        let format = text("format");
        if !format.is_empty() && !is_known_format(text("type"), format) {
            self.formats.push(format.to_owned());
        }
        let item = schema.get("items").and_then(|items| items.get("type")).and_then(Value::as_str);
        if let Some(item @ ("object" | "array")) = item
            && text("x-kubernetes-list-type") == "set"
        {
            self.sets.push(item.to_owned());
        }
        inner_schemas(schema).for_each(|inner| self.look(inner));
    }
}

/// Returns the schemas that stand inside a schema.
fn inner_schemas(schema: &Value) -> impl Iterator<Item = &Value> {
    let one = ["items", "not", "additionalProperties", "additionalItems"];
    let one = one.into_iter().filter_map(|key| schema.get(key)).filter(|inner| inner.is_object());
    let lists = ["items", "allOf", "anyOf", "oneOf"];
    let lists = lists.into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    let maps = ["properties", "patternProperties", "definitions", "dependencies"];
    let maps = maps.into_iter().filter_map(|key| schema.get(key)?.as_object()).flatten();
    one.chain(lists).chain(maps.map(|(_, inner)| inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_values_are_checked_once_at_their_old_path() {
        let column = json!({"name": "", "type": "text", "jsonPath": "spec"});
        let version = json!({"name": "v1", "additionalPrinterColumns": [column],
            "schema": {"openAPIV3Schema": {"type": "object"}}});
        let mut errors = Vec::new();
        check(&[version.clone(), version.clone()], &mut errors);
        assert_eq!(errors, []);
        check_shared(&[version.clone(), version], &mut errors);
        let paths: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        let at = "spec.additionalPrinterColumns[0]";
        let expected = [format!("{at}.name"), format!("{at}.type"), format!("{at}.JSONPath")];
        assert_eq!(paths, expected);
    }
}
