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
    name.split_once('/').is_some_and(|(directive, _)| {
        matches!(directive, SET_ELEMENT_ORDER | DELETE_FROM_PRIMITIVE_LIST)
    })
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
    let list_of = |name: &str| Some(name.strip_prefix(directive)?.strip_prefix('/')?.to_owned());
    let names: Vec<_> =
        patch.keys().filter_map(|name| Some((name.clone(), list_of(name)?))).collect();
    names.into_iter().filter_map(|(name, list)| Some((list, patch.remove(&name)?))).collect()
}

/// Returns the value that a patch creates where there was none, with the members that `is_kept`
/// accepts. As upstream, an object with any `$patch` is left out.
pub(super) fn without_directives(value: Value, is_kept: fn(&str) -> bool) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => Some(Value::Object(
            members
                .into_iter()
                .filter(|(name, _)| is_kept(name))
                .filter_map(|(name, member)| Some((name, without_directives(member, is_kept)?)))
                .collect(),
        )),
        Value::Array(elements) => {
            let kept = |element| without_directives(element, is_kept);
            Some(Value::Array(elements.into_iter().filter_map(kept).collect()))
        }
        scalar => Some(scalar),
    }
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
