//! Requests for certificates, and bundles of trusted ones.

use serde_json::{Value, json};

use super::Test::{By, Each, Has, Required};
use super::{Check, items, member};
use crate::fields::{Fields, text};
use crate::names::{self, NameCheck};
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

/// The usages that a certificate can have.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Checks a request. The certificate request itself is not read.
pub(crate) fn signing_request(request: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const CONDITION: &[Check] = &[("type", Required(""))];
    const SPEC: &[Check] = &[
        ("request", Required("")),
        ("usages", Required("")),
        ("usages", By(usages)),
        ("signerName", By(signer)),
        ("expirationSeconds", By(expiration)),
    ];
    let object = Value::Object(request.clone());
    let checks: &[Check] = &[("spec", Has(SPEC)), ("status.conditions", Each(CONDITION))];
    super::run(checks, &object, "", causes);
    let conditions = items(member(member(&object, "status"), "conditions"));
    let has = |kind: &str| conditions.iter().any(|condition| text(condition, "type") == kind);
    if has("Approved") && has("Denied") {
        let shown = json!(r#"{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}"#);
        let detail = r#"must specify at most one of: `conditions[{"type":"Approved"}]`, `conditions[{"type":"Denied"}]`"#;
        causes.push(Cause::invalid("status.conditions", &shown, detail));
    }
    let Some(old) = old.map(|old| Value::Object(old.clone())) else { return };
    for condition in items(member(member(&old, "status"), "conditions")) {
        let kind = text(condition, "type");
        if matches!(kind, "Approved" | "Denied" | "Failed") && !has(kind) {
            let detail = format!("updates may not remove a condition of type \"{kind}\"");
            causes.push(Cause::forbidden("status.conditions", &detail));
        }
    }
}

fn usages(_: &Value, usages: &Value, at: &str, causes: Causes<'_>) {
    let all = items(usages);
    for (place, usage) in all.iter().enumerate() {
        let at = format!("{at}[{place}]");
        if !USAGES.iter().any(|known| usage == known) {
            causes.push(Cause::unsupported(at.clone(), usage, USAGES));
        }
        if all[..place].contains(usage) {
            causes.push(Cause::duplicate(at, usage));
        }
    }
}

/// A signer is a domain, then a path: `example.com/clients`.
pub(super) fn signer(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    let text = name.as_str().unwrap_or_default();
    if text.is_empty() {
        causes.push(Cause::required(at, ""));
        return;
    }
    let Some((domain, path)) = text.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        causes.push(Cause::invalid(at, name, detail));
        return;
    };
    signer_labels(domain, names::dns_label, at, causes);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        causes.push(Cause::invalid(at, &json!(domain), detail));
    }
    signer_labels(path, names::dns_subdomain, at, causes);
}

/// Checks the labels of a part of a signer's name, up to the first wrong one.
fn signer_labels(part: &str, is: NameCheck, at: &str, causes: Causes<'_>) {
    let mut wrong = part.split('.').filter(|label| !is(label).is_empty());
    let Some(label) = wrong.next() else { return };
    for problem in is(label) {
        let detail = format!("validating label {}: {problem}", json!(label));
        causes.push(Cause::invalid(at, &json!(part), &detail));
    }
}

fn expiration(_: &Value, seconds: &Value, at: &str, causes: Causes<'_>) {
    if seconds.as_i64().is_some_and(|seconds| seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.push(Cause::invalid(at, seconds, detail));
    }
}

pub(crate) fn trust_bundle(bundle: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    let object = Value::Object(bundle.clone());
    bundle_name(&object, causes);
    super::run(&[("spec.trustBundle", Required(""))], &object, "", causes);
    if !text(member(&object, "spec"), "signerName").is_empty() {
        super::run(&[("spec.signerName", By(signer))], &object, "", causes);
    }
}

/// The name of a bundle starts with its signer, in which colons stand for slashes. Without a signer
/// it has no colon.
fn bundle_name(bundle: &Value, causes: Causes<'_>) {
    let shown = member(member(bundle, "metadata"), "name");
    let name = shown.as_str().unwrap_or_default();
    let signer = text(member(bundle, "spec"), "signerName");
    let prefix = format!("{}:", signer.replace('/', ":"));
    let rest = if signer.is_empty() {
        (!name.contains(':')).then_some(name)
    } else {
        name.strip_prefix(&prefix)
    };
    let found = match rest {
        Some(rest) => names::any_subdomain(rest),
        None if signer.is_empty() => {
            vec!["ClusterTrustBundle without signer name must not have \":\" in its name".into()]
        }
        None => {
            let detail = format!(
                "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
            );
            vec![detail.into()]
        }
    };
    causes.extend(found.iter().map(|detail| Cause::invalid("metadata.name", shown, detail)));
}

pub(crate) fn pod_request(request: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("signerName", By(signer)),
        ("podName", Required("")),
        ("podUID", Required("")),
        ("serviceAccountName", Required("")),
        ("serviceAccountUID", Required("")),
        ("nodeName", Required("")),
        ("nodeUID", Required("")),
    ];
    super::run(&[("spec", Has(SPEC))], &Value::Object(request.clone()), "", causes);
}
