//! The update of recorded sets after a type became atomic.

use super::atom::{Atom, Type};
use crate::field_set::{FieldSet, PathElement};

/// Replaces members below a value that is atomic by the value itself; `None` if there are none.
///
/// This happens when a new version of a schema makes a list or an object atomic. The opposite
/// change needs nothing: the owner of the complete value keeps it until the next apply.
pub(crate) fn reconcile(of: Type<'_>, set: &FieldSet) -> Option<FieldSet> {
    (!is_current(of, set)).then(|| reconciled(of, set))
}

/// Returns true if no member is below a value that is atomic.
fn is_current(of: Type<'_>, set: &FieldSet) -> bool {
    set.entries().all(|(element, _, children)| {
        children.is_empty()
            || type_below(of, field_name(element))
                .is_none_or(|below| !is_atomic(below) && is_current(below, children))
    })
}

fn reconciled(of: Type<'_>, set: &FieldSet) -> FieldSet {
    let mut result = FieldSet::new();
    for (element, member, children) in set.entries() {
        match type_below(of, field_name(element)).filter(|_| !children.is_empty()) {
            Some(below) if is_atomic(below) => {
                result.graft(element.clone(), FieldSet::new(), true);
            }
            Some(below) => result.graft(element.clone(), reconciled(below, children), member),
            None => result.graft(element.clone(), children.clone(), member),
        }
    }
    result
}

fn field_name(element: &PathElement) -> Option<&str> {
    if let PathElement::Field(name) = element { Some(name) } else { None }
}

/// Returns the declared type of a field, or of an item, which has no name.
pub(crate) fn type_below<'a>(of: Type<'a>, name: Option<&str>) -> Option<Type<'a>> {
    if of.is_deduced() {
        return None;
    }
    match (of.atom(None), name) {
        (Atom::Map(map), Some(name)) => map.field(name).map(|field| field.of),
        (Atom::List(list), _) => Some(list.item),
        _ => None,
    }
}

/// Returns true if a declared type has one owner for the complete value.
pub(crate) fn is_atomic(of: Type<'_>) -> bool {
    if of.is_deduced() {
        return false;
    }
    match of.atom(None) {
        Atom::Scalar(_) => false,
        Atom::List(list) => list.is_atomic(),
        Atom::Map(map) => map.atomic,
    }
}
