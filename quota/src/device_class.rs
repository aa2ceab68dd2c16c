//! The mapping between device classes and extended resources.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use homeostat_quantity::ResourceName;
use jiff::Timestamp;
use smol_str::SmolStr;

use crate::names::{DEVICE_CLASS, REQUESTS, joined};
use crate::object::device::DeviceClass;

/// The extended resources that device classes provide (upstream: `ExtendedResourceCache`).
///
/// Each class provides `deviceclass.resource.kubernetes.io/<class>`, and may name one more. If
/// several classes name the same resource, the newest provides it; of equally old ones the one with
/// the lower name. All claimants are kept, so the next one takes over when the winner is deleted.
/// Upstream forgets the others.
///
/// # Examples
///
/// ```
/// use homeostat_quota::DeviceClassMapping;
/// use homeostat_quota::object::device::DeviceClass;
/// use serde_json::json;
///
/// let class: DeviceClass = serde_json::from_value(json!({
///     "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"},
/// }))?;
/// let mut mapping = DeviceClassMapping::default();
/// assert_eq!(mapping.apply(&class).len(), 2);
/// assert_eq!(mapping.class_of("example.com/gpu"), Some("gpu"));
/// assert_eq!(mapping.class_of("deviceclass.resource.kubernetes.io/gpu"), Some("gpu"));
/// assert_eq!(mapping.resource_of("gpu"), Some("example.com/gpu"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceClassMapping {
    classes: BTreeMap<SmolStr, Claimed>,
    /// The claimants of each resource; the first one provides it.
    claimants: BTreeMap<SmolStr, BTreeSet<Claimant>>,
}

/// The time of creation, newest first, and the name of the class.
type Claimant = (Reverse<Option<Timestamp>>, SmolStr);

/// A class: its time of creation and the resource that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claimed {
    created: Option<Timestamp>,
    resource: Option<SmolStr>,
}

// === impl DeviceClassMapping ===

impl DeviceClassMapping {
    /// Notes the present version of a class. Returns the names of quotas whose usage may differ
    /// from now on.
    pub fn apply(&mut self, class: &DeviceClass) -> BTreeSet<ResourceName> {
        let name = &class.metadata.name;
        let claimed = Claimed {
            created: class.metadata.creation_timestamp,
            resource: class.spec.extended_resource_name.clone(),
        };
        if self.classes.get(name) == Some(&claimed) {
            return BTreeSet::new();
        }
        let mut affected = self.remove(name);
        affected.extend(Self::quota_names(name, &claimed));
        if let Some(resource) = &claimed.resource {
            let claimants = self.claimants.entry(resource.clone()).or_default();
            claimants.insert((Reverse(claimed.created), name.clone()));
        }
        self.classes.insert(name.clone(), claimed);
        affected
    }

    /// Removes a class. Returns the names of quotas whose usage may differ from now on.
    pub fn remove(&mut self, class: &str) -> BTreeSet<ResourceName> {
        let Some(claimed) = self.classes.remove(class) else { return BTreeSet::new() };
        if let Some(resource) = &claimed.resource
            && let Some(claimants) = self.claimants.get_mut(resource)
        {
            claimants.remove(&(Reverse(claimed.created), class.into()));
            if claimants.is_empty() {
                self.claimants.remove(resource);
            }
        }
        Self::quota_names(class, &claimed).collect()
    }

    /// Removes the classes for which `is_kept` returns false. Returns the names of quotas whose
    /// usage may differ from now on.
    pub fn retain(&mut self, is_kept: impl Fn(&str) -> bool) -> BTreeSet<ResourceName> {
        let is_removed = |class: &&SmolStr| !is_kept(class.as_str());
        let removed: Vec<SmolStr> = self.classes.keys().filter(is_removed).cloned().collect();
        removed.iter().flat_map(|class| self.remove(class)).collect()
    }

    /// Returns the class that provides an extended resource.
    pub fn class_of(&self, resource: &str) -> Option<&str> {
        if let Some(class) = resource.strip_prefix(DEVICE_CLASS) {
            return self.classes.get_key_value(class).map(|(class, _)| class.as_str());
        }
        self.claimants.get(resource)?.first().map(|(_, class)| class.as_str())
    }

    /// Returns the extended resource that a class names.
    pub fn resource_of(&self, class: &str) -> Option<&str> {
        let resource = self.classes.get(class)?.resource.as_deref();
        resource.filter(|resource| !resource.is_empty())
    }

    fn quota_names(class: &str, claimed: &Claimed) -> impl Iterator<Item = ResourceName> {
        let implicit = joined(REQUESTS, &[DEVICE_CLASS, class].concat());
        let explicit = claimed.resource.as_ref().map(|resource| joined(REQUESTS, resource));
        std::iter::once(implicit).chain(explicit)
    }
}
