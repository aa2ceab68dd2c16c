//! The core group.

mod pod;

use std::borrow::Cow;

use super::pod_spec::POD_SPEC;
use super::{ALL, KEEPS_SPEC, OF_SPEC, REPLICAS, SPEC_TEMPLATE, label, named};
use crate::kinds::DefaultValue::{From, Json, Merge};
use crate::kinds::limit_range::CLAIMS;
use crate::kinds::{
    Action, Admission, Defaults, Dependents, Effect, Generation, Guard, Kind, OnCreate, Operations,
    Protected, Relay, Secured, Status, checks, external_addresses, limits, namespace,
    network_warnings, node, secret, service, storage_class, volume_claim, warnings, workload,
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
        pod::row(),
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
        derive: node::derive,
        prepare: node::prepare,
        inherits: node::inherit,
        validate: checks::nodes::node,
        ..named("", "Node", "nodes")
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
        body_type: "authentication.TokenRequest",
        complete: None,
        effect: Effect::IssueToken,
    };
    Kind {
        short_names: &["sa"],
        returns_deleted: true,
        actions: &[TOKEN],
        derive: secret::name_secrets,
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
        warn: limits::warn_quota,
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
        null_if_empty: &["spec.limits"],
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
