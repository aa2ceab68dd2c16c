//! Bindings: where a policy applies, with which parameters, and what a refusal does.

use serde_json::Value;

use super::matching::MatchResources;
use super::params::ParamRef;
use crate::fields::{Fields, read_path};

/// A `ValidatingAdmissionPolicyBinding` or a `MutatingAdmissionPolicyBinding`.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) name: String,
    pub(super) policy: String,
    /// None if the binding applies wherever its policy does.
    pub(super) resources: Option<MatchResources>,
    pub(super) params: Option<ParamRef>,
    pub(super) denies: bool,
    pub(super) audits: bool,
    pub(super) warns: bool,
}

// === impl Binding ===

impl Binding {
    pub(super) fn read(object: &Fields) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let name = read_path(object, "metadata.name").and_then(Value::as_str).unwrap_or_default();
        let actions = spec["validationActions"].as_array().map_or(&[][..], Vec::as_slice);
        let has = |name: &str| actions.iter().any(|action| action == name);
        let resources = spec.get("matchResources").filter(|resources| !resources.is_null());
        Self {
            name: name.to_owned(),
            policy: spec["policyName"].as_str().unwrap_or_default().to_owned(),
            resources: resources.map(MatchResources::read),
            params: ParamRef::read(&spec["paramRef"]),
            denies: has("Deny"),
            audits: has("Audit"),
            warns: has("Warn"),
        }
    }
}
