//! The group `certificates.k8s.io`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{KEEPS_METADATA, label, named};
use crate::access::User;
use crate::fields::{Fields, read_path};
use crate::kinds::DefaultValue::Json;
use crate::kinds::{Defaults, Generation, Kind, OnCreate, Part, Status, checks, signer};
use crate::names;

pub(super) fn rows() -> Vec<Kind> {
    vec![signing_request(), trust_bundle(), pod_request()]
}

fn of_group(kind: &'static str, plural: &'static str) -> Kind {
    Kind { namespaced: false, ..named("certificates.k8s.io", kind, plural) }
}

fn signing_request() -> Kind {
    Kind {
        short_names: &["csr"],
        name: names::path_segment,
        status: Status::Subresource { kept: &["spec"], on_create: OnCreate::Drop },
        reset: &["spec", "status"],
        fields: const { &[label("spec.signerName", &["spec.signerName"])] },
        record_author: set_requester,
        inherits: keep_spec,
        record_time: date_conditions,
        validate: checks::signing::request,
        parts: &[APPROVAL],
        guards: Cow::Borrowed(signer::REQUEST_GUARDS),
        issue: signer::issue,
        ..of_group("CertificateSigningRequest", "certificatesigningrequests")
    }
}

const APPROVAL: Part = Part {
    name: "approval",
    path: "status.conditions",
    validate: Some(checks::signing::approval),
    reset: &["spec", "status.certificate"],
    writes_metadata: true,
};

/// The requester is the user who creates the request.
fn set_requester(request: &mut Fields, user: &User) {
    let Some(Value::Object(spec)) = request.get_mut("spec") else { return };
    for member in ["username", "uid", "groups", "extra"] {
        spec.remove(member);
    }
    spec.insert("username".to_owned(), json!(user.name()));
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), json!(user.uid));
    }
    if !user.groups.is_empty() {
        spec.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// The content of a request is fixed: an update of it has no effect.
fn keep_spec(request: &mut Fields, old: &Fields) {
    if let Some(spec) = old.get("spec") {
        request.insert("spec".to_owned(), spec.clone());
    }
}

/// Dates the conditions that the client has not dated.
fn date_conditions(request: &mut Fields, old: &Fields, now: &str) {
    let before = read_path(old, "status.conditions").and_then(Value::as_array).cloned();
    let before = before.unwrap_or_default();
    let Some(Value::Object(status)) = request.get_mut("status") else { return };
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let known = before.iter().find(|known| known["type"] == condition["type"]);
        let since = known.filter(|known| known["status"] == condition["status"]);
        let since = since.map_or_else(|| json!(now), |known| known["lastTransitionTime"].clone());
        let Some(condition) = condition.as_object_mut() else { continue };
        for (member, time) in [("lastTransitionTime", since), ("lastUpdateTime", json!(now))] {
            if condition.get(member).is_none_or(Value::is_null) {
                condition.insert(member.to_owned(), time);
            }
        }
    }
}

fn trust_bundle() -> Kind {
    Kind {
        unconditional_update: false,
        name: names::path_segment,
        fields: const { &[label("spec.signerName", &["spec.signerName"])] },
        validate: checks::certificates::trust_bundle,
        guards: Cow::Borrowed(signer::BUNDLE_GUARDS),
        immutable: &["spec.signerName"],
        generation: Generation::None,
        ..of_group("ClusterTrustBundle", "clustertrustbundles")
    }
}

fn pod_request() -> Kind {
    Kind {
        namespaced: true,
        unconditional_update: false,
        status: KEEPS_METADATA,
        fields: const {
            &[
                label("spec.signerName", &["spec.signerName"]),
                label("spec.podName", &["spec.podName"]),
                label("spec.nodeName", &["spec.nodeName"]),
            ]
        },
        defaults: &[Defaults { under: "spec", rules: &[("maxExpirationSeconds", Json("86400"))] }],
        validate: checks::pod_certificates::request,
        ..of_group("PodCertificateRequest", "podcertificaterequests")
    }
}
