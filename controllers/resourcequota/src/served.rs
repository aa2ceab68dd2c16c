//! [`Served`]: what discovery says about each resource. Pure.

use std::collections::BTreeMap;

use homeostat::Discovered;
use homeostat::informer::GroupVersionResource;
use homeostat_core::GroupResource;

/// The verbs of a resource that a quota can count (upstream: `ServerPreferredNamespacedResources`
/// and the verbs of the quota monitor).
const QUOTABLE: [&str; 4] = ["create", "list", "watch", "delete"];

/// A resource, as discovery found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Served {
    /// It can be listed and watched at this version.
    At(GroupVersionResource),
    /// It is served, and cannot be counted: its names keep their value.
    Uncountable,
    /// No version of its group serves it: its names count 0.
    Gone,
}

/// The resources that discovery has found so far. A resource that is missing is not known yet.
pub(crate) type ServedResources = BTreeMap<GroupResource, Served>;

/// Returns what is known after another discovery.
///
/// A version that could not be read says nothing: a resource that was known at it stays as it was,
/// and one that is missing in its group may be served by it. `always` are the resources that are
/// looked for although they may never have been served.
pub(crate) fn after(
    known: &ServedResources,
    discovered: &Discovered,
    always: impl Iterator<Item = GroupResource>,
) -> ServedResources {
    let is_failed = |resource: &GroupVersionResource| {
        let GroupVersionResource { group, version, .. } = resource;
        let name = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        discovered.failed.contains_key(&name)
    };
    let mut served = ServedResources::new();
    for resource in discovered.preferred() {
        // DeviceClasses are not in a namespace; claims are charged by them.
        let is_class = resource.resource.group == "resource.k8s.io"
            && resource.resource.resource == "deviceclasses";
        let found = if (resource.is_namespaced || is_class) && resource.supports(&QUOTABLE) {
            Served::At(resource.resource.clone())
        } else {
            Served::Uncountable
        };
        served.insert(resource.group_resource(), found);
    }
    for (resource, former) in known {
        let is_kept = match former {
            Served::At(version) if is_failed(version) => true,
            _ => !served.contains_key(resource) && discovered.is_incomplete(&resource.group),
        };
        if is_kept {
            served.insert(resource.clone(), former.clone());
        } else {
            served.entry(resource.clone()).or_insert(Served::Gone);
        }
    }
    for resource in always {
        if !discovered.is_incomplete(&resource.group) {
            served.entry(resource).or_insert(Served::Gone);
        }
    }
    served
}
