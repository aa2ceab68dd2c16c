//! Decides whether the policies accept a request.

use homeostat_core::LabelSelector;
use homeostat_schema::{Authorizer, PolicyFinding, PolicyInput};
use serde_json::Value;

use super::attributes::Attributes;
use super::binding::Binding;
use super::matching::Matched;
use super::params::ParamKind;
use super::policy::{Policies, Policy};

/// The other objects that policies read.
pub(crate) trait World {
    /// Returns a namespace; `None` if it does not exist.
    fn namespace(&self, name: &str) -> Option<Value>;

    /// Returns the other versions of the resource of a request, with the types of their objects.
    fn equivalents(&self, request: &Attributes<'_>) -> Vec<Matched>;

    /// Returns an object of the request in another version.
    fn converted(&self, object: &Value, to: &Matched) -> Value;

    /// Returns whether objects of a kind are in a namespace; `None` if the kind is unknown.
    fn is_namespaced(&self, kind: &ParamKind) -> Option<bool>;

    /// Returns an object of a kind; `None` if it does not exist.
    fn param(&self, kind: &ParamKind, namespace: &str, name: &str) -> Option<Value>;

    /// Returns the objects of a kind that a selector matches, in the order of their names.
    fn params(&self, kind: &ParamKind, namespace: &str, selector: &LabelSelector) -> Vec<Value>;

    /// Returns the permissions of the user.
    fn authorizer(&self) -> &dyn Authorizer;
}

/// The decision of all policies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The first reason to refuse the request.
    pub(crate) denial: Option<Denial>,
    pub(crate) warnings: Vec<String>,
}

/// A reason to refuse a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// A policy refuses the object with this name.
    Refused { name: String, message: String, reason: Option<String> },
    /// The namespace of the request does not exist.
    NoNamespace(String),
}

/// Returns whether requests for a resource are exempt from all policies: those for the policies
/// themselves, and reviews, without which a cluster could not be repaired.
pub(crate) fn is_exempt(request: &Attributes<'_>) -> bool {
    matches!(
        (request.resource.group.as_str(), request.resource.plural.as_str()),
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
        ) | ("authentication.k8s.io", "selfsubjectreviews" | "tokenreviews")
            | (
                "authorization.k8s.io",
                "localsubjectaccessreviews"
                    | "selfsubjectaccessreviews"
                    | "selfsubjectrulesreviews"
                    | "subjectaccessreviews"
            )
    )
}

/// Evaluates all policies that apply to a request.
pub(crate) fn decide(policies: &Policies, request: &Attributes<'_>, world: &dyn World) -> Outcome {
    let mut decider = Decider { request, world, outcome: Outcome::default() };
    if is_exempt(request) {
        return decider.outcome;
    }
    for (policy, bindings) in &policies.bound {
        if let Err(missing) = decider.apply(policy, bindings) {
            decider.outcome.denial = Some(Denial::NoNamespace(missing));
            break;
        }
    }
    decider.outcome
}

/// Returns the values of the variables of expressions, with the objects in the version that
/// `matched` names.
pub(crate) fn input_of<'a>(
    request: &Attributes<'_>,
    world: &'a dyn World,
    matched: &Matched,
    namespace: Value,
) -> PolicyInput<'a> {
    let converted = |object: &Value| match object {
        Value::Null => Value::Null,
        object if matched.kind == request.kind => object.clone(),
        object => world.converted(object, matched),
    };
    PolicyInput {
        object: converted(&request.object),
        old_object: converted(&request.old),
        request: request.request(&matched.resource, &matched.kind),
        condition_request: request.request(&request.resource, &matched.kind),
        namespace,
        resource: request.access_check(),
        ..PolicyInput::new(world.authorizer())
    }
}

struct Decider<'a> {
    request: &'a Attributes<'a>,
    world: &'a dyn World,
    outcome: Outcome,
}

/// The name of a namespace that does not exist.
type Missing = String;

// === impl Decider ===

impl<'a> Decider<'a> {
    fn apply(
        &mut self,
        policy: &Policy,
        bindings: &[std::sync::Arc<Binding>],
    ) -> Result<(), Missing> {
        let matched = match policy.constraints.matches(self.request, self.world) {
            Ok(Some(matched)) => matched,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.misconfigured(policy, None, &error);
                return Ok(());
            }
        };
        let unknown =
            policy.params.as_ref().filter(|kind| self.world.is_namespaced(kind).is_none());
        if let Some(kind) = unknown {
            self.misconfigured(policy, None, &kind.unknown());
            return Ok(());
        }
        bindings.iter().try_for_each(|binding| self.apply_binding(policy, binding, &matched))
    }

    fn apply_binding(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        matched: &Matched,
    ) -> Result<(), Missing> {
        match binding.resources.as_ref().map(|all| all.matches(self.request, self.world)) {
            None | Some(Ok(Some(_))) => {}
            Some(Ok(None)) => return Ok(()),
            Some(Err(error)) => {
                self.misconfigured(policy, Some(binding), &error);
                return Ok(());
            }
        }
        let params = match (&policy.params, &binding.params) {
            (Some(kind), Some(params)) => params.find(kind, self.request, self.world),
            _ => Ok(vec![Value::Null]),
        };
        let params = match params {
            Ok(params) => params,
            Err(error) => {
                self.misconfigured(policy, Some(binding), &error);
                return Ok(());
            }
        };
        let mut input = self.input(matched)?;
        for params in params {
            input.params = params;
            for finding in policy.expressions.check(&input) {
                self.count(policy, binding, finding);
            }
        }
        Ok(())
    }

    /// Returns the values of the variables of expressions.
    fn input(&self, matched: &Matched) -> Result<PolicyInput<'a>, Missing> {
        let (request, world) = (self.request, self.world);
        // A namespace is in itself, but has none.
        let in_namespace = !request.namespace.is_empty() && !request.kind.is_namespace();
        let namespace = match in_namespace.then(|| self.world.namespace(request.namespace)) {
            None => Value::Null,
            Some(Some(namespace)) => namespace,
            Some(None) => return Err(request.namespace.to_owned()),
        };
        Ok(input_of(request, world, matched, namespace))
    }

    /// Counts a finding as the actions of the binding say. The action `Audit` has no effect here.
    fn count(&mut self, policy: &Policy, binding: &Binding, finding: PolicyFinding) {
        let PolicyFinding { message, reason, is_final, .. } = finding;
        if binding.warns && !is_final {
            self.outcome.warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                policy.name, binding.name
            ));
        }
        if binding.denies || is_final {
            self.deny(policy, Some(binding), &message, reason);
        }
    }

    /// Counts an error of a policy or a binding itself.
    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, error: &str) {
        if policy.ignores_failures {
            return;
        }
        let of = if binding.is_some() { "binding" } else { "policy" };
        self.deny(policy, binding, &format!("failed to configure {of}: {error}"), None);
    }

    fn deny(
        &mut self,
        policy: &Policy,
        binding: Option<&Binding>,
        message: &str,
        reason: Option<String>,
    ) {
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name));
        let with = with.unwrap_or_default();
        let message =
            format!("ValidatingAdmissionPolicy '{}'{with} denied request: {message}", policy.name);
        let name = self.request.shown_name().to_owned();
        self.outcome.denial.get_or_insert(Denial::Refused { name, message, reason });
    }
}
