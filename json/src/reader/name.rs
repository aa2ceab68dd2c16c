//! [`Name`]: the name of a member, or of a variant.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::{Reader, Result, Unfit};

/// The name of a member.
pub(super) struct Name<'a, 'de>(&'a mut Reader<'de>);

// === impl Name ===

impl<'a, 'de> Name<'a, 'de> {
    /// Reads the next string of `reader` as a name.
    pub(super) fn new(reader: &'a mut Reader<'de>) -> Self {
        Self(reader)
    }
}

/// A name is read as a string, whatever the type asks for.
impl<'de> Deserializer<'de> for Name<'_, 'de> {
    type Error = Unfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.0.string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let (text, has_escape) = self.0.quoted()?;
        if !has_escape {
            let name_only = BorrowedStrDeserializer::new(&text[1..text.len() - 1]);
            return name_only.deserialize_enum(name, variants, visitor);
        }
        let text: String = serde_json::from_str(text).map_err(|_| Unfit)?;
        text.into_deserializer().deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
