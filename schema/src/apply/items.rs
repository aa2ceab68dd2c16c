//! The identity of a list's items.

use std::sync::Arc;

use homeostat_core::go_quote;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::atom::{ListAtom, Type};
use crate::field_set::PathElement;
use crate::node::ListType;

/// Returns the path element of an item.
///
/// # Errors
///
/// If the item has no identity, such as a null, or an object without its keys.
pub(super) fn item_element(list: &ListAtom<'_>, item: &Value) -> Result<PathElement, String> {
    match list.list_type {
        ListType::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListType::Set => set_element(item),
        ListType::Map(keys) => keyed_element(keys, list.item, item),
    }
}

/// Returns true if an item has a path element.
pub(super) fn has_identity(list: &ListAtom<'_>, item: &Value) -> bool {
    match (list.list_type, item) {
        (ListType::Set, Value::Bool(_) | Value::Number(_) | Value::String(_)) => true,
        (ListType::Map(keys), Value::Object(fields)) => {
            keys.is_empty() || keys.iter().any(|key| key_of(key, list.item, fields).is_some())
        }
        _ => false,
    }
}

/// Returns the value of a key of an item, or its default.
fn key_of<'v>(key: &str, of: Type<'v>, fields: &'v Map<String, Value>) -> Option<&'v Value> {
    fields.get(key).or_else(|| of.default_of(key))
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    let reason = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::value(scalar.clone())),
    };
    Err(reason.to_owned())
}

fn keyed_element(keys: &[Arc<str>], of: Type<'_>, item: &Value) -> Result<PathElement, String> {
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    // A missing key without a default is part of the identity: such an item is another one.
    let present: Vec<(SmolStr, Value)> = keys
        .iter()
        .filter_map(|key| {
            let value = key_of(key, of, fields)?;
            Some((SmolStr::from(key.as_ref()), value.clone()))
        })
        .collect();
    if present.is_empty() && !keys.is_empty() {
        let names: Vec<String> = keys.iter().map(|key| go_quote(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't \
             have default values for any key fields)",
            names.join(" ")
        ));
    }
    Ok(PathElement::key(present))
}
