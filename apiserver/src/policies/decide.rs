//! Decides whether the policies accept a request.

use homeostat_schema::{PolicyFinding, PolicyInput};
use serde_json::Value;

use super::attributes::{Attributes, Matched};
use super::binding::Binding;
use super::policy::{Policies, Policy};
use super::select::{Invocation, select};
use super::world::World;

/// The decision of all policies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The first reason to refuse the request.
    pub(crate) denial: Option<Denial>,
    pub(crate) warnings: Vec<String>,
    /// The actions that metrics count.
    pub(crate) enforcements: Vec<Enforcement>,
}

/// An action for an expression that refuses a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Enforcement {
    pub(crate) policy: String,
    pub(crate) binding: String,
    /// `deny`, `audit` or `warn`.
    pub(crate) action: &'static str,
    pub(crate) error: &'static str,
}

/// Returns the type of an error by its message, as the real server finds it out: an object that is
/// not valid is an error, too.
fn error_of(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        "compile_error"
    } else if message.starts_with("validation failed due to running out of cost budget") {
        "out_of_budget"
    } else {
        "invalid_error"
    }
}

/// A reason to refuse a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// A policy refuses the object with this name.
    Refused { name: String, message: String, reason: Option<String> },
    /// The namespace of the request does not exist.
    NoNamespace(String),
    /// The object cannot be converted to the version that a policy names.
    Unconverted(String),
}

/// Returns true if requests for a resource are exempt from all policies: those for the policies
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
    for one in select(policies, request, world) {
        match one {
            Ok(invocation) => {
                if let Err(denial) = decider.apply(&invocation) {
                    decider.outcome.denial = Some(denial);
                    break;
                }
            }
            Err(wrong) => decider.deny(wrong.policy, wrong.binding, &wrong.message, None),
        }
    }
    decider.outcome
}

/// Returns the values of the variables of expressions, with the objects in the version that
/// `matched` names. Returns the reason why an object cannot be converted as an error.
pub(crate) fn input_of<'a>(
    request: &Attributes<'_>,
    world: &'a dyn World,
    matched: &Matched,
    namespace: Value,
) -> Result<PolicyInput<'a>, String> {
    let converted = |object: &Value| match object {
        Value::Null => Ok(Value::Null),
        object if matched.kind == request.kind => Ok(object.clone()),
        object => world.converted(object, matched),
    };
    Ok(PolicyInput {
        object: converted(&request.object)?,
        old_object: converted(&request.old)?,
        request: request.request(&matched.resource, &matched.kind),
        condition_request: request.request(&request.resource, &matched.kind),
        namespace,
        resource: request.access_check(),
        ..PolicyInput::new(world.authorizer())
    })
}

/// Returns the namespace of the object of a request; null if it is in none. Returns the name of one
/// that does not exist as an error.
pub(super) fn namespace_of(request: &Attributes<'_>, world: &dyn World) -> Result<Value, Missing> {
    // A namespace is in itself, but has none.
    if request.namespace.is_empty() || request.kind.is_namespace() {
        return Ok(Value::Null);
    }
    world.namespace(request.namespace).ok_or_else(|| request.namespace.to_owned())
}

struct Decider<'a> {
    request: &'a Attributes<'a>,
    world: &'a dyn World,
    outcome: Outcome,
}

/// The name of a namespace that does not exist.
pub(super) type Missing = String;

// === impl Decider ===

impl Decider<'_> {
    fn apply(&mut self, invocation: &Invocation<'_>) -> Result<(), Denial> {
        let Invocation { policy, binding, matched, params } = invocation;
        let namespace = namespace_of(self.request, self.world).map_err(Denial::NoNamespace)?;
        let input = input_of(self.request, self.world, matched, namespace);
        let mut input = input.map_err(Denial::Unconverted)?;
        for params in params {
            input.params = params.clone();
            for finding in policy.expressions.check(&input) {
                self.count(policy, binding, finding);
            }
        }
        Ok(())
    }

    /// Counts a finding as the actions of the binding say. The action `Audit` has no other effect
    /// here.
    fn count(&mut self, policy: &Policy, binding: &Binding, finding: PolicyFinding) {
        let PolicyFinding { message, reason, is_final, .. } = finding;
        let actions = [
            ("deny", binding.denies || is_final),
            ("audit", binding.audits && !is_final),
            ("warn", binding.warns && !is_final),
        ];
        let due = actions.into_iter().filter(|(_, is_due)| *is_due);
        self.outcome.enforcements.extend(due.map(|(action, _)| Enforcement {
            policy: policy.name.clone(),
            binding: binding.name.clone(),
            action,
            error: error_of(&message),
        }));
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
