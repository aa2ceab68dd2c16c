//! The evaluators of a cluster.

use std::collections::BTreeMap;

use homeostat_core::GroupResource;
use homeostat_quantity::{ResourceName, names};

use crate::device_class::DeviceClassMapping;
use crate::evaluator::Evaluator;
use crate::gates::Gates;

/// The evaluators of a cluster, one per resource (upstream: `quota.Registry`).
///
/// # Examples
///
/// ```
/// use homeostat_core::GroupResource;
/// use homeostat_quota::Registry;
///
/// let mut registry = Registry::new(Default::default());
/// let jobs = GroupResource::new("batch", "jobs");
/// assert!(registry.get(&jobs).is_none());
/// assert!(registry.add_counter(jobs.clone()));
/// assert!(!registry.add_counter(jobs));
/// assert!(!registry.add_counter(GroupResource::new("", "events")), "never charged");
/// ```
#[derive(Debug, Clone)]
pub struct Registry {
    evaluators: BTreeMap<GroupResource, Evaluator>,
}

/// The resources that no quota counts: virtual ones, and events.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// Returns true for a resource that no quota counts (`DefaultIgnoredResources`).
pub fn is_ignored(resource: &GroupResource) -> bool {
    IGNORED.contains(&(&*resource.group, &*resource.resource))
}

// === impl Registry ===

impl Registry {
    /// Returns the evaluators that do more than count, and the four counters with a plain name.
    pub fn new(gates: Gates) -> Self {
        let mut evaluators = vec![
            Evaluator::pods(gates),
            Evaluator::services(),
            Evaluator::persistent_volume_claims(),
            Evaluator::resource_claims(),
        ];
        for resource in ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"] {
            evaluators.push(Evaluator::counter(GroupResource::new("", resource)));
        }
        let keyed = evaluators.into_iter().map(|it| (it.resource().clone(), it));
        Self { evaluators: keyed.collect() }
    }

    /// Adds a counter. Returns false if the resource has an evaluator or is [ignored](is_ignored).
    pub fn add_counter(&mut self, resource: GroupResource) -> bool {
        if is_ignored(&resource) || self.evaluators.contains_key(&resource) {
            return false;
        }
        self.evaluators.insert(resource.clone(), Evaluator::counter(resource));
        true
    }

    /// Removes the evaluator of a resource.
    pub fn remove(&mut self, resource: &GroupResource) -> Option<Evaluator> {
        self.evaluators.remove(resource)
    }

    /// Returns the evaluator of a resource.
    pub fn get(&self, resource: &GroupResource) -> Option<&Evaluator> {
        self.evaluators.get(resource)
    }

    /// Returns all evaluators, in the order of their resources.
    pub fn iter(&self) -> impl Iterator<Item = &Evaluator> {
        self.evaluators.values()
    }

    /// Returns the names among `names` that some evaluator counts, sorted, each once.
    pub fn matching_resources(
        &self,
        names: &[ResourceName],
        classes: &DeviceClassMapping,
    ) -> Vec<ResourceName> {
        let counted: Vec<ResourceName> =
            self.iter().flat_map(|it| it.matching_resources(names, classes)).collect();
        names::to_set(&counted).into_iter().collect()
    }
}
