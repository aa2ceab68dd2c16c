//! Updates of a job's spec (`ValidateJobSpecUpdate`).

use serde_json::Value;

use super::job_indexes::is_indexed;
use super::job_status::has;
use super::{Causes, internal, job_policies, member, workloads};
use crate::fields::Fields;
use crate::status::Cause;

/// Checks the immutable members of a job.
pub(super) fn spec(new: &Value, old_job: &Fields, causes: Causes<'_>) {
    let old = workloads::spec(old_job);
    completions(new, old, causes);
    unchanged(new, old, &[("selector", "")], causes);
    template(new, old_job, causes);
    let fixed = [
        ("completionMode", ""),
        ("podFailurePolicy", "batch.PodFailurePolicy"),
        ("backoffLimitPerIndex", ""),
        ("managedBy", ""),
    ];
    unchanged(new, old, &fixed, causes);
    let policy = member(new, "successPolicy");
    if policy != member(old, "successPolicy") {
        let shown = if policy.is_null() { Value::Null } else { job_policies::shown(policy) };
        causes.push(Cause::invalid("spec.successPolicy", &shown, "field is immutable"));
    }
}

/// Checks that members stay. Each has the name of its type, if it is an object that the message
/// shows in the server's own version.
fn unchanged(new: &Value, old: &Value, members: &[(&str, &str)], causes: Causes<'_>) {
    for (key, type_name) in members.iter().filter(|(key, _)| member(new, key) != member(old, key)) {
        let shown = internal(type_name, member(new, key));
        causes.push(Cause::invalid(format!("spec.{key}"), &shown, "field is immutable"));
    }
}

/// Checks the completions: those of a job with indexes may change together with its parallelism.
fn completions(new: &Value, old: &Value, causes: Causes<'_>) {
    if !is_indexed(new) {
        return unchanged(new, old, &[("completions", "")], causes);
    }
    let wanted = member(new, "completions");
    let differ = wanted != member(old, "completions") && wanted != member(new, "parallelism");
    if differ && !wanted.is_null() {
        let detail = "can only be modified in tandem with spec.parallelism";
        causes.push(Cause::invalid("spec.completions", wanted, detail));
    }
}

/// Checks the template. How pods are scheduled and what they request may change while the job is
/// suspended and none of its pods runs.
fn template(new: &Value, old_job: &Fields, causes: Causes<'_>) {
    let old = workloads::spec(old_job);
    let status = old_job.get("status").unwrap_or(&Value::Null);
    let is_idle = *member(old, "suspend") == true
        && (member(status, "startTime").is_null() || has(status, "Suspended"))
        && member(status, "active").as_i64().unwrap_or(0) == 0;
    if !is_idle {
        return unchanged(new, old, &[("template", "core.PodTemplateSpec")], causes);
    }
    let [pods, before] = [new, old].map(|spec| member(member(spec, "template"), "spec"));
    if without_scheduling(pods) != without_scheduling(before) {
        let shown = internal("core.PodSpec", pods);
        causes.push(Cause::invalid("spec.template.spec", &shown, "field is immutable"));
    }
}

/// Returns the spec of pods without the members that may change while none runs: scheduling and
/// resources. Of the affinity that is the one to nodes.
fn without_scheduling(pods: &Value) -> Value {
    const MUTABLE: [&str; 3] = ["nodeSelector", "tolerations", "schedulingGates"];
    let mut pods = pods.clone();
    let Some(spec) = pods.as_object_mut() else { return pods };
    spec.retain(|key, _| !MUTABLE.contains(&key.as_str()));
    if let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) {
        affinity.remove("nodeAffinity");
        if affinity.is_empty() {
            spec.remove("affinity");
        }
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            container.remove("resources");
        }
    }
    pods
}
