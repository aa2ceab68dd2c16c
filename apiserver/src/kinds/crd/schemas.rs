//! The versions of a definition: their schemas, subresources, columns and selectable fields.
//!
//! Where all versions have the same value, the real server checks it once, at the path that it had
//! in `v1beta1`.

use homeostat_schema::{FieldError, check_open_api, is_known_format};
use serde_json::{Value, json};

use super::validate::check_simple_path;
use crate::fields::{Fields, read_path};
use crate::names;
use crate::types::Types;

/// The attributes of a version that all versions may share, and their path if they do.
const SHARED: [(&str, &str); 4] = [
    ("schema", "spec.validation"),
    ("subresources", "spec.subresources"),
    ("additionalPrinterColumns", "spec.additionalPrinterColumns"),
    ("selectableFields", "spec.selectableFields"),
];

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// The largest number of selectable fields of a version.
const MAX_SELECTABLE: usize = 8;

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

/// Checks what stands in each version.
pub(super) fn check(versions: &[Value], errors: &mut Vec<FieldError>) {
    for (index, version) in versions.iter().enumerate() {
        if version.get("schema").and_then(|schema| schema.get("openAPIV3Schema")).is_none() {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(path, ""));
        }
    }
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
            check_attribute(version, key, &format!("{at}.{key}"), errors);
        }
    }
}

/// Checks what all versions have in common.
pub(super) fn check_shared(versions: &[Value], errors: &mut Vec<FieldError>) {
    let Some(first) = versions.first() else { return };
    for (key, path) in SHARED.iter().filter(|(key, _)| is_shared(versions, key)) {
        if *key == "selectableFields" && !is_shared(versions, "schema") {
            // The fields are in one place, the schemas in another.
            let detail = "may only be set when validations.schema is included";
            errors.push(FieldError::invalid(*path, &json!(""), detail));
            continue;
        }
        check_attribute(first, key, path, errors);
    }
}

/// Returns the versions as the real server's messages show them: Go's struct, without what all
/// versions share.
pub(super) fn internal(versions: &[Value]) -> Value {
    let show = |version: &Value| {
        let of = |key: &str| version.get(key).filter(|_| !is_shared(versions, key)).cloned();
        let plain = |key: &str| version.get(key).cloned();
        json!({
            "AdditionalPrinterColumns": of("additionalPrinterColumns"),
            "Deprecated": plain("deprecated").unwrap_or(Value::Bool(false)),
            "DeprecationWarning": plain("deprecationWarning"),
            "Name": plain("name"),
            "Schema": of("schema"),
            "SelectableFields": of("selectableFields"),
            "Served": plain("served"),
            "Storage": plain("storage"),
            "Subresources": of("subresources"),
        })
    };
    versions.iter().map(show).collect()
}

fn is_shared(versions: &[Value], key: &str) -> bool {
    let first = versions.first().and_then(|version| version.get(key));
    first.is_some() && versions.iter().all(|version| version.get(key) == first)
}

fn check_attribute(version: &Value, key: &str, at: &str, errors: &mut Vec<FieldError>) {
    let Some(value) = version.get(key) else { return };
    let document = version.get("schema").and_then(|schema| schema.get("openAPIV3Schema"));
    match key {
        "schema" => {
            let Some(document) = document else { return };
            let status = version.get("subresources").and_then(|all| all.get("status"));
            let at = format!("{at}.openAPIV3Schema");
            errors.extend(check_open_api(document, &at, status.is_some()));
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
        errors.push(FieldError::invalid(path, &warning.into(), detail));
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
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| !is_printable(*c)) {
        invalid(&format!(
            "must only contain printable UTF-8 characters; non-printable character found at index \
             {index}"
        ));
    }
}

/// Returns whether Go prints a character. Of all spaces it prints the ordinary one.
fn is_printable(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace())
}

fn check_scale(scale: Option<&Value>, at: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = scale else { return };
    let path_of = |key: &str| scale.get(key).and_then(Value::as_str).unwrap_or_default();
    for (key, prefix, required) in [
        ("specReplicasPath", ".spec.", true),
        ("statusReplicasPath", ".status.", true),
        ("labelSelectorPath", "", false),
    ] {
        let (path, at) = (path_of(key), format!("{at}.scale.{key}"));
        if path.is_empty() {
            if required {
                errors.push(FieldError::required(at, ""));
            }
        } else if check_simple_path(path, &at, errors) {
            let inside = match prefix {
                "" => path.starts_with(".spec.") || path.starts_with(".status."),
                prefix => path.starts_with(prefix),
            };
            let place = match prefix {
                "" => "either .spec or .status",
                prefix => prefix.trim_end_matches('.'),
            };
            if !inside {
                let detail = format!("should be a json path under {place}");
                errors.push(FieldError::invalid(at, &path.into(), &detail));
            }
        }
    }
}

fn check_column(column: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("name").is_empty() {
        errors.push(FieldError::required(format!("{at}.name"), ""));
    }
    let (kind, detail) = (text("type"), format!("must be one of {}", COLUMN_TYPES.join(",")));
    if kind.is_empty() {
        errors.push(FieldError::required(format!("{at}.type"), &detail));
    } else if !COLUMN_TYPES.contains(&kind) {
        errors.push(FieldError::invalid(format!("{at}.type"), &kind.into(), &detail));
    }
    let format = text("format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(format!("{at}.format"), &format.into(), &detail));
    }
    let (path, at) = (text("jsonPath"), format!("{at}.JSONPath"));
    if path.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else {
        check_simple_path(path, &at, errors);
    }
}

fn check_selectable(
    fields: &Value,
    document: Option<&Value>,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let path = field.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        let at = format!("{at}[{index}].jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let found = match declared_at(document.unwrap_or(&Value::Null), path) {
            Ok(found) => found,
            Err(reason) => {
                let detail = format!("is an invalid path: {reason}");
                errors.push(FieldError::invalid(at, &path.into(), &detail));
                continue;
            }
        };
        if path.starts_with(".metadata") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(at.as_str(), &path.into(), detail));
        }
        if !matches!(found["type"].as_str(), Some("string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(at.as_str(), &path.into(), detail));
        }
        if seen.contains(&path) {
            errors.push(FieldError::duplicate(at, &path.into()));
        } else {
            seen.push(path);
        }
    }
    if seen.len() > MAX_SELECTABLE {
        errors.push(FieldError::too_many(at, seen.len(), MAX_SELECTABLE as u64));
    }
}

/// Returns the schema that a path of fields leads to.
///
/// # Errors
///
/// Fails with the reason if there is none.
fn declared_at<'a>(document: &'a Value, path: &str) -> Result<&'a Value, String> {
    if path.contains('[') {
        return Err("array notation is not allowed".to_owned());
    }
    let Some(names) = path.strip_prefix('.') else {
        let first = path.split('.').next().unwrap_or_default();
        return Err(format!("expected [ or . but got: {first}"));
    };
    let inner = |schema: &'a Value, name: &str| match schema.get("properties") {
        Some(fields) => fields.get(name),
        None => schema.get("additionalProperties").filter(|values| values.is_object()),
    };
    let found = names.split('.').try_fold(document, inner);
    found.ok_or_else(|| "does not refer to a valid field".to_owned())
}

/// Returns the warnings for the author of a definition.
pub(crate) fn warnings(definition: &Fields) -> Vec<String> {
    let mut found = Found::default();
    let versions = read_path(definition, "spec.versions").and_then(Value::as_array);
    for version in versions.into_iter().flatten() {
        let schema = version.get("schema").and_then(|schema| schema.get("openAPIV3Schema"));
        if let Some(schema) = schema {
            found.look(schema);
        }
    }
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
        for key in ["items", "not", "additionalProperties"] {
            if let Some(inner) = schema.get(key).filter(|inner| inner.is_object()) {
                self.look(inner);
            }
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
            list.for_each(|inner| self.look(inner));
        }
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        fields.for_each(|(_, inner)| self.look(inner));
    }
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
