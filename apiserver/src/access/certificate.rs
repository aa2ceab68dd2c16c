//! Certificates and requests for them (X.509, PKCS #10). No signature is checked.

use std::ops::Range;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::der::{BIT_STRING, INTEGER, OBJECT_ID, OCTET_STRING, Reader, SEQUENCE, context};

const BOOLEAN: u8 = 0x01;
/// The tags of times with two digits and with four digits of the year.
const SHORT_TIME: u8 = 0x17;
const LONG_TIME: u8 = 0x18;
/// The identifier of the extension that marks authorities: 2.5.29.19.
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

/// A certificate, as far as it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Certificate<'a> {
    /// The public key with its algorithm, in DER.
    pub(crate) key: &'a [u8],
    pub(crate) starts: Timestamp,
    pub(crate) ends: Timestamp,
    /// True if the key can sign other certificates.
    pub(crate) is_authority: bool,
}

/// Returns true if bytes do not start with a certificate.
pub(crate) fn is_malformed(bytes: &[u8]) -> bool {
    Reader::new(bytes).take(SEQUENCE).is_none()
}

/// Returns the public key in a request for a certificate, with its algorithm, in DER.
pub(crate) fn requested_key(bytes: &[u8]) -> Option<&[u8]> {
    let mut content = Reader::new(Reader::of_sequence(bytes)?.take(SEQUENCE)?);
    content.take(INTEGER)?;
    let _subject = content.take(SEQUENCE)?;
    content.take_whole(SEQUENCE)
}

// === impl Certificate ===

impl<'a> Certificate<'a> {
    /// Reads a certificate; `None` if it is none.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut outer = Reader::of_sequence(bytes)?;
        let mut content = Reader::new(outer.take(SEQUENCE)?);
        let _algorithm = outer.take(SEQUENCE)?;
        let _signature = outer.take(BIT_STRING)?;
        let _version = content.take(context(0));
        let _serial = content.take(INTEGER)?;
        let _algorithm = content.take(SEQUENCE)?;
        let _issuer = content.take(SEQUENCE)?;
        let mut times = Reader::new(content.take(SEQUENCE)?);
        let (starts, ends) = (take_time(&mut times)?, take_time(&mut times)?);
        let _subject = content.take(SEQUENCE)?;
        let key = content.take_whole(SEQUENCE)?;
        // Identifiers of the issuer and the subject, from older versions of the format.
        let _identifiers = [0x81, 0x82].map(|place| content.take(place));
        let is_authority = match content.take(context(3)) {
            Some(extensions) => is_authority(Reader::of_sequence(extensions)?)?,
            None => false,
        };
        Some(Self { key, starts, ends, is_authority })
    }
}

fn is_authority(mut extensions: Reader<'_>) -> Option<bool> {
    while let Some(extension) = extensions.take(SEQUENCE) {
        let mut extension = Reader::new(extension);
        let id = extension.take(OBJECT_ID)?;
        let _critical = extension.take(BOOLEAN);
        let value = extension.take(OCTET_STRING)?;
        if id == BASIC_CONSTRAINTS {
            let mut constraints = Reader::of_sequence(value)?;
            return Some(constraints.take(BOOLEAN).is_some_and(|is| is != [0]));
        }
    }
    Some(false)
}

/// Takes a time: `YYMMDDHHMMSSZ`, a year from 1950 to 2049, or `YYYYMMDDHHMMSSZ`.
fn take_time(reader: &mut Reader<'_>) -> Option<Timestamp> {
    let is_short = reader.take(SHORT_TIME);
    let text = std::str::from_utf8(is_short.or_else(|| reader.take(LONG_TIME))?).ok()?;
    let (year, rest) = text.split_at_checked(if is_short.is_some() { 2 } else { 4 })?;
    let year: i16 = year.parse().ok()?;
    let year = match is_short {
        Some(_) if year < 50 => 2000 + year,
        Some(_) => 1900 + year,
        None => year,
    };
    let rest = rest.strip_suffix('Z').filter(|rest| rest.len() == 10)?;
    let number = |range: Range<usize>| rest.get(range)?.parse::<i8>().ok();
    let (month, day) = (number(0..2)?, number(2..4)?);
    let (hour, minute, second) = (number(4..6)?, number(6..8)?, number(8..10)?);
    let time = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    time.to_zoned(TimeZone::UTC).ok().map(|time| time.timestamp())
}

#[cfg(test)]
mod tests {
    use super::super::der::encode;
    use super::*;

    /// Returns a certificate with these extensions, and nothing else of interest.
    fn certificate(extensions: &[u8]) -> Vec<u8> {
        let empty = encode(SEQUENCE, &[]);
        let times =
            [encode(SHORT_TIME, b"490102030405Z"), encode(LONG_TIME, b"20500102030405Z")].concat();
        let mut content = encode(context(0), &encode(INTEGER, &[2]));
        content.extend(encode(INTEGER, &[1]));
        content.extend(empty.repeat(2));
        content.extend(encode(SEQUENCE, &times));
        content.extend(&empty);
        content.extend(encode(SEQUENCE, &encode(INTEGER, &[7])));
        if !extensions.is_empty() {
            content.extend(encode(context(3), &encode(SEQUENCE, extensions)));
        }
        let parts = [encode(SEQUENCE, &content), empty, encode(BIT_STRING, &[0])];
        encode(SEQUENCE, &parts.concat())
    }

    fn extension(id: &[u8], value: &[u8]) -> Vec<u8> {
        let parts = [
            encode(OBJECT_ID, id),
            encode(BOOLEAN, &[0xff]),
            encode(OCTET_STRING, &encode(SEQUENCE, value)),
        ];
        encode(SEQUENCE, &parts.concat())
    }

    #[test]
    fn authority_is_marked_by_an_extension() {
        let marked = |extensions: &[u8]| {
            let bytes = certificate(extensions);
            Certificate::read(&bytes).map(|read| read.is_authority)
        };
        let yes = extension(BASIC_CONSTRAINTS, &encode(BOOLEAN, &[0xff]));
        let no = extension(BASIC_CONSTRAINTS, &[]);
        let other = extension(&[0x55, 0x1d, 0x0f], &[]);
        assert_eq!(marked(&yes), Some(true));
        assert_eq!(marked(&[other.clone(), yes].concat()), Some(true));
        assert_eq!(marked(&no), Some(false));
        assert_eq!(marked(&other), Some(false));
        assert_eq!(marked(&[]), Some(false));
        assert!(Certificate::read(&encode(SEQUENCE, &[])).is_none());
        assert!(is_malformed(b"a") && !is_malformed(&certificate(&[])));
    }

    #[test]
    fn key_and_times_of_a_certificate_are_read() {
        let bytes = certificate(&[]);
        let read = Certificate::read(&bytes).unwrap();
        assert_eq!(read.key, encode(SEQUENCE, &encode(INTEGER, &[7])));
        assert_eq!(read.starts.to_string(), "2049-01-02T03:04:05Z");
        assert_eq!(read.ends.to_string(), "2050-01-02T03:04:05Z");
        for wrong in ["4901020304Z", "491302030405Z", "490102030405", "49010203040xZ"] {
            let value = encode(SHORT_TIME, wrong.as_bytes());
            assert_eq!(take_time(&mut Reader::new(&value)), None, "{wrong}");
        }
    }
}
