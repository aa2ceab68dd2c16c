//! Changes of pods that clients may make: of the pod itself, and of its ephemeral containers.

use homeostat_schema::InternalValue;
use serde_json::{Value, json};

use super::annotations::{APP_ARMOR, MIRROR};
use super::checks::{self, items, member};
use crate::fields::{Fields, are_kept, read_path, text};
use crate::go_diff;
use crate::status::Cause;

const ONLY_UPDATABLE: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks the new state of a pod against the stored one (`ValidatePodUpdate`).
pub(super) fn validate(pod: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    check_annotations(pod, old, causes);
    check_spec(pod, old, causes);
}

/// Checks a pod whose status is written (`ValidatePodStatusUpdate`).
pub(super) fn validate_status(pod: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    const ANNOTATIONS: &str = "metadata.annotations";
    check_annotations(pod, old, causes);
    if !are_kept(pod, Some(old), &[ANNOTATIONS]) {
        let [metadata, spec] = ["metadata", "spec"].map(|key| pod.get(key).unwrap_or(&Value::Null));
        checks::pod_annotations::check(metadata, spec, ANNOTATIONS, causes);
    }
    checks::pod_status::check(pod, old, causes);
}

fn check_spec(pod: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let [new, old] = [pod, old].map(|pod| pod.get("spec").unwrap_or(&Value::Null));
    if new == old {
        return;
    }
    for list in ["containers", "initContainers"] {
        if !check_containers(list, new, old, causes) {
            return;
        }
    }
    if !check_deadline(new, old, causes) {
        return;
    }
    check_tolerations(new, old, causes);
    check_gates(new, old, causes);
    let mut rest = with_updatable_of(new, old);
    if !items(member(old, "schedulingGates")).is_empty() {
        check_node_selector(&mut rest, old, causes);
        check_node_affinity(&mut rest, old, causes);
    }
    check_rest(&rest, old, causes);
}

/// Checks the new ephemeral containers of a pod against its stored ones
/// (`ValidatePodEphemeralContainersUpdate`).
pub(super) fn validate_ephemeral(pod: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    const PATH: &str = "spec.ephemeralContainers";
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    checks::pod_spec::pod(spec, metadata, causes);
    if read_path(old, "metadata.annotations").is_some_and(|all| all.get(MIRROR).is_some()) {
        // Upstream's path without a name.
        let detail = "static pods do not support ephemeral containers";
        *causes = vec![Cause::forbidden("[]", detail)];
        return;
    }
    let list = |pod| items(read_path(pod, PATH).unwrap_or(&Value::Null));
    for before in list(old) {
        let name = text(before, "name");
        let detail = match list(pod).iter().rfind(|now| text(now, "name") == name) {
            Some(now) if now == before => continue,
            Some(now) => {
                let diff = go_diff::diff("core.EphemeralContainer", before, now);
                format!("existing ephemeral containers \"{name}\" may not be changed\n{diff}")
            }
            None => format!("existing ephemeral containers \"{name}\" may not be removed\n"),
        };
        causes.push(Cause::forbidden(PATH, &detail));
    }
}

/// Checks that the annotations that only a kubelet sets at the creation stay.
fn check_annotations(pod: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let annotations = |pod| read_path(pod, "metadata.annotations").and_then(Value::as_object);
    let (new, old) = (annotations(pod), annotations(old));
    let mut refuse = |key: &str, verb: &str| {
        let what = match key {
            MIRROR => "mirror pod annotation",
            key if key.starts_with(APP_ARMOR) => "AppArmor annotations",
            _ => return,
        };
        let field = format!("metadata.annotations[{key}]");
        causes.push(Cause::forbidden(field, &format!("may not {verb} {what}")));
    };
    for (key, before) in old.into_iter().flatten() {
        if new.and_then(|new| new.get(key)) != Some(before) {
            refuse(key, "remove or update");
        }
    }
    for (key, _) in new.into_iter().flatten() {
        if old.is_none_or(|old| !old.contains_key(key)) {
            refuse(key, "add");
        }
    }
}

/// Checks the images of containers. Returns false if some container was added or removed.
fn check_containers(list: &str, new: &Value, old: &Value, causes: &mut Vec<Cause>) -> bool {
    let (new, old) = (items(member(new, list)), items(member(old, list)));
    if new.len() != old.len() {
        let detail = "pod updates may not add or remove containers";
        causes.push(Cause::forbidden(format!("spec.{list}"), detail));
        return false;
    }
    for (place, container) in new.iter().enumerate() {
        let (at, image) = (format!("spec.{list}[{place}].image"), text(container, "image"));
        if image.is_empty() {
            causes.push(Cause::required(at.clone(), ""));
        }
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            causes.push(Cause::invalid(at, &json!(image), detail));
        }
    }
    true
}

/// Checks that the deadline is only set or shortened. Returns false if nothing else counts.
fn check_deadline(new: &Value, old: &Value, causes: &mut Vec<Cause>) -> bool {
    const PATH: &str = "spec.activeDeadlineSeconds";
    let deadline = |spec| member(spec, "activeDeadlineSeconds").as_i64();
    let detail = match (deadline(new), deadline(old)) {
        (Some(new), _) if i32::try_from(new).is_ok_and(|new| new >= 0) => {
            if deadline(old).is_none_or(|old| new <= old) {
                return true;
            }
            "must be less than or equal to previous value"
        }
        (Some(_), _) => "must be between 0 and 2147483647, inclusive",
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            causes.push(Cause::invalid(PATH, &Value::Null, detail));
            return true;
        }
        (None, None) => return true,
    };
    causes.push(Cause::invalid(PATH, member(new, "activeDeadlineSeconds"), detail));
    false
}

/// Checks that an update removes no toleration; their durations may change.
fn check_tolerations(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let list = |spec: &Value| -> Vec<Value> {
        items(member(spec, "tolerations")).iter().cloned().map(without_time).collect()
    };
    let kept = list(new);
    if list(old).iter().any(|one| !kept.contains(one)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", detail));
        return;
    }
    let each = &[("tolerations", checks::Test::Each(checks::tolerations::TOLERATION))];
    checks::run(each, new, "spec", causes);
}

fn without_time(mut toleration: Value) -> Value {
    if let Some(members) = toleration.as_object_mut() {
        members.remove("tolerationSeconds");
    }
    toleration
}

/// Checks that an update adds no scheduling gate.
fn check_gates(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let known = items(member(old, "schedulingGates"));
    for (place, gate) in items(member(new, "schedulingGates")).iter().enumerate() {
        let name = text(gate, "name");
        if known.iter().all(|known| text(known, "name") != name) {
            let field = format!("spec.schedulingGates[{place}].name");
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            causes.push(Cause::forbidden(field, &detail));
        }
    }
}

/// Returns a spec with the stored values of what an update may change.
fn with_updatable_of(new: &Value, old: &Value) -> Value {
    let mut spec = new.clone();
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, old) in containers.zip(items(member(old, list))) {
            set(container, "image", member(old, "image"));
        }
    }
    for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        set(&mut spec, key, member(old, key));
    }
    spec
}

fn set(object: &mut Value, key: &str, value: &Value) {
    let Some(members) = object.as_object_mut() else { return };
    if value.is_null() {
        members.remove(key);
    } else {
        members.insert(key.to_owned(), value.clone());
    }
}

/// Checks that a gated pod keeps its node selector, and treats additions as if they were not there.
fn check_node_selector(spec: &mut Value, old: &Value, causes: &mut Vec<Cause>) {
    let (new, before) = (member(spec, "nodeSelector").clone(), member(old, "nodeSelector"));
    let mut stored = before.as_object().into_iter().flatten();
    if stored.any(|(key, value)| new.get(key) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        causes.push(Cause::invalid("spec.nodeSelector", &new, detail));
    }
    set(spec, "nodeSelector", before);
}

/// Checks that the required node affinity of a gated pod becomes at most narrower, and treats the
/// change as if it were not there.
fn check_node_affinity(spec: &mut Value, old: &Value, causes: &mut Vec<Cause>) {
    let affinity = |spec| member(member(spec, "affinity"), "nodeAffinity").clone();
    let (new, before) = (affinity(spec), affinity(old));
    if new == before {
        return;
    }
    check_terms(&new, &before, causes);
    let old_affinity = member(old, "affinity");
    let mut affinity = match member(spec, "affinity") {
        Value::Null => json!({}),
        given => given.clone(),
    };
    set(&mut affinity, "nodeAffinity", &before);
    let is_none = old_affinity.is_null() && affinity == json!({});
    set(spec, "affinity", if is_none { &Value::Null } else { &affinity });
}

fn check_terms(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let terms = |affinity| items(member(member(affinity, REQUIRED), "nodeSelectorTerms")).to_vec();
    let path = format!("spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
    let (new, old) = (terms(new), terms(old));
    if old.is_empty() {
        return;
    }
    let shown =
        |term: &Value| InternalValue::of("core.NodeSelectorTerm", term).map(|term| term.to_json());
    if new.len() != old.len() {
        let all: Vec<Value> = new.iter().filter_map(shown).collect();
        let all = if all.is_empty() { Value::Null } else { json!(all) };
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        causes.push(Cause::invalid(path, &all, detail));
        return;
    }
    for (place, (new, old)) in new.iter().zip(&old).enumerate() {
        if !is_narrower(new, old) {
            let detail = "only additions are allowed (no mutations or deletions)";
            let shown = shown(new).unwrap_or_default();
            causes.push(Cause::invalid(format!("{path}[{place}]"), &shown, detail));
        }
    }
}

/// Returns true if a term has all requirements of the old one, in their places.
fn is_narrower(new: &Value, old: &Value) -> bool {
    const LISTS: [&str; 2] = ["matchExpressions", "matchFields"];
    let list = |term, key| items(member(term, key));
    // A term without requirements selects nothing, so that any requirement widens it.
    if LISTS.iter().all(|key| list(old, key).is_empty()) {
        return LISTS.iter().all(|key| list(new, key).is_empty());
    }
    LISTS.iter().all(|key| list(new, key).starts_with(list(old, key)))
}

/// Refuses the changes that are left, and shows them as the server's own version has them.
fn check_rest(rest: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if rest == old {
        return;
    }
    let diff = go_diff::diff("core.PodSpec", old, rest);
    // What only version v1 has is no change.
    if !diff.is_empty() {
        causes.push(Cause::forbidden("spec", &format!("{ONLY_UPDATABLE}\n{diff}")));
    }
}
