//! Strategic merge patch: one engine over the table in [`rules`](super::rules).
//!
//! Objects are merged and null removes a member. A list with a rule is merged by element, any other
//! list is replaced. Directives within the patch:
//!
//! | directive | place | meaning |
//! |---|---|---|
//! | `$patch: replace` | object, or element of a keyed list | the current value is dropped |
//! | `$patch: delete` | object | the object becomes empty |
//! | `$patch: delete` | element of a keyed list, with its key | the element is removed |
//! | `$deleteFromPrimitiveList/NAME: […]` | beside list `NAME` | these scalars are removed |
//! | `$setElementOrder/NAME: […]` | beside list `NAME` | the order of the merged list |
//! | `$retainKeys: […]` | object | other members are removed |
//!
//! `$patch: merge` is rejected, as in the API server.

use serde_json::Value;

use super::directives::{
    DELETE_FROM_PRIMITIVE_LIST, Object, PATCH, RETAIN_KEYS, is_beside_a_list, take_beside_lists,
    take_orders, taken_over, unknown_directive, without_directives,
};
use super::list::ListKey;
use super::merge::without_nulls;
use super::rules::{Rule, Rules};
use super::{PatchError, list};

pub(super) fn apply(rules: Rules, current: Value, body: &[u8]) -> Result<Value, PatchError> {
    let patch = read_patch(body)?;
    let Value::Object(current) = current else {
        return Err(PatchError::BadRequest("invalid JSON document".to_owned()));
    };
    merge_objects(rules, current, patch).map(Value::Object)
}

fn read_patch(body: &[u8]) -> Result<Object, PatchError> {
    let text = str::from_utf8(body).ok();
    let why = match text.and_then(|text| homeostat_json::from_str(text).ok()) {
        Some(Value::Object(patch)) => return Ok(patch),
        Some(Value::Null) => return Ok(Object::new()),
        Some(Value::Array(_)) => "array",
        Some(Value::String(_)) => "string",
        Some(Value::Number(_)) => "number",
        Some(Value::Bool(_)) => "bool",
        None => return Err(PatchError::BadRequest("invalid JSON patch".to_owned())),
    };
    let into = "Go value of type map[string]interface {}";
    Err(PatchError::BadRequest(format!("json: cannot unmarshal {why} into {into}")))
}

fn merge_objects(
    rules: Rules,
    mut current: Object,
    mut patch: Object,
) -> Result<Object, PatchError> {
    match patch.get(PATCH).map(Value::as_str) {
        None => {}
        Some(Some("replace")) => {
            patch.remove(PATCH);
            return Ok(taken_over(patch));
        }
        Some(Some("delete")) => return Ok(Object::new()),
        Some(_) => return Err(unknown_directive(&patch)),
    }
    retain_keys(&mut current, &mut patch)?;
    delete_from_lists(&mut current, &mut patch)?;
    let mut orders = take_orders(&mut patch)?;
    for (name, value) in patch {
        let order = orders.remove(&name);
        if let Some(merged) = merge_member(rules.of(&name), current.remove(&name), value, order)? {
            current.insert(name, merged);
        }
    }
    // The remaining directives order lists that the patch does not change otherwise.
    for (name, order) in orders {
        if let (Some(key), Some(Value::Array(list))) =
            (rules.of(&name).list_key(), current.get_mut(&name))
        {
            let ids = key.ids(list);
            *list = list::reorder(key, std::mem::take(list), &key.ids(&order), &ids);
        }
    }
    Ok(current)
}

/// Returns the merged value of one member; `None` if it is removed.
///
/// A list that lost its last element is removed, too: typed objects do not distinguish an empty
/// list from a missing one.
fn merge_member(
    rule: Rule,
    current: Option<Value>,
    patch: Value,
    order: Option<Vec<Value>>,
) -> Result<Option<Value>, PatchError> {
    let is_full = |value: &Value| value.as_array().is_some_and(|list| !list.is_empty());
    let may_vanish =
        rule.list_key().is_some() && (current.as_ref().is_some_and(is_full) || is_full(&patch));
    let merged = match (current, patch, rule) {
        (_, Value::Null, _) => None,
        (Some(Value::Object(current)), Value::Object(patch), rule)
            if !matches!(rule, Rule::Whole) =>
        {
            Some(Value::Object(merge_objects(rule.within(), current, patch)?))
        }
        (Some(Value::Array(current)), Value::Array(patch), Rule::ListByKey(key, rules)) => {
            Some(Value::Array(merge_by_key(key, rules, current, patch, order)?))
        }
        (Some(Value::Array(current)), Value::Array(patch), Rule::Set) => {
            Some(Value::Array(list::merge_set(current, patch, order)?))
        }
        (Some(Value::Array(_)), patch @ Value::Array(_), _) => Some(without_nulls(patch)),
        (_, patch, rule) => {
            let patch = without_nulls(patch);
            match (rule.list_key(), &patch, order) {
                (Some(key), Value::Array(list), Some(order)) => {
                    list::order_of(key, list, Some(order))?;
                    // A new list with an order keeps the other directives, as unknown fields.
                    without_directives(patch, |_| true)
                }
                _ => {
                    without_directives(patch, |name| name != RETAIN_KEYS && !is_beside_a_list(name))
                }
            }
        }
    };
    Ok(merged.filter(|merged| !may_vanish || !merged.is_array() || is_full(merged)))
}

/// Merges the objects in `patch` into those of `list` with the same value of `key`.
///
/// New elements come before those that only the list has, unless `order` differs: as in the API
/// server.
fn merge_by_key(
    key: &'static str,
    rules: Rules,
    mut list: Vec<Value>,
    patch: Vec<Value>,
    order: Option<Vec<Value>>,
) -> Result<Vec<Value>, PatchError> {
    let by_key = ListKey::Member(key);
    let before = by_key.ids(&list);
    let order = list::order_of(by_key, &patch, order)?;
    for change in list::obey_directives(key, &mut list, patch)? {
        let Some(id) = change.get(key) else {
            return Err(list::no_merge_key(key, change));
        };
        let same = list
            .iter_mut()
            .find_map(|element| element.as_object_mut().filter(|it| it.get(key) == Some(id)));
        match same {
            Some(element) => *element = merge_objects(rules, std::mem::take(element), change)?,
            None => list.push(Value::Object(taken_over(change))),
        }
    }
    Ok(list::reorder(by_key, list, &order, &before))
}

/// Removes the members that `$retainKeys` does not name. Fails if the patch sets such a member.
fn retain_keys(current: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(retained) = retained else {
        return Err(PatchError::BadRequest("invalid patch format of retainKeys".to_owned()));
    };
    let is_retained = |name: &String| retained.iter().any(|retained| retained == name);
    if patch
        .iter()
        .any(|(name, value)| !value.is_null() && !is_beside_a_list(name) && !is_retained(name))
    {
        return Err(PatchError::BadRequest("invalid patch format of retainKeys".to_owned()));
    }
    current.retain(|name, _| is_retained(name));
    Ok(())
}

fn delete_from_lists(current: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    for (name, gone) in take_beside_lists(patch, DELETE_FROM_PRIMITIVE_LIST) {
        let Value::Array(gone) = gone else {
            return Err(PatchError::BadRequest(
                "invalid patch format of primitive list".to_owned(),
            ));
        };
        if let Some(Value::Array(list)) = current.get_mut(&name) {
            list.retain(|element| !gone.contains(element));
            if list.is_empty() {
                current.remove(&name);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests;
