//! The tree of members that the paths of a projection form.

use std::collections::BTreeMap;

use syn::{Error, Result};

use crate::fields::Field;

/// A member of the object.
pub(crate) enum Member<'a> {
    /// It is decoded into a field.
    Field(&'a Field),
    /// Members inside of it are decoded.
    Inner(BTreeMap<&'a str, Self>),
}

/// Joins the paths. Two fields never share a member, and none is inside of another one.
pub(crate) fn join(fields: &[Field]) -> Result<BTreeMap<&str, Member<'_>>> {
    let mut root = BTreeMap::new();
    for field in fields {
        insert(&mut root, &field.path, field)?;
    }
    Ok(root)
}

fn insert<'a>(
    members: &mut BTreeMap<&'a str, Member<'a>>,
    path: &'a [String],
    field: &'a Field,
) -> Result<()> {
    let conflict = || Error::new(field.text.span(), "another field has this path or a part of it");
    let Some((first, rest)) = path.split_first() else { return Err(conflict()) };
    if rest.is_empty() {
        let taken = members.insert(first.as_str(), Member::Field(field));
        return if taken.is_some() { Err(conflict()) } else { Ok(()) };
    }
    match members.entry(first.as_str()).or_insert_with(|| Member::Inner(BTreeMap::new())) {
        Member::Inner(inner) => insert(inner, rest, field),
        Member::Field(_) => Err(conflict()),
    }
}
