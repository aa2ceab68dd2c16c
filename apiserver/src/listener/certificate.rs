//! The user that a client certificate names.

use std::fmt::Write as _;
use std::sync::Arc;

use ring::digest::{SHA256, digest};

use crate::access::{ClientCertificate, User};
use crate::subject::{COMMON_NAME, ORGANIZATION, Subject, USER_UID};

/// The key of the value that distinguishes the credentials of one user.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Returns what a valid certificate says: its common name is the user, in the groups of its
/// organizations. Returns `None` if it has no common name.
pub(super) fn identity(certificate: &[u8]) -> Option<ClientCertificate> {
    let subject = Subject::of_certificate(certificate)?;
    let name = subject.values(COMMON_NAME).next_back().filter(|name| !name.is_empty())?;
    let mut user = subject.values(ORGANIZATION).fold(User::new(name), User::in_group);
    let mut uids = subject.values(USER_UID);
    match (uids.next(), uids.next()) {
        (None, _) => {}
        (Some(uid), None) if !uid.is_empty() => uid.clone_into(&mut user.uid),
        _ => return Some(ClientCertificate::Invalid),
    }
    user.extra.insert(CREDENTIAL_ID.to_owned(), vec![credential_id(certificate)]);
    Some(ClientCertificate::Valid(Arc::new(user)))
}

fn credential_id(certificate: &[u8]) -> String {
    let mut id = "X509SHA256=".to_owned();
    for byte in digest(&SHA256, certificate).as_ref() {
        write!(id, "{byte:02x}").expect("writing to a String does not fail");
    }
    id
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn user(certificate: &[u8]) -> Option<Arc<User>> {
        match identity(certificate)? {
            ClientCertificate::Valid(user) => Some(user),
            ClientCertificate::Invalid => panic!("an invalid certificate"),
        }
    }

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
        assert_eq!(user.uid, "");
    }

    #[test]
    fn user_has_the_uid_and_the_hash_of_the_certificate() {
        let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
        let whole = certificate(&[(uid(), "u1"), (DnType::CommonName, "jane")]);
        let user = user(&whole).unwrap();
        assert_eq!((user.name(), &*user.uid), ("jane", "u1"));
        let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
        assert_eq!(id.strip_prefix("X509SHA256=").map(str::len), Some(64));
        let empty = certificate(&[(uid(), ""), (DnType::CommonName, "jane")]);
        assert!(matches!(identity(&empty), Some(ClientCertificate::Invalid)));
    }

    #[test]
    fn certificate_without_a_common_name_names_no_user() {
        assert!(user(&certificate(&[(DnType::OrganizationName, "dev")])).is_none());
        let whole = certificate(&[(DnType::CommonName, "jane")]);
        // The subject is in the first half.
        assert!((0..60).all(|end| user(&whole[..end]).is_none()));
    }
}
