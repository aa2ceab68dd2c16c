//! Policies with their bindings.

use std::sync::Arc;

use homeostat_schema::Policy as Expressions;
use serde_json::Value;

use super::binding::Binding;
use super::matching::MatchResources;
use super::param_kind::ParamKind;
use crate::fields::{Fields, read_path};

/// A `ValidatingAdmissionPolicy` or a `MutatingAdmissionPolicy`.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) constraints: MatchResources,
    pub(super) params: Option<ParamKind>,
    pub(super) ignores_failures: bool,
    /// True if the mutations are applied again after later changes.
    pub(super) is_reinvoked: bool,
    pub(super) expressions: Expressions,
}

/// The policies that have bindings, in the order of their names.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    pub(super) bound: Vec<(Arc<Policy>, Vec<Arc<Binding>>)>,
}

// === impl Policy ===

impl Policy {
    pub(super) fn read(object: &Fields) -> Self {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let name = read_path(object, "metadata.name").and_then(Value::as_str).unwrap_or_default();
        Self {
            name: name.to_owned(),
            constraints: MatchResources::read(&spec["matchConstraints"]),
            params: ParamKind::read(&spec["paramKind"]),
            ignores_failures: spec["failurePolicy"] == "Ignore",
            is_reinvoked: spec["reinvocationPolicy"] == "IfNeeded",
            expressions: Expressions::compile(spec),
        }
    }
}

// === impl Policies ===

impl Policies {
    pub(super) fn new(policies: &[Arc<Policy>], bindings: &[Arc<Binding>]) -> Self {
        let with_bindings = |policy: &Arc<Policy>| {
            let own = bindings.iter().filter(|binding| binding.policy == policy.name);
            let own: Vec<Arc<Binding>> = own.cloned().collect();
            (!own.is_empty()).then(|| (Arc::clone(policy), own))
        };
        Self { bound: policies.iter().filter_map(with_bindings).collect() }
    }
}
