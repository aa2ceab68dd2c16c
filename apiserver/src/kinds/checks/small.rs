//! Events, leases and priority classes.

use serde_json::{Value, json};

use super::{NOT_NEGATIVE, member};
use crate::kinds::read_path;
use crate::object::Fields;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

/// The largest priority that is not the system's.
const HIGHEST: i64 = 1_000_000_000;

pub(crate) fn event(event: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    let text = |path: &str| read_path(event, path).and_then(Value::as_str).unwrap_or("");
    let (about, own) = (text("involvedObject.namespace"), text("metadata.namespace"));
    let cluster_scoped = about.is_empty() && own == "default";
    if about != own && !cluster_scoped {
        let why = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &json!(about), why));
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
    if name.starts_with("system-") {
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known \
             system priority class"
        );
        causes.push(Cause::forbidden("metadata.name", &why));
    } else if class.get("value").and_then(Value::as_i64).is_some_and(|value| value > HIGHEST) {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        causes.push(Cause::forbidden("value", &why));
    }
    let policies = &["PreemptLowerPriority", "Never"];
    let policy = class.get("preemptionPolicy").unwrap_or(&Value::Null);
    if policy.as_str().is_some_and(|policy| !policies.contains(&policy)) {
        causes.push(Cause::unsupported("preemptionPolicy", policy, policies));
    }
}
