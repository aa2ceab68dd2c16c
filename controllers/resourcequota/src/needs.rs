//! The resources whose informers run: those that some quota names, and for ten minutes more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeostat_core::GroupResource;
use homeostat_quantity::ResourceName;
use homeostat_quota::{DeviceClassMapping, Registry};
use tokio::time::Instant;

use crate::caches::{device_claims, device_classes};
use crate::charged::{Part, Pods};

/// The resources that were needed lately.
#[derive(Debug)]
pub(crate) struct Needs {
    linger: Duration,
    /// The last time at which each was needed.
    last: BTreeMap<GroupResource, Instant>,
}

/// Returns the resources whose objects decide about the usage of `names`.
///
/// A claim to devices is charged by its device class, and less what its pod is charged. A device
/// class may also map a name of an extended resource to claims at any time.
pub(crate) fn needed(
    names: &[ResourceName],
    registry: &Registry,
    mapping: &DeviceClassMapping,
) -> BTreeSet<GroupResource> {
    let counts = registry.iter().filter(|it| !it.matching_resources(names, mapping).is_empty());
    let mut needed: BTreeSet<_> = counts.map(|it| it.resource().clone()).collect();
    if needed.contains(&device_claims()) {
        needed.extend([Pods::resource(), device_classes()]);
    }
    if names.iter().any(may_be_mapped) {
        needed.insert(device_classes());
    }
    needed
}

/// Returns true if a device class may map `name` to claims: that of an extended resource.
pub(crate) fn may_be_mapped(name: &ResourceName) -> bool {
    name.strip_prefix("requests.").is_some_and(|resource| resource.contains('/'))
}

// === impl Needs ===

impl Needs {
    pub(crate) fn new(linger: Duration) -> Self {
        Self { linger, last: BTreeMap::new() }
    }

    /// Notes the resources that are needed now. Returns those whose informers run, and the time at
    /// which the next of them is no longer needed.
    pub(crate) fn update(
        &mut self,
        needed: BTreeSet<GroupResource>,
        now: Instant,
    ) -> (BTreeSet<GroupResource>, Option<Instant>) {
        let linger = self.linger;
        let is_needed = needed.clone();
        self.last.extend(needed.into_iter().map(|resource| (resource, now)));
        let lingers = |last: Instant| now.saturating_duration_since(last) < linger;
        self.last.retain(|resource, last| is_needed.contains(resource) || lingers(*last));
        let lingering = self.last.iter().filter(|(resource, _)| !is_needed.contains(*resource));
        let next = lingering.filter_map(|(_, last)| last.checked_add(linger)).min();
        (self.last.keys().cloned().collect(), next)
    }
}

#[cfg(test)]
mod tests {
    use homeostat_quota::Gates;

    use super::*;

    fn needed_of(names: &[&str]) -> Vec<String> {
        let names: Vec<_> = names.iter().map(|name| ResourceName::from(*name)).collect();
        let registry = Registry::new(Gates::default());
        let needed = needed(&names, &registry, &DeviceClassMapping::default());
        needed.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_named_resources_are_needed_with_those_that_they_depend_on() {
        assert!(needed_of(&["unknown"]).is_empty());
        assert_eq!(needed_of(&["cpu", "secrets"]), ["pods", "secrets"]);
        let of_claims = ["pods", "deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io"];
        assert_eq!(needed_of(&["gpu.deviceclass.resource.k8s.io/devices"]), of_claims);
        assert_eq!(
            needed_of(&["requests.example.com/gpu"]),
            ["pods", "deviceclasses.resource.k8s.io"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn informer_lingers_for_ten_minutes() {
        let mut needs = Needs::new(Duration::from_secs(600));
        let pods = || BTreeSet::from([Pods::resource()]);
        assert_eq!(needs.update(pods(), Instant::now()), (pods(), None));
        let end = Instant::now() + Duration::from_secs(600);
        tokio::time::advance(Duration::from_secs(599)).await;
        assert_eq!(needs.update(BTreeSet::new(), Instant::now()), (pods(), Some(end)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(needs.update(BTreeSet::new(), Instant::now()), (BTreeSet::new(), None));
    }

    #[tokio::test(start_paused = true)]
    async fn informer_that_does_not_linger_runs_while_it_is_needed() {
        let mut needs = Needs::new(Duration::ZERO);
        let pods = || BTreeSet::from([Pods::resource()]);
        assert_eq!(needs.update(pods(), Instant::now()), (pods(), None));
        assert_eq!(needs.update(BTreeSet::new(), Instant::now()), (BTreeSet::new(), None));
    }
}
