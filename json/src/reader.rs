//! A [`Reader`] decodes a value from its text in one pass, for usual types.
//!
//! It decodes as `serde_json` does, or fails: of valid JSON, what it reads is what `serde_json`
//! would have read. Its error has no message, because the caller lets `serde_json` decode the text
//! again then. It fails where an object does not fit its type, and for what objects of the API do
//! not have: bytes, numbers as names of members, floating-point numbers in untyped values.
//!
//! It takes fewer instructions than `serde_json`: strings are lent to the type, and arrays and
//! objects that the type skips or keeps as text are not read, but only their brackets. It counts
//! the elements of an array before it reads them, unless it is long, so that its vector has no
//! spare capacity: a pod takes 20 % less memory.

mod name;
mod parts;
mod raw;

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, Visitor};

use self::name::Name;
use self::parts::Parts;
use self::raw::{RAW_VALUE, Raw};
use super::scanner::Scanner;

/// A position before a value.
#[derive(Debug)]
pub struct Reader<'de> {
    scanner: Scanner<'de>,
    /// The number of open arrays and objects.
    depth: u32,
}

/// An error: the value does not fit, or is left to `serde_json`.
#[derive(Debug, PartialEq)]
pub struct Unfit;

type Result<T, E = Unfit> = std::result::Result<T, E>;

/// The maximal number of open arrays and objects; `serde_json` accepts 127.
const MOST_OPEN: u32 = 64;

// === impl Reader ===

impl<'de> Reader<'de> {
    /// Starts before the value at the start of `text`.
    pub fn new(text: &'de str) -> Self {
        Self { scanner: Scanner::new(text), depth: 0 }
    }

    /// Returns the number of bytes that were read.
    pub fn position(&self) -> usize {
        self.scanner.position()
    }

    /// Checks that only white space is left.
    ///
    /// # Errors
    ///
    /// If anything else is.
    pub fn end(mut self) -> Result<()> {
        if self.scanner.peek().is_none() { Ok(()) } else { Err(Unfit) }
    }

    /// Returns the first byte of the next value.
    #[inline]
    fn first(&mut self) -> Result<u8> {
        self.scanner.peek().ok_or(Unfit)
    }

    /// Moves after the next value, and returns its text.
    fn skip(&mut self) -> Result<&'de str> {
        self.first()?;
        let start = self.scanner.position();
        self.scanner.skip().ok_or(Unfit)?;
        Ok(self.scanner.since(start))
    }

    /// Moves after a number, `true`, `false` or `null`, and returns its text.
    fn scalar(&mut self) -> Result<&'de str> {
        self.first()?;
        let start = self.scanner.position();
        let first = self.scanner.byte().ok_or(Unfit)?;
        self.scanner.scalar(first).ok_or(Unfit)?;
        Ok(self.scanner.since(start))
    }

    /// Moves after a string, and returns its text with the quotes, and true if it has an escape.
    #[inline]
    fn quoted(&mut self) -> Result<(&'de str, bool)> {
        self.scanner.expect(b'"').ok_or(Unfit)?;
        let start = self.scanner.position() - 1;
        let has_escape = self.scanner.string().ok_or(Unfit)?;
        Ok((self.scanner.since(start), has_escape))
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let (text, has_escape) = self.quoted()?;
        if !has_escape {
            return visitor.visit_borrowed_str(&text[1..text.len() - 1]);
        }
        visitor.visit_string(serde_json::from_str(text).map_err(|_| Unfit)?)
    }

    fn boolean<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        match self.scalar()? {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(Unfit),
        }
    }

    fn null<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        match self.scalar()? {
            "null" => visitor.visit_unit(),
            _ => Err(Unfit),
        }
    }

    /// Reads an integer. Others, `-0`, and those of more than 64 bits become floating-point numbers
    /// in `serde_json`.
    fn integer<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        integer(self.scalar()?, visitor)
    }

    fn float<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        match self.scalar()? {
            text if text.contains(['.', 'e', 'E']) => {
                visitor.visit_f64(serde_json::from_str(text).map_err(|_| Unfit)?)
            }
            text => integer(text, visitor),
        }
    }

    /// Enters the array or object that starts with `bracket`, lets `visit` read it, and checks that
    /// nothing in it was left unread.
    fn parts<T>(
        &mut self,
        bracket: u8,
        visit: impl FnOnce(&mut Parts<'_, 'de>) -> Result<T>,
    ) -> Result<T> {
        self.scanner.expect(bracket).ok_or(Unfit)?;
        if self.depth == MOST_OPEN {
            return Err(Unfit);
        }
        self.depth += 1;
        // `]` and `}` are two after `[` and `{`.
        let mut parts = Parts::new(&mut *self, bracket + 2);
        let value = visit(&mut parts)?;
        parts.end()?;
        self.depth -= 1;
        Ok(value)
    }
}

/// Reads the text of a number as an integer.
fn integer<'de, V: Visitor<'de>>(text: &str, visitor: V) -> Result<V::Value> {
    match text {
        "-0" => Err(Unfit),
        text if text.starts_with('-') => visitor.visit_i64(text.parse().map_err(|_| Unfit)?),
        text => visitor.visit_u64(text.parse().map_err(|_| Unfit)?),
    }
}

/// Methods of a deserializer that read a value of one kind.
macro_rules! deserialize_as {
    ($($read:ident: $($method:ident)*;)*) => {$($(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            self.$read(visitor)
        }
    )*)*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Unfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.first()? {
            b'"' => self.string(visitor),
            b'{' => self.deserialize_map(visitor),
            b'[' => self.deserialize_seq(visitor),
            b't' | b'f' => self.boolean(visitor),
            b'n' => self.null(visitor),
            _ => self.integer(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.first()? != b'n' {
            return visitor.visit_some(self);
        }
        self.null(IgnoredAny)?;
        visitor.visit_none()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if name == RAW_VALUE {
            return visitor.visit_map(Raw::new(self.skip()?));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.parts(b'[', |parts| visitor.visit_seq(parts))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.parts(b'{', |parts| visitor.visit_map(parts))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.first()? {
            b'[' => self.deserialize_seq(visitor),
            _ => self.deserialize_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.first()? {
            b'"' => Name::new(self).deserialize_enum("", &[], visitor),
            _ => self.parts(b'{', |parts| visitor.visit_enum(parts)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.null(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value> {
        Err(Unfit)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value> {
        Err(Unfit)
    }

    deserialize_as! {
        boolean: deserialize_bool;
        null: deserialize_unit;
        string: deserialize_str deserialize_string deserialize_char deserialize_identifier;
        integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128;
        float: deserialize_f32 deserialize_f64;
    }
}

// === impl Unfit ===

impl Error for Unfit {
    /// Drops the message without formatting it: it is never shown.
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self
    }
}

impl std::error::Error for Unfit {}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value is left to serde_json")
    }
}

#[cfg(test)]
mod tests;
