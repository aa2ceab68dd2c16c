//! The columns of kinds that administrators look at: certificates, flow control, components.

use serde_json::{Value, json};

use super::Cell::{Number, Of, Text};
use super::columns::{AGE, NAME, Row, text};
use super::text::labels;
use super::{Column, Subject, duration};
use crate::fields;

const NONE: &str = "<none>";

pub(super) const TABLE: &[Row] = &[
    (
        "",
        "ComponentStatus",
        &[
            NAME,
            text("Status", Of(health)),
            text("Message", Of(health_message)),
            text("Error", Of(health_error)),
        ],
    ),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        &[
            NAME,
            AGE,
            text("SignerName", Text("spec.signerName", NONE)),
            text("Requestor", Text("spec.username", "")),
            text("RequestedDuration", Of(requested_duration)),
            text("Condition", Of(signing_state)),
        ],
    ),
    (
        "certificates.k8s.io",
        "ClusterTrustBundle",
        &[NAME, text("SignerName", Text("spec.signerName", NONE))],
    ),
    (
        "certificates.k8s.io",
        "PodCertificateRequest",
        &[
            NAME,
            text("PodName", Text("spec.podName", "")),
            text("ServiceAccountName", Text("spec.serviceAccountName", "")),
            text("NodeName", Text("spec.nodeName", "")),
            text("SignerName", Text("spec.signerName", "")),
            text("State", Of(issue_state)),
            text("UnverifiedUserAnnotations", Of(user_annotations)),
        ],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "FlowSchema",
        &[
            NAME,
            text("PriorityLevel", Text("spec.priorityLevelConfiguration.name", "")),
            text("MatchingPrecedence", Number("spec.matchingPrecedence")),
            text("DistinguisherMethod", Text("spec.distinguisherMethod.type", NONE)),
            AGE,
            text("MissingPL", Of(dangling)),
        ],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "PriorityLevelConfiguration",
        &[
            NAME,
            text("Type", Text("spec.type", "")),
            text("NominalConcurrencyShares", Of(concurrency_shares)),
            text("Queues", Of(queues)),
            text("HandSize", Of(hand_size)),
            text("QueueLengthLimit", Of(queue_length)),
            AGE,
        ],
    ),
    (
        "resource.k8s.io",
        "DeviceTaintRule",
        &[
            NAME,
            text("Key", Text("spec.taint.key", "")),
            text("Value", Text("spec.taint.value", "")),
            text("Effect", Text("spec.taint.effect", "")),
            text("TimeAdded", Of(taint_age)),
            AGE,
        ],
    ),
    (
        "storage.k8s.io",
        "CSINode",
        &[NAME, Column { kind: "integer", ..text("Drivers", Of(drivers)) }, AGE],
    ),
    (
        "storage.k8s.io",
        "VolumeAttributesClass",
        &[NAME, text("DriverName", Text("driverName", "")), AGE],
    ),
    (
        "storagemigration.k8s.io",
        "StorageVersionMigration",
        &[
            Column { format: "", ..NAME },
            text("Resource", Of(migrated)),
            text("Status", Of(migration_state)),
        ],
    ),
];

fn healthy<'a>(component: &'a Subject<'_>) -> &'a Value {
    component.condition("conditions", "Healthy").unwrap_or(&Value::Null)
}

fn health(component: &Subject<'_>) -> Value {
    json!(match fields::text(healthy(component), "status") {
        "" => "Unknown",
        "True" => "Healthy",
        _ => "Unhealthy",
    })
}

fn health_message(component: &Subject<'_>) -> Value {
    json!(fields::text(healthy(component), "message"))
}

fn health_error(component: &Subject<'_>) -> Value {
    json!(fields::text(healthy(component), "error"))
}

fn requested_duration(request: &Subject<'_>) -> Value {
    let seconds = request.get("spec.expirationSeconds").and_then(Value::as_i64);
    json!(seconds.map_or_else(|| NONE.to_owned(), duration::of_seconds))
}

fn signing_state(request: &Subject<'_>) -> Value {
    let has = |kind| request.condition("status.conditions", kind).is_some();
    let state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if request.text("status.certificate").is_empty() { "" } else { ",Issued" };
    json!(format!("{state}{failed}{issued}"))
}

fn issue_state(request: &Subject<'_>) -> Value {
    last_of(request, &["Issued", "Denied", "Failed"], |_| true, "Pending")
}

fn user_annotations(request: &Subject<'_>) -> Value {
    json!(labels(request.get("spec.unverifiedUserAnnotations")))
}

fn dangling(schema: &Subject<'_>) -> Value {
    let condition = schema.condition("status.conditions", "Dangling");
    json!(condition.map_or("?", |condition| fields::text(condition, "status")))
}

/// Returns a number of a priority level, or `<none>` without the limits that have it.
fn limit(level: &Subject<'_>, of: &str, name: &str) -> Value {
    let limits = level.get(of).filter(|limits| !limits.is_null());
    let Some(limits) = limits else { return json!(NONE) };
    limits.get(name).cloned().unwrap_or_else(|| json!(0))
}

const QUEUING: &str = "spec.limited.limitResponse.queuing";

fn concurrency_shares(level: &Subject<'_>) -> Value {
    limit(level, "spec.limited", "nominalConcurrencyShares")
}

fn queues(level: &Subject<'_>) -> Value {
    limit(level, QUEUING, "queues")
}

fn hand_size(level: &Subject<'_>) -> Value {
    limit(level, QUEUING, "handSize")
}

fn queue_length(level: &Subject<'_>) -> Value {
    limit(level, QUEUING, "queueLengthLimit")
}

fn taint_age(rule: &Subject<'_>) -> Value {
    const ADDED: &str = "spec.taint.timeAdded";
    json!(if rule.text(ADDED).is_empty() { String::new() } else { rule.age(ADDED) })
}

fn drivers(node: &Subject<'_>) -> Value {
    json!(node.list("spec.drivers").len())
}

/// Returns `jobs.batch`.
fn migrated(migration: &Subject<'_>) -> Value {
    let group = migration.text("spec.resource.group");
    let dot = if group.is_empty() { "" } else { "." };
    json!(format!("{}{dot}{group}", migration.text("spec.resource.resource")))
}

fn migration_state(migration: &Subject<'_>) -> Value {
    let is_true = |condition: &Value| fields::text(condition, "status") == "True";
    last_of(migration, &["Running", "Failed", "Succeeded"], is_true, "Unknown")
}

/// Returns the last of these types whose condition counts, or `or`.
fn last_of(
    subject: &Subject<'_>,
    kinds: &[&str],
    counts: impl Fn(&Value) -> bool,
    or: &str,
) -> Value {
    let conditions = subject.list("status.conditions").iter().rev().filter(|one| counts(one));
    let mut kinds_found = conditions.map(|condition| fields::text(condition, "type"));
    json!(kinds_found.find(|kind| kinds.contains(kind)).unwrap_or(or))
}
