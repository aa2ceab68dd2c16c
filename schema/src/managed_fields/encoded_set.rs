//! Reads a set in the encoding `FieldsV1` beside the fields that a write changes, without decoding
//! it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::apply::{Type, is_atomic, type_below};
use crate::field_set::is_encoded_member;

/// The expected members of an encoded set, or of the part of it below a path. Both sets are
/// encoded, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'s> {
    /// The members that it must have.
    pub(super) wanted: Option<&'s Value>,
    /// The members that it must not have, in two sets.
    pub(super) excluded: [Option<&'s Value>; 2],
}

/// Reads a set, and fails if it is not as expected, or not current: if it has members below a value
/// that is atomic.
struct Check<'s> {
    expected: Expected<'s>,
    of: Option<Type<'s>>,
}

/// A node of a set.
struct Node {
    is_member: bool,
    has_children: bool,
}

/// The name of a member.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

// === impl Expected ===

impl<'s> Expected<'s> {
    /// Returns whether an encoded set of the type has members, is as expected and current.
    pub(super) fn is_met_by(self, set: &str, of: Type<'s>) -> bool {
        let check = Check { expected: self, of: Some(of) };
        let node = check.deserialize(&mut serde_json::Deserializer::from_str(set));
        node.is_ok_and(|node| node.has_children)
    }

    fn below(self, name: &str) -> Self {
        let below = |set: Option<&'s Value>| set?.get(name);
        Self { wanted: below(self.wanted), excluded: self.excluded.map(below) }
    }

    fn is_met_by_node(self, node: &Node) -> bool {
        let is_excluded = || self.excluded.into_iter().flatten().any(is_encoded_member);
        self.wanted.is_none_or(|wanted| node.is_member || !is_encoded_member(wanted))
            && !(node.is_member && is_excluded())
    }
}

// === impl Check ===

impl Check<'_> {
    /// Returns the number of children that the node must have.
    fn wanted_children(&self) -> usize {
        let members = self.expected.wanted.and_then(Value::as_object);
        members.map_or(0, |members| members.keys().filter(|name| *name != ".").count())
    }
}

impl<'de> DeserializeSeed<'de> for Check<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Check<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let (mut is_member, mut has_children, mut found) = (false, false, 0);
        while let Some(Name(name)) = members.next_key()? {
            if name == "." {
                is_member = true;
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            has_children = true;
            let expected = self.expected.below(&name);
            let of = self.of.and_then(|of| type_below(of, name.strip_prefix("f:")));
            let child = members.next_value_seed(Check { expected, of })?;
            let is_current = !child.has_children || !of.is_some_and(is_atomic);
            if !is_current || !expected.is_met_by_node(&child) {
                return Err(Error::custom("the set is not as expected"));
            }
            found += usize::from(expected.wanted.is_some());
        }
        if found < self.wanted_children() {
            return Err(Error::custom("the set does not have all wanted members"));
        }
        // A node without children stands for itself.
        Ok(Node { is_member: is_member || !has_children, has_children })
    }
}
