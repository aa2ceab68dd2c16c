//! The core group.

use std::borrow::Cow;

use super::pod_spec::{POD, POD_SPEC};
use super::{ALL, KEEPS_SPEC, OF_SPEC, REPLICAS, SPEC_TEMPLATE, label, named};
use crate::kinds::DefaultValue::{From, Json, Merge};
use crate::kinds::limit_range::{CLAIMS, PODS};
use crate::kinds::{
    Action, Admission, CompleteBody, Defaults, Dependents, Effect, Generation, Guard, Kind,
    OnCreate, Operations, Part, Protected, Relay, Secured, Status, checks, external_addresses,
    limits, namespace, network_warnings, node, node_features, node_selector, pod, pod_inherit,
    pod_update, resize, runtime_class, secret, service, service_account, storage_class, topology,
    volume_claim, warnings, workload,
};
use crate::names;
use crate::object::FieldLabel;
use crate::plugin::AdmissionPlugin;

const NAMESPACE_FIELDS: &[FieldLabel] =
    &[label("status.phase", &["status.phase"]), label("name", &["metadata.name"])];

pub(super) fn rows() -> Vec<Kind> {
    vec![
        namespace(),
        node(),
        pod(),
        service(),
        config_map(),
        secret(),
        persistent_volume_claim(),
        service_account(),
        replication_controller(),
        resource_quota(),
        limit_range(),
        pod_template(),
        binding(),
        component_status(),
    ]
}

fn namespace() -> Kind {
    Kind {
        short_names: &["ns"],
        namespaced: false,
        name: names::dns_label,
        status: KEEPS_SPEC,
        returns_deleted: true,
        deletes_collections: false,
        fields: NAMESPACE_FIELDS,
        defaults: &[Defaults { under: "status", rules: &[("phase", Json("\"Active\""))] }],
        derive: namespace::label_with_name,
        prepare: namespace::prepare,
        validate: namespace::validate,
        on_mark: namespace::mark,
        finalize: Some("spec.finalizers"),
        secured: Some(Secured::Namespace),
        protected: Some(Protected {
            names: &["default", "kube-system", "kube-public"],
            detail: "this namespace may not be deleted",
            plugin: Some(AdmissionPlugin::NamespaceLifecycle),
        }),
        ..named("", "Namespace", "namespaces")
    }
}

fn node() -> Kind {
    const UNSCHEDULABLE: FieldLabel = FieldLabel {
        label: "spec.unschedulable",
        paths: &["spec.unschedulable"],
        missing: "false",
    };
    Kind {
        short_names: &["no"],
        warn: warnings::node,
        namespaced: false,
        status: Status::Subresource { kept: &["spec"], on_create: OnCreate::Keep },
        fields: const { &[UNSCHEDULABLE] },
        defaults: &[Defaults {
            under: "status",
            rules: &[("allocatable", From(node::allocatable))],
        }],
        additions: Cow::Borrowed(&node::TAINT),
        prepare: node::prepare,
        inherits: node::inherit,
        validate: checks::nodes::node,
        ..named("", "Node", "nodes")
    }
}

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

fn pod() -> Kind {
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
        body_type: "",
        complete: None,
        effect: Effect::Evict,
    };
    const EPHEMERAL: Part = Part {
        name: "ephemeralcontainers",
        path: "spec.ephemeralContainers",
        validate: Some(pod_update::validate_ephemeral),
        writes_metadata: false,
    };
    Kind {
        short_names: &["po"],
        categories: ALL,
        status: Status::Subresource { kept: POD_KEEPS, on_create: OnCreate::Drop },
        generation: OF_SPEC,
        returns_deleted: true,
        fields: POD_FIELDS,
        defaults: &[
            Defaults { under: "spec", rules: POD_SPEC },
            Defaults { under: "spec", rules: POD },
        ],
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
        guards: Cow::Borrowed(node_features::GUARDS),
        limited: Some(PODS),
        run_as: Some(service_account::PODS),
        secured: Some(Secured::Pod),
        warn: warnings::pod,
        warn_status: network_warnings::pod_status,
        actions: &[BINDING, EVICTION],
        ..named("", "Pod", "pods")
    }
}

fn service() -> Kind {
    Kind {
        short_names: &["svc"],
        categories: ALL,
        name: names::dns_label,
        status: KEEPS_SPEC,
        warn: network_warnings::service,
        warn_status: network_warnings::balancers,
        returns_deleted: true,
        fields: const {
            &[label("spec.clusterIP", &["spec.clusterIP"]), label("spec.type", &["spec.type"])]
        },
        create_on_update: true,
        defaults: &[
            Defaults {
                under: "spec",
                rules: &[
                    ("sessionAffinity", Json("\"None\"")),
                    ("type", Json("\"ClusterIP\"")),
                    ("ports[].protocol", Json("\"TCP\"")),
                    ("ports[].targetPort", From(service::target_port)),
                    ("externalTrafficPolicy", From(service::external_policy)),
                    ("internalTrafficPolicy", From(service::internal_policy)),
                    ("allocateLoadBalancerNodePorts", From(service::allocates_node_ports)),
                ],
            },
            Defaults {
                under: "status",
                rules: &[("loadBalancer.ingress[].ipMode", From(service::ip_mode))],
            },
        ],
        derive: service::complete_affinity,
        inherits: service::inherit,
        allocate: Some(service::allocate),
        validate: service::validate,
        guards: Cow::Borrowed(external_addresses::GUARDS),
        ..named("", "Service", "services")
    }
}

fn config_map() -> Kind {
    Kind {
        short_names: &["cm"],
        validate: secret::validate_config_map,
        ..named("", "ConfigMap", "configmaps")
    }
}

fn secret() -> Kind {
    Kind {
        fields: const { &[label("type", &["type"])] },
        defaults: &[Defaults { under: "", rules: &[("type", Json("\"Opaque\""))] }],
        derive: secret::merge_string_data,
        validate: secret::validate,
        warn: secret::warn,
        immutable: &["type"],
        ..named("", "Secret", "secrets")
    }
}

fn persistent_volume_claim() -> Kind {
    const CLASS: Admission = Admission {
        plugin: AdmissionPlugin::DefaultStorageClass,
        after_additions: false,
        group: "storage.k8s.io",
        plural: "storageclasses",
        // No class is built in.
        built_in: "/",
        apply: storage_class::set_default,
    };
    const RESIZE: Guard = Guard {
        plugin: AdmissionPlugin::PersistentVolumeClaimResize,
        subresource: "",
        check: storage_class::check_resize,
    };
    Kind {
        admissions: Cow::Borrowed(const { &[CLASS] }),
        short_names: &["pvc"],
        prepare: volume_claim::prepare,
        inherits: volume_claim::inherit,
        status: KEEPS_SPEC,
        returns_deleted: true,
        fields: const { &[label("name", &["metadata.name"])] },
        defaults: &[
            Defaults { under: "spec", rules: &[("volumeMode", Json("\"Filesystem\""))] },
            Defaults { under: "status", rules: &[("phase", Json("\"Pending\""))] },
        ],
        additions: Cow::Borrowed(&volume_claim::PROTECTION),
        guards: Cow::Borrowed(const { &[RESIZE] }),
        validate: checks::storage_claim::claim,
        limited: Some(CLAIMS),
        warn: storage_class::warn,
        ..named("", "PersistentVolumeClaim", "persistentvolumeclaims")
    }
}

fn service_account() -> Kind {
    const TOKEN: Action = Action {
        name: "token",
        body: "TokenRequest",
        api_version: "authentication.k8s.io/v1",
        older: &[],
        body_type: "io.k8s.api.authentication.v1.TokenRequest",
        complete: None,
        effect: Effect::IssueToken,
    };
    Kind {
        short_names: &["sa"],
        returns_deleted: true,
        actions: &[TOKEN],
        warn: secret::warn_account,
        ..named("", "ServiceAccount", "serviceaccounts")
    }
}

fn replication_controller() -> Kind {
    Kind {
        short_names: &["rc"],
        dependents: Dependents::Orphaned,
        categories: ALL,
        status: KEEPS_SPEC,
        generation: OF_SPEC,
        fields: const { &[label("status.replicas", &["status.replicas"])] },
        scale: Some(REPLICAS),
        defaults: &[
            Defaults {
                under: "spec",
                rules: &[("replicas", Json("1")), ("selector", From(workload::labels_of_template))],
            },
            Defaults { under: "spec.template.spec", rules: POD_SPEC },
        ],
        derive: workload::default_labels_from_template,
        validate: checks::workloads::replication_controller,
        warn: warnings::replication_controller,
        secured: SPEC_TEMPLATE,
        ..named("", "ReplicationController", "replicationcontrollers")
    }
}

fn resource_quota() -> Kind {
    Kind {
        short_names: &["quota"],
        status: KEEPS_SPEC,
        returns_deleted: true,
        validate: limits::validate_quota,
        ..named("", "ResourceQuota", "resourcequotas")
    }
}

fn limit_range() -> Kind {
    Kind {
        short_names: &["limits"],
        create_on_update: true,
        defaults: &[Defaults {
            under: "spec",
            rules: &[
                ("limits[]", Merge(limits::default_limit)),
                ("limits[]", Merge(limits::default_request)),
            ],
        }],
        validate: limits::validate_range,
        ..named("", "LimitRange", "limitranges")
    }
}

fn pod_template() -> Kind {
    Kind {
        returns_deleted: true,
        generation: Generation::Of(&["template"]),
        defaults: &[Defaults { under: "template.spec", rules: POD_SPEC }],
        secured: Some(Secured::Template("template")),
        validate: checks::workloads::pod_template,
        warn: warnings::pod_template,
        ..named("", "PodTemplate", "podtemplates")
    }
}

/// The old way to bind a pod.
fn binding() -> Kind {
    Kind {
        operations: Operations::Create,
        relay: Some(Relay { plural: "pods", action: "binding" }),
        ..named("", "Binding", "bindings")
    }
}

/// The health of a cluster's components, of which the server has none.
fn component_status() -> Kind {
    Kind {
        short_names: &["cs"],
        namespaced: false,
        deprecation: "v1 ComponentStatus is deprecated in v1.19+",
        operations: Operations::Read,
        ..named("", "ComponentStatus", "componentstatuses")
    }
}

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
