//! The resources of a pod as a whole: what the server adds to them.

use homeostat_quantity::ResourceList;
use homeostat_quota::object::pod::{Pod, Requirements};
use homeostat_quota::{PodResourcesOptions, pod_limits, pod_requests};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fields::Fields;

/// The resources that a pod as a whole can have and a node can overcommit.
const OVERCOMMITTED: [&str; 2] = ["cpu", "memory"];
const HUGE_PAGES: &str = "hugepages-";

/// Completes the resources of the pod from those of its containers (`DefaultPodLevelResources`).
/// A pod without resources as a whole stays as it is.
pub(super) fn complete(pod: &mut Fields) {
    let given = pod.get("spec").and_then(|spec| spec.get("resources"));
    let Some(given) = given.and_then(|it| Requirements::deserialize(it).ok()) else { return };
    if given.requests.is_empty() && given.limits.is_empty() {
        return;
    }
    let of_containers = Pod::deserialize(&*pod).unwrap_or_default();
    let completed = completed(given, &of_containers);
    let resources = pod.get_mut("spec").and_then(|spec| spec.get_mut("resources"));
    let Some(Value::Object(resources)) = resources else { return };
    for (name, list) in [("requests", completed.requests), ("limits", completed.limits)] {
        if !list.is_empty() {
            resources.insert(name.to_owned(), json!(list));
        }
    }
}

/// Returns what the containers of a pod request together, and their limits.
pub(super) fn of_containers(pod: &Pod) -> (ResourceList, ResourceList) {
    let mut options = PodResourcesOptions::default();
    options.use_status_resources = false;
    options.skip_pod_level_resources = true;
    options.exclude_overhead = true;
    (pod_requests(pod, options), pod_limits(pod, options))
}

fn completed(mut given: Requirements, pod: &Pod) -> Requirements {
    let (requests, limits) = of_containers(pod);
    let huge = limits.iter().filter(|(name, _)| name.starts_with(HUGE_PAGES));
    let huge = huge.filter(|(name, _)| !given.requests.contains(name)).collect::<Vec<_>>();
    for (name, limit) in huge {
        if !given.limits.contains(name) {
            given.limits.insert(name.clone(), limit.clone());
        }
    }
    let overcommitted = requests.iter().filter(|(name, _)| OVERCOMMITTED.contains(&name.as_str()));
    let supported = given.limits.iter().filter(|(name, _)| is_supported(name));
    for (name, request) in overcommitted.chain(supported) {
        if !given.requests.contains(name) {
            given.requests.insert(name.clone(), request.clone());
        }
    }
    for (name, request) in &given.requests {
        if is_supported(name) && !given.limits.contains(name) && all_limit(pod, name) {
            let limit = limits.get(name).unwrap_or(request).max(request);
            given.limits.insert(name.clone(), limit.clone());
        }
    }
    given
}

fn is_supported(name: &str) -> bool {
    OVERCOMMITTED.contains(&name) || name.starts_with(HUGE_PAGES)
}

/// Returns true if each container has a limit of the resource.
fn all_limit(pod: &Pod, name: &str) -> bool {
    let mut containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    containers.all(|container| container.resources.limits.contains(name))
}
