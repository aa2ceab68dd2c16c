//! What only pods do: grace, binding, quality of service.

use serde_json::{Map, Value, json};

use super::{Trouble, checks, read_path};
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
pub(super) fn bind(pod: &mut Fields, binding: &Fields, now: &str) -> Result<(), Trouble> {
    if read_path(binding, "target.name").and_then(Value::as_str).unwrap_or("").is_empty() {
        return Err(Trouble::Invalid("target.name: Required value".to_owned()));
    }
    let name = read_path(pod, "metadata.name").and_then(Value::as_str).unwrap_or("").to_owned();
    if read_path(pod, "metadata.deletionTimestamp").is_some() {
        let why = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(Trouble::Conflict(why));
    }
    if let Some(node) = read_path(pod, "spec.nodeName").and_then(Value::as_str) {
        let why = format!("pod {name} is already assigned to node \"{node}\"");
        return Err(Trouble::Conflict(why));
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

/// Gives a new pod the priority of its class; without one, that of the default class, if there is any.
pub(super) fn prioritize(
    pod: &mut Fields,
    find: &dyn Fn(&str) -> Option<Fields>,
    all: &dyn Fn() -> Vec<Fields>,
) -> Result<(), String> {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return Ok(()) };
    let name = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or("").to_owned();
    let value = |class: &Fields| class.get("value").and_then(Value::as_i64).unwrap_or(0);
    let class = if name.is_empty() {
        let mut defaults = all();
        defaults.retain(|class| class.get("globalDefault") == Some(&json!(true)));
        defaults.into_iter().min_by_key(value)
    } else {
        let class = find(&name);
        Some(class.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?)
    };
    let class = class.unwrap_or_default();
    let computed = value(&class);
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|it| *it != computed) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {computed} from the given PriorityClass name"
        ));
    }
    spec.insert("priority".to_owned(), json!(computed));
    let default = read_path(&class, "metadata.name").filter(|_| name.is_empty());
    if let Some(default) = default {
        spec.insert("priorityClassName".to_owned(), default.clone());
    }
    let Some(policy) = class.get("preemptionPolicy") else { return Ok(()) };
    if let Some(given) = spec.get("preemptionPolicy").filter(|given| *given != policy) {
        return Err(format!(
            "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority admission controller \
             computed {} from the given PriorityClass name",
            given.as_str().unwrap_or(""),
            policy.as_str().unwrap_or("")
        ));
    }
    spec.insert("preemptionPolicy".to_owned(), policy.clone());
    Ok(())
}

fn object_in<'a>(object: &'a mut Fields, key: &str) -> &'a mut Map<String, Value> {
    let member = object.entry(key).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    member.as_object_mut().expect("made an object just now")
}

/// No grace is less than none, and on the network of its node a pod has that node's ports.
pub(super) fn derive(pod: &mut Fields) {
    if let Some(Value::Object(status)) = pod.get_mut("status") {
        agree_on_addresses(status);
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

/// The one address is the first of all addresses.
fn agree_on_addresses(status: &mut Fields) {
    let first = status.get("podIPs").and_then(|all| all.pointer("/0/ip")).cloned();
    match status.get("podIP").cloned() {
        Some(one) if first.as_ref() != Some(&one) => {
            status.insert("podIPs".to_owned(), json!([{"ip": one}]));
        }
        None if first.is_some() => {
            status.insert("podIP".to_owned(), json!(first));
        }
        _ => {}
    }
}

/// What a new pod's status starts with, and what admission adds to its spec.
pub(super) fn prepare(pod: &mut Fields) {
    let class = quality_of_service(pod);
    let now = read_path(pod, "metadata.creationTimestamp").cloned();
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if read_path(pod, "spec.schedulingGates").is_some() {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": now,
            "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    pod.insert("status".to_owned(), status);
    admit(pod);
}

/// What admission adds to a pod whenever its spec is written.
fn admit(pod: &mut Fields) {
    if let Some(Value::Object(spec)) = pod.get_mut("spec") {
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
    let list = |path| read_path(pod, path).and_then(Value::as_array).into_iter().flatten();
    let containers: Vec<&Value> =
        list("spec.containers").chain(list("spec.initContainers")).collect();
    let member = |container: &Value, which: &str, what: &str| {
        let amount = container.pointer(&format!("/resources/{which}/{what}"));
        amount.filter(|amount| **amount != "0").cloned()
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

/// What an update without them keeps, in the spec and in the status.
pub(super) fn inherit(pod: &mut Fields, old: &Fields) {
    const KEPT: [&str; 4] = [
        "qosClass",
        "resourceClaimStatuses",
        "extendedResourceClaimStatus",
        "nodeAllocatableResourceClaimStatuses",
    ];
    admit(pod);
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
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    checks::run(checks::pod_spec::POD_SPEC, spec, "spec", causes);
    let Some(old) = old.and_then(|old| old.get("spec")) else { return };
    let count =
        |spec: &Value, list: &str| spec.get(list).and_then(Value::as_array).map_or(0, Vec::len);
    let mut grew = false;
    for list in ["containers", "initContainers"] {
        if count(spec, list) != count(old, list) {
            let why = "pod updates may not add or remove containers";
            causes.push(Cause::forbidden(format!("spec.{list}"), why));
            grew = true;
        }
    }
    if grew {
        return;
    }
    tolerates_no_less(spec, old, causes);
    if without_mutable(spec.clone()) != without_mutable(old.clone()) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` \
                   (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
                   (allow it to be set to 1 if it was previously negative)";
        causes.push(Cause::forbidden("spec", why));
    }
}

/// What a pod tolerates it goes on tolerating, if perhaps for another time.
fn tolerates_no_less(new: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let list = |spec: &Value| -> Vec<Value> {
        let list = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
        list.into_iter().map(without_time).collect()
    };
    let kept = list(new);
    if list(old).iter().any(|one| !kept.contains(one)) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", why));
    }
}

fn without_time(mut toleration: Value) -> Value {
    if let Some(members) = toleration.as_object_mut() {
        members.remove("tolerationSeconds");
    }
    toleration
}

fn without_mutable(mut spec: Value) -> Value {
    for list in ["containers", "initContainers"] {
        let items = spec.get_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
            item.remove("image");
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            spec.remove(key);
        }
    }
    spec
}
