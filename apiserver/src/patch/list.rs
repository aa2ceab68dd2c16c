//! Lists whose elements are merged: their identities, their order, and their directives.

use serde_json::Value;

use super::PatchError;
use super::directives::{Object, PATCH, SET_ELEMENT_ORDER, unknown_directive};
use super::rules::Rule;
use crate::go_json::go_text;

/// The identity of a list's elements.
#[derive(Clone, Copy, Debug)]
pub(super) enum ListKey {
    /// The value of this member.
    Member(&'static str),
    /// The element itself.
    Itself,
}

/// Adds to `list` the scalars of `patch` that it lacks.
pub(super) fn merge_set(
    list: Vec<Value>,
    patch: Vec<Value>,
    order: Option<Vec<Value>>,
) -> Result<Vec<Value>, PatchError> {
    if let Some(element) = patch.iter().find(|it| it.is_array() || it.is_object()) {
        return Err(not_an_element(element));
    }
    let order = order_of(ListKey::Itself, &patch, order)?;
    let before = list.clone();
    let mut merged = Vec::with_capacity(list.len() + patch.len());
    for element in list.into_iter().chain(patch) {
        if !merged.contains(&element) {
            merged.push(element);
        }
    }
    Ok(reorder(ListKey::Itself, merged, &order, &before))
}

/// Sorts a merged list: the elements in `order` get that order; the others, which were there
/// `before`, stay in front of those they preceded. `order` and `before` are identities.
pub(super) fn reorder(
    key: ListKey,
    list: Vec<Value>,
    order: &[Value],
    before: &[Value],
) -> Vec<Value> {
    let position = |ids: &[Value], element: &Value| ids.iter().position(|id| id == key.id(element));
    let (mut named, others): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|element| position(order, element).is_some());
    named.sort_by_key(|element| position(order, element));

    let mut sorted = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for element in named {
        if let Some(place) = position(before, &element) {
            while let Some(other) = others
                .next_if(|other| position(before, other).is_some_and(|earlier| earlier < place))
            {
                sorted.push(other);
            }
        }
        sorted.push(element);
    }
    sorted.extend(others);
    sorted
}

/// Returns the identities that the merged list is ordered by: `order`, or else those of the patch.
/// Fails if they disagree, unless one of them is empty.
pub(super) fn order_of(
    key: ListKey,
    patch: &[Value],
    order: Option<Vec<Value>>,
) -> Result<Vec<Value>, PatchError> {
    let Some(order) = order else {
        return Ok(key.ids(patch));
    };
    let ids = key.ids(&order);
    if order.is_empty() {
        return Ok(ids);
    }
    let mut rest = ids.iter();
    let agrees = patch
        .iter()
        .filter(|element| element.get(PATCH).is_none())
        .all(|element| rest.any(|id| id == key.id(element)));
    if agrees {
        return Ok(ids);
    }
    Err(PatchError::Internal(format!(
        "The order in patch list:\n{}\n doesn't match {SET_ELEMENT_ORDER} list:\n{}\n",
        go_text(&Value::Array(patch.to_vec())),
        go_text(&Value::Array(order)),
    )))
}

/// Carries out the `$patch` directives among the elements, and returns the other elements.
pub(super) fn obey_directives(
    key: &str,
    list: &mut Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Object>, PatchError> {
    let mut changes = Vec::with_capacity(patch.len());
    for element in patch {
        let Value::Object(element) = element else {
            return Err(not_an_element(&element));
        };
        match element.get(PATCH).map(Value::as_str) {
            None => changes.push(element),
            Some(Some("delete")) => match element.get(key) {
                Some(id) => list.retain(|element| element.get(key) != Some(id)),
                None => return Err(no_merge_key(key, element)),
            },
            Some(Some("replace")) => list.clear(),
            Some(Some("merge")) => {
                return Err(PatchError::Internal(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some(_) => return Err(unknown_directive(&element)),
        }
    }
    Ok(changes)
}

pub(super) fn no_merge_key(key: &str, element: Object) -> PatchError {
    PatchError::Internal(format!(
        "map: {} does not contain declared merge key: {key}",
        go_text(&Value::Object(element))
    ))
}

fn not_an_element(element: &Value) -> PatchError {
    if element.is_array() {
        return PatchError::Unprocessable { detail: "lists of lists are not supported".to_owned() };
    }
    PatchError::Internal(format!("list element types are not identical: {}", go_text(element)))
}

// === impl ListKey ===

impl ListKey {
    fn id(self, element: &Value) -> &Value {
        match self {
            Self::Member(key) => element.get(key).unwrap_or(&Value::Null),
            Self::Itself => element,
        }
    }

    pub(super) fn ids(self, list: &[Value]) -> Vec<Value> {
        list.iter().map(|element| self.id(element).clone()).collect()
    }
}

// === impl Rule ===

impl Rule {
    /// Returns the identity of a list's elements; `None` if the list is replaced.
    pub(super) fn list_key(self) -> Option<ListKey> {
        match self {
            Self::ListByKey(key, _) => Some(ListKey::Member(key)),
            Self::Set => Some(ListKey::Itself),
            Self::Plain | Self::Object(_) | Self::Whole => None,
        }
    }
}
