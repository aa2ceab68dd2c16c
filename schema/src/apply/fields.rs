//! The fields that a value has.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::atom::{Atom, ListAtom, MapAtom, Type};
use super::errors::TypeErrors;
use super::items::item_element;
use crate::field_set::{FieldSet, PathElement};

/// Returns the paths that a manager owns who applies the value: upstream's `ToFieldSet`.
///
/// # Errors
///
/// If an item of a list has no identity.
pub(crate) fn field_set(of: Type<'_>, value: &Value) -> Result<FieldSet, TypeErrors> {
    Ok(collect(of, value)?.set)
}

/// Returns the paths that a manager owns who applies the object.
///
/// # Errors
///
/// If an item of a list has no identity.
pub(crate) fn object_fields(
    of: Type<'_>,
    object: &Map<String, Value>,
) -> Result<FieldSet, TypeErrors> {
    match of.atom(None) {
        Atom::Map(map) => collect_fields(&map, object),
        _ => Ok(FieldSet::new()),
    }
}

/// The fields of a value.
struct Fields {
    /// True if the path to the value itself is a member: it is a scalar or atomic.
    is_leaf: bool,
    set: FieldSet,
}

fn collect(of: Type<'_>, value: &Value) -> Result<Fields, TypeErrors> {
    let mut set = FieldSet::new();
    match of.atom(Some(value)) {
        Atom::Scalar(_) => return Ok(Fields { is_leaf: true, set }),
        Atom::List(list) if list.is_atomic() => return Ok(Fields { is_leaf: true, set }),
        Atom::Map(map) if map.atomic => return Ok(Fields { is_leaf: true, set }),
        Atom::List(list) => {
            for (element, items) in by_element(&list, value)? {
                let mut below = FieldSet::new();
                // Items that occur twice have one owner together.
                if let [only] = items[..] {
                    let fields = collect(list.item, only);
                    below = fields.map_err(|errors| at(&element, errors))?.set;
                }
                set.graft(element, below, true);
            }
        }
        Atom::Map(map) => {
            if let Value::Object(fields) = value {
                set = collect_fields(&map, fields)?;
            }
        }
    }
    Ok(Fields { is_leaf: false, set })
}

fn collect_fields(map: &MapAtom<'_>, object: &Map<String, Value>) -> Result<FieldSet, TypeErrors> {
    let mut set = FieldSet::new();
    for (name, value) in object {
        let Some(field) = map.field(name) else { continue };
        let element = PathElement::field(name.as_str());
        let fields = collect(field.of, value).map_err(|errors| at(&element, errors))?;
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let member = fields.is_leaf || is_empty || !field.declared;
        set.graft(element, fields.set, member);
    }
    Ok(set)
}

/// Returns the paths of all values below a value: objects and lists are members, too.
///
/// A list whose items have no identity is an error, and has no members.
pub(super) fn all_below(of: Type<'_>, value: &Value, errors: &mut TypeErrors) -> FieldSet {
    let mut set = FieldSet::new();
    let mut add = |of, element: PathElement, value: Option<&Value>, errors: &mut TypeErrors| {
        let mut below = TypeErrors::new();
        let children = value.map(|value| all_below(of, value, &mut below));
        errors.extend(&element, below);
        set.graft(element, children.unwrap_or_default(), true);
    };
    match (of.atom(Some(value)), value) {
        (Atom::Map(map), Value::Object(fields)) if !map.atomic => {
            for (name, value) in fields {
                let Some(field) = map.field(name) else { continue };
                add(field.of, PathElement::field(name.as_str()), Some(value), errors);
            }
        }
        (Atom::List(list), Value::Array(_)) if !list.is_atomic() => {
            match by_element(&list, value) {
                Ok(grouped) => {
                    for (element, items) in grouped {
                        // Items that occur twice have one owner together.
                        let only = (items.len() == 1).then(|| items[0]);
                        add(list.item, element, only, errors);
                    }
                }
                Err(below) => errors.extend(&"", below),
            }
        }
        _ => {}
    }
    set
}

/// Groups the items of a list by their identity.
pub(super) fn by_element<'v>(
    list: &ListAtom<'_>,
    value: &'v Value,
) -> Result<BTreeMap<PathElement, Vec<&'v Value>>, TypeErrors> {
    let mut errors = TypeErrors::new();
    let mut grouped: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        match item_element(list, item) {
            Ok(element) => grouped.entry(element).or_default().push(item),
            Err(reason) => errors.push(format!("element {index}: {reason}")),
        }
    }
    errors.into_result(grouped)
}

fn at(element: &PathElement, errors: TypeErrors) -> TypeErrors {
    let mut prefixed = TypeErrors::new();
    prefixed.extend(element, errors);
    prefixed
}

/// Adds the declared fields that only have members below them: upstream's
/// `EnsureNamedFieldsAreMembers`.
///
/// An object that a schema names exists only for its fields, so who owned the last of them owned
/// the object.
pub(crate) fn named_fields_as_members(of: Option<Type<'_>>, set: &FieldSet) -> FieldSet {
    // Deduced rules depend on a value, and there is none here: such a type declares no field.
    let atom = of.filter(|of| !of.is_deduced()).map(|of| of.atom(None));
    let mut named = FieldSet::new();
    for (element, member, children) in set.entries() {
        let (below, declared) = match (&atom, element) {
            (Some(Atom::Map(map)), PathElement::Field(name)) => {
                let field = map.field(name);
                (field.map(|field| field.of), field.is_some_and(|field| field.declared))
            }
            (Some(Atom::List(list)), PathElement::Key(_)) => (Some(list.item), false),
            _ => (None, false),
        };
        let member = member || (declared && !children.is_empty());
        named.graft(element.clone(), named_fields_as_members(below, children), member);
    }
    named
}
