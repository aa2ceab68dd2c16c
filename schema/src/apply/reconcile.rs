//! The update of recorded sets after a type became atomic.

use super::atom::{Atom, Type};
use crate::field_set::{FieldSet, PathElement};

/// Replaces members below a value that is atomic by the value itself; `None` if there are none.
///
/// This happens when a new version of a schema makes a list or an object atomic. The opposite
/// change needs nothing: the owner of the complete value keeps it until the next apply.
pub(crate) fn reconcile(of: Type<'_>, set: &FieldSet) -> Option<FieldSet> {
    if of.is_deduced() {
        return None;
    }
    let atom = of.atom(None);
    let mut changed = false;
    let mut result = FieldSet::new();
    for (element, member, children) in set.entries() {
        let below = match (&atom, element) {
            (Atom::Map(map), PathElement::Field(name)) => map.field(name).map(|field| field.of),
            (Atom::List(list), _) => Some(list.item),
            _ => None,
        };
        let below = below.filter(|_| !children.is_empty());
        if below.is_some_and(is_atomic) {
            changed = true;
            result.graft(element.clone(), FieldSet::new(), true);
            continue;
        }
        let reconciled = below.and_then(|below| reconcile(below, children));
        changed |= reconciled.is_some();
        let children = reconciled.unwrap_or_else(|| children.clone());
        result.graft(element.clone(), children, member);
    }
    changed.then_some(result)
}

fn is_atomic(of: Type<'_>) -> bool {
    if of.is_deduced() {
        return false;
    }
    match of.atom(None) {
        Atom::Scalar(_) => false,
        Atom::List(list) => list.is_atomic(),
        Atom::Map(map) => map.atomic,
    }
}
