//! The expressions of admission policies.

mod compile;
mod environment;
mod mutate;
mod run;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::authorizer::{AccessCheck, Authorizer};
use crate::cel::{Expr, Type};
use crate::field_error::FieldError;

/// The compiled expressions of a `ValidatingAdmissionPolicy` or a `MutatingAdmissionPolicy`.
///
/// The rules that decide which requests a policy applies to are not part of it.
///
/// # Examples
///
/// ```
/// use homeostat_schema::{AccessCheck, AccessDecision, Authorizer, Policy, PolicyInput};
/// use serde_json::{Value, json};
///
/// #[derive(Debug)]
/// struct NoPermissions;
///
/// impl Authorizer for NoPermissions {
///     fn authorize(&self, _: &AccessCheck) -> AccessDecision {
///         AccessDecision::default()
///     }
/// }
///
/// let policy = Policy::compile(&json!({
///     "variables": [{"name": "replicas", "expression": "object.spec.replicas"}],
///     "validations": [{"expression": "variables.replicas <= 3", "message": "too many"}],
/// }));
/// let mut input = PolicyInput::new(&NoPermissions);
/// input.object = json!({"spec": {"replicas": 5}});
/// let findings = policy.check(&input);
/// assert_eq!(findings[0].message, "too many");
/// ```
#[derive(Debug, Default)]
pub struct Policy {
    conditions: Vec<Source>,
    variables: Vec<Variable>,
    validations: Vec<Validation>,
    /// The values of annotations of the audit log.
    annotations: Vec<Source>,
    mutations: Vec<Mutation>,
    /// True if an expression that fails is ignored.
    ignores_failures: bool,
}

/// The values that the expressions of a policy read. A value that does not exist is null.
#[derive(Debug)]
pub struct PolicyInput<'a> {
    /// The object of the request.
    pub object: Value,
    /// The stored object.
    pub old_object: Value,
    /// The parameters.
    pub params: Value,
    /// The request, as the API's `AdmissionRequest` describes it.
    pub request: Value,
    /// The request that the conditions of a match see: the resource is that of the request, also if
    /// the policy names another version of it.
    pub condition_request: Value,
    /// The namespace of the object.
    pub namespace: Value,
    /// The permissions of users.
    pub authorizer: &'a dyn Authorizer,
    /// The resource of the request, for `authorizer.requestResource`.
    pub resource: AccessCheck,
}

/// A reason of a policy to refuse a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyFinding {
    /// The message.
    pub message: String,
    /// The reason of the reply; `None` for the default.
    pub reason: Option<String>,
    /// True if the request is refused whatever the actions of the binding are: an annotation of the
    /// audit log has no value.
    pub is_final: bool,
}

/// An expression and its source.
#[derive(Debug)]
struct Source {
    text: String,
    /// The expression, or the reason why it does not compile.
    compiled: Result<Expr, String>,
}

#[derive(Debug)]
struct Variable {
    name: String,
    /// The name in expressions: `variables.NAME`.
    full_name: String,
    source: Source,
}

#[derive(Debug)]
struct Validation {
    source: Source,
    message: String,
    message_source: Option<Source>,
    reason: Option<String>,
}

/// A mutation of a `MutatingAdmissionPolicy`.
#[derive(Debug)]
struct Mutation {
    patch_type: PatchType,
    source: Source,
}

/// The form in which a mutation states its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatchType {
    /// A configuration that is merged into the object.
    Configuration,
    /// The operations of a JSON patch.
    Patch,
}

/// A change of the object of a request, which a `MutatingAdmissionPolicy` makes.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyPatch {
    /// Members that are merged into the object by
    /// [`merge_configuration`](crate::merge_configuration).
    Configuration(Map<String, Value>),
    /// The operations of a JSON patch.
    Operations(Vec<Value>),
}

// === impl Policy ===

impl Policy {
    /// Compiles the expressions in the `spec` of a policy. One that does not compile fails when it
    /// is evaluated: [`problems`](Self::problems) reports it.
    #[must_use]
    pub fn compile(spec: &Value) -> Self {
        compile::compile(spec, &mut Vec::new())
    }

    /// Returns the errors of the expressions in the `spec` of a policy, in their order, with the
    /// real server's texts. Blank expressions are not reported.
    pub fn problems(spec: &Value) -> Vec<FieldError> {
        let mut problems = Vec::new();
        compile::compile(spec, &mut problems);
        problems
    }

    /// Evaluates the conditions of the match alone. Returns true if they hold; with the failure
    /// policy `Ignore`, conditions that fail do not.
    ///
    /// # Errors
    ///
    /// Returns the message about the conditions that fail.
    pub fn applies(&self, input: &PolicyInput<'_>) -> Result<bool, String> {
        run::applies(self, input)
    }

    /// Evaluates the policy, and returns the reasons to refuse the request; none if it is accepted,
    /// or if the conditions of the match do not hold.
    ///
    /// An expression may take 1,000,000 steps, all validations 10,000,000, and all conditions
    /// 2,500,000, as on the real server.
    pub fn check(&self, input: &PolicyInput<'_>) -> Vec<PolicyFinding> {
        run::run(self, input)
    }

    /// Returns the number of mutations.
    pub fn mutation_count(&self) -> usize {
        self.mutations.len()
    }

    /// Evaluates a mutation, by its position. The conditions of the match are not looked at.
    ///
    /// # Errors
    ///
    /// Returns the reason if the expression has no value, takes too many steps, or makes a value
    /// that is no change of an object.
    pub fn mutate(&self, position: usize, input: &PolicyInput<'_>) -> Result<PolicyPatch, String> {
        mutate::mutate(self, position, input)
    }
}

// === impl PatchType ===

impl PatchType {
    /// Returns the member of a mutation that has the expression.
    fn member(self) -> &'static str {
        match self {
            Self::Configuration => "applyConfiguration",
            Self::Patch => "jsonPatch",
        }
    }

    /// Returns the type of the value of the expression.
    fn result(self) -> Type {
        match self {
            Self::Configuration => Type::Struct("Object".into()),
            Self::Patch => Type::list(Type::Struct("JSONPatch".into())),
        }
    }
}

// === impl PolicyInput ===

impl<'a> PolicyInput<'a> {
    /// Creates an input without any values.
    pub fn new(authorizer: &'a dyn Authorizer) -> Self {
        Self {
            object: Value::Null,
            old_object: Value::Null,
            params: Value::Null,
            request: Value::Null,
            condition_request: Value::Null,
            namespace: Value::Null,
            authorizer,
            resource: AccessCheck::default(),
        }
    }
}

// === impl PolicyFinding ===

impl PolicyFinding {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), reason: None, is_final: false }
    }
}
