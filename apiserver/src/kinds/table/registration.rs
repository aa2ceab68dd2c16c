//! The groups `admissionregistration.k8s.io` and `apiregistration.k8s.io`. The server acts on
//! policies that validate and on webhooks; policies that mutate and services are only stored.

use serde_json::{Value, json};

use super::{KEEPS_METADATA, OF_SPEC, named};
use crate::fields::{Fields, read_path};
use crate::kinds::DefaultValue::{self, Json, Unset};
use crate::kinds::{Defaults, Generation, Kind, checks};
use crate::names;

const CATEGORY: &[&str] = &["api-extensions"];

pub(super) fn rows() -> Vec<Kind> {
    vec![
        Kind {
            defaults: &[Defaults { under: "spec", rules: POLICY }],
            validate: checks::policies::mutating,
            ..of_group("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        },
        Kind {
            defaults: &[Defaults { under: "spec.matchResources", rules: MATCH }],
            validate: checks::policy_bindings::mutating,
            ..of_group("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
        },
        webhooks("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", MUTATING),
        Kind {
            status: KEEPS_METADATA,
            defaults: &[Defaults { under: "spec", rules: POLICY }],
            validate: checks::policies::validating,
            ..of_group("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        },
        Kind {
            defaults: &[Defaults { under: "spec.matchResources", rules: MATCH }],
            validate: checks::policy_bindings::validating,
            ..of_group("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        },
        webhooks("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", VALIDATING),
        api_service(),
    ]
}

fn of_group(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        namespaced: false,
        categories: CATEGORY,
        unconditional_update: false,
        generation: OF_SPEC,
        warn: checks::admission_rules::warn,
        ..named("admissionregistration.k8s.io", kind, plural)
    }
}

fn webhooks(kind: &'static str, plural: &'static str, defaults: &'static [Defaults]) -> Kind {
    Kind {
        generation: Generation::Of(&["webhooks"]),
        defaults,
        validate: checks::webhooks::configuration,
        warn: checks::webhooks::warn,
        ..of_group(kind, plural)
    }
}

const WEBHOOK: &[(&str, DefaultValue)] = &[
    ("webhooks[].failurePolicy", Unset("\"Fail\"")),
    ("webhooks[].matchPolicy", Unset("\"Equivalent\"")),
    ("webhooks[].namespaceSelector", Json("{}")),
    ("webhooks[].objectSelector", Json("{}")),
    ("webhooks[].timeoutSeconds", Json("10")),
    ("webhooks[].rules[].scope", Unset("\"*\"")),
    ("webhooks[].clientConfig.service.port", Json("443")),
];
const VALIDATING: &[Defaults] = &[Defaults { under: "", rules: WEBHOOK }];
const MUTATING: &[Defaults] = &[
    Defaults { under: "", rules: WEBHOOK },
    Defaults { under: "", rules: &[("webhooks[].reinvocationPolicy", Unset("\"Never\""))] },
];
const MATCH: &[(&str, DefaultValue)] = &[
    ("matchPolicy", Unset("\"Equivalent\"")),
    ("namespaceSelector", Json("{}")),
    ("objectSelector", Json("{}")),
    ("resourceRules|excludeResourceRules[].scope", Unset("\"*\"")),
];
const POLICY: &[(&str, DefaultValue)] = &[
    ("failurePolicy", Unset("\"Fail\"")),
    ("matchConstraints.matchPolicy", Unset("\"Equivalent\"")),
    ("matchConstraints.namespaceSelector", Json("{}")),
    ("matchConstraints.objectSelector", Json("{}")),
    ("matchConstraints.resourceRules|excludeResourceRules[].scope", Unset("\"*\"")),
];

fn api_service() -> Kind {
    Kind {
        namespaced: false,
        categories: CATEGORY,
        name: names::path_segment,
        unconditional_update: false,
        status: KEEPS_METADATA,
        defaults: &[Defaults { under: "spec.service", rules: &[("port", Json("443"))] }],
        prepare: set_local_available,
        validate: checks::api_service::api_service,
        ..named("apiregistration.k8s.io", "APIService", "apiservices")
    }
}

/// A service without a server of its own is available from the start.
fn set_local_available(service: &mut Fields) {
    if read_path(service, "spec.service").is_some_and(|service| !service.is_null()) {
        return;
    }
    let now = read_path(service, "metadata.creationTimestamp").cloned().unwrap_or_default();
    let condition: Value = json!({
        "type": "Available", "status": "True", "lastTransitionTime": now, "reason": "Local",
        "message": "Local APIServices are always available",
    });
    service.insert("status".to_owned(), json!({"conditions": [condition]}));
}
