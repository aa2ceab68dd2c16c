//! The resources of a pod as a whole (`validatePodResources`).

use homeostat_quota::object::pod::{Pod, PodSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{member, quantities, text};
use crate::kinds::pod_level::of_containers;
use crate::quantity;
use crate::status::Cause;

/// The resources that a pod as a whole can have; of huge pages the prefix.
const SUPPORTED: [&str; 3] = ["cpu", "hugepages-", "memory"];

/// Checks the resources of the pod with this spec.
pub(super) fn resources(spec: &Value, resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    if !resources.is_object() {
        return;
    }
    if text(member(spec, "os"), "name") == "windows" {
        causes.push(Cause::forbidden(at, "may not be set for a windows pod"));
        return;
    }
    if !member(resources, "claims").is_null() {
        let detail = "claims may not be set for Resources at pod-level";
        causes.push(Cause::forbidden(format!("{at}.claims"), detail));
    }
    quantities::requirements(resources, name, at, causes);
    check_containers(spec, resources, at, causes);
}

/// Checks the name of a resource.
fn name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    let before = causes.len();
    quantities::any_name(name, at, causes);
    let is_supported = name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    if causes.len() == before && !is_supported {
        causes.push(Cause::unsupported(at, &json!(name), &SUPPORTED));
    }
}

/// Checks that the containers fit into the pod: their requests and huge pages together, and the
/// limits of each alone.
fn check_containers(spec: &Value, resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut pod = Pod::default();
    pod.spec = PodSpec::deserialize(spec).unwrap_or_default();
    let (requests, limits) = of_containers(&pod);
    let all = [("requests", &requests), ("limits", &limits)];
    for (list, total) in all {
        for (name, total) in total {
            let is_checked = list == "requests" || name.starts_with("hugepages-");
            let given = member(member(resources, list), name);
            let is_exceeded = quantity::read(given).is_some_and(|given| *total > given);
            if is_checked && is_exceeded {
                let detail = format!(
                    "must be greater than or equal to aggregate container {list} of {total}"
                );
                causes.push(Cause::invalid(format!("{at}.{list}[{name}]"), given, &detail));
            }
        }
    }
    for (place, container) in pod.spec.containers.iter().enumerate() {
        for (name, limit) in &container.resources.limits {
            let given = quantity::read(member(member(resources, "limits"), name));
            let Some(given) = given.filter(|given| limit > given) else { continue };
            let at = format!("{at}.containers[{place}][{name}].limits");
            let detail = format!("must be less than or equal to pod limits of {given}");
            causes.push(Cause::invalid(at, &json!(limit), &detail));
        }
    }
}
