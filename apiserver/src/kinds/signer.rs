//! The rights of a user on a signer of certificates, and the subjects that a signer refuses.

use std::borrow::Cow;

use jiff::SignedDuration;
use serde_json::Value;

use super::columns::{Guard, GuardedWrite};
use super::pem;
use crate::access::Attributes;
use crate::fields::{Fields, is_clean_up, read_path};
use crate::plugin::AdmissionPlugin;
use crate::subject::{self, ORGANIZATION, Subject};

/// The checks of requests for certificates.
pub(super) const REQUEST_GUARDS: &[Guard] = &[
    Guard {
        plugin: AdmissionPlugin::CertificateApproval,
        subresource: "approval",
        check: check_approval,
    },
    Guard {
        plugin: AdmissionPlugin::CertificateSigning,
        subresource: "status",
        check: check_signing,
    },
    Guard {
        plugin: AdmissionPlugin::CertificateSubjectRestriction,
        subresource: "",
        check: check_subject,
    },
];

/// The checks of bundles.
pub(super) const BUNDLE_GUARDS: &[Guard] = &[Guard {
    plugin: AdmissionPlugin::ClusterTrustBundleAttest,
    subresource: "",
    check: check_attestation,
}];

/// A certificate that a write has issued to a client that named its duration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Issue {
    /// The name of a signer of Kubernetes; `other` for the rest.
    pub(crate) signer: Cow<'static, str>,
    /// True if the certificate has about the duration that was requested.
    pub(crate) is_honored: bool,
}

/// The signer of client certificates, and the group that it never puts into one.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

fn check_approval(write: &GuardedWrite<'_>) -> Result<(), String> {
    let signer = signer(write.old.unwrap_or(write.new));
    if may(write, "approve", signer) {
        return Ok(());
    }
    Err(format!("user not permitted to approve requests with signerName \"{signer}\""))
}

/// Checks who changes the certificate or the conditions.
fn check_signing(write: &GuardedWrite<'_>) -> Result<(), String> {
    let Some(old) = write.old else { return Ok(()) };
    let is_kept = |path: &str| read_path(write.new, path) == read_path(old, path);
    let signer = signer(old);
    let is_same = is_kept("status.certificate") && is_kept("status.conditions");
    if is_same || may(write, "sign", signer) {
        return Ok(());
    }
    Err(format!("user not permitted to sign requests with signerName \"{signer}\""))
}

/// Checks the organizations of a new request.
fn check_subject(write: &GuardedWrite<'_>) -> Result<(), String> {
    if write.old.is_some() || signer(write.new) != CLIENT_SIGNER {
        return Ok(());
    }
    let request = read_path(write.new, "spec.request").and_then(Value::as_str).unwrap_or_default();
    let request = pem::first_content(request).unwrap_or_default();
    let is_refused = Subject::of_request(&request)
        .is_some_and(|subject| subject.values(ORGANIZATION).any(|group| group == MASTERS));
    if is_refused {
        return Err(format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"));
    }
    Ok(())
}

fn check_attestation(write: &GuardedWrite<'_>) -> Result<(), String> {
    let signer = signer(write.new);
    let is_same = write.old.is_some_and(|old| is_clean_up(write.new, old));
    if signer.is_empty() || is_same || may(write, "attest", signer) {
        return Ok(());
    }
    Err(format!("user not permitted to attest for signerName \"{signer}\""))
}

/// Returns true if the user has a right on a signer, or on all signers of its domain.
fn may(write: &GuardedWrite<'_>, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let request = Attributes {
            verb: verb.to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Attributes::default()
        };
        write.author.refusal(&request).is_none()
    })
}

/// Returns the certificate that a write issues, for metrics.
pub(super) fn issue(old: &Fields, new: &Fields) -> Option<Issue> {
    const SLACK: SignedDuration = SignedDuration::from_mins(5);
    let certificate = |object| match read_path(object, "status.certificate") {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    if certificate(old).is_some() {
        return None;
    }
    let wanted = read_path(old, "spec.expirationSeconds").and_then(Value::as_i64)?;
    let issued = certificate(new)?;
    let signer = match signer(old) {
        own if own.starts_with("kubernetes.io/") => Cow::Owned(own.to_owned()),
        _ => Cow::Borrowed("other"),
    };
    let lifetime = pem::first_content(&issued).and_then(|content| subject::lifetime(&content));
    let wanted = SignedDuration::from_secs(wanted);
    // Signers date certificates back.
    let is_near = |got: SignedDuration| (wanted - got).abs() < SLACK + wanted / 20;
    Some(Issue { signer, is_honored: lifetime.is_some_and(is_near) })
}

fn signer(object: &Fields) -> &str {
    read_path(object, "spec.signerName").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;

    const UTC_TIME: u8 = 0x17;

    /// Returns a request with a certificate of a day; without one if it is not issued.
    fn request(signer: &str, wanted: Option<i64>, is_issued: bool) -> Fields {
        let times = [(UTC_TIME, "260101000000Z"), (UTC_TIME, "260102000000Z")];
        let content = STANDARD.encode(subject::tests::certificate(times[0], times[1]));
        let pem = format!("-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n");
        let certificate = is_issued.then(|| STANDARD.encode(pem));
        let request = json!({"spec": {"signerName": signer, "expirationSeconds": wanted},
            "status": {"certificate": certificate}});
        request.as_object().unwrap().clone()
    }

    #[test]
    fn issued_certificate_honors_about_the_duration_that_was_requested() {
        let day = 24 * 60 * 60;
        let issued =
            |signer, wanted| issue(&request(signer, wanted, false), &request(signer, wanted, true));
        let own = "kubernetes.io/kube-apiserver-client";
        let is_honored = |wanted| issued(own, Some(wanted)).unwrap().is_honored;
        assert!(is_honored(day) && is_honored(day + 60 * 60));
        assert!(!is_honored(day / 2) && !is_honored(2 * day));
        assert_eq!(issued(own, Some(day)).unwrap().signer, own);
        assert_eq!(issued("example.com/s", Some(day)).unwrap().signer, "other");
        assert_eq!(issued(own, None), None);
        let known = request(own, Some(day), true);
        assert_eq!(issue(&known, &known), None);
        let open = request(own, Some(day), false);
        assert_eq!(issue(&open, &open), None);
    }
}
