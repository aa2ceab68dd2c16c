//! [`Parts`]: an array, an object or an enum, part by part.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::name::Name;
use super::{Reader, Result, Unfit};

/// The elements of an array, or the members of an object.
pub(super) struct Parts<'a, 'de> {
    reader: &'a mut Reader<'de>,
    /// The bracket at the end.
    bracket: u8,
    place: Place,
}

/// The number of open arrays and objects within the items of a list.
const DEPTH_OF_ITEMS: u32 = 2;

/// The position of [`Parts`].
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// After the bracket at the start.
    Start,
    /// After a part.
    Within,
    /// After the bracket at the end.
    End,
}

// === impl Parts ===

impl<'a, 'de> Parts<'a, 'de> {
    /// Starts after the bracket at the start.
    pub(super) fn new(reader: &'a mut Reader<'de>, bracket: u8) -> Self {
        Self { reader, bracket, place: Place::Start }
    }

    /// Moves before the next part. Returns false if there is none: the end was read.
    #[inline]
    fn next(&mut self) -> Result<bool> {
        if self.place == Place::End {
            return Ok(false);
        }
        let is_start = self.place == Place::Start;
        let next = self.reader.first()?;
        let ends = next == self.bracket;
        self.place = if ends { Place::End } else { Place::Within };
        if ends || !is_start {
            self.reader.scanner.byte();
        }
        if ends || is_start || next == b',' { Ok(!ends) } else { Err(Unfit) }
    }

    /// Reads the bracket at the end, unless it was read.
    ///
    /// # Errors
    ///
    /// If a part is left.
    pub(super) fn end(&mut self) -> Result<()> {
        if self.next()? { Err(Unfit) } else { Ok(()) }
    }
}

impl<'de> SeqAccess<'de> for &mut Parts<'_, 'de> {
    type Error = Unfit;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if !self.next()? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    /// Returns the number of elements, before the first one was read. The items of a list are not
    /// counted if a long text follows: they are most of it.
    fn size_hint(&self) -> Option<usize> {
        let scanner = &self.reader.scanner;
        let is_list = self.reader.depth <= DEPTH_OF_ITEMS && scanner.is_far_from_end();
        let is_start = self.place == Place::Start;
        (is_start && !is_list).then(|| scanner.clone().element_count())?
    }
}

impl<'de> MapAccess<'de> for &mut Parts<'_, 'de> {
    type Error = Unfit;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        if !self.next()? {
            return Ok(None);
        }
        seed.deserialize(Name::new(self.reader)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        self.reader.scanner.expect(b':').ok_or(Unfit)?;
        seed.deserialize(&mut *self.reader)
    }
}

/// The variant of an enum is the only member of an object.
impl<'de> EnumAccess<'de> for &mut Parts<'_, 'de> {
    type Error = Unfit;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self)> {
        if !self.next()? {
            return Err(Unfit);
        }
        let variant = seed.deserialize(Name::new(self.reader))?;
        self.reader.scanner.expect(b':').ok_or(Unfit)?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Parts<'_, 'de> {
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
