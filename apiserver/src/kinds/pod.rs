//! What only pods do: grace, binding, quality of service.

use serde_json::{Map, Value, json};

use super::read_path;
use crate::object::Fields;
use crate::status::Cause;

/// The seconds that a deleted pod gets: none when no kubelet would ever confirm its end.
pub(super) fn grace(pod: &Fields, asked: Option<i64>) -> i64 {
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
    match asked.unwrap_or_else(usual) {
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// `pods/binding`: puts a pod on a node, once.
pub(super) fn bind(pod: &mut Fields, binding: &Fields, now: &str) -> Result<(), String> {
    let name = read_path(pod, "metadata.name").and_then(Value::as_str).unwrap_or("").to_owned();
    if read_path(pod, "metadata.deletionTimestamp").is_some() {
        return Err(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(node) = read_path(pod, "spec.nodeName").and_then(Value::as_str) {
        return Err(format!("pod {name} is already assigned to node \"{node}\""));
    }
    let node = read_path(binding, "target.name").cloned().unwrap_or(Value::Null);
    object_in(pod, "spec").insert("nodeName".to_owned(), node);
    let conditions = object_in(pod, "status").entry("conditions").or_insert_with(|| json!([]));
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
    if let Value::Array(list) = conditions {
        list.retain(|condition| condition.get("type") != Some(&json!("PodScheduled")));
        list.push(scheduled);
    }
    Ok(())
}

fn object_in<'a>(object: &'a mut Fields, key: &str) -> &'a mut Map<String, Value> {
    let member = object.entry(key).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    member.as_object_mut().expect("made an object just now")
}

/// What a new pod's status starts with, and what admission adds to its spec.
pub(super) fn prepare(pod: &mut Fields) {
    let class = quality_of_service(pod);
    pod.insert("status".to_owned(), json!({"phase": "Pending", "qosClass": class}));
    if let Some(Value::Object(spec)) = pod.get_mut("spec") {
        spec.entry("enableServiceLinks").or_insert(json!(true));
        spec.entry("priority").or_insert(json!(0));
        spec.entry("preemptionPolicy").or_insert(json!("PreemptLowerPriority"));
        let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
        tolerate_for_a_while(tolerations);
    }
}

/// A pod stays on a node that is not ready for five minutes, unless it says otherwise.
fn tolerate_for_a_while(tolerations: &mut Value) {
    let Value::Array(list) = tolerations else { return };
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let known = list.iter().any(|one| match one.get("key").and_then(Value::as_str) {
            Some(key) => key == taint,
            None => true,
        });
        if !known {
            list.push(json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

fn quality_of_service(pod: &Fields) -> &'static str {
    let containers = read_path(pod, "spec.containers").and_then(Value::as_array);
    let containers: Vec<&Value> = containers.into_iter().flatten().collect();
    let member = |container: &Value, which: &str, what: &str| {
        container.pointer(&format!("/resources/{which}/{what}")).cloned()
    };
    let asks = |container: &Value| {
        ["requests", "limits"].iter().any(|which| {
            ["cpu", "memory"].iter().any(|what| member(container, which, what).is_some())
        })
    };
    let sure = |container: &Value| {
        ["cpu", "memory"].iter().all(|what| {
            let limit = member(container, "limits", what);
            let request = member(container, "requests", what);
            limit.is_some() && (request.is_none() || request == limit)
        })
    };
    if !containers.iter().any(|one| asks(one)) {
        "BestEffort"
    } else if containers.iter().all(|one| sure(one)) {
        "Guaranteed"
    } else {
        "Burstable"
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

/// A volume that nobody says anything about is an empty folder.
pub(super) fn volume(volume: &Fields) -> Value {
    if volume.keys().any(|key| key != "name") { Value::Null } else { json!({"emptyDir": {}}) }
}

/// Who asks for no more than a limit asks for the limit.
pub(super) fn requests(container: &Fields) -> Value {
    match container.get("resources").and_then(|resources| resources.get("limits")) {
        Some(limits) => json!({"resources": {"requests": limits}}),
        None => Value::Null,
    }
}

/// What a status that is written without them keeps.
pub(super) fn inherit(pod: &mut Fields, old: &Fields) {
    const KEPT: [&str; 4] = [
        "qosClass",
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
    ];
    let Some(Value::Object(status)) = pod.get_mut("status") else { return };
    for key in KEPT {
        if let Some(value) = old.get("status").and_then(|status| status.get(key)) {
            status.entry(key).or_insert_with(|| value.clone());
        }
    }
}

/// `latest` may have changed since it was pulled.
pub(super) fn pull_policy(container: &Fields) -> Value {
    let image = container.get("image").and_then(Value::as_str).unwrap_or("");
    let last = image.rsplit('/').next().unwrap_or("");
    let pinned =
        image.contains('@') || last.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    json!(if pinned { "IfNotPresent" } else { "Always" })
}

pub(super) fn validate(pod: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    validate_spec(pod.get("spec"), "spec", causes);
    if let Some(old) = old {
        let frozen = |pod: &Fields| without_mutable(pod.get("spec").cloned().unwrap_or_default());
        if frozen(pod) != frozen(old) {
            let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                       `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` \
                       (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
                       (allow it to be set to 1 if it was previously negative)";
            causes.push(Cause::forbidden("spec", why));
        }
    }
}

fn without_mutable(mut spec: Value) -> Value {
    for list in ["containers", "initContainers"] {
        let items = spec.get_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
            item.remove("image");
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("activeDeadlineSeconds");
        spec.remove("tolerations");
    }
    spec
}

/// What a pod's spec, or a template's, must have.
pub(super) fn validate_spec(spec: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    let containers = spec.and_then(|spec| spec.get("containers")).and_then(Value::as_array);
    let Some(containers) = containers.filter(|list| !list.is_empty()) else {
        causes.push(Cause::required(format!("{path}.containers"), ""));
        return;
    };
    for (at, container) in containers.iter().enumerate() {
        for member in ["name", "image"] {
            if container.get(member).and_then(Value::as_str).is_none_or(str::is_empty) {
                causes.push(Cause::required(format!("{path}.containers[{at}].{member}"), ""));
            }
        }
    }
}
