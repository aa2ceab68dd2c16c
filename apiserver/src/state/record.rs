//! The records of the log, and their form in bytes.
//!
//! ```text
//! length of the payload      4 bytes, little endian, as all numbers
//! checksum of the payload    4 bytes, CRC-32 (IEEE)
//! checksum of these 8 bytes  4 bytes
//! payload: the record's tag, 1 byte; its revision, 8 bytes; the rest; a line end, 1 byte
//! ```
//!
//! The header has a checksum of its own, so that a damaged length is not taken for a record that
//! the end of the file cuts short.

/// A change of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// A snapshot starts: this many puts follow.
    Snapshot { revision: u64, objects: u64 },
    /// An object was created or changed, and has this revision.
    Put { revision: u64, resource: &'a str, key: &'a str, object: &'a [u8] },
    /// An object was deleted, at this revision.
    Delete { revision: u64, resource: &'a str, key: &'a str },
    /// The revision has changed without a write.
    Revision { revision: u64 },
}

/// A record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// The end of the file cuts it short.
    Torn,
    /// It is damaged in this way.
    Damaged(&'static str),
}

const HEADER: usize = 12;

/// The last byte of each record. It is not zero, so that a record whose end was never written is
/// recognised.
const END: u8 = b'\n';

const SNAPSHOT: u8 = 1;
const PUT: u8 = 2;
const DELETE: u8 = 3;
const REVISION: u8 = 4;

// === impl Record ===

impl<'a> Record<'a> {
    /// Returns the revision of the store after the change.
    pub(super) fn revision(&self) -> u64 {
        match *self {
            Self::Snapshot { revision, .. }
            | Self::Put { revision, .. }
            | Self::Delete { revision, .. }
            | Self::Revision { revision } => revision,
        }
    }

    /// Appends the bytes of the record.
    ///
    /// # Panics
    ///
    /// Panics if the record takes more than 4 GiB. A request body has 3 MiB at most.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend_from_slice(&[0; HEADER]);
        let tag = match self {
            Self::Snapshot { .. } => SNAPSHOT,
            Self::Put { .. } => PUT,
            Self::Delete { .. } => DELETE,
            Self::Revision { .. } => REVISION,
        };
        into.push(tag);
        into.extend_from_slice(&self.revision().to_le_bytes());
        match self {
            Self::Snapshot { objects, .. } => into.extend_from_slice(&objects.to_le_bytes()),
            Self::Put { resource, key, object, .. } => {
                append_text(into, resource);
                append_text(into, key);
                into.extend_from_slice(object);
            }
            Self::Delete { resource, key, .. } => {
                append_text(into, resource);
                append_text(into, key);
            }
            Self::Revision { .. } => {}
        }
        into.push(END);
        let payload = start + HEADER;
        let length = u32::try_from(into.len() - payload).expect("a record is below 4 GiB");
        let checksum = crc32(&into[payload..]);
        into[start..start + 4].copy_from_slice(&length.to_le_bytes());
        into[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
        let checksum = crc32(&into[start..start + 8]);
        into[start + 8..payload].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads the record at the start of `bytes`, the rest of a file, which is not empty. Returns it
    /// with its size.
    pub(super) fn read(bytes: &'a [u8]) -> Result<(Self, usize), Broken> {
        // A file system may grow a file before it writes the content, which then reads as zeros.
        if bytes.iter().all(|byte| *byte == 0) || bytes.len() < HEADER {
            return Err(Broken::Torn);
        }
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if number(8) != crc32(&bytes[..8]) {
            return Err(Broken::Damaged("the header of a record has a wrong checksum"));
        }
        let size = usize::try_from(number(0)).map_or(usize::MAX, |length| length + HEADER);
        let Some(payload) = bytes.get(HEADER..size) else { return Err(Broken::Torn) };
        if number(4) != crc32(payload) {
            let is_unwritten = size == bytes.len() && payload.last() == Some(&0);
            let damaged = Broken::Damaged("a record has a wrong checksum");
            return Err(if is_unwritten { Broken::Torn } else { damaged });
        }
        let record = Self::decode(payload);
        Ok((record.ok_or(Broken::Damaged("a record is of an unknown form"))?, size))
    }

    fn decode(payload: &'a [u8]) -> Option<Self> {
        let (tag, rest) = payload.strip_suffix(&[END])?.split_first()?;
        let (revision, rest) = take_number(rest)?;
        match *tag {
            SNAPSHOT => {
                let (objects, rest) = take_number(rest)?;
                rest.is_empty().then_some(Self::Snapshot { revision, objects })
            }
            PUT => {
                let (resource, rest) = take_text(rest)?;
                let (key, object) = take_text(rest)?;
                Some(Self::Put { revision, resource, key, object })
            }
            DELETE => {
                let (resource, rest) = take_text(rest)?;
                let (key, rest) = take_text(rest)?;
                rest.is_empty().then_some(Self::Delete { revision, resource, key })
            }
            REVISION => rest.is_empty().then_some(Self::Revision { revision }),
            _ => None,
        }
    }
}

fn append_text(into: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).expect("a name is below 4 GiB");
    into.extend_from_slice(&length.to_le_bytes());
    into.extend_from_slice(text.as_bytes());
}

fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), rest))
}

fn take_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    Some((str::from_utf8(text).ok()?, rest))
}

/// The remainders of CRC-32 for each byte.
const REMAINDERS: [u32; 256] = {
    let mut table = [0; 256];
    let (mut byte, mut index) = (0_u32, 0);
    while index < table.len() {
        let mut remainder = byte;
        let mut bit = 0;
        while bit < 8 {
            let is_odd = remainder & 1 == 1;
            remainder = (remainder >> 1) ^ if is_odd { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[index] = remainder;
        (byte, index) = (byte + 1, index + 1);
    }
    table
};

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |checksum: u32, byte| {
        let [low, ..] = checksum.to_le_bytes();
        (checksum >> 8) ^ REMAINDERS[usize::from(low ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_that_of_ieee_802_3() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn record_is_read_as_it_was_written() {
        let put = Record::Put { revision: 7, resource: "pods.", key: "n/a", object: b"{}" };
        let all = [
            Record::Snapshot { revision: 3, objects: 1 },
            put,
            Record::Delete { revision: 8, resource: "pods.", key: "n/a" },
            Record::Revision { revision: u64::MAX },
        ];
        let mut bytes = Vec::new();
        for record in &all {
            record.encode(&mut bytes);
        }
        let mut rest = bytes.as_slice();
        for record in all {
            let (read, size) = Record::read(rest).unwrap();
            assert_eq!(read, record);
            rest = &rest[size..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn each_flipped_bit_is_damage() {
        let mut bytes = Vec::new();
        let put = Record::Put { revision: 7, resource: "pods.", key: "n/a", object: b"{}" };
        put.encode(&mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Record::read(&damaged), Err(Broken::Damaged(_))), "bit {bit}");
        }
    }

    #[test]
    fn unwritten_end_is_torn() {
        let mut bytes = Vec::new();
        Record::Revision { revision: 7 }.encode(&mut bytes);
        let put = Record::Put { revision: 8, resource: "pods.", key: "n/a", object: b"{}" };
        let mut unwritten = Vec::new();
        put.encode(&mut unwritten);
        unwritten.iter_mut().skip(HEADER + 3).for_each(|byte| *byte = 0);
        assert_eq!(Record::read(&unwritten), Err(Broken::Torn));
        assert_eq!(Record::read(&[0; 4096]), Err(Broken::Torn));
        // Only the end of a file is ever unwritten.
        unwritten.extend_from_slice(&bytes);
        assert!(matches!(Record::read(&unwritten), Err(Broken::Damaged(_))));
    }
}
