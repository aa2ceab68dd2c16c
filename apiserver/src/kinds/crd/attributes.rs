//! The attributes of a version besides its schema: subresources, columns and selectable fields.

use homeostat_schema::FieldError;
use serde_json::Value;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// The largest number of selectable fields of a version.
const MAX_SELECTABLE: usize = 8;

/// Checks the paths of the subresource `/scale`.
pub(super) fn check_scale(scale: Option<&Value>, at: &str, errors: &mut Vec<FieldError>) {
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

/// Checks a column of the table.
pub(super) fn check_column(column: &Value, at: &str, errors: &mut Vec<FieldError>) {
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

/// Checks the selectable fields against the schema.
pub(super) fn check_selectable(
    fields: &Value,
    document: Option<&Value>,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let mut seen: Vec<Vec<&str>> = Vec::new();
    for (index, field) in fields.as_array().into_iter().flatten().enumerate() {
        let path = field.get("jsonPath").and_then(Value::as_str).unwrap_or_default();
        let at = format!("{at}[{index}].jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let (found, names) = match declared_at(document.unwrap_or(&Value::Null), path) {
            Ok(found) => found,
            Err(reason) => {
                let detail = format!("is an invalid path: {reason}");
                errors.push(FieldError::invalid(at, &path.into(), &detail));
                continue;
            }
        };
        if names.first().is_some_and(|first| *first == "metadata") {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(at.as_str(), &path.into(), detail));
        }
        if !matches!(found["type"].as_str(), Some("string" | "boolean" | "integer")) {
            let detail = "must point to a field of type string, boolean or integer. Enum string \
                          fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(at.as_str(), &path.into(), detail));
        }
        if seen.contains(&names) {
            errors.push(FieldError::duplicate(at, &path.into()));
        } else {
            seen.push(names);
        }
    }
    if seen.len() > MAX_SELECTABLE {
        errors.push(FieldError::too_many(at, seen.len(), MAX_SELECTABLE as u64));
    }
}

/// Returns the schema that a path of fields leads to, and the names on the way.
///
/// # Errors
///
/// Returns the reason if the path is malformed or leads to no field.
fn declared_at<'a, 'p>(
    document: &'a Value,
    path: &'p str,
) -> Result<(&'a Value, Vec<&'p str>), String> {
    let (mut schema, mut names, mut rest) = (document, Vec::new(), path);
    while !rest.is_empty() {
        let (step, after) = token(rest);
        match step {
            "." if after.is_empty() => return Err("unexpected end of JSON path".to_owned()),
            "." => {}
            "[" => return Err("array notation is not allowed".to_owned()),
            other => return Err(format!("expected [ or . but got: {other}")),
        }
        let (name, after) = token(after);
        let inner = match schema.get("properties") {
            Some(fields) => fields.get(name),
            None => schema.get("additionalProperties").filter(|values| values.is_object()),
        };
        schema = inner.ok_or("does not refer to a valid field")?;
        names.push(name);
        rest = after;
    }
    Ok((schema, names))
}

/// Splits a path after its first delimiter, or after the text in front of one.
fn token(path: &str) -> (&str, &str) {
    let quoted = path.strip_prefix('\'').and_then(|rest| rest.find('\'')).map(|end| end + 2);
    let end = quoted.or_else(|| path.find(['.', '[', ']'])).unwrap_or(path.len());
    path.split_at(end.max(1).min(path.len()))
}

/// Checks a path that consists of fields.
fn check_simple_path(path: &str, at: &str, errors: &mut Vec<FieldError>) -> bool {
    if path.starts_with('.') {
        return true;
    }
    let detail = "must be a simple json path starting with .";
    errors.push(FieldError::invalid(at, &path.into(), detail));
    false
}
