//! The wire format: tags, varints, and fields with a length.

use super::ProtobufError;

/// The number and the wire type of a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) wire_type: u8,
}

/// Reads the fields of a message.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

/// Writes the fields of a message.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;
const FIXED32: u8 = 5;

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next tag; `None` at the end.
    pub(super) fn tag(&mut self) -> Result<Option<Tag>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtobufError::Overflow)?;
        let wire_type = u8::try_from(tag & 7).expect("three bits fit a byte");
        Ok(Some(Tag { number, wire_type }))
    }

    /// Reads a varint without a tag.
    pub(super) fn number(&mut self) -> Result<u64, ProtobufError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtobufError::Truncated)?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ProtobufError::Overflow)
    }

    pub(super) fn varint(&mut self, tag: Tag) -> Result<u64, ProtobufError> {
        tag.expect(VARINT)?;
        self.number()
    }

    pub(super) fn float(&mut self, tag: Tag) -> Result<f64, ProtobufError> {
        tag.expect(FIXED64)?;
        let bytes = self.take(8)?.try_into().map_err(|_| ProtobufError::Truncated)?;
        Ok(f64::from_le_bytes(bytes))
    }

    pub(super) fn bytes(&mut self, tag: Tag) -> Result<&'a [u8], ProtobufError> {
        tag.expect(BYTES)?;
        let length = self.number()?;
        self.take(usize::try_from(length).map_err(|_| ProtobufError::Truncated)?)
    }

    /// Reads a text. Invalid UTF-8 is replaced, as Go's JSON encoder does later.
    pub(super) fn text(&mut self, tag: Tag) -> Result<String, ProtobufError> {
        self.bytes(tag).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Skips a field that is not known.
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), ProtobufError> {
        match tag.wire_type {
            VARINT => self.number().map(drop),
            FIXED64 => self.take(8).map(drop),
            BYTES => self.bytes(tag).map(drop),
            FIXED32 => self.take(4).map(drop),
            _ => Err(tag.mismatch()),
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

// === impl Tag ===

impl Tag {
    fn expect(self, wire_type: u8) -> Result<(), ProtobufError> {
        if self.wire_type == wire_type { Ok(()) } else { Err(self.mismatch()) }
    }

    fn mismatch(self) -> ProtobufError {
        ProtobufError::WireType { wire_type: self.wire_type, field: self.number.to_string() }
    }
}

// === impl Writer ===

impl Writer {
    pub(super) fn varint(&mut self, field: u32, number: u64) {
        self.tag(field, VARINT);
        self.number(number);
    }

    pub(super) fn float(&mut self, field: u32, number: f64) {
        self.tag(field, FIXED64);
        self.bytes.extend(number.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, BYTES);
        self.number(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a field that occurs several times.
    pub(super) fn all_bytes(&mut self, field: u32, list: &[Vec<u8>]) {
        for bytes in list {
            self.bytes(field, bytes);
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn tag(&mut self, field: u32, wire_type: u8) {
        self.number(u64::from(field) << 3 | u64::from(wire_type));
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push((number & 0x7f) as u8);
    }
}
