//! The removal of fields and items from a value.

use serde_json::{Map, Value};

use super::atom::{Atom, ListAtom, MapAtom, Type};
use super::items::item_element;
use crate::field_set::{FieldSet, PathElement};

/// Removes the items and fields in `set`; returns null if nothing is left.
///
/// An atomic list or object is removed with all its parts, so nothing of it is left either.
pub(crate) fn remove(of: Type<'_>, value: &Value, set: &FieldSet) -> Value {
    match (of.atom(Some(value)), value) {
        (Atom::Scalar(_), _) => value.clone(),
        (Atom::List(list), Value::Array(items)) if !list.is_atomic() => {
            remove_items(&list, items, set)
        }
        (Atom::Map(map), Value::Object(fields)) if !map.atomic => remove_fields(&map, fields, set),
        _ => Value::Null,
    }
}

fn remove_items(list: &ListAtom<'_>, items: &[Value], set: &FieldSet) -> Value {
    let kept: Vec<Value> = items
        .iter()
        .filter_map(|item| {
            // The object was validated: each item has an identity.
            let Ok(element) = item_element(list, item) else { return Some(item.clone()) };
            if set.contains_element(&element) {
                return None;
            }
            Some(match set.children(&element) {
                Some(below) => remove(list.item, item, below),
                None => item.clone(),
            })
        })
        .collect();
    if kept.is_empty() { Value::Null } else { Value::Array(kept) }
}

fn remove_fields(map: &MapAtom<'_>, fields: &Map<String, Value>, set: &FieldSet) -> Value {
    let kept: Map<String, Value> = fields
        .iter()
        .filter_map(|(name, value)| {
            let element = PathElement::field(name.as_str());
            if set.contains_element(&element) {
                return None;
            }
            let kept = match (set.children(&element), map.field(name)) {
                (Some(below), Some(field)) => remove(field.of, value, below),
                _ => value.clone(),
            };
            Some((name.clone(), kept))
        })
        .collect();
    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
}
