//! The difference between two values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::atom::{Atom, ListAtom, MapAtom, ScalarKind, Type};
use super::errors::TypeErrors;
use super::fields::{all_below, by_element};
use super::members::Members;
use super::validate::{Duplicates, check_scalar, undeclared, validate};
use crate::field_set::{FieldSet, NO_FIELDS, PathElement, equal_values};

/// The difference between two values. No path is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Fields that only the new value has.
    pub(crate) added: FieldSet,
    /// Fields whose values differ.
    pub(crate) modified: FieldSet,
    /// Fields that only the old value has.
    pub(crate) removed: FieldSet,
}

/// The difference between two values, with that of the path to them.
#[derive(Default)]
struct Difference {
    below: Comparison,
    own: Option<Change>,
}

/// The changes and errors of the parts of a value, as they are collected.
struct Parts<'e> {
    changes: &'e mut Comparison,
    errors: &'e mut TypeErrors,
    /// True if new values that differ from the old ones must fit their types.
    checks: bool,
    /// The members of an object that are not compared.
    ignored: &'e FieldSet,
}

/// The change of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Modified,
    Removed,
}

/// Compares two objects.
///
/// # Errors
///
/// If an item of a list has no identity, or neither value fits its type.
pub(crate) fn compare(
    of: Type<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Result<Comparison, TypeErrors> {
    compare_with((false, &NO_FIELDS), of, old, new)
}

/// Compares an object that fits the type with a new one, and checks what the new one changes,
/// without the `ignored` members that both have.
///
/// # Errors
///
/// If an item of a list has no identity, or the new object does not fit the type.
pub(crate) fn compare_checked(
    of: Type<'_>,
    ignored: &FieldSet,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Result<Comparison, TypeErrors> {
    compare_with((true, ignored), of, old, new)
}

fn compare_with(
    (checks, ignored): (bool, &FieldSet),
    of: Type<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Result<Comparison, TypeErrors> {
    let (mut changes, mut errors) = (Comparison::default(), TypeErrors::new());
    if let Atom::Map(map) = of.atom(None) {
        let parts = &mut Parts { changes: &mut changes, errors: &mut errors, checks, ignored };
        compare_fields(&map, Some(old), Some(new), parts);
    }
    errors.into_result(changes)
}

// === impl Comparison ===

impl Comparison {
    /// Returns the fields that the new value sets.
    pub(crate) fn written(&self) -> FieldSet {
        self.modified.union(&self.added)
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    fn set_of(&mut self, change: Change) -> &mut FieldSet {
        match change {
            Change::Added => &mut self.added,
            Change::Modified => &mut self.modified,
            Change::Removed => &mut self.removed,
        }
    }

    fn insert(&mut self, element: PathElement, change: Change) {
        self.set_of(change).insert_element(element);
    }

    /// Adds the difference of a part.
    fn graft(&mut self, element: PathElement, part: Difference) {
        if let (Some(change), true) = (part.own, part.below.is_empty()) {
            return self.insert(element, change);
        }
        let Self { added, modified, removed } = part.below;
        let sets =
            [(added, Change::Added), (modified, Change::Modified), (removed, Change::Removed)];
        for (below, change) in sets {
            let is_member = part.own == Some(change);
            if is_member || !below.is_empty() {
                self.set_of(change).graft(element.clone(), below, is_member);
            }
        }
    }
}

// === impl Difference ===

impl Difference {
    /// Sets the change of a value that only one object has, and of all values below it.
    fn set(&mut self, change: Change, below: FieldSet) {
        self.own = Some(change);
        *self.below.set_of(change) = below;
    }
}

// === impl Parts ===

impl Parts<'_> {
    fn ignores(&self, name: &str) -> bool {
        // They are few: a search would first copy the name.
        self.ignored.entries().any(|(element, is_member, _)| {
            is_member && matches!(element, PathElement::Field(field) if field == name)
        })
    }

    fn compare(
        &mut self,
        of: Type<'_>,
        element: PathElement,
        old: Option<&Value>,
        new: Option<&Value>,
    ) {
        let mut below = TypeErrors::new();
        let part = difference(self.checks, of, old, new, &mut below);
        self.errors.extend(&element, below);
        self.changes.graft(element, part);
    }
}

/// Returns the difference between values that are not equal.
fn difference(
    checks: bool,
    of: Type<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    errors: &mut TypeErrors,
) -> Difference {
    let checks = check_value(checks, of, old, new, errors);
    let mut result = Difference::default();
    match (old, new) {
        (Some(old), Some(new)) => {
            if !of.has_same_atom(old, new) {
                with_atom((of.atom(Some(old)), checks), old, new, errors, &mut result);
            }
            with_atom((of.atom(Some(new)), checks), old, new, errors, &mut result);
        }
        (None, Some(value)) => result.set(Change::Added, all_below(of, value, errors)),
        (Some(value), None) => result.set(Change::Removed, all_below(of, value, errors)),
        (None, None) => {}
    }
    result
}

/// Checks a new value as a whole, unless it is an object whose members are compared one by one.
/// Returns true if its parts are still to be checked.
fn check_value(
    checks: bool,
    of: Type<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    errors: &mut TypeErrors,
) -> bool {
    let Some(new) = new.filter(|_| checks && !of.is_deduced()) else {
        return false;
    };
    if let (Atom::Map(map), Some(Value::Object(_)), Value::Object(_)) =
        (of.atom(Some(new)), old, new)
        && !map.atomic
    {
        return true;
    }
    let below = validate(of, new, Duplicates::Allowed).err();
    errors.extend(&"", below.unwrap_or_default());
    false
}

/// Adds the difference by the rules of `atom`. A value that does not fit them counts as empty.
fn with_atom(
    (atom, checks): (Atom<'_>, bool),
    old: &Value,
    new: &Value,
    errors: &mut TypeErrors,
    into: &mut Difference,
) {
    let is_leaf = match atom {
        Atom::Scalar(kind) => {
            if !fits_either(kind, Some(old), Some(new), errors) {
                return;
            }
            true
        }
        Atom::List(list) => {
            list.is_atomic() || (is_empty_list(Some(old)) && is_empty_list(Some(new)))
        }
        Atom::Map(map) => map.atomic || (is_empty_map(Some(old)) && is_empty_map(Some(new))),
    };
    if is_leaf {
        into.own = (!equal_values(old, new)).then_some(Change::Modified);
        return;
    }
    let parts = &mut Parts { changes: &mut into.below, errors, checks, ignored: &NO_FIELDS };
    match atom {
        Atom::Scalar(_) => {}
        Atom::List(list) => compare_items(&list, old, new, parts),
        Atom::Map(map) => compare_fields(&map, old.as_object(), new.as_object(), parts),
    }
}

/// Checks that one of two scalars fits its type; adds the errors of both otherwise.
pub(super) fn fits_either(
    kind: ScalarKind,
    old: Option<&Value>,
    new: Option<&Value>,
    errors: &mut TypeErrors,
) -> bool {
    let mut found = TypeErrors::new();
    let mut sides = 0;
    for (side, value) in [("lhs: ", old), ("rhs: ", new)] {
        let mut wrong = TypeErrors::new();
        if let Some(value) = value {
            check_scalar(kind, value, side, &mut wrong);
        }
        sides += usize::from(!wrong.is_empty());
        found.extend(&"", wrong);
    }
    if sides == 2 {
        errors.extend(&"", found);
    }
    sides < 2
}

pub(super) fn is_empty_list(value: Option<&Value>) -> bool {
    value.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

pub(super) fn is_empty_map(value: Option<&Value>) -> bool {
    value.and_then(Value::as_object).is_none_or(Map::is_empty)
}

fn compare_fields(
    map: &MapAtom<'_>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    parts: &mut Parts<'_>,
) {
    let (mut olds, mut shared) = (Members::of(old), 0);
    for (name, new) in new.into_iter().flatten() {
        let old = olds.find(name);
        shared += usize::from(old.is_some());
        if (old.is_some() && parts.ignores(name)) || old == Some(new) {
            continue;
        }
        match map.field(name) {
            Some(field) => {
                parts.compare(field.of, PathElement::field(name.as_str()), old, Some(new));
            }
            None if parts.checks => {
                parts.errors.extend(&PathElement::field(name.as_str()), undeclared());
            }
            None => {}
        }
    }
    if old.is_none_or(|old| old.len() == shared) {
        return;
    }
    let removed = old.into_iter().flatten();
    for (name, old) in removed.filter(|(name, _)| new.is_none_or(|new| !new.contains_key(*name))) {
        if let Some(field) = map.field(name) {
            parts.compare(field.of, PathElement::field(name.as_str()), Some(old), None);
        }
    }
}

fn compare_items<'v>(list: &ListAtom<'_>, old: &'v Value, new: &'v Value, parts: &mut Parts<'_>) {
    let mut grouped = |value| {
        by_element(list, value).unwrap_or_else(|below| {
            parts.errors.extend(&"", below);
            BTreeMap::new()
        })
    };
    let (old, mut new) = (grouped(old), grouped(new));
    for (element, old) in old {
        let new = new.remove(&element).unwrap_or_default();
        compare_item(list, element, &old, &new, parts);
    }
    for (element, new) in new {
        compare_item(list, element, &[], &new, parts);
    }
}

/// Compares the items that have one identity. Items that occur twice are compared as one value.
fn compare_item(
    list: &ListAtom<'_>,
    element: PathElement,
    old: &[&Value],
    new: &[&Value],
    parts: &mut Parts<'_>,
) {
    let is_repeated = |items: &[&Value]| items.len() > 1;
    let (old_item, new_item) = (old.first().copied(), new.first().copied());
    let (old_item, new_item) = match (is_repeated(old), is_repeated(new)) {
        (false, false) => (old_item, new_item),
        (true, true) => {
            let equal = old.len() == new.len()
                && old.iter().zip(new).all(|(old, new)| equal_values(old, new));
            if !equal {
                parts.changes.insert(element, Change::Modified);
            }
            return;
        }
        (true, false) => {
            parts.changes.insert(element.clone(), Change::Removed);
            (None, new_item)
        }
        (false, true) => {
            parts.changes.insert(element.clone(), Change::Added);
            (old_item, None)
        }
    };
    if old_item == new_item {
        return;
    }
    parts.compare(list.item, element, old_item, new_item);
}
