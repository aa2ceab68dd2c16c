//! The subject of a client certificate.

use crate::access::User;

/// The tags of DER that a certificate has on the way to its subject.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
const VERSION: u8 = 0xa0;

/// The identifiers 2.5.4.3 and 2.5.4.10.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// One element of DER.
#[derive(Debug, Clone, Copy)]
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

/// Returns the user that a certificate names: its common name, in the groups of its organizations.
/// Returns `None` if it has no common name.
pub(super) fn user(certificate: &[u8]) -> Option<User> {
    let attributes = subject(certificate)?;
    let values = |wanted: &'static [u8]| {
        let found = attributes.iter().filter(move |(id, _)| *id == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let name = values(COMMON_NAME).next_back().filter(|name| !name.is_empty())?;
    Some(values(ORGANIZATION).fold(User::new(name), User::in_group))
}

/// Returns the attributes of a certificate's subject, by their identifiers.
fn subject(certificate: &[u8]) -> Option<Vec<(&[u8], String)>> {
    let (certificate, _) = read(certificate, SEQUENCE)?;
    let (mut rest, _) = read(certificate, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        (_, rest) = next(rest)?;
    }
    // The serial number, the signature's algorithm, the issuer and the validity.
    for _ in 0..4 {
        (_, rest) = next(rest)?;
    }
    let (mut names, _) = read(rest, SEQUENCE)?;
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
    Some(attributes)
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
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn certificate(attributes: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn user_is_the_common_name_in_its_organization() {
        let long = "x".repeat(200);
        let named = [(DnType::OrganizationName, "dev"), (DnType::CommonName, &*long)];
        let user = user(&certificate(&named)).unwrap();
        assert_eq!(user.name(), long);
        assert_eq!(user.groups().collect::<Vec<_>>(), ["dev", "system:authenticated"]);
    }

    #[test]
    fn certificate_without_a_common_name_names_no_user() {
        assert_eq!(user(&certificate(&[(DnType::OrganizationName, "dev")])), None);
        let whole = certificate(&[(DnType::CommonName, "jane")]);
        // The subject is in the first half.
        assert!((0..60).all(|end| user(&whole[..end]).is_none()));
    }
}
