//! Requests for the certificates of pods. Of the request in one, only the key is read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Test::{By, Required};
use super::certificates::signer;
use super::{Causes, Check, check_text, conditions, items, member, text};
use crate::access::{Certificate, requested_key};
use crate::fields::Fields;
use crate::kinds::pem;
use crate::names;
use crate::status::Cause;

/// The longest uid.
const MAX_UID: usize = 128;
/// The shortest and the longest life of a certificate, in seconds, and the longest one of
/// Kubernetes' own signers.
const MIN_LIFE: i64 = 3600;
const MAX_LIFE: i64 = 91 * 86_400;
const MAX_OWN_LIFE: i64 = 86_400;
/// The time between the refresh of a certificate and its ends, in seconds.
const REFRESH_MARGIN: i64 = 600;
/// The longest chain of certificates, in bytes.
const MAX_CHAIN: usize = 100 * 1024;
const CERTIFICATE: &str = "CERTIFICATE";

/// The conditions that end a request.
const FINAL: &[&str] = &["Issued", "Denied", "Failed"];

pub(crate) fn request(request: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let part = |object: &Fields, name| object.get(name).cloned().unwrap_or_default();
    let spec = part(request, "spec");
    let Some(old) = old else {
        new_spec(&spec, causes);
        return;
    };
    if part(old, "spec") != spec {
        causes.push(Cause::invalid("spec", &shown(&spec), "field is immutable"));
    }
    let (status, before) = (part(request, "status"), part(old, "status"));
    if status != before {
        new_status(&spec, &status, &before, causes);
    }
}

fn new_spec(spec: &Value, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("signerName", By(signer)),
        ("unverifiedUserAnnotations", By(annotations)),
        ("podName", By(name)),
        ("podUID", By(uid)),
        ("serviceAccountName", By(name)),
        ("serviceAccountUID", By(uid)),
        ("nodeName", By(name)),
        ("nodeUID", By(uid)),
    ];
    super::run(SPEC, spec, "spec", causes);
    let life = member(spec, "maxExpirationSeconds");
    let Some(seconds) = life.as_i64() else {
        causes.push(Cause::required("spec.maxExpirationSeconds", "must be set"));
        return;
    };
    let domain = text(spec, "signerName").split('/').next().unwrap_or_default();
    let is_own = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    let most = if is_own { MAX_OWN_LIFE } else { MAX_LIFE };
    if !(MIN_LIFE..=most).contains(&seconds) {
        let detail = format!("must be in the range [{MIN_LIFE}, {most}]");
        causes.push(Cause::invalid("spec.maxExpirationSeconds", life, &detail));
    }
    let request = text(spec, "stubPKCS10Request");
    if request.is_empty() {
        let detail = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) \
                      must be set";
        causes.push(Cause::invalid_text("spec", detail, ""));
    } else if !pem::is_sequence(request) {
        let detail = "must be a valid PKCS#10 CSR";
        causes.push(Cause::invalid_text("spec.stubPKCS10Request", detail, ""));
    }
}

fn annotations(_: &Value, annotations: &Value, at: &str, causes: Causes<'_>) {
    for (key, _) in annotations.as_object().into_iter().flatten() {
        check_text(&json!(key), names::domain_prefixed, at, causes);
    }
}

fn name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    check_text(&json!(name.as_str().unwrap_or_default()), names::dns_subdomain, at, causes);
}

fn uid(_: &Value, uid: &Value, at: &str, causes: Causes<'_>) {
    let text = uid.as_str().unwrap_or_default();
    if text.is_empty() {
        causes.push(Cause::invalid(at, &json!(""), "must not be empty"));
    }
    if text.len() > MAX_UID {
        causes.push(Cause::too_long(at, MAX_UID));
    }
}

/// Shows a spec as the server's own version has it.
fn shown(spec: &Value) -> Value {
    const NAMES: [(&str, &str); 11] = [
        ("SignerName", "signerName"),
        ("PodName", "podName"),
        ("PodUID", "podUID"),
        ("ServiceAccountName", "serviceAccountName"),
        ("ServiceAccountUID", "serviceAccountUID"),
        ("NodeName", "nodeName"),
        ("NodeUID", "nodeUID"),
        ("MaxExpirationSeconds", "maxExpirationSeconds"),
        ("PKIXPublicKey", "pkixPublicKey"),
        ("ProofOfPossession", "proofOfPossession"),
        ("StubPKCS10Request", "stubPKCS10Request"),
    ];
    let mut shown: Fields =
        NAMES.iter().map(|(own, name)| ((*own).to_owned(), member(spec, name).clone())).collect();
    let annotations = member(spec, "unverifiedUserAnnotations").clone();
    shown.insert("UnverifiedUserAnnotations".to_owned(), annotations);
    Value::Object(shown)
}

// === status ===

fn new_status(spec: &Value, status: &Value, before: &Value, causes: Causes<'_>) {
    let list = items(member(status, "conditions"));
    let count = causes.len();
    known_conditions(list, causes);
    conditions::list(status, member(status, "conditions"), "status.conditions", causes);
    if causes.len() > count {
        return;
    }
    let mut refuse = |detail: &str| causes.push(Cause::invalid_text("status", detail, ""));
    let is_final = |status: &Value| !items(member(status, "conditions")).is_empty();
    if is_final(before) {
        refuse("immutable after PodCertificateRequest is issued, denied, or failed");
    } else if !is_final(status) {
        refuse("status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"");
    } else if text(&list[0], "type") == "Issued" {
        issued(spec, status, causes);
    } else if status.as_object().is_some_and(|status| status.len() > 1) {
        refuse(
            "non-condition status fields must be empty when denying or failing the \
             PodCertificateRequest",
        );
    }
}

/// Checks the types of conditions. As in upstream, the path has one point too many.
fn known_conditions(list: &[Value], causes: Causes<'_>) {
    let is_known = |condition: &Value| FINAL.contains(&text(condition, "type"));
    for (place, condition) in list.iter().enumerate() {
        let at = format!("status.conditions.[{place}]");
        let (kind, found) = (member(condition, "type"), member(condition, "status"));
        if !is_known(condition) {
            causes.push(Cause::unsupported(format!("{at}.type"), kind, FINAL));
            continue;
        }
        if list[..place].iter().any(is_known) {
            let detail = "There may be at most one condition with type \"Issued\", \"Denied\", or \
                          \"Failed\"";
            causes.push(Cause::invalid(format!("{at}.type"), kind, detail));
        }
        if *found != "True" {
            causes.push(Cause::unsupported(format!("{at}.status"), found, &["True"]));
        }
    }
}

/// Checks a chain of certificates, of which the first one is for the pod. As the clock is not known
/// here, the certificate may have any age.
fn issued(spec: &Value, status: &Value, causes: Causes<'_>) {
    const AT: &str = "status.certificateChain";
    let chain = text(status, "certificateChain");
    if chain.len() > MAX_CHAIN {
        causes.push(Cause::too_long(AT, MAX_CHAIN));
        return;
    }
    let blocks = pem::contents(chain);
    let refuse = |detail: &str| Cause::invalid(AT, &json!(chain), detail);
    let Some(((kind, leaf), rest)) = blocks.split_first() else {
        let detail = "issued certificate chain must contain at least one certificate";
        causes.push(refuse(detail));
        return;
    };
    if *kind != CERTIFICATE {
        let detail = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks";
        causes.push(refuse(detail));
        return;
    }
    let Some(leaf) = Certificate::read(leaf) else {
        causes.push(refuse("leaf certificate does not parse as valid X.509"));
        return;
    };
    let request = STANDARD.decode(text(spec, "stubPKCS10Request")).unwrap_or_default();
    if requested_key(&request).is_some_and(|key| key != leaf.key) {
        causes.push(refuse("leaf certificate was not issued to the requested public key"));
        return;
    }
    let before = causes.len();
    times(spec, status, &leaf, causes);
    if causes.len() > before {
        return;
    }
    // The text has upstream's spelling.
    let wrong = rest.iter().find_map(|(kind, content)| match Certificate::read(content) {
        _ if *kind != CERTIFICATE => {
            Some("issued certificate chain must consist entirely of CERTFICATE PEM blocks")
        }
        None => Some("intermediate certificate does not parse as valid X.509"),
        Some(_) => None,
    });
    causes.extend(wrong.map(refuse));
}

/// Checks that the times in the status are those of the certificate.
fn times(spec: &Value, status: &Value, leaf: &Certificate<'_>, causes: Causes<'_>) {
    const NEEDED: &[Check] = &[
        ("notBefore", Required("must be present and consistent with the issued certificate")),
        ("notAfter", Required("must be present and consistent with the issued certificate")),
        (
            "beginRefreshAt",
            Required("must be present and in the range [notbefore+10min, notafter-10min]"),
        ),
    ];
    super::run(NEEDED, status, "status", causes);
    let time = |name: &str| text(status, name).parse::<Timestamp>().ok();
    let (Some(starts), Some(ends), Some(refresh)) =
        (time("notBefore"), time("notAfter"), time("beginRefreshAt"))
    else {
        return;
    };
    let life = leaf.ends.as_second() - leaf.starts.as_second();
    let longest = member(spec, "maxExpirationSeconds").as_i64().unwrap_or(MAX_LIFE);
    let (field, detail) = if starts != leaf.starts {
        ("notBefore", "must be set to the NotBefore time encoded in the leaf certificate")
    } else if ends != leaf.ends {
        ("notAfter", "must be set to the NotAfter time encoded in the leaf certificate")
    } else if life < MIN_LIFE || life > longest {
        let detail = if life < MIN_LIFE {
            "leaf certificate lifetime must be >= 1 hour".to_owned()
        } else {
            format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})")
        };
        let nanoseconds = json!(life.saturating_mul(1_000_000_000));
        causes.push(Cause::invalid("status.certificateChain", &nanoseconds, &detail));
        return;
    } else if refresh.as_second() < starts.as_second() + REFRESH_MARGIN {
        ("beginRefreshAt", "must be at least 10 minutes after status.notBefore")
    } else if refresh.as_second() > ends.as_second() - REFRESH_MARGIN {
        ("beginRefreshAt", "must be at least 10 minutes before status.notAfter")
    } else {
        return;
    };
    causes.push(Cause::invalid(format!("status.{field}"), member(status, field), detail));
}
