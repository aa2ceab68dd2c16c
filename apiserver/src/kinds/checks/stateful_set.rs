//! Stateful sets: their claims to volumes, and their strategy.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Test::{By, NotNegative, OneOf, Text};
use super::counts::{at_most_all, count_or_percent, is_none};
use super::workloads::{MIN_READY, run, selector, shown, spec, template};
use super::{Causes, Check, internal, items, member, selectors, storage_claim, text, workloads};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

const RETENTION: &[&str] = &["Retain", "Delete"];

const CLAIMS_OF_PODS: &[Check] = &[
    ("persistentVolumeClaimRetentionPolicy.whenDeleted", OneOf(RETENTION)),
    ("persistentVolumeClaimRetentionPolicy.whenScaled", OneOf(RETENTION)),
];

pub(crate) fn stateful_set(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const POLICIES: [&str; 2] = ["OrderedReady", "Parallel"];
    let spec = spec(object);
    let policy = member(spec, "podManagementPolicy");
    if !POLICIES.contains(&policy.as_str().unwrap_or("")) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        causes.push(Cause::invalid("spec.podManagementPolicy", policy, detail));
    }
    run(&[("updateStrategy", By(strategy))], spec, causes);
    run(CLAIMS_OF_PODS, spec, causes);
    // They never change: an update accepts those of an older server.
    if old.is_none() {
        claim_templates(spec, causes);
    }
    run(&[("replicas", NotNegative), MIN_READY, ("ordinals.start", NotNegative)], spec, causes);
    if old.is_none() {
        run(&[("serviceName", Text(names::dns_label))], spec, causes);
    }
    if selector(spec, "statefulset", true, causes) {
        selectors::matches(spec, causes);
        template(&with_claims(spec), "StatefulSet", causes);
    } else {
        workloads::template_lifetime(spec, "StatefulSet", causes);
    }
    status(object, old, causes);
    let Some(old) = old.map(workloads::spec) else { return };
    for key in FIXED.into_iter().filter(|key| member(spec, key) != member(old, key)) {
        let value = member(spec, key);
        let shown = if key == CLAIMS { shown_claims(value) } else { value.clone() };
        causes.push(Cause::invalid(format!("spec.{key}"), &shown, "field is immutable"));
    }
}

/// The list of claims, and all members that an update may not change.
const CLAIMS: &str = "volumeClaimTemplates";
const FIXED: [&str; 4] = ["selector", CLAIMS, "serviceName", "podManagementPolicy"];

/// Shows the templates of claims as the server's own version has them, without what only its
/// controllers set.
fn shown_claims(claims: &Value) -> Value {
    const STATUS: [&str; 8] = [
        "AccessModes",
        "Capacity",
        "Conditions",
        "AllocatedResources",
        "AllocatedResourceStatuses",
        "CurrentVolumeAttributesClassName",
        "ModifyVolumeStatus",
        "HealthStatus",
    ];
    let show = |claim: &Value| {
        let mut shown = member(claim, "metadata").as_object().cloned().unwrap_or_default();
        let spec = internal("core.PersistentVolumeClaimSpec", member(claim, "spec"));
        let mut status: Fields =
            STATUS.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
        status.insert("Phase".to_owned(), json!(text(member(claim, "status"), "phase")));
        shown.insert("Spec".to_owned(), spec);
        shown.insert("Status".to_owned(), Value::Object(status));
        Value::Object(shown)
    };
    if claims.is_null() { Value::Null } else { items(claims).iter().map(show).collect() }
}

fn status(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const PARTS: [&str; 4] =
        ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    const NUMBERS: &[Check] =
        &[("observedGeneration", NotNegative), ("collisionCount", NotNegative)];
    if old.is_none() {
        return;
    }
    let new = object.get("status").unwrap_or(&Value::Null);
    workloads::not_negative(new, &["replicas"], causes);
    workloads::not_negative(new, &PARTS, causes);
    super::run(NUMBERS, new, "status", causes);
    workloads::at_most(new, &PARTS, "status.readyReplicas", causes);
    workloads::collisions(object, old, causes);
}

fn claim_templates(spec: &Value, causes: Causes<'_>) {
    for (place, claim) in items(member(spec, "volumeClaimTemplates")).iter().enumerate() {
        let at = format!("spec.volumeClaimTemplates[{place}].spec");
        storage_claim::spec(member(claim, "spec"), &at, causes);
    }
}

/// Returns the spec as the controller completes it for each pod: each claim is a volume, which
/// replaces one of its name in the template. The names of the pod's host are overwritten.
fn with_claims(spec: &Value) -> Cow<'_, Value> {
    const OVERWRITTEN: [&str; 2] = ["hostname", "subdomain"];
    let claims = items(member(spec, "volumeClaimTemplates"));
    let pod = member(member(spec, "template"), "spec");
    if claims.is_empty() && OVERWRITTEN.iter().all(|name| member(pod, name).is_null()) {
        return Cow::Borrowed(spec);
    }
    let names = claims.iter().map(|claim| text(member(claim, "metadata"), "name"));
    let names: BTreeSet<&str> = names.collect();
    let of_claim =
        |name: &&str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
    let mut volumes: Vec<Value> = names.iter().map(of_claim).collect();
    let others = items(member(pod, "volumes")).iter();
    volumes.extend(others.filter(|volume| !names.contains(&text(volume, "name"))).cloned());
    let mut spec = spec.clone();
    if let Some(Value::Object(pod)) = spec.pointer_mut("/template/spec") {
        pod.insert("volumes".to_owned(), Value::Array(volumes));
        pod.retain(|name, _| !OVERWRITTEN.contains(&name.as_str()));
    }
    Cow::Owned(spec)
}

fn strategy(_: &Value, strategy: &Value, at: &str, causes: Causes<'_>) {
    let rolling = member(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" if rolling.is_null() => {}
        "OnDelete" => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let partition = member(rolling, "partition").as_i64().unwrap_or(0);
            let most = member(rolling, "maxUnavailable");
            let shown = json!({"Partition": partition, "MaxUnavailable": most});
            causes.push(Cause::invalid(format!("{at}.rollingUpdate"), &shown, detail));
        }
        "RollingUpdate" => {
            let at = format!("{at}.rollingUpdate");
            super::run(&[("partition", NotNegative)], rolling, &at, causes);
            let (unavailable, at) =
                (member(rolling, "maxUnavailable"), format!("{at}.maxUnavailable"));
            count_or_percent(unavailable, &at, causes);
            if !unavailable.is_null() && is_none(unavailable) {
                causes.push(Cause::invalid(&at, unavailable, "cannot be 0"));
            }
            at_most_all(unavailable, &at, causes);
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            causes.push(Cause::invalid(at, &shown(strategy), detail));
        }
    }
}
