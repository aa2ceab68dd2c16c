//! The directives within a strategic merge patch: their names, and the values that they are in.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::PatchError;
use super::merge::without_nulls;
use crate::go_json::go_text;

pub(super) type Object = Map<String, Value>;

pub(super) const PATCH: &str = "$patch";
pub(super) const SET_ELEMENT_ORDER: &str = "$setElementOrder";
pub(super) const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
pub(super) const RETAIN_KEYS: &str = "$retainKeys";

pub(super) fn is_beside_a_list(name: &str) -> bool {
    let directives = [SET_ELEMENT_ORDER, DELETE_FROM_PRIMITIVE_LIST];
    directives.iter().any(|directive| list_beside(name, directive).is_some())
}

/// Returns the name of the list that a member `DIRECTIVE/NAME` belongs to.
fn list_beside<'a>(name: &'a str, directive: &str) -> Option<&'a str> {
    name.strip_prefix(directive)?.strip_prefix('/')
}

pub(super) fn take_orders(patch: &mut Object) -> Result<BTreeMap<String, Vec<Value>>, PatchError> {
    take_beside_lists(patch, SET_ELEMENT_ORDER)
        .into_iter()
        .map(|(name, order)| match order {
            Value::Array(order) => Ok((name, order)),
            _ => Err(PatchError::BadRequest(
                "invalid patch format of setElementOrder list".to_owned(),
            )),
        })
        .collect()
}

/// Takes the members `DIRECTIVE/NAME` out of the patch, by `NAME`.
pub(super) fn take_beside_lists(patch: &mut Object, directive: &str) -> Vec<(String, Value)> {
    let is_one = |name: &&String| list_beside(name, directive).is_some();
    let names: Vec<String> = patch.keys().filter(is_one).cloned().collect();
    let take =
        |name: String| Some((list_beside(&name, directive)?.to_owned(), patch.remove(&name)?));
    names.into_iter().filter_map(take).collect()
}

/// Returns the value that a patch creates where there was none, with the members that `is_kept`
/// accepts. As upstream, an object with any `$patch` is left out.
pub(super) fn without_directives(mut value: Value, is_kept: fn(&str) -> bool) -> Option<Value> {
    remove_directives(&mut value, is_kept).then_some(value)
}

/// Removes the members that `is_kept` does not accept. Returns false if the value is left out.
fn remove_directives(value: &mut Value, is_kept: fn(&str) -> bool) -> bool {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => return false,
        Value::Object(members) => {
            members.retain(|name, member| is_kept(name) && remove_directives(member, is_kept));
        }
        Value::Array(elements) => {
            elements.retain_mut(|element| remove_directives(element, is_kept));
        }
        _ => {}
    }
    true
}

/// Returns an object that a patch puts in the place of another one, or appends to a list. As
/// upstream, its directives stay and are unknown fields.
pub(super) fn taken_over(object: Object) -> Object {
    match without_nulls(Value::Object(object)) {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

pub(super) fn unknown_directive(patch: &Object) -> PatchError {
    let directive = match &patch[PATCH] {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(value) => format!("%!s(bool={value})"),
        Value::Number(number) if number.is_f64() => format!("%!s(float64={number})"),
        Value::Number(number) => format!("%!s(int64={number})"),
        other => go_text(other),
    };
    let patch = go_text(&Value::Object(patch.clone()));
    PatchError::Internal(format!("unknown patch type: {directive} in map: {patch}"))
}
