//! `pods/resize`: other amounts of cpu and memory for the containers of a pod.

use homeostat_quota::object::pod::{Pod, Requirements};
use homeostat_quota::{Gates, PodResourcesOptions, QosClass, compute_qos_class, pod_requests};
use serde::Deserialize;
use serde_json::{Value, json};

use super::checks::{self, items, member};
use super::columns::{NodeRefusal, Resize};
use crate::fields::{Fields, read_path, set_or_remove, text};
use crate::status::Cause;

/// The members of the metadata that `/resize` does not write.
const KEPT_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];
const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];
/// The members of a container that `/resize` writes.
const RESIZED: [&str; 2] = ["resources", "resizePolicy"];
/// The resources that can be resized.
const MUTABLE: [&str; 2] = ["cpu", "memory"];
const ONLY_AMOUNTS: &str = "only cpu and memory resources are mutable";

pub(super) const RESIZE: Resize = Resize { restore, validate, check_node };

/// Returns the quality of service that the containers of a pod ask for.
pub(super) fn quality_of_service(pod: &Fields) -> &'static str {
    match compute_qos_class(&projection(pod), Gates::default()) {
        QosClass::Guaranteed => "Guaranteed",
        QosClass::Burstable => "Burstable",
        QosClass::BestEffort => "BestEffort",
    }
}

/// Returns the members of a pod that its resources depend on. The types of the members have been
/// checked before.
fn projection(pod: &Fields) -> Pod {
    Pod::deserialize(pod).unwrap_or_default()
}

// === restore ===

/// Restores all members that `/resize` does not write.
///
/// Containers that were added, removed, renamed or reordered stay as the client sent them: the
/// validation refuses them.
fn restore(pod: &mut Fields, old: &Fields) {
    restore_metadata(pod, old);
    restore_member(pod, old, "status");
    let (Some(Value::Object(spec)), Some(Value::Object(before))) =
        (pod.get_mut("spec"), old.get("spec"))
    else {
        return;
    };
    let count = |spec: &Fields, list: &str| spec.get(list).map_or(0, |list| items(list).len());
    if CONTAINER_LISTS.iter().any(|list| count(spec, list) != count(before, list)) {
        return;
    }
    let mut restored = before.clone();
    for list in CONTAINER_LISTS {
        if let (Some(new), Some(old)) = (spec.get(list), before.get(list)) {
            restored.insert(list.to_owned(), resized(items(new), items(old)));
        }
    }
    // A client that does not know the resources of a pod as a whole must not remove them.
    if let Some(resources) = spec.get("resources").filter(|resources| !resources.is_null()) {
        restored.insert("resources".to_owned(), resources.clone());
    }
    *spec = restored;
}

fn restore_metadata(pod: &mut Fields, old: &Fields) {
    let Some(Value::Object(metadata)) = pod.get_mut("metadata") else { return };
    let empty = Fields::new();
    let before = old.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    for key in KEPT_METADATA {
        restore_member(metadata, before, key);
    }
}

fn restore_member(new: &mut Fields, old: &Fields, key: &str) {
    set_or_remove(new, key, old.get(key).cloned());
}

/// Returns the stored containers with the resources of the new ones.
fn resized(new: &[Value], old: &[Value]) -> Value {
    if new.iter().zip(old).any(|(new, old)| text(new, "name") != text(old, "name")) {
        return json!(new);
    }
    let merge = |(new, old): (&Value, &Value)| {
        let mut merged = old.clone();
        if let (Some(merged), Some(new)) = (merged.as_object_mut(), new.as_object()) {
            for key in RESIZED {
                restore_member(merged, new, key);
            }
        }
        merged
    };
    new.iter().zip(old).map(merge).collect()
}

// === validate ===

/// Checks the new state of a pod against the stored one (`ValidatePodResize`).
fn validate(pod: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let before = old.get("spec").unwrap_or(&Value::Null);
    let metadata = pod.get("metadata").unwrap_or(&Value::Null);
    checks::pod_spec::pod(spec, metadata, causes);
    if let Some(detail) = refusal_of_pod(old) {
        // Upstream's path without a name.
        *causes = vec![Cause::forbidden("[]", detail)];
        return;
    }
    check_class(pod, old, causes);
    if !is_supported(old) {
        let detail = "Pod running on node without support for resize";
        causes.push(Cause::forbidden("spec", detail));
    }
    check_pod_level(spec, before, causes);
    if !check_order(spec, before, causes) {
        return;
    }
    check_removals(spec, before, causes);
    for (new, old) in pairs(spec, before, "containers") {
        if !is_equal_except_amounts(new, old) {
            causes.push(Cause::forbidden("spec", ONLY_AMOUNTS));
        }
    }
    check_init_containers(spec, before, causes);
    if causes.is_empty() && is_empty_object_added(spec, before) {
        causes.push(Cause::forbidden("spec", ONLY_AMOUNTS));
    }
}

/// Returns the reason why no pod of this sort can be resized.
fn refusal_of_pod(pod: &Fields) -> Option<&'static str> {
    let annotations = read_path(pod, "metadata.annotations").unwrap_or(&Value::Null);
    if annotations.get("kubernetes.io/config.mirror").is_some() {
        return Some("static pods cannot be resized");
    }
    let os = read_path(pod, "spec.os.name").and_then(Value::as_str);
    (os == Some("windows")).then_some("windows pods cannot be resized")
}

fn check_class(pod: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let stored = read_path(old, "status.qosClass").and_then(Value::as_str);
    let before = stored.unwrap_or_else(|| quality_of_service(old));
    if before != quality_of_service(pod) {
        let shown = json!(read_path(pod, "status.qosClass").and_then(Value::as_str).unwrap_or(""));
        let detail = "Pod QOS Class may not change as a result of resizing";
        causes.push(Cause::invalid("spec", &shown, detail));
    }
}

/// Returns true if the node of a pod can resize it: it reports the resources of what runs.
fn is_supported(pod: &Fields) -> bool {
    let statuses = read_path(pod, "status.containerStatuses").map_or(&[][..], items);
    let running =
        statuses.iter().find(|status| !member(member(status, "state"), "running").is_null());
    running.is_none_or(|status| !member(status, "resources").is_null())
}

/// Checks the resources of the pod as a whole.
fn check_pod_level(spec: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let (new, before) = (member(spec, "resources"), member(old, "resources"));
    let (resources, old) = (requirements(new), requirements(before));
    if [&resources, &old].iter().all(|it| it.requests.is_empty() && it.limits.is_empty()) {
        return;
    }
    for (list, detail, is_removed) in [
        (
            "requests",
            "pod-level resource requests cannot be removed",
            old.requests.names().any(|name| !resources.requests.contains(name)),
        ),
        (
            "limits",
            "pod-level resource limits cannot be removed",
            old.limits.names().any(|name| !resources.limits.contains(name)),
        ),
    ] {
        if is_removed {
            causes.push(Cause::forbidden(format!("spec.resources.{list}"), detail));
        }
    }
    let claims = |resources: &Value| items(member(resources, "claims")).to_vec();
    if without_amounts(resources) != without_amounts(old) || claims(new) != claims(before) {
        let detail = "only cpu and memory resources are mutable at pod-level";
        causes.push(Cause::forbidden("spec", detail));
    }
}

/// Checks that the containers are the stored ones, in their order.
fn check_order(spec: &Value, old: &Value, causes: &mut Vec<Cause>) -> bool {
    let before = causes.len();
    for list in CONTAINER_LISTS {
        let (new, old) = (items(member(spec, list)), items(member(old, list)));
        if new.len() != old.len() {
            let detail = format!("{list} may not be added or removed on resize");
            causes.push(Cause::forbidden(format!("spec.{list}"), &detail));
            continue;
        }
        for (place, (new, old)) in new.iter().zip(old).enumerate() {
            if text(new, "name") != text(old, "name") {
                let detail = format!("{list} may not be renamed or reordered on resize");
                causes.push(Cause::forbidden(format!("spec.{list}[{place}].name"), &detail));
            }
        }
    }
    causes.len() == before
}

/// Checks that no container loses a request or a limit.
fn check_removals(spec: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for list in ["initContainers", "containers"] {
        for (place, (new, old)) in pairs(spec, old, list).enumerate() {
            let at = format!("spec.{list}[{place}].resources");
            let (new, old) = (resources_of(new), resources_of(old));
            if old.requests.names().any(|name| !new.requests.contains(name)) {
                let detail = "resource requests cannot be removed";
                causes.push(Cause::forbidden(format!("{at}.requests"), detail));
            }
            if old.limits.names().any(|name| !new.limits.contains(name)) {
                let detail = "resource limits cannot be removed";
                causes.push(Cause::forbidden(format!("{at}.limits"), detail));
            }
        }
    }
}

fn check_init_containers(spec: &Value, old: &Value, causes: &mut Vec<Cause>) {
    for (place, (new, old)) in pairs(spec, old, "initContainers").enumerate() {
        let at = format!("spec.initContainers[{place}]");
        if !is_equal_except_amounts(new, old) {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            causes.push(Cause::forbidden(at.clone(), detail));
        }
        let is_modified =
            resources_of(new) != resources_of(old) || !is_equal_except_amounts(new, old);
        if !is_modified || text(new, "restartPolicy") == "Always" {
            continue;
        }
        for policy in items(member(new, "resizePolicy")) {
            if text(policy, "restartPolicy") == "RestartContainer" {
                let detail = "non-sidecar init containers with a resize policy of \
                    RestartContainer cannot be resized";
                causes.push(Cause::forbidden(at.clone(), detail));
            }
        }
    }
}

fn pairs<'a>(
    spec: &'a Value,
    old: &'a Value,
    list: &str,
) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    items(member(spec, list)).iter().zip(items(member(old, list)))
}

/// Returns true if two containers differ at most in amounts of cpu and memory.
fn is_equal_except_amounts(new: &Value, old: &Value) -> bool {
    let rest = |container: &Value| {
        let mut rest = container.clone();
        let resources = rest.as_object_mut().and_then(|rest| rest.remove("resources"));
        let claims = resources.as_ref().map(|resources| member(resources, "claims").clone());
        (rest, claims.filter(|claims| !checks::is_empty(claims)))
    };
    let amounts = |container| without_amounts(resources_of(container));
    rest(new) == rest(old) && amounts(new) == amounts(old)
}

fn without_amounts(mut resources: Requirements) -> Requirements {
    resources.requests.retain(|name, _| !MUTABLE.contains(&name.as_str()));
    resources.limits.retain(|name, _| !MUTABLE.contains(&name.as_str()));
    resources
}

fn resources_of(container: &Value) -> Requirements {
    requirements(member(container, "resources"))
}

fn requirements(resources: &Value) -> Requirements {
    Requirements::deserialize(resources).unwrap_or_default()
}

/// Returns true if the pod as a whole has got resources that name nothing.
fn is_empty_object_added(spec: &Value, old: &Value) -> bool {
    let resources = member(spec, "resources");
    resources.is_object() && checks::is_empty(resources) && member(old, "resources").is_null()
}

// === check_node ===

/// Checks that the node of a pod can run it with its new resources (the admission plugin
/// `PodResizeValidator`).
fn check_node(pod: &Fields, node: &Fields) -> Result<(), NodeRefusal> {
    let label = |path: &str| read_path(node, path)?.get("kubernetes.io/os")?.as_str();
    if let Some(os) = label("metadata.labels").filter(|os| *os != "linux") {
        let name = read_path(node, "metadata.name").and_then(Value::as_str).unwrap_or("");
        let detail =
            format!("pod resize is only supported on linux nodes, node \"{name}\" is \"{os}\"");
        return Err(NodeRefusal { detail, reason: "UnsupportedPlatform" });
    }
    let mut options = PodResourcesOptions::default();
    options.use_status_resources = false;
    let requests = pod_requests(&projection(pod), options);
    let allocatable = read_path(node, "status.allocatable").unwrap_or(&Value::Null);
    let amounts = |name: &str| {
        let allocatable = allocatable.get(name).and_then(crate::quantity::read);
        let requested = requests.get(name).cloned().unwrap_or_default();
        (requested, allocatable.unwrap_or_default())
    };
    let (cpu, memory) = (amounts("cpu"), amounts("memory"));
    let mut exceeded = Vec::new();
    if cpu.0 > cpu.1 {
        let (requested, allocatable) = (cpu.0.milli_value(), cpu.1.milli_value());
        exceeded.push(format!("cpu, requested: {requested}, allocatable: {allocatable}"));
    }
    if memory.0 > memory.1 {
        let (requested, allocatable) = (memory.0.value(), memory.1.value());
        exceeded.push(format!("memory, requested: {requested}, allocatable: {allocatable}"));
    }
    if exceeded.is_empty() {
        return Ok(());
    }
    let exceeded = exceeded.join("; ");
    let detail = format!("node didn't have enough allocatable resources: {exceeded}");
    Err(NodeRefusal { detail, reason: "NodeCapacity" })
}
