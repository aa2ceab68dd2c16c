//! Certificates (X.509). Only their structure is read, and whether they belong to an authority.

use super::der::{BIT_STRING, INTEGER, OBJECT_ID, OCTET_STRING, Reader, SEQUENCE, context};

const BOOLEAN: u8 = 0x01;
/// The identifier of the extension that marks authorities: 2.5.29.19.
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

/// Returns whether bytes do not start with a certificate.
pub(crate) fn is_malformed(bytes: &[u8]) -> bool {
    Reader::new(bytes).take(SEQUENCE).is_none()
}

/// Returns whether a certificate belongs to an authority; `None` if it is no certificate.
pub(crate) fn is_authority(bytes: &[u8]) -> Option<bool> {
    let mut certificate = Reader::of_sequence(bytes)?;
    let mut content = Reader::new(certificate.take(SEQUENCE)?);
    certificate.take(SEQUENCE)?;
    certificate.take(BIT_STRING)?;
    let version = context(0);
    content.take(version);
    content.take(INTEGER)?;
    // The algorithm, the issuer, the times, the subject and the key.
    for _ in 0..5 {
        content.take(SEQUENCE)?;
    }
    // Identifiers of the issuer and the subject, from older versions of the format.
    for place in [0x81, 0x82] {
        content.take(place);
    }
    let Some(extensions) = content.take(context(3)) else { return Some(false) };
    let mut extensions = Reader::of_sequence(extensions)?;
    while let Some(extension) = extensions.take(SEQUENCE) {
        let mut extension = Reader::new(extension);
        let id = extension.take(OBJECT_ID)?;
        let is_critical = BOOLEAN;
        extension.take(is_critical);
        let value = extension.take(OCTET_STRING)?;
        if id == BASIC_CONSTRAINTS {
            let mut constraints = Reader::of_sequence(value)?;
            return Some(constraints.take(BOOLEAN).is_some_and(|is| is != [0]));
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::super::der::encode;
    use super::*;

    /// Returns a certificate with these extensions, and nothing of interest besides.
    fn certificate(extensions: &[u8]) -> Vec<u8> {
        let empty = encode(SEQUENCE, &[]);
        let mut content = encode(context(0), &encode(INTEGER, &[2]));
        content.extend(encode(INTEGER, &[1]));
        content.extend(empty.repeat(5));
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
        let yes = extension(BASIC_CONSTRAINTS, &encode(BOOLEAN, &[0xff]));
        let no = extension(BASIC_CONSTRAINTS, &[]);
        let other = extension(&[0x55, 0x1d, 0x0f], &[]);
        assert_eq!(is_authority(&certificate(&yes)), Some(true));
        assert_eq!(is_authority(&certificate(&[other.clone(), yes].concat())), Some(true));
        assert_eq!(is_authority(&certificate(&no)), Some(false));
        assert_eq!(is_authority(&certificate(&other)), Some(false));
        assert_eq!(is_authority(&certificate(&[])), Some(false));
        assert_eq!(is_authority(&encode(SEQUENCE, &[])), None);
        assert!(is_malformed(b"a") && !is_malformed(&certificate(&[])));
    }
}
