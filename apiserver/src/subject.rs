//! The subject of a certificate, and of a request for one, and the lifetime of a certificate, in
//! DER.

use jiff::SignedDuration;
use jiff::civil::DateTime;

/// The tags of DER on the way to a subject.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The identifier 2.5.4.3.
#[cfg(feature = "tls")]
pub(crate) const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// The identifier 1.3.6.1.4.1.57683.2, of Kubernetes: the uid of a user.
#[cfg(feature = "tls")]
pub(crate) const USER_UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];
/// The identifier 2.5.4.10.
pub(crate) const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The attributes of a subject, by their identifiers.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    attributes: Vec<(&'a [u8], String)>,
}

/// One element of DER.
#[derive(Debug, Clone, Copy)]
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

// === impl Subject ===

impl<'a> Subject<'a> {
    /// Reads the subject of a certificate.
    #[cfg(feature = "tls")]
    pub(crate) fn of_certificate(certificate: &'a [u8]) -> Option<Self> {
        // After the validity.
        Self::read(next(validity(certificate)?)?.1)
    }

    /// Reads the subject of a request for a certificate (PKCS #10).
    pub(crate) fn of_request(request: &'a [u8]) -> Option<Self> {
        let (request, _) = read(request, SEQUENCE)?;
        let (request, _) = read(request, SEQUENCE)?;
        // The version comes before.
        Self::read(next(request)?.1)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (mut names, _) = read(bytes, SEQUENCE)?;
        let mut attributes = Vec::new();
        while !names.is_empty() {
            let (mut set, after) = read(names, SET)?;
            names = after;
            while !set.is_empty() {
                let (attribute, after) = read(set, SEQUENCE)?;
                set = after;
                let (id, value) = read(attribute, OBJECT_ID)?;
                let (value, _) = next(value)?;
                attributes.push((id, String::from_utf8_lossy(value.content).into_owned()));
            }
        }
        Some(Self { attributes })
    }

    /// Returns the values of the attributes with this identifier.
    pub(crate) fn values(&self, id: &'static [u8]) -> impl DoubleEndedIterator<Item = &str> {
        let found = self.attributes.iter().filter(move |(found, _)| *found == id);
        found.map(|(_, value)| value.as_str())
    }
}

/// Returns the time from the start of the validity of a certificate to its end.
pub(crate) fn lifetime(certificate: &[u8]) -> Option<SignedDuration> {
    let (times, _) = read(validity(certificate)?, SEQUENCE)?;
    let (start, rest) = next(times)?;
    let (end, _) = next(rest)?;
    Some(time(end)?.duration_since(time(start)?))
}

/// Returns the bytes of a certificate from its validity on.
fn validity(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = read(certificate, SEQUENCE)?;
    let (mut rest, _) = read(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        (_, rest) = next(rest)?;
    }
    // The serial number, the signature's algorithm and the issuer.
    for _ in 0..3 {
        (_, rest) = next(rest)?;
    }
    Some(rest)
}

/// Reads a time, such as `491231235959Z` in the years 1950 to 2049, else with four digits more.
fn time(element: Element<'_>) -> Option<DateTime> {
    let text = std::str::from_utf8(element.content).ok()?;
    match element.tag {
        UTC_TIME => {
            let century = if text < "5" { "20" } else { "19" };
            DateTime::strptime("%Y%m%d%H%M%SZ", format!("{century}{text}")).ok()
        }
        GENERALIZED_TIME => DateTime::strptime("%Y%m%d%H%M%SZ", text).ok(),
        _ => None,
    }
}

/// Returns the content of the first element, which has this tag, and the bytes after it.
fn read(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (element, rest) = next(bytes)?;
    (element.tag == tag).then_some((element.content, rest))
}

/// Returns the first element, and the bytes after it.
fn next(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&[tag, first], mut rest) = bytes.split_first_chunk::<2>()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        // The low bits count the bytes of the length.
        let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > size_of::<u32>() {
            return None;
        }
        length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some((Element { tag, content }, rest))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).ok().filter(|length| *length < 0x80).unwrap();
        [&[tag, length], content].concat()
    }

    /// Returns what a certificate has up to its validity.
    pub(crate) fn certificate(start: (u8, &str), end: (u8, &str)) -> Vec<u8> {
        let time = |(tag, text): (u8, &str)| element(tag, text.as_bytes());
        let validity = element(SEQUENCE, &[time(start), time(end)].concat());
        let parts = [
            element(VERSION, &element(0x02, &[2])),
            element(0x02, &[7]),
            element(SEQUENCE, &[]),
            element(SEQUENCE, &[]),
            validity,
        ];
        element(SEQUENCE, &element(SEQUENCE, &parts.concat()))
    }

    #[test]
    fn lifetime_is_read_from_times_of_both_kinds() {
        let short = (UTC_TIME, "491231235959Z");
        let long = (GENERALIZED_TIME, "20500101000059Z");
        assert_eq!(lifetime(&certificate(short, long)), Some(SignedDuration::from_secs(60)));
        let old = (UTC_TIME, "500101000000Z");
        let years = lifetime(&certificate(old, short)).unwrap().as_hours() / 24 / 365;
        assert_eq!(years, 100);
        assert_eq!(lifetime(&certificate(short, (UTC_TIME, "tomorrow"))), None);
        assert_eq!(lifetime(b"odd"), None);
    }
}
