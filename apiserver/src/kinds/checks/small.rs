//! Events, leases and priority classes.

use serde_json::{Value, json};

use super::{Causes, NOT_NEGATIVE, check_text, is_empty, member};
use crate::fields::{Fields, read_path};
use crate::names;
use crate::status::Cause;

/// The built-in priority classes.
const SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];
/// The highest priority of a class that is not built in.
const MAX_PRIORITY: i64 = 1_000_000_000;

/// The longest reason, action and controller name; the longest message.
const MAX_LENGTH: usize = 128;
const MAX_MESSAGE: usize = 1024;

pub(crate) fn event(event: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    any_event(event, "reportingComponent", causes);
}

fn any_event(event: &Fields, reporter_at: &str, causes: Causes<'_>) {
    let text = |path: &str| read_path(event, path).and_then(Value::as_str).unwrap_or("");
    let (about, own) = (text("involvedObject.namespace"), text("metadata.namespace"));
    let dated = !text("eventTime").is_empty();
    let cluster_scoped = about.is_empty() && (own == "default" || (dated && own == "kube-system"));
    if about != own && !cluster_scoped && (about.is_empty() || !dated) {
        let detail = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &json!(about), detail));
    }
    if !dated {
        return;
    }
    let reporter = text("reportingComponent");
    if reporter.is_empty() {
        causes.push(Cause::required(reporter_at, ""));
    }
    check_text(&json!(reporter), names::qualified, reporter_at, causes);
    for (member, longest) in
        [("reportingInstance", MAX_LENGTH), ("action", MAX_LENGTH), ("reason", MAX_LENGTH)]
    {
        if text(member).is_empty() {
            causes.push(Cause::required(member, ""));
        }
        too_long(member, text(member), longest, causes);
    }
    too_long("message", text("message"), MAX_MESSAGE, causes);
}

fn too_long(member: &str, text: &str, longest: usize, causes: Causes<'_>) {
    if text.len() > longest {
        let detail = format!("can have at most {longest} characters");
        causes.push(Cause::invalid(member, &json!(""), &detail));
    }
}

/// Shows a member of an event as the server's own version has it.
fn shown(key: &str, value: Value) -> Value {
    let type_name = match key {
        "involvedObject" | "related" => "core.ObjectReference",
        "source" => "core.EventSource",
        "reason" | "message" | "action" | "type" | "reportingComponent" | "reportingInstance"
            if value.is_null() =>
        {
            return json!("");
        }
        _ => return value,
    };
    super::internal(type_name, &value)
}

/// Checks an event of the group `events.k8s.io`, in its stored form: it has stricter rules.
pub(crate) fn new_event(event: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    // The members in the stored form, and their names in messages.
    const KEPT: [(&str, &str); 13] = [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    any_event(event, "reportingController", causes);
    let series = |event: &Fields| event.get("series").cloned().unwrap_or_default();
    if old.is_none_or(|old| series(old) != series(event)) {
        check_series(&series(event), causes);
    }
    let get = |event: &Fields, key: &str| event.get(key).cloned().unwrap_or_default();
    if let Some(old) = old {
        for (key, at) in KEPT.into_iter().filter(|(key, _)| get(event, key) != get(old, key)) {
            causes.push(Cause::invalid(at, &shown(key, get(event, key)), "field is immutable"));
        }
        return;
    }
    if get(event, "eventTime").is_null() {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = get(event, "type");
    if kind != "Normal" && kind != "Warning" {
        let detail = format!("has invalid value: {}", kind.as_str().unwrap_or(""));
        causes.push(Cause::invalid("type", &json!(""), &detail));
    }
    for key in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let value = get(event, key);
        if !is_empty(&value) && value != 0 {
            causes.push(Cause::invalid(key, &json!(""), "needs to be unset"));
        }
    }
}

fn check_series(series: &Value, causes: Causes<'_>) {
    if series.is_null() {
        return;
    }
    if member(series, "count").as_i64().unwrap_or(0) < 2 {
        causes.push(Cause::invalid("series.count", &json!(""), "should be at least 2"));
    }
    if member(series, "lastObservedTime").is_null() {
        causes.push(Cause::required("series.lastObservedTime", ""));
    }
}

pub(crate) fn lease(lease: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    let spec = lease.get("spec").unwrap_or(&Value::Null);
    let below = |key: &str, least: i64| member(spec, key).as_i64().is_some_and(|it| it < least);
    if below("leaseDurationSeconds", 1) {
        let value = member(spec, "leaseDurationSeconds");
        causes.push(Cause::invalid("spec.leaseDurationSeconds", value, "must be greater than 0"));
    }
    if below("leaseTransitions", 0) {
        let value = member(spec, "leaseTransitions");
        causes.push(Cause::invalid("spec.leaseTransitions", value, NOT_NEGATIVE));
    }
}

pub(crate) fn priority_class(class: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    if let Some(old) = old {
        if class.get("value") != old.get("value") {
            causes.push(Cause::forbidden("value", "may not be changed in an update."));
        }
        return;
    }
    let name = read_path(class, "metadata.name").and_then(Value::as_str).unwrap_or("");
    let value = class.get("value").and_then(Value::as_i64);
    if SYSTEM.iter().any(|(system, priority)| name == *system && value == Some(*priority)) {
        // Only the server creates these.
    } else if name.starts_with("system-") {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: \
             {name} is not a known system priority class"
        );
        causes.push(Cause::forbidden("metadata.name", &detail));
    } else if class.get("value").and_then(Value::as_i64).is_some_and(|value| value > MAX_PRIORITY) {
        let detail = format!("maximum allowed value of a user defined priority is {MAX_PRIORITY}");
        causes.push(Cause::forbidden("value", &detail));
    }
    let policies = &["PreemptLowerPriority", "Never"];
    let policy = class.get("preemptionPolicy").unwrap_or(&Value::Null);
    if policy.as_str().is_some_and(|policy| !policies.contains(&policy)) {
        causes.push(Cause::unsupported("preemptionPolicy", policy, policies));
    }
}
