//! The types that several values have in common, and those that fit a signature.

use std::collections::HashMap;

use super::types::Type;

/// Returns the type of values that may differ: `Dyn` if they do, `Empty` if there are none.
pub(super) fn common(types: Vec<Type>) -> Type {
    let mut types = types.into_iter();
    let Some(first) = types.next() else { return Type::Empty };
    types.fold(first, |before, next| merged(&before, &next).unwrap_or(Type::Dyn))
}

/// Returns the type that both values fit.
pub(super) fn merged(a: &Type, b: &Type) -> Option<Type> {
    let mut bound = HashMap::new();
    if *a == Type::Dyn || *b == Type::Dyn {
        return Some(Type::Dyn);
    }
    let parameter = Type::Parameter('A');
    let fits = unify(&parameter, a, &mut bound) && unify(&parameter, b, &mut bound);
    fits.then(|| substitute(&parameter, &bound))
}

/// Returns true if a value of the type `found` fits `wanted`; binds the parameters in `wanted`.
pub(super) fn unify(wanted: &Type, found: &Type, bound: &mut HashMap<char, Type>) -> bool {
    match (wanted, found) {
        (Type::Parameter(name), found) => match bound.get(name).cloned() {
            None => {
                bound.insert(*name, found.clone());
                true
            }
            Some(before) => {
                let joined = join(&before, found, bound);
                joined.map(|joined| bound.insert(*name, joined)).is_some()
            }
        },
        (Type::Dyn | Type::Any | Type::Empty, _) | (_, Type::Dyn | Type::Any | Type::Empty) => true,
        (Type::Null, other) | (other, Type::Null) if other.may_be_null() => true,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
            unify(a, b, bound)
        }
        (Type::Map(a, x), Type::Map(b, y)) => unify(a, b, bound) && unify(x, y, bound),
        (a, b) => a == b,
    }
}

/// Returns the type of a parameter that two values have.
fn join(before: &Type, found: &Type, bound: &mut HashMap<char, Type>) -> Option<Type> {
    match (before, found) {
        (Type::Dyn | Type::Any, _) | (_, Type::Empty) => Some(before.clone()),
        (Type::Empty, _) => Some(found.clone()),
        (other, Type::Null) | (Type::Null, other) if other.may_be_null() => Some(before.clone()),
        (Type::List(a), Type::List(b)) => join(a, b, bound).map(Type::list),
        (Type::Optional(a), Type::Optional(b)) => join(a, b, bound).map(Type::optional),
        (Type::Map(a, x), Type::Map(b, y)) => {
            Some(Type::map(join(a, b, bound)?, join(x, y, bound)?))
        }
        _ if unify(found, before, bound) => Some(found.clone()),
        _ => unify(before, found, bound).then(|| before.clone()),
    }
}

pub(super) fn substitute(wanted: &Type, bound: &HashMap<char, Type>) -> Type {
    match wanted {
        Type::Parameter(name) => bound.get(name).cloned().unwrap_or(Type::Dyn),
        Type::List(items) => Type::list(substitute(items, bound)),
        Type::Optional(value) => Type::optional(substitute(value, bound)),
        Type::Map(keys, values) => Type::map(substitute(keys, bound), substitute(values, bound)),
        other => other.clone(),
    }
}
