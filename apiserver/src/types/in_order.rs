//! JSON with the members of each object in the order of the text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value, json};

/// A value that is searched for members of wrong types.
pub(super) trait Tree: PartialEq + Sized {
    /// Returns the members, if this is an object.
    fn members(&self) -> Option<impl DoubleEndedIterator<Item = (&str, &Self)>>;

    /// Returns a member of an object.
    fn member(&self, name: &str) -> Option<&Self>;

    /// Returns the items, if this is a list.
    fn items(&self) -> Option<&[Self]>;

    /// Returns the value. The objects and lists of a tree in order are empty there.
    fn value(&self) -> Cow<'_, Value>;
}

/// A value of a text: an object has its members in the order of the text, a repeated one each time.
#[derive(Debug, PartialEq)]
pub(crate) enum InOrder {
    Object(Vec<(String, Self)>),
    List(Vec<Self>),
    Scalar(Value),
}

// === impl Tree ===

impl Tree for Value {
    fn members(&self) -> Option<impl DoubleEndedIterator<Item = (&str, &Self)>> {
        Some(self.as_object()?.iter().map(|(name, value)| (name.as_str(), value)))
    }

    fn member(&self, name: &str) -> Option<&Self> {
        self.get(name)
    }

    fn items(&self) -> Option<&[Self]> {
        self.as_array().map(Vec::as_slice)
    }

    fn value(&self) -> Cow<'_, Value> {
        Cow::Borrowed(self)
    }
}

impl Tree for InOrder {
    fn members(&self) -> Option<impl DoubleEndedIterator<Item = (&str, &Self)>> {
        let Self::Object(members) = self else { return None };
        Some(members.iter().map(|(name, value)| (name.as_str(), value)))
    }

    fn member(&self, name: &str) -> Option<&Self> {
        self.members()?.rev().find_map(|(known, value)| (known == name).then_some(value))
    }

    fn items(&self) -> Option<&[Self]> {
        let Self::List(items) = self else { return None };
        Some(items)
    }

    fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Object(_) => Cow::Owned(json!({})),
            Self::List(_) => Cow::Owned(json!([])),
            Self::Scalar(value) => Cow::Borrowed(value),
        }
    }
}

// === impl InOrder ===

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InOrderVisitor)
    }
}

struct InOrderVisitor;

impl<'de> Visitor<'de> for InOrderVisitor {
    type Value = InOrder;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<InOrder, E> {
        Ok(InOrder::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<InOrder, E> {
        Ok(InOrder::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<InOrder, E> {
        Ok(InOrder::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<InOrder, E> {
        Ok(InOrder::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<InOrder, E> {
        Ok(InOrder::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<InOrder, E> {
        Ok(InOrder::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<InOrder, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(InOrder::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<InOrder, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(InOrder::Object(object))
    }
}
