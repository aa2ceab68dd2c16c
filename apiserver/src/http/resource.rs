//! The resource of a kind as the documents about the server list it: its verbs and subresources.

use crate::kinds::{Kind, Operations};

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The same in the order in which the real server lists them for a kind with a definition.
pub(super) const VERBS_OF_DEFINED: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Returns the verbs of a kind, in the order in which the real server lists them.
pub(super) fn verbs(kind: &Kind) -> Vec<&'static str> {
    match kind.operations {
        Operations::All => {}
        Operations::Create => return vec!["create"],
        Operations::Read => return vec!["get", "list"],
    }
    if kind.definition.is_some() {
        return VERBS_OF_DEFINED.to_vec();
    }
    let mut verbs = VERBS.to_vec();
    verbs.retain(|verb| kind.deletes_collections || *verb != "deletecollection");
    verbs
}

/// A subresource, as discovery lists it.
pub(super) struct Subresource {
    pub(super) name: &'static str,
    pub(super) verbs: &'static [&'static str],
    /// The apiVersion and the kind of its bodies, if they are not those of the kind.
    body: Option<(&'static str, &'static str)>,
}

/// Returns the subresources of a kind, in the order in which the real server lists them.
pub(super) fn subresources(kind: &Kind) -> Vec<Subresource> {
    const READ_AND_WRITE: &[&str] = &["get", "patch", "update"];
    let plain = |name, verbs| Subresource { name, verbs, body: None };
    let mut found = Vec::new();
    if kind.has_status() {
        found.push(plain("status", READ_AND_WRITE));
    }
    if kind.scale.is_some() {
        let body = Some(("autoscaling/v1", "Scale"));
        found.push(Subresource { name: "scale", verbs: READ_AND_WRITE, body });
    }
    if kind.resize.is_some() {
        found.push(plain("resize", READ_AND_WRITE));
    }
    if kind.finalize.is_some() {
        found.push(plain("finalize", &["update"]));
    }
    found.extend(kind.parts.iter().map(|part| plain(part.name, READ_AND_WRITE)));
    found.extend(kind.actions.iter().map(|action| Subresource {
        name: action.name,
        verbs: &["create"],
        body: Some((action.api_version, action.body)),
    }));
    if !kind.custom {
        found.sort_by_key(|subresource| subresource.name);
    }
    found
}

// === impl Subresource ===

impl Subresource {
    /// Returns the apiVersion and the kind of the bodies, if they are not those of the kind.
    pub(super) fn body_type(&self) -> Option<(&'static str, &'static str)> {
        self.body
    }

    /// Returns the group, version and kind of the bodies. The group and the version are empty if
    /// they are those of the kind.
    pub(super) fn gvk<'a>(&self, kind: &'a Kind) -> (&'a str, &'a str, &'a str) {
        match self.body {
            None => ("", "", &kind.kind),
            Some((api_version, body)) if api_version == kind.api_version() => ("", "", body),
            Some((api_version, body)) => {
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                (group, version, body)
            }
        }
    }
}
