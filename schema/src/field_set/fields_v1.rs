//! The encoding `FieldsV1`: nested objects whose names are path elements; `.` marks a path that is
//! a member and has children.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::{FieldSet, PathElement, PathElementError};

/// The reason why a value is not `FieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsV1Error {
    /// A value in it is neither an object nor null.
    #[error("fieldsV1: expected an object, got {0}")]
    NotAnObject(Value),
    /// A name in it is not a path element.
    #[error("fieldsV1: {0}")]
    Element(#[from] PathElementError),
}

/// A node of a set, which is encoded.
pub(crate) struct Encoded<'s> {
    pub(crate) children: &'s FieldSet,
    /// True if the path to the children is a member, too.
    pub(crate) is_member: bool,
}

// === impl Encoded ===

impl Serialize for Encoded<'_> {
    /// Sorts the members by name, as in a [`Value`].
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut nodes: Vec<(String, Encoded<'_>)> = self
            .children
            .entries()
            .map(|(element, is_member, children)| {
                (element.to_fields_v1(), Encoded { children, is_member })
            })
            .collect();
        nodes.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut members = serializer.serialize_map(None)?;
        if self.is_member && !nodes.is_empty() {
            members.serialize_entry(".", &Map::new())?;
        }
        for (name, node) in &nodes {
            members.serialize_entry(name, node)?;
        }
        members.end()
    }
}

pub(super) fn decode(value: &Value) -> Result<FieldSet, FieldsV1Error> {
    Ok(decode_node(value)?.1)
}

/// Returns whether the path to the value is a member, and the members below it.
fn decode_node(value: &Value) -> Result<(bool, FieldSet), FieldsV1Error> {
    let members = match value {
        Value::Null => return Ok((true, FieldSet::new())),
        Value::Object(members) => members,
        other => return Err(FieldsV1Error::NotAnObject(other.clone())),
    };
    let (mut member, mut children) = (false, FieldSet::new());
    for (name, below) in members {
        if name == "." {
            member = true;
            continue;
        }
        match PathElement::parse(name) {
            Ok(element) => {
                let (child_is_member, below) = decode_node(below)?;
                children.graft(element, below, child_is_member);
            }
            Err(PathElementError::UnknownType) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // A node without children stands for itself.
    member |= children.is_empty();
    Ok((member, children))
}
