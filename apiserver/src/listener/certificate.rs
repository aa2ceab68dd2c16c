//! The user that a client certificate names.

use crate::access::User;
use crate::subject::{COMMON_NAME, ORGANIZATION, Subject};

/// Returns the user that a certificate names: its common name, in the groups of its organizations.
/// Returns `None` if it has no common name.
pub(super) fn user(certificate: &[u8]) -> Option<User> {
    let subject = Subject::of_certificate(certificate)?;
    let name = subject.values(COMMON_NAME).next_back().filter(|name| !name.is_empty())?;
    Some(subject.values(ORGANIZATION).fold(User::new(name), User::in_group))
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
