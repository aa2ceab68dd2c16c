//! The validations of single kinds: those that a controller can meet.

use serde_json::{Value, json};

use super::label_selector::LabelSelector;
use super::{pod, read_path};
use crate::object::{Fields, string_map};
use crate::status::Cause;

pub(super) fn event(event: &Fields, _old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let text = |path: &str| read_path(event, path).and_then(Value::as_str).unwrap_or("");
    let (about, own) = (text("involvedObject.namespace"), text("metadata.namespace"));
    let cluster_scoped = about.is_empty() && own == "default";
    if about != own && !cluster_scoped {
        causes.push(Cause::invalid(
            "involvedObject.namespace",
            &json!(about),
            "does not match event.namespace",
        ));
    }
}

pub(super) fn replica_set(object: &Fields, _old: Option<&Fields>, causes: &mut Vec<Cause>) {
    for path in ["spec.replicas", "spec.minReadySeconds"] {
        if let Some(count) =
            read_path(object, path).filter(|count| count.as_i64().is_some_and(|n| n < 0))
        {
            causes.push(Cause::invalid(path, count, "must be greater than or equal to 0"));
        }
    }
    let path = "spec.selector";
    let Some(selector) = read_path(object, path).filter(|selector| !selector.is_null()) else {
        causes.push(Cause::required(path, ""));
        return;
    };
    match LabelSelector::read(selector) {
        Err(_) => causes.push(Cause::invalid(path, selector, "invalid label selector")),
        Ok(parsed) => {
            if parsed.is_everything() {
                causes.push(Cause::invalid(
                    path,
                    selector,
                    "empty selector is invalid for deployment",
                ));
            }
            template(object, &parsed, causes);
        }
    }
}

fn template(object: &Fields, selector: &LabelSelector, causes: &mut Vec<Cause>) {
    let empty = json!({});
    let labels = read_path(object, "spec.template.metadata.labels").unwrap_or(&empty);
    let found = labels.as_object().map(string_map).unwrap_or_default();
    if !selector.is_everything() && !selector.matches(&found) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels, why));
    }
    pod::validate_spec(read_path(object, "spec.template.spec"), "spec.template.spec", causes);
    let path = "spec.template.spec.restartPolicy";
    if let Some(policy) = read_path(object, path).filter(|policy| **policy != json!("Always")) {
        causes.push(Cause::unsupported(path, policy, &["Always"]));
    }
}

pub(super) fn replication_controller(_o: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {
}
pub(super) fn deployment(o: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    replica_set(o, old, causes);
}
pub(super) fn stateful_set(_o: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}
pub(super) fn daemon_set(_o: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}
pub(super) fn lease(_o: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}
pub(super) fn priority_class(_o: &Fields, _old: Option<&Fields>, _causes: &mut Vec<Cause>) {}
