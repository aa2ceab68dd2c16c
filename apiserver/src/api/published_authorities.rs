//! The `ConfigMap` with the authorities of client certificates. Other servers of a cluster read it,
//! to know the same clients.

use serde_json::{Value, json};

use super::managers::server_manager;
use super::server_objects::{SERVER, replace, store};
use crate::admission::target::Target;
use crate::core::Core;
use crate::fields::read_path;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// The member with the certificates, in PEM.
const CERTIFICATES: &str = "client-ca-file";

/// Adds certificates of authorities, in PEM, to those that the server publishes. It publishes none
/// without users.
#[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "only TLS has certificates"))]
pub(crate) fn publish(core: &Core, certificates: &str) {
    core.access.trust(certificates);
    if !core.access.authenticates() {
        return;
    }
    let kinds = core.kinds();
    let maps = kinds.find("", "v1", "configmaps").expect("the table has the kind");
    // Another write between the read and the write starts again.
    while !store(core, &maps, &config_map(core), SERVER) {
        let key = maps.home.key(NAMESPACE, NAME);
        let Some(stored) = core.get(maps.resource, &key) else { continue };
        let old = stored.packed_fields();
        let known = read_path(&old, "data").and_then(|data| data[CERTIFICATES].as_str());
        // Those of an earlier run stay: there may be clients that have them.
        let all = joined(known.unwrap_or_default(), &core.access.trusted());
        let mut new = old.clone();
        new.insert("data".to_owned(), json!({CERTIFICATES: all}));
        if replace(core, &maps, (&stored, &old), new, server_manager(core, Target::Object)) {
            return;
        }
    }
}

/// Returns the object, with the certificates that the server has now.
pub(super) fn config_map(core: &Core) -> Value {
    let mut object = json!({"metadata": {"namespace": NAMESPACE, "name": NAME}});
    let certificates = joined("", &core.access.trusted());
    if !certificates.is_empty() {
        object["data"] = json!({CERTIFICATES: certificates});
    }
    object
}

/// Returns the first certificates, and those of the second that are not among them.
fn joined(known: &str, others: &str) -> String {
    const END: &str = "-----END CERTIFICATE-----";
    let mut all = known.to_owned();
    for certificate in others.split_inclusive(END).map(str::trim) {
        if certificate.ends_with(END) && !all.contains(certificate) {
            all.push_str(certificate);
            all.push('\n');
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_certificate_is_published_once() {
        let pem = |text: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        let (one, other) = (pem("one"), pem("other"));
        assert_eq!(joined("", &format!("\n{one}\n{other}")), format!("{one}{other}"));
        assert_eq!(joined(&one, &format!("{other}{one}")), format!("{one}{other}"));
        assert_eq!(joined(&one, "no certificate"), one);
    }
}
