//! The resource claims of a pod.

use serde_json::{Value, json};

use super::Test::{By, Text};
use super::{Check, check_text, items, member, text};
use crate::kinds::annotations::MIRROR;
use crate::names;
use crate::status::Cause;

const CLAIM: &[Check] = &[
    ("", By(source)),
    ("resourceClaimName", Text(names::dns_subdomain)),
    ("resourceClaimTemplateName", Text(names::dns_subdomain)),
];

/// Checks the claims of a pod (`validatePodResourceClaims`). A template has no metadata.
pub(super) fn check(spec: &Value, metadata: Option<&Value>, at: &str, causes: &mut Vec<Cause>) {
    let annotations = metadata.map_or(&Value::Null, |metadata| member(metadata, "annotations"));
    let is_static = !member(annotations, MIRROR).is_null();
    let mut known: Vec<&str> = Vec::new();
    for (place, claim) in items(member(spec, "resourceClaims")).iter().enumerate() {
        if is_static {
            // Upstream's path without a name.
            causes.push(Cause::forbidden("[]", "static pods do not support resource claims"));
            continue;
        }
        let at = format!("{at}.resourceClaims[{place}]");
        let (name, name_at) = (text(claim, "name"), format!("{at}.name"));
        if name.is_empty() {
            causes.push(Cause::required(name_at, ""));
        } else if known.contains(&name) {
            causes.push(Cause::duplicate(name_at, &json!(name)));
        } else {
            check_text(&json!(name), names::dns_label, &name_at, causes);
            known.push(name);
        }
        super::run(CLAIM, claim, &at, causes);
    }
}

/// Shows a claim as the real server's messages do.
fn source(_: &Value, claim: &Value, at: &str, causes: &mut Vec<Cause>) {
    let by_name = member(claim, "resourceClaimName");
    let by_template = member(claim, "resourceClaimTemplateName");
    let detail = match (by_name.is_null(), by_template.is_null()) {
        (true, true) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        (false, false) => {
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        }
        _ => return,
    };
    let shown = json!({
        "Name": member(claim, "name"), "ResourceClaimName": by_name,
        "ResourceClaimTemplateName": by_template,
    });
    causes.push(Cause::invalid(at, &shown, detail));
}
