//! The encoding `FieldsV1`: nested objects whose names are path elements; `.` marks a path that is
//! a member and has children.

use serde_json::{Map, Value};

use super::{FieldSet, Node, PathElement, PathElementError};

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

/// Returns the set as a value.
pub(super) fn encode(set: &FieldSet) -> Value {
    encode_node(false, set)
}

/// Encodes a node; `is_member` is true if the path to it is a member.
fn encode_node(is_member: bool, children: &FieldSet) -> Value {
    let mut members = Map::new();
    if is_member && !children.is_empty() {
        members.insert(".".to_owned(), Value::Object(Map::new()));
    }
    for (element, node) in &children.nodes {
        members.insert(element.to_fields_v1(), encode_node(node.member, &node.children));
    }
    Value::Object(members)
}

/// Appends the set as JSON text: the members sort by name, as in a [`Value`].
pub(super) fn write(set: &FieldSet, text: &mut String) {
    write_node(false, set, text);
}

fn write_node(is_member: bool, children: &FieldSet, text: &mut String) {
    if children.is_empty() {
        return text.push_str("{}");
    }
    text.push_str(if is_member { r#"{".":{}"# } else { "{" });
    if let Some(PathElement::Field(_)) = children.nodes.keys().next_back() {
        // Fields sort before other elements, and have the order of their names.
        for (element, node) in &children.nodes {
            let PathElement::Field(name) = element else { continue };
            write_member("f:", name, node, text);
        }
    } else {
        let named = children.nodes.iter().map(|(element, node)| (element.to_fields_v1(), node));
        let mut named: Vec<(String, &Node)> = named.collect();
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, node) in named {
            write_member("", &name, node, text);
        }
    }
    text.push('}');
}

fn write_member(prefix: &str, name: &str, node: &Node, text: &mut String) {
    if !text.ends_with('{') {
        text.push(',');
    }
    write_quoted(prefix, name, text);
    text.push(':');
    write_node(node.member, &node.children, text);
}

/// Appends a JSON string of a prefix, which needs no escape, and a rest.
pub(crate) fn write_quoted(prefix: &str, rest: &str, text: &mut String) {
    let needs_escape = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\');
    text.push('"');
    text.push_str(prefix);
    if rest.bytes().any(needs_escape) {
        let quoted = serde_json::to_string(rest).expect("a text is JSON");
        text.push_str(&quoted[1..]);
    } else {
        text.push_str(rest);
        text.push('"');
    }
}

pub(super) fn decode(value: &Value) -> Result<FieldSet, FieldsV1Error> {
    Ok(decode_node(value)?.1)
}

/// Returns true if the path to the value is a member, and the members below it.
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
