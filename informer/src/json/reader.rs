//! A [`Reader`] decodes a value from its text and [`Outline`], for usual types.
//!
//! It decodes as `serde_json` does, or fails: what it reads is what `serde_json` would have read.
//! Its error has no message, because the caller lets `serde_json` decode the text again then. It
//! fails where an object does not fit its type, and for what objects of the API do not have: bytes,
//! numbers as names of members, floating-point numbers in untyped values.

mod name;
mod parts;
mod raw;

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};

use self::name::Name;
use self::parts::Parts;
use self::raw::{RAW_VALUE, Raw};
use super::outline::{LEFT_OUT, Outline, Token};

/// A position before a token.
pub(crate) struct Reader<'de, 'o> {
    text: &'de str,
    /// The tokens that were not read yet.
    rest: &'o [Token],
    /// The number of all tokens.
    length: usize,
}

/// An error: the value does not fit, or is left to `serde_json`.
#[derive(Debug, PartialEq)]
pub(crate) struct Unfit;

type Result<T, E = Unfit> = std::result::Result<T, E>;

// === impl Reader ===

impl<'de, 'o> Reader<'de, 'o> {
    /// Starts before the value of `text` that the outline has read.
    pub(crate) fn new(text: &'de str, outline: &'o Outline) -> Self {
        let rest = outline.tokens();
        Self { text, rest, length: rest.len() }
    }

    /// Returns the first byte of the next value.
    fn first(&self) -> Result<u8> {
        let token = self.rest.first().ok_or(Unfit)?;
        Ok(self.text.as_bytes()[token.start as usize])
    }

    /// Moves after the next token: into an array or object, or after any other value.
    fn step(&mut self) -> Result<Token> {
        let (token, rest) = self.rest.split_first().ok_or(Unfit)?;
        self.rest = rest;
        Ok(*token)
    }

    /// Moves after the next value, and returns its text.
    fn skip(&mut self) -> Result<&'de str> {
        let token = self.rest.first().ok_or(Unfit)?;
        self.rest = &self.rest[self.left_after(token)..];
        Ok(self.slice(token))
    }

    /// Returns the number of the unread tokens that belong to the value of the next token.
    fn left_after(&self, token: &Token) -> usize {
        token.next as usize - (self.length - self.rest.len())
    }

    fn slice(&self, token: &Token) -> &'de str {
        &self.text[token.start as usize..token.end as usize]
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if self.first()? != b'"' {
            return Err(Unfit);
        }
        let token = self.step()?;
        let text = self.slice(&token);
        if token.count == 0 {
            return visitor.visit_borrowed_str(&text[1..text.len() - 1]);
        }
        visitor.visit_string(serde_json::from_str(text).map_err(|_| Unfit)?)
    }

    fn boolean<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let value = match self.first()? {
            b't' => true,
            b'f' => false,
            _ => return Err(Unfit),
        };
        self.step()?;
        visitor.visit_bool(value)
    }

    fn null<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        if self.first()? != b'n' {
            return Err(Unfit);
        }
        self.step()?;
        visitor.visit_unit()
    }

    /// Reads an integer. Others, `-0`, and those of more than 64 bits become floating-point numbers
    /// in `serde_json`.
    fn integer<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let token = self.step()?;
        match self.slice(&token) {
            "-0" => Err(Unfit),
            text if text.starts_with('-') => visitor.visit_i64(text.parse().map_err(|_| Unfit)?),
            text => visitor.visit_u64(text.parse().map_err(|_| Unfit)?),
        }
    }

    fn float<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let is_float = |text: &str| text.contains(['.', 'e', 'E']);
        let token = self.rest.first().ok_or(Unfit)?;
        match self.slice(token) {
            text if is_float(text) => {
                self.step()?;
                visitor.visit_f64(serde_json::from_str(text).map_err(|_| Unfit)?)
            }
            _ => self.integer(visitor),
        }
    }

    /// Enters the array or object that starts with `bracket`, lets `visit` read it, and checks that
    /// nothing in it was left unread.
    fn parts<T>(
        &mut self,
        bracket: u8,
        visit: impl FnOnce(&mut Parts<'_, 'de, 'o>) -> Result<T>,
    ) -> Result<T> {
        if self.first()? != bracket {
            return Err(Unfit);
        }
        let token = self.step()?;
        if token.count == LEFT_OUT {
            return Err(Unfit);
        }
        let after = self.length - token.next as usize;
        let mut parts = Parts::new(&mut *self, token.count as usize);
        let value = visit(&mut parts)?;
        if self.rest.len() == after { Ok(value) } else { Err(Unfit) }
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

impl<'de> Deserializer<'de> for &mut Reader<'de, '_> {
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
        self.step()?;
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
