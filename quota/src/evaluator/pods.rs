//! Pods (`pkg/quota/v1/evaluator/core/pods.go`).

use std::collections::{BTreeMap, BTreeSet};

use homeostat_quantity::{Quantity, ResourceList, ResourceName, names};

use super::{MissingResources, ones};
use crate::charge::{Charge, after};
use crate::gates::Gates;
use crate::names::{HUGE_PAGES, REQUESTS, is_extended, is_extended_for_quota, joined};
use crate::object::Object;
use crate::object::pod::{Pod, Requirements};
use crate::pod_resources::{PodResourcesOptions, is_pod_level_set, pod_limits, pod_requests};
use crate::qos::is_best_effort;
use crate::scope::{PodScopes, ScopeFacts};

/// The names that need no pattern.
const NAMES: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// The prefixes of further names.
const PREFIXES: [&str; 2] = [HUGE_PAGES, "requests.hugepages-"];
/// The names that each container has to specify if a quota has them. No name will be added.
const REQUIRED: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// The fixed names in order, then those of a pattern in the order of the list.
pub(super) fn matching(list: &[ResourceName]) -> Vec<ResourceName> {
    let fixed = NAMES.map(ResourceName::from_static);
    let mut matched = names::intersection(list, &fixed);
    for name in list {
        if names::contains_prefix(&PREFIXES, name) || is_extended_for_quota(name) {
            matched.push(name.clone());
        }
    }
    matched
}

/// Computes the charge of a pod.
///
/// `count/pods` counts every pod that is stored. All other names count a pod until it has succeeded
/// or failed, or has not ended within its grace period after its deletion time.
pub fn charge(pod: &Pod, gates: Gates) -> Charge {
    let scopes = ScopeFacts::Pod(PodScopes {
        terminating: is_terminating(pod),
        best_effort: is_best_effort(pod, gates),
        cross_namespace_pod_affinity: pod.spec.affinity.crosses_namespaces(),
        priority_class_name: pod.spec.priority_class_name.clone(),
    });
    let charge = Charge::new(ones(["count/pods"]), scopes);
    if matches!(pod.status.phase.as_str(), "Failed" | "Succeeded") {
        return charge;
    }
    let options = PodResourcesOptions {
        skip_pod_level_resources: !gates.pod_level_resources,
        ..PodResourcesOptions::default()
    };
    let usage = compute_usage(&pod_requests(pod, options), &pod_limits(pod, options));
    // The deletion time includes one grace period already. Upstream adds a second one.
    let deletion = pod.metadata.deletion_timestamp.zip(pod.metadata.deletion_grace_period_seconds);
    charge.with_relevant(usage, deletion.map(|(time, grace)| after(time, grace)))
}

/// Returns true for a pod with an active deadline.
fn is_terminating(pod: &Pod) -> bool {
    pod.spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0)
}

/// Returns true if an update moves a pod between `Terminating` and `NotTerminating`.
pub(super) fn changes_scope(old: Option<&Object>, new: &Object) -> bool {
    match (old, new) {
        (Some(Object::Pod(old)), Object::Pod(new)) => is_terminating(old) != is_terminating(new),
        _ => false,
    }
}

/// Returns the entries of a quota for requests and limits.
fn compute_usage(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage: Vec<(ResourceName, Quantity)> =
        vec![(ResourceName::from_static("pods"), Quantity::from(1))];
    for (name, quantity) in requests {
        let is_compute = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if is_compute || name.starts_with(HUGE_PAGES) {
            usage.push((name.clone(), quantity.clone()));
        }
        if is_compute || name.starts_with(HUGE_PAGES) || is_extended(name) {
            usage.push((joined(REQUESTS, name), quantity.clone()));
        }
    }
    for (name, quantity) in limits {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            usage.push((joined("limits.", name), quantity.clone()));
        }
    }
    usage.into_iter().collect()
}

/// Checks that each container specifies what a quota requires.
pub(super) fn check(
    pod: &Pod,
    required: &[ResourceName],
    gates: Gates,
) -> Result<(), MissingResources> {
    if gates.pod_level_resources && pod.spec.resources.as_ref().is_some_and(is_pod_level_set) {
        return Ok(());
    }
    let required = names::intersection(required, &REQUIRED.map(ResourceName::from_static));
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in pod.spec.containers.iter().chain(&pod.spec.init_containers) {
        for name in required.iter().filter(|name| !specifies(&container.resources, name)) {
            missing.entry(name.as_str()).or_default().insert(&container.name);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let parts = missing.into_iter().map(|(name, containers)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    });
    Err(MissingResources(parts.collect::<Vec<_>>().join("; ")))
}

fn specifies(resources: &Requirements, name: &str) -> bool {
    match name.strip_prefix("limits.") {
        Some(limit) => resources.limits.contains(limit),
        None => resources.requests.contains(name.strip_prefix(REQUESTS).unwrap_or(name)),
    }
}
