//! Requests for certificates: their approval and their certificate.

use serde_json::{Value, json};

use super::Test::{By, OneOf, Required};
use super::certificates::{expiration, signer, usages};
use super::{Causes, Check, items, member, text};
use crate::fields::Fields;
use crate::kinds::pem;
use crate::status::Cause;

/// The signer of requests without one, in an older version.
const LEGACY: &str = "kubernetes.io/legacy-unknown";
/// The conditions that end a request. Only a write to the approval adds the first two.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Checks a request, and what a write to it or to its status may change. Of the request for the
/// certificate, only the kind of the block is read.
pub(crate) fn request(request: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let status = request.get("status").unwrap_or(&Value::Null);
    let before = old.map(|old| old.get("status").unwrap_or(&Value::Null));
    common(request, before, causes);
    let Some(before) = before else { return };
    for kind in &FINAL[..2] {
        if count(status, kind) > count(before, kind) {
            let detail = format!("updates may not add a condition of type \"{kind}\"");
            causes.push(Cause::forbidden("status.conditions", &detail));
        }
    }
    let [certificate, old] = [status, before].map(|status| text(status, "certificate"));
    if !old.is_empty() && certificate != old {
        let detail = "updates may not modify existing certificate content";
        causes.push(Cause::forbidden("status.certificate", detail));
    }
    exclusive(status, causes);
}

/// Checks a write to the approval.
pub(crate) fn approval(request: &Fields, old: &Fields, causes: Causes<'_>) {
    common(request, Some(old.get("status").unwrap_or(&Value::Null)), causes);
    exclusive(request.get("status").unwrap_or(&Value::Null), causes);
}

fn common(request: &Fields, before: Option<&Value>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("request", By(is_request)),
        ("usages", Required("")),
        ("usages", By(usages)),
        ("signerName", By(known_signer)),
        ("expirationSeconds", By(expiration)),
    ];
    super::run(SPEC, request.get("spec").unwrap_or(&Value::Null), "spec", causes);
    let status = request.get("status").unwrap_or(&Value::Null);
    conditions(items(member(status, "conditions")), causes);
    let certificate = text(status, "certificate");
    let is_new = before.is_none_or(|before| text(before, "certificate") != certificate);
    if let Some(problem) = pem::problem_of_certificates(certificate).filter(|_| is_new) {
        let shown = json!("<certificate data>");
        causes.push(Cause::invalid("status.certificate", &shown, &problem));
    }
    let Some(before) = before else { return };
    for kind in FINAL.iter().filter(|kind| count(status, kind) < count(before, kind)) {
        let detail = format!("updates may not remove a condition of type \"{kind}\"");
        causes.push(Cause::forbidden("status.conditions", &detail));
    }
}

/// Counts the conditions of a type.
fn count(status: &Value, kind: &str) -> usize {
    let all = items(member(status, "conditions")).iter();
    all.filter(|condition| text(condition, "type") == kind).count()
}

fn is_request(_: &Value, request: &Value, at: &str, causes: Causes<'_>) {
    if pem::first_kind(request.as_str().unwrap_or_default()).as_deref()
        != Some("CERTIFICATE REQUEST")
    {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        causes.push(Cause::invalid(at, request, detail));
    }
}

fn known_signer(spec: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if *name == LEGACY {
        let detail = "the legacy signerName is not allowed via this API version";
        causes.push(Cause::invalid(at, name, detail));
    } else {
        signer(spec, name, at, causes);
    }
}

fn conditions(list: &[Value], causes: Causes<'_>) {
    const ANY: &[Check] = &[("status", OneOf(&["False", "True", "Unknown"]))];
    const TRUE: &[Check] = &[("status", OneOf(&["True"]))];
    for (place, condition) in list.iter().enumerate() {
        let at = format!("status.conditions[{place}]");
        let kind = text(condition, "type");
        super::run(&[("type", Required("")), ("status", Required(""))], condition, &at, causes);
        if !text(condition, "status").is_empty() {
            let known = if FINAL.contains(&kind) { TRUE } else { ANY };
            super::run(known, condition, &at, causes);
        }
        if list[..place].iter().any(|known| text(known, "type") == kind) {
            causes.push(Cause::duplicate(format!("{at}.type"), &json!(kind)));
        }
    }
}

/// Checks that a request is not approved and denied. The real server reports it after all others.
fn exclusive(status: &Value, causes: Causes<'_>) {
    if count(status, "Approved") > 0 && count(status, "Denied") > 0 {
        let shown = json!(r#"{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}"#);
        let detail = concat!(
            r#"must specify at most one of: `conditions[{"type":"Approved"}]`, "#,
            r#"`conditions[{"type":"Denied"}]`"#,
        );
        causes.push(Cause::invalid("status.conditions", &shown, detail));
    }
}
