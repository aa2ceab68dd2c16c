//! Finds duplicates in lists of type set and map.

use std::collections::HashMap;

use serde_json::{Map as JsonMap, Value};

use crate::field_error::FieldError;
use crate::node::{ListType, Shape};
use crate::path::Path;
use crate::schema::NodeRef;

/// Reports the first repetition of each value of a set, and of each key of a list map. Nothing is
/// reported if the old object has repetitions, too.
pub(crate) fn check(node: NodeRef<'_>, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if old == Some(value) {
        return Vec::new();
    }
    let errors_of = |value: &Value| {
        let mut errors = Vec::new();
        find(node, value, &mut Path::default(), &mut errors);
        errors
    };
    let errors = errors_of(value);
    let is_known = !errors.is_empty() && old.is_some_and(|old| !errors_of(old).is_empty());
    if is_known { Vec::new() } else { errors }
}

fn find(node: NodeRef<'_>, value: &Value, path: &mut Path, errors: &mut Vec<FieldError>) {
    match (node.shape(), value) {
        (Shape::Object(_), Value::Object(fields)) => {
            for (name, value) in fields {
                let Some(inner) = node.field(name).filter(|inner| inner.type_name().is_none())
                else {
                    continue;
                };
                let before = path.enter(name);
                find(inner, value, path, errors);
                path.leave(before);
            }
        }
        (Shape::Map(_), Value::Object(fields)) => {
            let Some(inner) = node.values() else { return };
            for (name, value) in fields {
                let before = path.enter_key(name);
                find(inner, value, path, errors);
                path.leave(before);
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            check_list(&list.list_type, items, path, errors);
            let Some(inner) = node.items() else { return };
            for (at, item) in items.iter().enumerate() {
                let before = path.enter_item(at);
                find(inner, item, path, errors);
                path.leave(before);
            }
        }
        _ => {}
    }
}

/// Returns true if an item occurs twice.
pub(crate) fn has_duplicate(items: &[Value]) -> bool {
    !repeated(items).is_empty()
}

fn check_list(
    list_type: &ListType,
    items: &[Value],
    path: &mut Path,
    errors: &mut Vec<FieldError>,
) {
    let keys: Vec<Value> = match list_type {
        ListType::Atomic => return,
        ListType::Set => items.to_vec(),
        ListType::Map(names) => {
            if let Some(at) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
                let before = path.enter_item(at);
                let detail = "must be an object for an array of list-type map";
                errors.push(FieldError::invalid(path.as_str(), &items[at], detail));
                path.leave(before);
                return;
            }
            let key = |item: &Value| {
                let fields = names.iter().filter_map(|name| {
                    item.get(&**name).map(|value| (name.to_string(), value.clone()))
                });
                Value::Object(fields.collect::<JsonMap<_, _>>())
            };
            items.iter().map(key).collect()
        }
    };
    for at in repeated(&keys) {
        let before = path.enter_item(at);
        errors.push(FieldError::duplicate(path.as_str(), &keys[at]));
        path.leave(before);
    }
}

/// Returns the index of the second occurrence of each value that occurs more than once.
fn repeated(values: &[Value]) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(values.len());
    let mut repeated = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            repeated.push(at);
        }
    }
    repeated
}
