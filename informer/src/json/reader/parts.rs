//! [`Parts`]: an array, an object or an enum, part by part.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::name::Name;
use super::{Reader, Result, Unfit};

/// The elements of an array, or the members of an object.
pub(super) struct Parts<'a, 'de, 'o> {
    reader: &'a mut Reader<'de, 'o>,
    /// The number of parts that were not read yet.
    left: usize,
}

// === impl Parts ===

impl<'a, 'de, 'o> Parts<'a, 'de, 'o> {
    /// Starts before the first of `count` parts.
    pub(super) fn new(reader: &'a mut Reader<'de, 'o>, count: usize) -> Self {
        Self { reader, left: count }
    }

    /// Counts a part as read. Returns false if there is none.
    fn take(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left -= usize::from(is_left);
        is_left
    }
}

impl<'de> SeqAccess<'de> for &mut Parts<'_, 'de, '_> {
    type Error = Unfit;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if !self.take() {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for &mut Parts<'_, 'de, '_> {
    type Error = Unfit;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if !self.take() {
            return Ok(None);
        }
        seed.deserialize(Name::new(self.reader)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.reader)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The variant of an enum is the only member of an object.
impl<'de> EnumAccess<'de> for &mut Parts<'_, 'de, '_> {
    type Error = Unfit;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        if !self.take() {
            return Err(Unfit);
        }
        let variant = seed.deserialize(Name::new(self.reader))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Parts<'_, 'de, '_> {
    type Error = Unfit;

    fn unit_variant(self) -> Result<()> {
        self.reader.null(serde::de::IgnoredAny).map(drop)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value> {
        seed.deserialize(&mut *self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value> {
        self.reader.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.reader.deserialize_struct("", fields, visitor)
    }
}
