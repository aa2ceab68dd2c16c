//! The groups `networking.k8s.io` and `discovery.k8s.io`, and the core kind `Endpoints`.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{KEEPS_METADATA, KEEPS_SPEC, OF_SPEC, label, named};
use crate::fields::Fields;
use crate::kinds::DefaultValue::{From, Json, Unset};
use crate::kinds::{
    Admission, Defaults, Generation, Kind, checks, ingress_class, network_warnings,
};
use crate::names;
use crate::plugin::AdmissionPlugin;

pub(super) fn rows() -> Vec<Kind> {
    vec![
        ingress_class(),
        ingress(),
        ip_address(),
        network_policy(),
        service_cidr(),
        endpoint_slice(),
        endpoints(),
    ]
}

fn of_group(kind: &'static str, plural: &'static str) -> Kind {
    Kind { generation: OF_SPEC, ..named("networking.k8s.io", kind, plural) }
}

fn ingress_class() -> Kind {
    Kind {
        namespaced: false,
        defaults: &[Defaults {
            under: "spec.parameters",
            rules: &[("scope", Json("\"Cluster\""))],
        }],
        validate: checks::ingress_class::ingress_class,
        immutable: &["spec.controller"],
        ..of_group("IngressClass", "ingressclasses")
    }
}

fn ingress() -> Kind {
    const CLASS: Admission = Admission {
        plugin: AdmissionPlugin::DefaultIngressClass,
        after_additions: false,
        group: "networking.k8s.io",
        plural: "ingressclasses",
        // No class is built in.
        built_in: "/",
        apply: ingress_class::set_default,
    };
    Kind {
        short_names: &["ing"],
        status: KEEPS_SPEC,
        warn: network_warnings::ingress,
        warn_status: network_warnings::balancers,
        validate: checks::ingress::ingress,
        admissions: Cow::Borrowed(const { &[CLASS] }),
        ..of_group("Ingress", "ingresses")
    }
}

fn ip_address() -> Kind {
    Kind {
        short_names: &["ip"],
        namespaced: false,
        generation: Generation::None,
        name: names::ip_address,
        fields: const { &[label("spec.parentRef.resource", &["spec.parentRef.resource"])] },
        validate: checks::networking::ip_address,
        ..of_group("IPAddress", "ipaddresses")
    }
}

fn network_policy() -> Kind {
    Kind {
        short_names: &["netpol"],
        defaults: &[Defaults {
            under: "spec",
            rules: &[
                ("ingress|egress[].ports[].protocol", Json("\"TCP\"")),
                ("policyTypes", From(policy_types)),
            ],
        }],
        warn: network_warnings::network_policy,
        validate: checks::networking::network_policy,
        ..of_group("NetworkPolicy", "networkpolicies")
    }
}

/// A policy without types is one for incoming traffic, and for outgoing traffic if it has rules
/// for that.
fn policy_types(spec: &Fields) -> Value {
    match spec.get("egress").and_then(Value::as_array) {
        Some(rules) if !rules.is_empty() => json!(["Ingress", "Egress"]),
        _ => json!(["Ingress"]),
    }
}

fn service_cidr() -> Kind {
    Kind {
        namespaced: false,
        generation: Generation::None,
        status: KEEPS_METADATA,
        validate: checks::service_cidr::service_cidr,
        ..of_group("ServiceCIDR", "servicecidrs")
    }
}

fn endpoint_slice() -> Kind {
    Kind {
        generation: Generation::Of(&["addressType", "endpoints", "ports", "metadata.labels"]),
        defaults: &[Defaults {
            under: "",
            rules: &[("ports[].name", Json("\"\"")), ("ports[].protocol", Unset("\"TCP\""))],
        }],
        derive: drop_topology,
        null_if_empty: &["endpoints"],
        warn: network_warnings::endpoint_slice,
        validate: checks::endpoints::endpoint_slice,
        ..named("discovery.k8s.io", "EndpointSlice", "endpointslices")
    }
}

/// The topology of endpoints cannot be written in this version.
fn drop_topology(slice: &mut Fields) {
    let endpoints = slice.get_mut("endpoints").and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten().filter_map(Value::as_object_mut) {
        endpoint.remove("deprecatedTopology");
    }
}

fn endpoints() -> Kind {
    Kind {
        short_names: &["ep"],
        deprecation: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        create_on_update: true,
        defaults: &[Defaults {
            under: "",
            rules: &[("subsets[].ports[].protocol", Json("\"TCP\""))],
        }],
        warn: network_warnings::endpoints,
        validate: checks::endpoints::endpoints,
        ..named("", "Endpoints", "endpoints")
    }
}
