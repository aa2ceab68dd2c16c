//! Changes the object of a request as the mutating policies say.

use homeostat_schema::{PolicyPatch, merge_configuration};
use serde_json::{Map, Value, json};

use super::attributes::{Attributes, Matched, Operation};
use super::binding::Binding;
use super::codec::{Codec, Source};
use super::decide::{input_of, is_exempt, namespace_of};
use super::policy::{Policies, Policy};
use super::reinvocation::Reinvocation;
use super::select::{Invocation, select};
use super::world::World;
use crate::patch::{OperationError, apply_operations};
use crate::status::{Failure, ResourceName, Result};

/// The admission of one request by the mutating policies.
pub(crate) struct Mutation<'a> {
    pub(crate) policies: &'a Policies,
    pub(crate) world: &'a dyn World,
    pub(crate) codec: &'a dyn Codec,
}

/// A pass over the policies.
struct Pass<'a, 'b> {
    mutation: &'b Mutation<'a>,
    reinvocation: &'b mut Reinvocation,
    /// True for the second pass.
    is_again: bool,
    /// The namespace of the object; null if it is in none.
    namespace: Value,
    problems: Vec<Problem>,
    /// True if a mutation was applied, even one that changes nothing.
    is_applied: bool,
}

/// A reason to refuse the request.
#[derive(Debug)]
struct Problem {
    message: String,
    reason: &'static str,
}

/// The reason why a mutation cannot be applied.
#[derive(Debug)]
enum Unapplied {
    /// The failure policy decides.
    Invalid(String),
    /// The result is no object of its kind: the request fails.
    Internal(String),
}

// === impl Mutation ===

impl Mutation<'_> {
    /// Applies the policies to the object of a request, in a first or a second pass.
    pub(crate) fn pass(
        &self,
        request: &mut Attributes<'_>,
        reinvocation: &mut Reinvocation,
    ) -> Result<()> {
        if request.operation == Operation::Delete || is_exempt(request) {
            return Ok(());
        }
        let is_again = reinvocation.start(&request.object) > 0;
        let result = self.run(request, reinvocation, is_again);
        reinvocation.finish(&request.object);
        result
    }

    fn run(
        &self,
        request: &mut Attributes<'_>,
        reinvocation: &mut Reinvocation,
        is_again: bool,
    ) -> Result<()> {
        let mut problems = Vec::new();
        let mut invocations = Vec::new();
        for one in select(self.policies, request, self.world) {
            match one {
                Ok(invocation) => invocations.push(invocation),
                Err(wrong) => {
                    let message = refusal(wrong.policy, wrong.binding, &wrong.message);
                    problems.push(Problem { message, reason: "Forbidden" });
                }
            }
        }
        let namespace = match invocations.as_slice() {
            [] => Value::Null,
            _ => namespace_of(request, self.world).map_err(|missing| {
                Failure::not_found(ResourceName::built_in("", "namespaces"), &missing)
            })?,
        };
        let is_applied = false;
        let mut pass =
            Pass { mutation: self, reinvocation, is_again, namespace, problems, is_applied };
        for invocation in &invocations {
            for params in &invocation.params {
                pass.invoke(request, invocation, params)?;
            }
        }
        pass.finish(request)
    }
}

// === impl Pass ===

impl Pass<'_, '_> {
    fn invoke(
        &mut self,
        request: &mut Attributes<'_>,
        invocation: &Invocation<'_>,
        params: &Value,
    ) -> Result<()> {
        let Invocation { policy, binding, matched, .. } = invocation;
        let input = input_of(request, self.mutation.world, matched, self.namespace.clone());
        let mut input = input.map_err(|why| Failure::internal_error(&why))?;
        input.params = params.clone();
        match policy.expressions.applies(&input) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(message) => {
                self.fail(policy, binding, &message);
                return Ok(());
            }
        }
        let id = id_of(policy, binding, params);
        if self.is_again && !self.reinvocation.is_due(&id) {
            return Ok(());
        }
        let before = request.object.clone();
        for position in 0..policy.expressions.mutation_count() {
            if request.object.is_null() {
                continue;
            }
            match self.mutated(request, invocation, (params, position)) {
                Ok(object) => {
                    request.object = object;
                    self.is_applied = true;
                }
                Err(Unapplied::Invalid(message)) => self.fail(policy, binding, &message),
                Err(Unapplied::Internal(why)) => return Err(Failure::internal_error(&why)),
            }
        }
        if request.object != before {
            self.reinvocation.change();
        }
        if policy.is_reinvoked {
            self.reinvocation.note_call(id);
        }
        Ok(())
    }

    /// Returns the object of a request after a mutation.
    fn mutated(
        &self,
        request: &Attributes<'_>,
        invocation: &Invocation<'_>,
        (params, position): (&Value, usize),
    ) -> std::result::Result<Value, Unapplied> {
        let Invocation { policy, matched, .. } = invocation;
        let Mutation { world, codec, .. } = self.mutation;
        let input = input_of(request, *world, matched, self.namespace.clone());
        let mut input = input.map_err(Unapplied::Internal)?;
        input.params = params.clone();
        let patch = policy.expressions.mutate(position, &input).map_err(Unapplied::Invalid)?;
        let object = std::mem::take(&mut input.object);
        let (changed, source) = match patch {
            PolicyPatch::Configuration(configuration) => {
                let merged = self.merge(&object, configuration, matched);
                (merged.map_err(Unapplied::Invalid)?, Source::Configuration)
            }
            PolicyPatch::Operations(operations) => {
                match apply_operations(object.clone(), &operations) {
                    Ok(patched) => (patched, Source::Patch),
                    Err(OperationError { is_failed_test: true, .. }) => (object, Source::Patch),
                    Err(error) => {
                        return Err(Unapplied::Invalid(format!("JSON Patch: {error}")));
                    }
                }
            }
        };
        let decoded = codec.decoded(changed, matched, source).map_err(|why| match source {
            Source::Configuration => Unapplied::Invalid(why),
            _ => Unapplied::Internal(why),
        })?;
        if matched.kind == request.kind {
            return Ok(decoded);
        }
        codec.restored(decoded, matched, source).map_err(Unapplied::Invalid)
    }

    fn merge(
        &self,
        object: &Value,
        mut configuration: Map<String, Value>,
        of: &Matched,
    ) -> std::result::Result<Value, String> {
        let failed = |why: String| format!("error applying patch: {why}");
        let Some(schema) = self.mutation.codec.schema(of) else {
            return Err(failed(format!(
                "failed to convert patch object to typed object: no corresponding type for \
                 {}/{}, Kind={}",
                of.kind.group, of.kind.version, of.kind.kind
            )));
        };
        for name in ["apiVersion", "kind"] {
            configuration.insert(name.to_owned(), object[name].clone());
        }
        let Value::Object(object) = object else { return Ok(Value::Null) };
        merge_configuration(&schema, object, &configuration).map(Value::Object).map_err(failed)
    }

    fn fail(&mut self, policy: &Policy, binding: &Binding, message: &str) {
        if !policy.ignores_failures {
            let message = refusal(policy, Some(binding), message);
            self.problems.push(Problem { message, reason: "Invalid" });
        }
    }

    /// Returns the failure of the request if there is a problem.
    fn finish(self, request: &Attributes<'_>) -> Result<()> {
        // As upstream, the object counts as changed even if no mutation changes it.
        if self.is_applied {
            self.reinvocation.change();
        }
        let Some(Problem { message, reason }) = self.problems.first() else { return Ok(()) };
        let resource = ResourceName::built_in(&request.resource.group, &request.resource.plural);
        let failure = Failure::forbidden(resource, request.shown_name(), "");
        let mut failure = Failure { message: message.clone(), reason, ..failure };
        let causes = self.problems.iter().map(|problem| json!({"message": problem.message}));
        let details = failure.details.get_or_insert_with(|| json!({}));
        details["causes"] = causes.collect();
        Err(failure)
    }
}

/// Returns the name of an invocation: that of the policy, the binding and the parameters.
fn id_of(policy: &Policy, binding: &Binding, params: &Value) -> String {
    let text = |name: &str| params["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}/{}/{}", policy.name, binding.name, text("namespace"), text("name"))
}

/// Returns the message about a policy that cannot be applied.
fn refusal(policy: &Policy, binding: Option<&Binding>, message: &str) -> String {
    match binding {
        Some(binding) => format!(
            "policy '{}' with binding '{}' denied request: {message}",
            policy.name, binding.name
        ),
        None => format!("policy \"{}\" denied request: {message}", policy.name),
    }
}
