//! Values in DER, the binary form of keys and certificates. Only their structure is read here.

/// The tags of values.
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;

/// Returns the tag of a value that only its place names.
pub(super) const fn context(place: u8) -> u8 {
    0xa0 | place
}

/// Reads values one after another. `None` means that there is no such value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

// === impl Reader ===

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns a reader of the values in a sequence.
    pub(super) fn of_sequence(bytes: &'a [u8]) -> Option<Self> {
        let mut outer = Self(bytes);
        let content = outer.take(SEQUENCE)?;
        outer.0.is_empty().then_some(Self(content))
    }

    /// Takes the next value, if it has this tag. Returns its content.
    pub(super) fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (found, content, rest) = self.next()?;
        if found != tag {
            return None;
        }
        self.0 = rest;
        Some(content)
    }

    /// Takes the next value, if it has this tag. Returns the whole value.
    pub(super) fn take_whole(&mut self, tag: u8) -> Option<&'a [u8]> {
        let start = self.0;
        self.take(tag)?;
        start.get(..start.len() - self.0.len())
    }

    /// Takes the next value, if it is a string of whole bytes.
    pub(super) fn take_bit_string(&mut self) -> Option<&'a [u8]> {
        self.take(BIT_STRING)?.strip_prefix(&[0])
    }

    /// Takes the next value, if it is a positive number. Returns it without leading zeros.
    pub(super) fn take_number(&mut self) -> Option<&'a [u8]> {
        let bytes = self.take(INTEGER)?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.get(zeros..).filter(|rest| !rest.is_empty() && (zeros > 0 || rest[0] < 0x80))
    }

    /// Takes the next value, if it is a small number, as those of versions.
    pub(super) fn take_version(&mut self) -> Option<u8> {
        let [version] = self.take(INTEGER)? else { return None };
        Some(*version)
    }

    fn next(&self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let [tag, length, rest @ ..] = self.0 else { return None };
        let (length, rest) = if *length < 0x80 {
            (usize::from(*length), rest)
        } else {
            // The low bits have the number of bytes of the length.
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            let is_too_long = bytes.is_empty() || bytes.len() > size_of::<u32>();
            let length = bytes.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
            (!is_too_long).then_some((length, rest))?
        };
        let (content, rest) = rest.split_at_checked(length)?;
        Some((*tag, content, rest))
    }
}

/// Returns a value with this tag.
pub(super) fn encode(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut value = vec![tag];
    let length = content.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    match &length[zeros..] {
        [] => value.push(0),
        [short @ 0..0x80] => value.push(*short),
        long => {
            value.push(0x80 | u8::try_from(long.len()).expect("a length has at most 8 bytes"));
            value.extend(long);
        }
    }
    value.extend(content);
    value
}

/// Returns a positive number, which `take_number` returned.
pub(super) fn encode_number(bytes: &[u8]) -> Vec<u8> {
    let sign: &[u8] = if bytes.first().is_some_and(|byte| *byte >= 0x80) { &[0] } else { &[] };
    encode(INTEGER, &[sign, bytes].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_are_read_again() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 70_000] {
            let content = vec![7; length];
            let value = encode(OCTET_STRING, &content);
            let mut reader = Reader::new(&value);
            assert_eq!(reader.take(SEQUENCE), None, "{length}");
            assert_eq!(reader.take(OCTET_STRING), Some(&*content), "{length}");
            assert_eq!(reader.take(OCTET_STRING), None, "{length}");
            assert!(Reader::new(&value[..value.len() - 1]).take(OCTET_STRING).is_none());
        }
        for number in [&[1][..], &[0x80, 0], &[0x7f, 0xff]] {
            let value = encode_number(number);
            assert_eq!(Reader::new(&value).take_number(), Some(number));
        }
    }

    #[test]
    fn damaged_values_are_no_values() {
        for bytes in
            [&[][..], &[4], &[4, 1], &[4, 0x80], &[4, 0x85, 0, 0, 0, 0, 1, 1], &[4, 0x82, 1]]
        {
            assert_eq!(Reader::new(bytes).take(OCTET_STRING), None, "{bytes:?}");
        }
        // A sequence with something after it, a negative number, and a part of a byte.
        assert!(Reader::of_sequence(&[SEQUENCE, 0, 0]).is_none());
        assert_eq!(Reader::new(&[INTEGER, 1, 0x80]).take_number(), None);
        assert_eq!(Reader::new(&[BIT_STRING, 2, 1, 2]).take_bit_string(), None);
    }
}
