//! The policies that apply to a request, with their bindings and parameters.

use serde_json::Value;

use super::attributes::{Attributes, Matched};
use super::binding::Binding;
use super::policy::{Policies, Policy};
use super::world::World;

/// A policy that applies to a request as a binding says.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    pub(super) policy: &'a Policy,
    pub(super) binding: &'a Binding,
    pub(super) matched: Matched,
    /// The policy applies once with each of them; null if it has none.
    pub(super) params: Vec<Value>,
}

/// A policy or a binding that cannot be applied.
#[derive(Debug)]
pub(super) struct Misconfigured<'a> {
    pub(super) policy: &'a Policy,
    pub(super) binding: Option<&'a Binding>,
    pub(super) message: String,
}

type Selected<'a> = Result<Invocation<'a>, Misconfigured<'a>>;

/// Returns the policies that apply to a request, and those that cannot be applied, in their order.
/// A policy whose failures are ignored is left out if it cannot be applied.
pub(super) fn select<'a>(
    policies: &'a Policies,
    request: &Attributes<'_>,
    world: &dyn World,
) -> Vec<Selected<'a>> {
    let mut selected = Vec::new();
    for (policy, bindings) in &policies.bound {
        let matched = match matched(policy, request, world) {
            Ok(Some(matched)) => matched,
            Ok(None) => continue,
            Err(error) => {
                selected.push(Err(Misconfigured::new(policy, None, &error)));
                continue;
            }
        };
        let bound =
            bindings.iter().filter_map(|binding| match params(policy, binding, request, world) {
                Ok(params) => {
                    let matched = matched.clone();
                    let invocation = Invocation { policy, binding, matched, params: params? };
                    Some(Ok(invocation))
                }
                Err(error) => Some(Err(Misconfigured::new(policy, Some(binding), &error))),
            });
        selected.extend(bound);
    }
    let is_ignored =
        |one: &Selected<'_>| one.as_ref().is_err_and(|wrong| wrong.policy.ignores_failures);
    selected.retain(|one| !is_ignored(one));
    selected
}

/// Returns what the rules of a policy name; `None` if it does not apply to the request.
fn matched(
    policy: &Policy,
    request: &Attributes<'_>,
    world: &dyn World,
) -> Result<Option<Matched>, String> {
    let Some(matched) = policy.constraints.matches(request, world)? else { return Ok(None) };
    match policy.params.as_ref().filter(|kind| world.is_namespaced(kind).is_none()) {
        Some(unknown) => Err(unknown.unknown()),
        None => Ok(Some(matched)),
    }
}

/// Returns the parameters of a policy; `None` if a binding does not apply to the request.
fn params(
    policy: &Policy,
    binding: &Binding,
    request: &Attributes<'_>,
    world: &dyn World,
) -> Result<Option<Vec<Value>>, String> {
    if let Some(resources) = &binding.resources
        && resources.matches(request, world)?.is_none()
    {
        return Ok(None);
    }
    match (&policy.params, &binding.params) {
        (Some(kind), Some(params)) => params.find(kind, request, world).map(Some),
        _ => Ok(Some(vec![Value::Null])),
    }
}

// === impl Misconfigured ===

impl<'a> Misconfigured<'a> {
    fn new(policy: &'a Policy, binding: Option<&'a Binding>, error: &str) -> Self {
        let of = if binding.is_some() { "binding" } else { "policy" };
        Self { policy, binding, message: format!("failed to configure {of}: {error}") }
    }
}
