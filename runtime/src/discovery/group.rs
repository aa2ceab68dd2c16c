//! The groups that a server serves, and the resources in them.

use std::collections::BTreeMap;

use homeostat_expectations::GroupResource;
use homeostat_informer::GroupVersionResource;

/// A resource that an API server serves, at one version.
///
/// # Examples
///
/// The resources that an informer can follow:
///
/// ```
/// use homeostat::{Discovered, ServedResource};
///
/// fn followed(discovered: &Discovered) -> Vec<&ServedResource> {
///     let can_follow = |served: &&ServedResource| served.supports(&["list", "watch"]);
///     discovered.preferred().filter(can_follow).collect()
/// }
/// assert!(followed(&Discovered::default()).is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedResource {
    /// The group, the version and the name.
    pub resource: GroupVersionResource,
    /// The kind of its objects.
    pub kind: String,
    /// True if its objects have a namespace.
    pub is_namespaced: bool,
    /// The verbs that the server supports for it.
    pub verbs: Vec<String>,
}

/// The resources that an API server serves.
///
/// It is a value: it does not change when the server does. Call
/// [`Discovery::discover`](super::Discovery::discover) again for the present state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Discovered {
    /// Each resource at each version that could be read, without subresources. The versions of a
    /// group are in the server's order, the preferred one first.
    pub resources: Vec<ServedResource>,
    /// The groups and versions that could not be read (`apps/v1`), each with the reason.
    pub failed: BTreeMap<String, String>,
    /// The position in `resources` of the preferred version of each resource.
    preferred: BTreeMap<GroupResource, usize>,
}

/// A group with its versions, the preferred one first.
///
/// The core group has an empty name.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) versions: Vec<Version>,
}

/// A version of a group.
///
/// A version of a plain answer is empty until its own request is done.
#[derive(Debug, Clone)]
pub(super) struct Version {
    pub(super) version: String,
    /// Its resources, or the reason why they could not be read.
    pub(super) resources: Result<Vec<ServedResource>, String>,
}

// === impl ServedResource ===

impl ServedResource {
    /// Returns true if the server supports each of `verbs` for the resource.
    ///
    /// The verbs are those of the API: `get`, `list`, `watch`, `create`, `update`, `patch`,
    /// `delete`, `deletecollection`.
    pub fn supports(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.iter().any(|supported| supported == verb))
    }

    /// Returns the resource without its version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(self.resource.group.clone(), self.resource.resource.clone())
    }
}

// === impl Discovered ===

impl Discovered {
    /// Orders the resources of `groups`. The preferred version of a resource is that of the group,
    /// or the first version that has the resource. A version that could not be read is preferred
    /// for no resource.
    ///
    /// Takes time in proportion to the number of resources, and copies them: the groups are shared
    /// with the next discovery.
    pub(super) fn of<'a>(groups: impl Iterator<Item = &'a Group>) -> Self {
        let mut discovered = Self::default();
        for group in groups {
            for version in &group.versions {
                discovered.add(&group.name, version);
            }
        }
        discovered
    }

    /// Adds a version. The first version of a resource is its preferred one, because the versions
    /// come in the server's order.
    fn add(&mut self, group: &str, Version { version, resources }: &Version) {
        match resources {
            Ok(served) => {
                for resource in served {
                    let next = self.resources.len();
                    self.preferred.entry(resource.group_resource()).or_insert(next);
                    self.resources.push(resource.clone());
                }
            }
            Err(error) => {
                self.failed.insert(group_version(group, version), error.clone());
            }
        }
    }

    /// Returns each resource at the version that the server prefers (`ServerPreferredResources`).
    ///
    /// Sorted by group and name.
    pub fn preferred(&self) -> impl Iterator<Item = &ServedResource> {
        self.preferred.values().filter_map(|at| self.resources.get(*at))
    }

    /// Returns the preferred version of a resource.
    ///
    /// Returns `None` if no version of the resource could be read. Check
    /// [`is_incomplete`](Self::is_incomplete) before you treat that as "not served".
    pub fn get(&self, resource: &GroupResource) -> Option<&ServedResource> {
        self.resources.get(*self.preferred.get(resource)?)
    }

    /// Returns true if a version of `group` could not be read: a resource of the group that is
    /// missing may be served all the same.
    ///
    /// # Examples
    ///
    /// A controller of an optional kind distinguishes "not installed" from "not known":
    ///
    /// ```
    /// use homeostat::{Discovered, GroupResource};
    ///
    /// fn is_installed(discovered: &Discovered, group: &'static str) -> Option<bool> {
    ///     match discovered.get(&GroupResource::new(group, "widgets")) {
    ///         Some(_) => Some(true),
    ///         None if discovered.is_incomplete(group) => None, // discover again later
    ///         None => Some(false),
    ///     }
    /// }
    /// assert_eq!(is_installed(&Discovered::default(), "shop.example"), Some(false));
    /// ```
    pub fn is_incomplete(&self, group: &str) -> bool {
        self.failed.keys().any(|failed| match failed.split_once('/') {
            Some((of, _)) => of == group,
            None => group.is_empty(),
        })
    }
}

// === impl Version ===

impl Version {
    /// Returns a version whose resources are read later.
    pub(super) fn unread(version: String) -> Self {
        Self { version, resources: Ok(Vec::new()) }
    }
}

/// Returns `apps/v1`, or `v1` for the core group.
fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
