//! The rows, by API group. A further kind is a few lines in one of these files.

mod apps;
mod batch;
mod core;
mod events;
mod pod_spec;
mod resource;

use std::borrow::Cow;

use super::{Dependents, FieldLabel, Generation, Kind, OnCreate, Scale, Status};
use crate::names;

/// A namespaced kind that only has metadata and data: what a row changes is what is special about it.
pub(super) const PLAIN: Kind = Kind {
    group: Cow::Borrowed(""),
    version: Cow::Borrowed("v1"),
    kind: Cow::Borrowed(""),
    plural: Cow::Borrowed(""),
    short_names: &[],
    categories: &[],
    namespaced: true,
    custom: false,
    name: names::dns_subdomain,
    status: Status::None,
    generation: Generation::None,
    unconditional_update: true,
    create_on_update: false,
    returns_deleted: false,
    dependents: Dependents::Collected,
    deletes_collections: true,
    fields: &[],
    defaults: &[],
    derive: |_| {},
    prepare: |_| {},
    inherits: |_, _| {},
    validate: |_, _, _| {},
    immutable: &[],
    grace: None,
    on_mark: |_| {},
    finalize: None,
    scale: None,
    parts: &[],
    admission: None,
    warn: |_| Vec::new(),
    unsaid_policy: None,
    actions: &[],
    protected: &[],
    stored_as: None,
};

const KEEPS_SPEC: Status = Status::Subresource { kept: &["spec"], on_create: OnCreate::Drop };
const OF_SPEC: Generation = Generation::Of(&["spec"]);
/// Kinds that are listed by `kubectl get all`.
const ALL: &[&str] = &["all"];
/// What most kinds with replicas call them.
const REPLICAS: Scale =
    Scale { wanted: "spec.replicas", counted: "status.replicas", selector: "spec.selector" };

/// Objects that are always there, beside the namespaces: (group, plural, object).
pub(crate) const ALWAYS_THERE: &[(&str, &str, &str)] = &[
    (
        "scheduling.k8s.io",
        "priorityclasses",
        r#"{"metadata": {"name": "system-node-critical"}, "value": 2000001000,
            "description": "Used for system critical pods that must not be moved from their current node."}"#,
    ),
    (
        "scheduling.k8s.io",
        "priorityclasses",
        r#"{"metadata": {"name": "system-cluster-critical"}, "value": 2000000000,
            "description": "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."}"#,
    ),
];

pub(crate) fn built_in() -> Vec<Kind> {
    [core::rows(), apps::rows(), batch::rows(), events::rows(), resource::rows()].concat()
}

fn named(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group: group.into(), kind: kind.into(), plural: plural.into(), ..PLAIN }
}

const fn label(label: &'static str, paths: &'static [&'static str]) -> FieldLabel {
    FieldLabel { label, paths, missing: "" }
}
