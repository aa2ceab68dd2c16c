//! The rows of the table, by API group. Another kind is a few lines in one of these files.

mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod core;
mod events;
mod extensions;
mod flowcontrol;
mod networking;
mod pod_spec;
mod rbac;
mod registration;
mod resource;
mod storage;

use std::borrow::Cow;

use super::columns::{Dependents, Generation, OnCreate, Operations, Scale, Secured, Status};
use super::kind::Kind;
use crate::names;

/// A namespaced kind with only metadata and data: a row changes what is special about it.
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
    reset: &["status"],
    generation: Generation::None,
    unconditional_update: true,
    create_on_update: false,
    returns_deleted: false,
    dependents: Dependents::Collected,
    lax_metadata: false,
    status_checks_finalizers: true,
    cached: true,
    deletes_collections: true,
    fields: &[],
    defaults: &[],
    derive: |_| {},
    prepare: |_| {},
    inherits: |_, _| {},
    clearable: &[],
    null_if_empty: &[],
    allocate: None,
    validate: |_, _, _| {},
    permits: |_, _| {},
    immutable: &[],
    grace: None,
    on_mark: |_| {},
    finalize: None,
    scale: None,
    resize: None,
    parts: &[],
    admissions: Cow::Borrowed(&[]),
    additions: Cow::Borrowed(&[]),
    guards: Cow::Borrowed(&[]),
    issue: |_, _| None,
    row_rank: None,
    find_default: None,
    limited: None,
    run_as: None,
    secured: None,
    warn_sent: |_| Vec::new(),
    warn: |_, _| Vec::new(),
    warn_status: |_| Vec::new(),
    convert_empty: |_| {},
    no_policy_warning: None,
    actions: &[],
    review: None,
    operations: Operations::All,
    relay: None,
    deprecation: "",
    record_author: |_, _| {},
    record_time: |_, _, _| {},
    protected: None,
    stored_as: None,
    definition: None,
};
use crate::object::FieldLabel;

const KEEPS_SPEC: Status = Status::Subresource { kept: &["spec"], on_create: OnCreate::Drop };
/// The status of newer kinds, whose writes change no metadata (`ResetObjectMetaForStatus`).
const KEEPS_METADATA: Status = Status::Subresource {
    kept: &[
        "spec",
        "metadata.labels",
        "metadata.annotations",
        "metadata.finalizers",
        "metadata.ownerReferences",
    ],
    on_create: OnCreate::Drop,
};
const OF_SPEC: Generation = Generation::Of(&["spec"]);
/// The category of `kubectl get all`.
const ALL: &[&str] = &["all"];
/// The usual paths of `/scale`.
const REPLICAS: Scale = Scale {
    wanted: Cow::Borrowed("spec.replicas"),
    counted: Cow::Borrowed("status.replicas"),
    selector: Cow::Borrowed("spec.selector"),
};

/// The place of the template of most workloads.
const SPEC_TEMPLATE: Option<Secured> = Some(Secured::Template("spec.template"));

/// Objects that every server has, besides the namespaces: (group, plural, object).
pub(crate) const BUILT_IN_OBJECTS: &[(&str, &str, &str)] = &[
    (
        "scheduling.k8s.io",
        "priorityclasses",
        concat!(
            r#"{"metadata": {"name": "system-node-critical"}, "value": 2000001000, "#,
            r#""description": "Used for system critical pods that must not be moved "#,
            r#"from their current node."}"#,
        ),
    ),
    (
        "scheduling.k8s.io",
        "priorityclasses",
        concat!(
            r#"{"metadata": {"name": "system-cluster-critical"}, "value": 2000000000, "#,
            r#""description": "Used for system critical pods that must run in the cluster, "#,
            r#"but can be moved to another node if necessary."}"#,
        ),
    ),
    (
        "networking.k8s.io",
        "servicecidrs",
        r#"{"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.0.0.0/16"]}}"#,
    ),
    (
        "",
        "services",
        concat!(
            r#"{"metadata": {"name": "kubernetes", "namespace": "default", "#,
            r#""labels": {"component": "apiserver", "provider": "kubernetes"}}, "#,
            r#""spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "sessionAffinity": "None", "#,
            r#""internalTrafficPolicy": "Cluster", "ipFamilyPolicy": "SingleStack", "#,
            r#""ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}]}}"#,
        ),
    ),
    // The address is one for documentation: the server may have no socket.
    (
        "",
        "endpoints",
        concat!(
            r#"{"metadata": {"name": "kubernetes", "namespace": "default", "#,
            r#""labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}, "#,
            r#""subsets": [{"addresses": [{"ip": "192.0.2.1"}], "#,
            r#""ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}]}"#,
        ),
    ),
    (
        "discovery.k8s.io",
        "endpointslices",
        concat!(
            r#"{"metadata": {"name": "kubernetes", "namespace": "default", "#,
            r#""labels": {"kubernetes.io/service-name": "kubernetes"}}, "addressType": "IPv4", "#,
            r#""endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}], "#,
            r#""ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}"#,
        ),
    ),
];

/// The roles and bindings of a server that checks permissions.
pub(crate) const BUILT_IN_ROLES: &str = include_str!("table/roles.json");

/// The registrations of groups, the flow schemas and the priority levels of a server with users.
pub(crate) const BUILT_IN_SETTINGS: &str = include_str!("table/settings.json");

pub(crate) fn built_in() -> Vec<Kind> {
    [
        core::rows(),
        apps::rows(),
        autoscaling::rows(),
        batch::rows(),
        certificates::rows(),
        events::rows(),
        extensions::rows(),
        flowcontrol::rows(),
        networking::rows(),
        rbac::rows(),
        registration::rows(),
        resource::rows(),
        storage::rows(),
    ]
    .concat()
}

fn named(group: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { group: group.into(), kind: kind.into(), plural: plural.into(), ..PLAIN }
}

const fn label(label: &'static str, paths: &'static [&'static str]) -> FieldLabel {
    FieldLabel { label, paths, missing: "" }
}

#[cfg(test)]
mod tests {
    use super::built_in;

    #[test]
    fn every_kind_has_a_type_of_its_version() {
        for kind in built_in() {
            let known = kind.known_type();
            let name = known.map(|known| (known.name, known.full_name.contains(&*kind.version)));
            assert_eq!(name, Some((&*kind.kind, true)), "{}", kind.api_version());
        }
    }
}
