//! Pods: grace periods, binding, quality of service.

use std::collections::BTreeSet;

use homeostat_core::go_quote;
use homeostat_schema::aggregate;
use serde_json::{Map, Value, json};

use super::columns::{ActionError, AdmitError};
use super::{
    app_armor, checks, image_name, label_keys, pod_level, pod_update, priority_class, resize,
};
use crate::fields::{Fields, are_kept, read_path, text};
use crate::names;
use crate::plugin::{Addition, AdmissionPlugin, At};
use crate::status::Cause;

/// Returns the grace period of a deleted pod: none if no kubelet would ever confirm its end.
pub(super) fn grace(pod: &Fields, requested: Option<i64>) -> i64 {
    let phase = read_path(pod, "status.phase").and_then(Value::as_str).unwrap_or("");
    let scheduled = read_path(pod, "spec.nodeName")
        .and_then(Value::as_str)
        .is_some_and(|name| !name.is_empty());
    if !scheduled || matches!(phase, "Succeeded" | "Failed") {
        return 0;
    }
    let usual = || {
        read_path(pod, "spec.terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30)
    };
    match requested.unwrap_or_else(usual) {
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// `pods/binding`: assigns a pod to a node, once.
pub(super) fn bind(pod: &mut Fields, binding: &Fields, now: &str) -> Result<(), ActionError> {
    check_binding(binding)?;
    check_unbound(pod)?;
    for member in ["annotations", "labels"] {
        let given = binding.get("metadata").and_then(|metadata| metadata.get(member));
        if let Some(given) = given.and_then(Value::as_object).filter(|given| !given.is_empty()) {
            object_in(object_in(pod, "metadata"), member).extend(given.clone());
        }
    }
    let node = read_path(binding, "target.name").cloned().unwrap_or(Value::Null);
    object_in(pod, "spec").insert("nodeName".to_owned(), node);
    object_in(pod, "status").remove("nominatedNodeName");
    let conditions = object_in(pod, "status").entry("conditions").or_insert_with(|| json!([]));
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now});
    if let Value::Array(list) = conditions {
        set_condition(list, scheduled);
    }
    Ok(())
}

/// Reports a binding to something else than a node.
fn check_binding(binding: &Fields) -> Result<(), ActionError> {
    let target = |path: &str| read_path(binding, path).and_then(Value::as_str).unwrap_or("");
    let mut problems = Vec::new();
    let kind = target("target.kind");
    if !matches!(kind, "" | "Node") {
        let detail = "supported values: \"Node\", \"<empty>\"";
        let kind = go_quote(kind);
        problems.push(format!("target.kind: Unsupported value: {kind}: {detail}"));
    }
    let node = target("target.name");
    if node.is_empty() {
        problems.push("target.name: Required value".to_owned());
    } else if problems.is_empty() {
        for detail in names::dns_subdomain(node) {
            problems.push(Cause::invalid("target.name", &json!(node), &detail).text());
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(ActionError::Invalid(aggregate(problems))) }
}

/// Reports a pod that cannot be assigned to a node now.
fn check_unbound(pod: &Fields) -> Result<(), ActionError> {
    let name = read_path(pod, "metadata.name").and_then(Value::as_str).unwrap_or("").to_owned();
    if read_path(pod, "metadata.deletionTimestamp").is_some() {
        let detail = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(ActionError::Conflict(detail));
    }
    if let Some(node) = read_path(pod, "spec.nodeName").and_then(Value::as_str) {
        let detail = format!("pod {name} is already assigned to node \"{node}\"");
        return Err(ActionError::Conflict(detail));
    }
    if read_path(pod, "spec.schedulingGates").is_some_and(|gates| *gates != json!([])) {
        let detail = format!("pod {name} has non-empty .spec.schedulingGates");
        return Err(ActionError::Conflict(detail));
    }
    Ok(())
}

/// Sets the condition of a type in its place. Its time is that of the last change of its status.
fn set_condition(list: &mut Vec<Value>, mut condition: Value) {
    let is_same = |known: &&mut Value| text(known, "type") == text(&condition, "type");
    let Some(known) = list.iter_mut().find(is_same) else { return list.push(condition) };
    if text(known, "status") == text(&condition, "status") {
        condition["lastTransitionTime"] = known["lastTransitionTime"].take();
    }
    *known = condition;
}

/// Sets a new pod's priority from its class, or from the default class if there is one.
pub(super) fn set_priority(
    pod: &mut Fields,
    find: &dyn Fn(&str) -> Option<Fields>,
    all: &dyn Fn() -> Vec<Fields>,
) -> Result<(), AdmitError> {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return Ok(()) };
    let name = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or("").to_owned();
    let class = if name.is_empty() {
        priority_class::default_of(all())
    } else {
        let class = find(&name);
        Some(class.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
    };
    let class = class.unwrap_or_default();
    let computed = priority_class::value(&class);
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|it| *it != computed) {
        return Err(AdmitError::Forbidden(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {computed} from the given PriorityClass name"
        )));
    }
    spec.insert("priority".to_owned(), json!(computed));
    let default = read_path(&class, "metadata.name").filter(|_| name.is_empty());
    if let Some(default) = default {
        spec.insert("priorityClassName".to_owned(), default.clone());
    }
    let without_class = json!("PreemptLowerPriority");
    let is_named = read_path(&class, "metadata.name").is_some();
    let policy = class.get("preemptionPolicy");
    let policy = if is_named { policy } else { Some(&without_class) };
    let Some(policy) = policy else { return Ok(()) };
    if let Some(given) = spec.get("preemptionPolicy").filter(|given| *given != policy) {
        return Err(AdmitError::Forbidden(format!(
            "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority \
             admission controller computed {} from the given PriorityClass name",
            given.as_str().unwrap_or(""),
            policy.as_str().unwrap_or("")
        )));
    }
    spec.insert("preemptionPolicy".to_owned(), policy.clone());
    Ok(())
}

fn object_in<'a>(object: &'a mut Fields, key: &str) -> &'a mut Map<String, Value> {
    let member = object.entry(key).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    member.as_object_mut().expect("was just made an object")
}

/// Makes negative grace periods 1, and sets the host ports of a pod on the host network.
pub(super) fn derive(pod: &mut Fields) {
    if let Some(Value::Object(status)) = pod.get_mut("status") {
        sync_pod_ips(status);
    }
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace.is_some_and(|grace| grace < 0) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
    if spec.get("hostNetwork") != Some(&json!(true)) {
        return;
    }
    for list in ["containers", "initContainers"] {
        let list = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        let ports = list.filter_map(|one| one.get_mut("ports").and_then(Value::as_array_mut));
        for port in ports.flatten().filter_map(Value::as_object_mut) {
            let number = port.get("containerPort").cloned().unwrap_or_default();
            port.entry("hostPort").or_insert(number);
        }
    }
}

/// Makes the single address and the list of addresses agree.
fn sync_pod_ips(status: &mut Fields) {
    let first = status.get("podIPs").and_then(|all| all.get(0)?.get("ip"));
    let one = status.get("podIP").filter(|one| **one != "");
    let (name, value) = match (one, first) {
        (Some(one), first) if first != Some(one) => ("podIPs", json!([{"ip": one}])),
        (None, Some(first)) => ("podIP", first.clone()),
        _ => return,
    };
    status.insert(name.to_owned(), value);
}

/// Sets the initial status of a new pod.
pub(super) fn prepare(pod: &mut Fields) {
    label_keys::merge(pod);
    app_armor::follow_annotations(pod);
    pod_level::complete(pod);
    let class = resize::quality_of_service(pod);
    let now = read_path(pod, "metadata.creationTimestamp").cloned();
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if read_path(pod, "spec.schedulingGates").is_some() {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null,
            "lastTransitionTime": now,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.insert("status".to_owned(), status);
}

/// The members that admission adds at each write of the spec.
pub(super) const ADDITIONS: [Addition; 3] = [
    Addition { plugin: AdmissionPlugin::AlwaysPullImages, at: At::Write, apply: always_pull },
    Addition { plugin: AdmissionPlugin::Priority, at: At::Write, apply: set_no_priority },
    Addition {
        plugin: AdmissionPlugin::DefaultTolerationSeconds,
        at: At::Write,
        apply: add_default_tolerations,
    },
];

/// Pulls all images of a pod, unless an update brings no other image.
fn always_pull(pod: &mut Fields, old: Option<&Fields>) {
    const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
    let images = |pod: &Fields| -> BTreeSet<String> {
        let spec = pod.get("spec").unwrap_or(&Value::Null);
        let lists = LISTS.iter().filter_map(|list| spec[*list].as_array());
        lists.flatten().map(|container| text(container, "image").to_owned()).collect()
    };
    if old.is_some_and(|old| images(pod).is_subset(&images(old))) {
        return;
    }
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let items = |list: &'static str| (list, "imagePullPolicy");
    for (list, member) in LISTS.map(items).into_iter().chain([("volumes", "pullPolicy")]) {
        let found = spec.get_mut(list).and_then(Value::as_array_mut);
        for item in found.into_iter().flatten() {
            let item = if list == "volumes" { item.get_mut("image") } else { Some(item) };
            if let Some(item) = item.and_then(Value::as_object_mut) {
                item.insert(member.to_owned(), json!("Always"));
            }
        }
    }
}

/// A pod without a class has the priority 0.
fn set_no_priority(pod: &mut Fields, _: Option<&Fields>) {
    if let Some(Value::Object(spec)) = pod.get_mut("spec") {
        spec.entry("priority").or_insert(json!(0));
        spec.entry("preemptionPolicy").or_insert(json!("PreemptLowerPriority"));
    }
}

/// Tolerates a node that is not ready for five minutes, unless the pod has a toleration of its own.
fn add_default_tolerations(pod: &mut Fields, _: Option<&Fields>) {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Value::Array(list) = tolerations else { return };
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let known = list.iter().any(|one| {
            let (key, effect) = (text(one, "key"), text(one, "effect"));
            (key.is_empty() || key == taint) && matches!(effect, "" | "NoExecute")
        });
        if !known {
            list.push(json!({"key": taint, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300}));
        }
    }
}

pub(super) fn service_account(spec: &Fields) -> Value {
    spec.get("serviceAccount").cloned().unwrap_or_default()
}

pub(super) fn service_account_name(spec: &Fields) -> Value {
    spec.get("serviceAccountName").cloned().unwrap_or_default()
}

pub(super) fn probe(_probe: &Fields) -> Value {
    json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
}

/// A volume without a source is an empty directory.
pub(super) fn volume(volume: &Fields) -> Value {
    if volume.keys().any(|key| key != "name") { Value::Null } else { json!({"emptyDir": {}}) }
}

/// The image of a volume is pulled as that of a container.
pub(super) fn volume_pull_policy(volume: &Fields) -> Value {
    pull_policy_of(volume.get("reference").and_then(Value::as_str).unwrap_or(""))
}

/// A missing request is the limit.
pub(super) fn requests(container: &Fields) -> Value {
    match container.get("resources").and_then(|resources| resources.get("limits")) {
        Some(limits) => json!({"resources": {"requests": limits}}),
        None => Value::Null,
    }
}

/// `latest` may have changed since it was pulled, so it is always pulled. A text that names no
/// image is not.
pub(super) fn pull_policy(container: &Fields) -> Value {
    pull_policy_of(container.get("image").and_then(Value::as_str).unwrap_or(""))
}

fn pull_policy_of(image: &str) -> Value {
    json!(if image_name::is_latest(image) { "Always" } else { "IfNotPresent" })
}

pub(super) fn validate(pod: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let [metadata, spec] = ["metadata", "spec"].map(|key| pod.get(key).unwrap_or(&Value::Null));
    // A write of the status keeps the spec, any other write keeps the status.
    let writes_status = old.is_some() && !are_kept(pod, old, &["status"]);
    if !writes_status && !are_kept(pod, old, &["spec", "metadata.annotations"]) {
        checks::pod_spec::pod(spec, metadata, causes);
    }
    match old {
        Some(old) if writes_status => pod_update::validate_status(pod, old, causes),
        Some(old) => pod_update::validate(pod, old, causes),
        None => checks::pod_spec::new_pod(spec, metadata, causes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(pod: Value, binding: &Value) -> Result<Value, ActionError> {
        let Value::Object(mut pod) = pod else { panic!("a pod is an object") };
        bind(&mut pod, binding.as_object().unwrap(), "2026-01-01T00:00:00Z")?;
        Ok(Value::Object(pod))
    }

    #[test]
    fn binding_sets_the_node_and_merges_annotations() {
        let pod = json!({"metadata": {"name": "p", "annotations": {"a": "1", "b": "1"}}});
        let binding = json!({"metadata": {"annotations": {"b": "2"}}, "target": {"name": "n"}});
        let pod = bound(pod, &binding).unwrap();
        assert_eq!(pod["spec"]["nodeName"], "n");
        assert_eq!(pod["metadata"]["annotations"], json!({"a": "1", "b": "2"}));
        let refused = bound(json!({"metadata": {"name": "p"}}), &json!({"target": {}}));
        assert!(matches!(refused, Err(ActionError::Invalid(_))));
    }

    #[test]
    fn binding_replaces_a_condition_in_its_place() {
        let conditions = json!([
            {"type": "PodScheduled", "status": "False", "observedGeneration": 1},
            {"type": "Ready", "status": "False"},
        ]);
        let pod = json!({"metadata": {"name": "p"}, "status": {"conditions": conditions}});
        let pod = bound(pod, &json!({"target": {"name": "n"}})).unwrap();
        let expected = json!([
            {"type": "PodScheduled", "status": "True", "lastProbeTime": null,
             "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Ready", "status": "False"},
        ]);
        assert_eq!(pod["status"]["conditions"], expected);
    }

    #[test]
    fn binding_names_a_node() {
        let refused =
            bound(json!({"metadata": {"name": "p"}}), &json!({"target": {"name": "A b"}}));
        let Err(ActionError::Invalid(detail)) = refused else { panic!("the pod was bound") };
        assert!(detail.starts_with("target.name: Invalid value: \"A b\": "), "{detail}");
    }

    #[test]
    fn toleration_of_another_effect_leaves_the_default_ones() {
        let keys = |tolerations: Value| -> Vec<String> {
            let Value::Object(mut pod) = json!({"spec": {"tolerations": tolerations}}) else {
                unreachable!()
            };
            add_default_tolerations(&mut pod, None);
            let list = pod["spec"]["tolerations"].as_array().unwrap().clone();
            list.iter().map(|one| text(one, "key").to_owned()).collect()
        };
        let (not_ready, gone) = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable");
        let all = json!([{"operator": "Exists", "effect": "NoSchedule"}]);
        assert_eq!(keys(all), ["", not_ready, gone]);
        assert_eq!(keys(json!([{"operator": "Exists"}])), [""]);
        let evicting = json!([{"key": gone, "effect": "NoExecute"}]);
        assert_eq!(keys(evicting), [gone, not_ready]);
    }

    #[test]
    fn pod_without_a_class_preempts() {
        let admitted = |policy: &str, classes: Vec<Fields>| {
            let spec = json!({"preemptionPolicy": policy});
            let mut pod = Fields::from_iter([("spec".to_owned(), spec)]);
            set_priority(&mut pod, &|_| None, &|| classes.clone())
        };
        assert_eq!(admitted("PreemptLowerPriority", Vec::new()), Ok(()));
        assert!(matches!(admitted("Never", Vec::new()), Err(AdmitError::Forbidden(_))));
        let class = json!({"metadata": {"name": "a"}, "globalDefault": true, "value": 1,
            "preemptionPolicy": "Never"});
        assert_eq!(admitted("Never", vec![class.as_object().unwrap().clone()]), Ok(()));
    }

    #[test]
    fn gated_pod_is_not_bound() {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"schedulingGates": [{"name": "g"}]}});
        let Err(ActionError::Conflict(detail)) = bound(pod, &json!({"target": {"name": "n"}}))
        else {
            panic!("the pod was bound");
        };
        assert_eq!(detail, "pod p has non-empty .spec.schedulingGates");
    }
}
