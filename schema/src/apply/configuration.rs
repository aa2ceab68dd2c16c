//! The merge of a configuration that a mutating policy makes.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::atom::{Atom, ScalarKind, Type};
use super::errors::TypeErrors;
use super::merge::merge;
use super::validate::{Duplicates, validate_object};
use crate::field_set::PathElement;
use crate::schema::Schema;

/// Merges a configuration into an object, as the mutation of a `MutatingAdmissionPolicy` does.
/// The members that it adds have no owners.
///
/// # Errors
///
/// Returns the reason, with the real server's text, if the configuration does not fit the type, or
/// if it has a list or an object that can only be replaced as one.
///
/// # Examples
///
/// ```
/// use homeostat_schema::built_in::schema_of;
/// use homeostat_schema::merge_configuration;
/// use serde_json::json;
///
/// let schema = schema_of("", "v1", "ConfigMap").unwrap();
/// let (object, change) = (json!({"data": {"a": "b"}}), json!({"data": {"c": "d"}}));
/// let (object, change) = (object.as_object().unwrap(), change.as_object().unwrap());
/// let merged = merge_configuration(&schema, object, change).unwrap();
/// assert_eq!(merged["data"], json!({"a": "b", "c": "d"}));
/// ```
pub fn merge_configuration(
    schema: &Schema,
    object: &Map<String, Value>,
    configuration: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let root = Type::Root(schema.root());
    let unfit = |errors| format!("failed to convert patch object to typed object: {errors}");
    let mut nulls = TypeErrors::new();
    find_nulls(root, configuration, &mut nulls);
    nulls.into_result(()).map_err(unfit)?;
    validate_object(root, configuration, Duplicates::Refused).map_err(unfit)?;
    let mut atomic = Vec::new();
    find_atomic_members(root, configuration, "", &mut atomic);
    if !atomic.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomic.join(", ")
        ));
    }
    validate_object(root, object, Duplicates::Allowed)
        .map_err(|errors| format!("failed to convert original object to typed object: {errors}"))?;
    match merge(root, object, configuration) {
        Ok(Value::Object(merged)) => Ok(merged),
        Ok(_) => Ok(Map::new()),
        Err(errors) => Err(format!("failed to merge patch: {errors}")),
    }
}

/// Reports the nulls of expressions, which fit no type.
fn find_nulls(of: Type<'_>, fields: &Map<String, Value>, errors: &mut TypeErrors) {
    let Atom::Map(map) = of.atom(None) else { return };
    for (name, value) in fields {
        let Some(field) = map.field(name) else { continue };
        let mut below = TypeErrors::new();
        match (value, field.of.atom(Some(value))) {
            (Value::Null, Atom::Map(_)) => below.push("expected map, got &{NULL_VALUE}"),
            (Value::Null, Atom::List(_)) => below.push("expected list, got &{NULL_VALUE}"),
            (Value::Null, Atom::Scalar(kind)) => below.push(null_as(kind)),
            (Value::Object(inner), Atom::Map(_)) => find_nulls(field.of, inner, &mut below),
            _ => {}
        }
        errors.extend(&PathElement::field(name.as_str()), below);
    }
}

fn null_as(kind: ScalarKind) -> &'static str {
    match kind {
        ScalarKind::Numeric => "expected numeric (int or float), got structpb.NullValue",
        ScalarKind::Text => "expected string, got &value.valueUnstructured{Value:0}",
        ScalarKind::Boolean => "expected boolean, got &{NULL_VALUE}",
        ScalarKind::Untyped => "expected any scalar, got &{NULL_VALUE}",
    }
}

/// Finds the lists and objects of a configuration that can only be replaced as one.
fn find_atomic(of: Type<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    match (of.atom(Some(value)), value) {
        (Atom::Map(map), Value::Object(fields)) => {
            if map.atomic {
                found.push(path.to_owned());
            }
            find_atomic_members(of, fields, path, found);
        }
        (Atom::List(list), Value::Array(items)) => {
            if list.is_atomic() {
                found.push(path.to_owned());
            }
            for (index, item) in items.iter().enumerate() {
                find_atomic(list.item, item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

fn find_atomic_members(
    of: Type<'_>,
    fields: &Map<String, Value>,
    path: &str,
    found: &mut Vec<String>,
) {
    let Atom::Map(map) = of.atom(None) else { return };
    for (name, value) in fields {
        // The values of a map, and what the schema does not declare, may be replaced.
        let Some(field) = map.field(name).filter(|field| field.declared) else { continue };
        let mut path = path.to_owned();
        let _ = write!(path, "{}", PathElement::field(name.as_str()));
        find_atomic(field.of, value, &path, found);
    }
}
