//! The view of a pod that checks read, and the texts in which they name its parts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::fields::text;

/// A pod, or the template of one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PodView<'a> {
    pub(crate) metadata: &'a Value,
    pub(crate) spec: &'a Value,
}

/// The parts of a pod that set something.
#[derive(Debug)]
pub(super) struct Setters<'a> {
    is_pod: bool,
    containers: Vec<&'a str>,
}

/// The lists of containers, in the order of the checks.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

// === impl PodView ===

impl<'a> PodView<'a> {
    /// Returns the containers of all lists.
    pub(crate) fn containers(self) -> impl Iterator<Item = &'a Value> {
        let spec = self.spec;
        CONTAINERS.iter().flat_map(move |list| spec[*list].as_array().into_iter().flatten())
    }

    /// Returns the names of the containers for which `is_bad` holds.
    pub(super) fn names_of(self, mut is_bad: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|one| is_bad(one)).map(|one| text(one, "name")).collect()
    }

    /// Finds the parts whose security context sets something bad: first the pod, then containers.
    /// A part without the member `name` of the security context sets nothing.
    pub(super) fn setters(
        self,
        name: &str,
        mut is_bad: impl FnMut(&'a Value) -> bool,
    ) -> Setters<'a> {
        let mut sets = |part: &'a Value| {
            let value = &part["securityContext"][name];
            !value.is_null() && is_bad(value)
        };
        Setters { is_pod: sets(self.spec), containers: self.names_of(sets) }
    }

    /// Returns the annotations, sorted by name.
    pub(super) fn annotations(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.metadata["annotations"].as_object().into_iter().flatten();
        all.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }

    pub(super) fn runs_on_windows(self) -> bool {
        self.spec["os"]["name"] == "windows"
    }

    /// Returns true if the users of the pod are not those of the node.
    pub(super) fn has_own_users(self) -> bool {
        self.spec["hostUsers"] == false
    }
}

// === impl Setters ===

impl Setters<'_> {
    /// Returns the parts as a message names them; `None` if there are none.
    pub(super) fn text(&self) -> Option<String> {
        let Self { is_pod, containers } = self;
        match (is_pod, containers.is_empty()) {
            (false, true) => None,
            (true, true) => Some("pod".to_owned()),
            (false, false) => Some(named("container", containers)),
            (true, false) => Some(format!("pod and {}", named("container", containers))),
        }
    }
}

/// Returns one of two texts: for one thing, and for several.
pub(super) fn plural<'a>(count: usize, one: &'a str, several: &'a str) -> &'a str {
    if count == 1 { one } else { several }
}

/// Returns `container "a"` or `containers "a", "b"`.
pub(super) fn named(noun: &str, names: &[&str]) -> String {
    let ending = plural(names.len(), "", "s");
    format!("{noun}{ending} {}", joined(names.iter().copied()))
}

/// Returns texts in quotes, separated by commas. As upstream, nothing in them is escaped.
pub(super) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(|text| format!("\"{text}\"")).collect::<Vec<_>>().join(", ")
}

/// Returns the texts of a set in quotes.
pub(super) fn sorted(texts: &BTreeSet<&str>) -> String {
    joined(texts.iter().copied())
}
