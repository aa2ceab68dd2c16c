//! All containers of a pod, with their places in its spec.

use serde_json::Value;

use super::{items, member, text};

/// The members of a pod's spec on which the checks of its containers depend.
pub(super) struct Pod<'a> {
    pub(super) spec: &'a Value,
    /// The valid volumes.
    pub(super) volumes: Vec<&'a Value>,
}

/// A container, and its place in the pod's spec.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    pub(crate) container: &'a Value,
    list: &'static str,
    place: usize,
}

/// Returns all containers, in the order of upstream's `VisitContainersWithPath`.
pub(crate) fn all(spec: &Value) -> impl Iterator<Item = Placed<'_>> {
    const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
    LISTS.into_iter().flat_map(move |list| {
        let containers = items(member(spec, list)).iter().enumerate();
        containers.map(move |(place, container)| Placed { container, list, place })
    })
}

// === impl Pod ===

impl<'a> Pod<'a> {
    /// Returns the valid volume of this name.
    pub(super) fn volume(&self, name: &str) -> Option<&'a Value> {
        self.volumes.iter().find(|volume| text(volume, "name") == name).copied()
    }

    /// Returns the period in which the pod must end.
    pub(super) fn period(&self) -> Option<i64> {
        member(self.spec, "terminationGracePeriodSeconds").as_i64()
    }
}

// === impl Placed ===

impl Placed<'_> {
    /// Returns the path of a member, in a spec at the path `at`.
    pub(crate) fn path(&self, at: &str, member: &str) -> String {
        format!("{at}.{}[{}].{member}", self.list, self.place)
    }
}
