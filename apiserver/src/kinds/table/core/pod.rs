//! Pods.

use std::borrow::Cow;

use super::super::pod_spec::{POD, POD_SPEC};
use super::super::{ALL, OF_SPEC, label, named};
use crate::kinds::limit_range::PODS;
use crate::kinds::{
    Action, Admission, CompleteBody, Defaults, Effect, Guard, Kind, OnCreate, Part, Secured,
    Status, app_armor, network_warnings, node_features, node_selector, pod, pod_inherit,
    pod_update, resize, runtime_class, service_account, topology, warnings,
};
use crate::object::FieldLabel;
use crate::plugin::AdmissionPlugin;

const POD_FIELDS: &[FieldLabel] = &[
    label("spec.nodeName", &["spec.nodeName"]),
    label("spec.restartPolicy", &["spec.restartPolicy"]),
    label("spec.schedulerName", &["spec.schedulerName"]),
    label("spec.serviceAccountName", &["spec.serviceAccountName"]),
    FieldLabel { label: "spec.hostNetwork", paths: &["spec.hostNetwork"], missing: "false" },
    label("status.phase", &["status.phase"]),
    label("status.podIP", &["status.podIP"]),
    label("status.nominatedNodeName", &["status.nominatedNodeName"]),
];

const NODE_SELECTOR: Admission = Admission {
    plugin: AdmissionPlugin::PodNodeSelector,
    after_additions: false,
    group: "",
    plural: "namespaces",
    // All are alike.
    built_in: "/",
    apply: node_selector::admit,
};

const PRIORITY: Admission = Admission {
    plugin: AdmissionPlugin::Priority,
    after_additions: false,
    group: "scheduling.k8s.io",
    plural: "priorityclasses",
    built_in: "system-",
    apply: pod::set_priority,
};

const RUNTIME: Admission = Admission {
    plugin: AdmissionPlugin::RuntimeClass,
    after_additions: true,
    group: "node.k8s.io",
    plural: "runtimeclasses",
    // No class is built in.
    built_in: "/",
    apply: runtime_class::admit,
};

const TOPOLOGY: Admission = Admission {
    plugin: AdmissionPlugin::PodTopologyLabels,
    after_additions: false,
    group: "",
    plural: "nodes",
    // No node is built in.
    built_in: "/",
    apply: topology::label_pod,
};

/// The checks of complete pods.
const GUARDS: &[Guard] =
    &[runtime_class::OVERHEAD, node_features::OF_POD, node_features::OF_RESIZE];

const DEFAULTS: &[Defaults] =
    &[Defaults { under: "spec", rules: POD_SPEC }, Defaults { under: "spec", rules: POD }];

pub(super) fn row() -> Kind {
    const POD_KEEPS: &[&str] = &["spec", "metadata.ownerReferences", "metadata.deletionTimestamp"];
    const BINDING: Action = Action {
        name: "binding",
        body: "Binding",
        api_version: "v1",
        older: &[],
        body_type: "core.Binding",
        complete: Some(CompleteBody {
            plugin: AdmissionPlugin::PodTopologyLabels,
            apply: topology::label_binding,
        }),
        effect: Effect::Change(pod::bind),
    };
    const EVICTION: Action = Action {
        name: "eviction",
        body: "Eviction",
        api_version: "policy/v1",
        older: &["policy/v1beta1"],
        body_type: "policy.Eviction",
        complete: None,
        effect: Effect::Evict,
    };
    const EPHEMERAL: Part = Part {
        name: "ephemeralcontainers",
        path: "spec.ephemeralContainers",
        validate: Some(pod_update::validate_ephemeral),
        reset: &[],
        writes_metadata: false,
    };
    Kind {
        short_names: &["po"],
        categories: ALL,
        status: Status::Subresource { kept: POD_KEEPS, on_create: OnCreate::Drop },
        generation: OF_SPEC,
        returns_deleted: true,
        fields: POD_FIELDS,
        defaults: DEFAULTS,
        derive: pod::derive,
        prepare: pod::prepare,
        inherits: pod_inherit::inherit,
        clearable: &["status.resourceClaimStatuses"],
        validate: pod::validate,
        grace: Some(pod::grace),
        resize: Some(resize::RESIZE),
        parts: &[EPHEMERAL],
        admissions: Cow::Borrowed(const { &[NODE_SELECTOR, PRIORITY, RUNTIME, TOPOLOGY] }),
        additions: Cow::Borrowed(&pod::ADDITIONS),
        guards: Cow::Borrowed(GUARDS),
        limited: Some(PODS),
        run_as: Some(service_account::PODS),
        secured: Some(Secured::Pod),
        warn_sent: app_armor::warnings,
        warn: warnings::pod,
        warn_status: network_warnings::pod_status,
        actions: &[BINDING, EVICTION],
        ..named("", "Pod", "pods")
    }
}
