//! Updates of jobs: their members that are fixed, and the end of a job.

use serde_json::{Value, json};

use super::workloads::{Causes, internal};
use super::{is_empty, items, member, text};
use crate::fields::Fields;
use crate::status::Cause;

/// Checks the immutable members of a job. The completions may change together with the parallelism,
/// and the template while no pod runs.
pub(super) fn spec(new: &Value, old: &Value, causes: Causes<'_>) {
    let elastic = member(new, "completionMode") == "Indexed"
        && member(new, "completions") == member(new, "parallelism");
    let idle = member(old, "suspend") == true;
    if idle
        && without_scheduling(member(new, "template"))
            != without_scheduling(member(old, "template"))
    {
        let pods = member(member(new, "template"), "spec");
        let shown = internal("core.PodSpec", pods);
        causes.push(Cause::invalid("spec.template.spec", &shown, "field is immutable"));
    }
    for (key, type_name) in [
        ("completions", ""),
        ("selector", ""),
        ("template", "core.PodTemplateSpec"),
        ("completionMode", ""),
        ("podFailurePolicy", "batch.PodFailurePolicy"),
    ] {
        let may_change = (key == "completions" && elastic) || (key == "template" && idle);
        if !may_change && member(new, key) != member(old, key) {
            let shown = internal(type_name, member(new, key));
            causes.push(Cause::invalid(format!("spec.{key}"), &shown, "field is immutable"));
        }
    }
}

/// Returns a job's template without the members that may change while no pod runs: scheduling and
/// resources.
fn without_scheduling(template: &Value) -> Value {
    const MUTABLE: [&str; 4] = ["nodeSelector", "affinity", "tolerations", "schedulingGates"];
    let mut template = template.clone();
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !matches!(key.as_str(), "labels" | "annotations"));
    }
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return template;
    };
    spec.retain(|key, _| !MUTABLE.contains(&key.as_str()));
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            container.remove("resources");
        }
    }
    template
}

/// Checks the status of a job that is marked as finished.
pub(super) fn status(object: &Fields, old: &Fields, causes: Causes<'_>) {
    let [new, old] = [object, old].map(|job| job.get("status").unwrap_or(&Value::Null));
    let has = |status: &Value, kind: &str| {
        let conditions = items(member(status, "conditions"));
        conditions.iter().any(|one| text(one, "type") == kind && text(one, "status") == "True")
    };
    let [complete, failed] = ["Complete", "Failed"].map(|kind| has(new, kind) && !has(old, kind));
    if complete && member(new, "completionTime").is_null() {
        let detail = "completionTime is required for Complete jobs";
        causes.push(Cause::required("status.completionTime", detail));
    }
    for (ends, kind, first) in
        [(complete, "Complete", "SuccessCriteriaMet"), (failed, "Failed", "FailureTarget")]
    {
        if ends && !has(new, first) {
            let detail =
                format!("cannot set {kind}=True condition without the {first}=true condition");
            causes.push(Cause::invalid_text("status.conditions", &detail, ""));
        }
    }
    let active = member(new, "active");
    if (complete || failed) && active.as_i64().unwrap_or(0) > 0 {
        let detail = "active>0 is invalid for finished job";
        causes.push(Cause::invalid("status.active", active, detail));
    }
    let uncounted = member(new, "uncountedTerminatedPods");
    if (complete || failed) && !is_empty(uncounted) {
        let list = |key| member(uncounted, key);
        let shown = json!({"Succeeded": list("succeeded"), "Failed": list("failed")});
        let detail = "must be empty for finished job";
        causes.push(Cause::invalid("status.uncountedTerminatedPods", &shown, detail));
    }
}
