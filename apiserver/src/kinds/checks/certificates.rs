//! Requests for certificates, and bundles of trusted ones.

use serde_json::{Value, json};

use super::Test::By;
use super::{Causes, items, member};
use crate::fields::{Fields, text};
use crate::kinds::pem;
use crate::names::{self, NameCheck};
use crate::status::Cause;

/// The largest size of a bundle, in bytes.
const MAX_BUNDLE: usize = 1024 * 1024;

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

pub(super) fn usages(_: &Value, usages: &Value, at: &str, causes: Causes<'_>) {
    let all = items(usages);
    for (place, usage) in all.iter().enumerate() {
        let at = format!("{at}[{place}]");
        if !USAGES.iter().any(|known| usage == known) {
            causes.push(Cause::unsupported(at, usage, USAGES));
        }
    }
    for (place, usage) in
        all.iter().enumerate().filter(|(place, usage)| all[..*place].contains(usage))
    {
        causes.push(Cause::duplicate(format!("{at}[{place}]"), usage));
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

pub(super) fn expiration(_: &Value, seconds: &Value, at: &str, causes: Causes<'_>) {
    if seconds.as_i64().is_some_and(|seconds| seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.push(Cause::invalid(at, seconds, detail));
    }
}

pub(crate) fn trust_bundle(bundle: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let object = Value::Object(bundle.clone());
    bundle_name(&object, causes);
    let spec = member(&object, "spec");
    if !text(spec, "signerName").is_empty() {
        super::run(&[("signerName", By(signer))], spec, "spec", causes);
    }
    let certificates = text(spec, "trustBundle");
    let before = old.map(|old| text(old.get("spec").unwrap_or(&Value::Null), "trustBundle"));
    if before == Some(certificates) {
        return;
    }
    if certificates.len() > MAX_BUNDLE {
        causes.push(Cause::too_long("spec.trustBundle", MAX_BUNDLE));
        return;
    }
    for problem in pem::problems_of_bundle(certificates) {
        causes.push(Cause::invalid("spec.trustBundle", &json!("<value omitted>"), &problem));
    }
}

/// The name of a bundle starts with its signer, in which colons stand for slashes. Without a signer
/// it has no colon.
fn bundle_name(bundle: &Value, causes: Causes<'_>) {
    let shown = member(member(bundle, "metadata"), "name");
    // A missing name has been refused before.
    let Some(name) = shown.as_str() else { return };
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
