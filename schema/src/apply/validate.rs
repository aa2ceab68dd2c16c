//! Checks that a value fits its type.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::atom::{Atom, ListAtom, MapAtom, ScalarKind, Type};
use super::errors::TypeErrors;
use super::go_format::{go_type, shown, shown_as_code};
use super::items::{has_identity, item_element};
use crate::field_set::PathElement;

/// The treatment of items that occur twice in a list of type `set` or `map`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// For stored objects: older versions of a schema may have allowed them.
    Allowed,
    /// For a configuration that is applied.
    Refused,
}

/// Checks that a value fits its type.
pub(crate) fn validate(
    of: Type<'_>,
    value: &Value,
    duplicates: Duplicates,
) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::new();
    match of.atom(Some(value)) {
        Atom::Scalar(kind) => check_scalar(kind, value, "", &mut errors),
        Atom::List(list) => match value {
            Value::Null => {}
            Value::Array(items) => check_items(&list, items, duplicates, &mut errors),
            other => errors.push(format!("expected list, got {}", shown(other))),
        },
        Atom::Map(map) => match value {
            Value::Null => {}
            Value::Object(fields) => check_fields(&map, fields, duplicates, &mut errors),
            other => errors.push(format!("expected map, got {}", shown(other))),
        },
    }
    errors.into_result(())
}

/// Checks that an object fits its type.
pub(crate) fn validate_object(
    of: Type<'_>,
    object: &Map<String, Value>,
    duplicates: Duplicates,
) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::new();
    if let Atom::Map(map) = of.atom(None) {
        check_fields(&map, object, duplicates, &mut errors);
    }
    errors.into_result(())
}

/// Returns the error of a member that the schema does not have.
pub(super) fn undeclared() -> TypeErrors {
    let mut undeclared = TypeErrors::new();
    undeclared.push("field not declared in schema");
    undeclared
}

/// Checks a scalar; null fits each kind.
pub(super) fn check_scalar(kind: ScalarKind, value: &Value, side: &str, errors: &mut TypeErrors) {
    let message = match (kind, value) {
        (_, Value::Null)
        | (ScalarKind::Numeric, Value::Number(_))
        | (ScalarKind::Text, Value::String(_))
        | (ScalarKind::Boolean, Value::Bool(_))
        | (ScalarKind::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return,
        (ScalarKind::Numeric, _) => {
            format!("expected numeric (int or float), got {}", go_type(value))
        }
        (ScalarKind::Text, _) => format!("expected string, got {}", shown_as_code(value)),
        (ScalarKind::Boolean, _) => format!("expected boolean, got {}", shown(value)),
        (ScalarKind::Untyped, _) => format!("expected any scalar, got {}", shown(value)),
    };
    errors.push(format!("{side}{message}"));
}

fn check_items(
    list: &ListAtom<'_>,
    items: &[Value],
    duplicates: Duplicates,
    errors: &mut TypeErrors,
) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        if list.is_atomic() {
            if !list.item.is_deduced()
                && let Err(below) = validate(list.item, item, duplicates)
            {
                errors.extend(&format_args!("[{index}]"), below);
            }
            continue;
        }
        let below = validate(list.item, item, duplicates);
        if duplicates == Duplicates::Allowed && below.is_ok() && has_identity(list, item) {
            continue;
        }
        let element = match item_element(list, item) {
            Ok(element) => element,
            // Without an element there is no path to what is wrong inside.
            Err(reason) => return errors.push(format!("element {index}: {reason}")),
        };
        if duplicates == Duplicates::Refused && seen.contains(&element) {
            errors.push(format!("duplicate entries for key {element}"));
        }
        if let Err(below) = below {
            errors.extend(&element, below);
        }
        seen.insert(element);
    }
}

fn check_fields(
    map: &MapAtom<'_>,
    fields: &Map<String, Value>,
    duplicates: Duplicates,
    errors: &mut TypeErrors,
) {
    for (name, value) in fields {
        let Some(field) = map.field(name) else {
            return errors.extend(&PathElement::field(name.as_str()), undeclared());
        };
        if field.of.is_deduced() {
            continue;
        }
        if let Err(below) = validate(field.of, value, duplicates) {
            errors.extend(&PathElement::field(name.as_str()), below);
        }
    }
}
