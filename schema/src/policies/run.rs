//! Evaluates a policy.

use super::{Policy, PolicyFinding, PolicyInput, Source, Validation};
use crate::cel::{self, Authorization, Evaluator, Lazy, Type};
use crate::field_error::aggregate;

/// The steps that one expression may take.
const STEPS_OF_EXPRESSION: usize = 1_000_000;
/// The steps that all validations, all annotations, or one mutation may take.
pub(super) const STEPS_OF_POLICY: usize = 10_000_000;
/// The steps that all conditions may take.
const STEPS_OF_CONDITIONS: usize = 2_500_000;
/// The longest message that an expression may make, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

pub(super) const NO_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An evaluation that has no value.
#[derive(Debug)]
pub(super) enum Failed {
    /// All expressions together took too many steps.
    Budget,
    Expression(String),
}

/// A part of a policy, with the steps that it may still take.
#[derive(Debug)]
pub(super) struct Phase<'a> {
    evaluator: Evaluator<'a>,
    left: usize,
}

pub(super) fn run(policy: &Policy, input: &PolicyInput<'_>) -> Vec<PolicyFinding> {
    let failed = |message: String| {
        let finding = (!policy.ignores_failures).then(|| PolicyFinding::new(message));
        finding.into_iter().collect()
    };
    match matches(policy, input) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(message) => return failed(message),
    }
    let Ok(mut findings) = validate(policy, input) else { return failed(NO_BUDGET.to_owned()) };
    match annotate(policy, input) {
        Ok(further) => findings.extend(further),
        Err(()) => return failed(NO_BUDGET.to_owned()),
    }
    findings
}

pub(super) fn applies(policy: &Policy, input: &PolicyInput<'_>) -> Result<bool, String> {
    match matches(policy, input) {
        Err(_) if policy.ignores_failures => Ok(false),
        result => result,
    }
}

/// Returns true if the conditions hold, or the message about those that fail.
fn matches(policy: &Policy, input: &PolicyInput<'_>) -> Result<bool, String> {
    if policy.conditions.is_empty() {
        return Ok(true);
    }
    let mut phase = Phase::new(policy, input, true, STEPS_OF_CONDITIONS);
    let mut errors: Vec<String> = Vec::new();
    for condition in &policy.conditions {
        match phase.evaluate(condition) {
            Ok(cel::Value::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(Failed::Budget) => return Err(NO_BUDGET.to_owned()),
            Err(Failed::Expression(message)) => errors.push(message),
        }
    }
    if errors.is_empty() { Ok(true) } else { Err(aggregate(errors)) }
}

/// Returns the validations that fail; nothing if they take too many steps.
fn validate(policy: &Policy, input: &PolicyInput<'_>) -> Result<Vec<PolicyFinding>, ()> {
    let mut phase = Phase::new(policy, input, false, STEPS_OF_POLICY);
    let mut broken = Vec::new();
    for validation in &policy.validations {
        match phase.evaluate(&validation.source) {
            Ok(cel::Value::Bool(true)) => {}
            Ok(_) => broken.push((validation, None)),
            Err(Failed::Budget) => return Err(()),
            Err(Failed::Expression(_)) if policy.ignores_failures => {}
            Err(Failed::Expression(message)) => broken.push((validation, Some(message))),
        }
    }
    // Messages are computed after all validations, from the steps that are left.
    let findings = broken.into_iter().filter_map(|(validation, failed)| match failed {
        Some(message) => Some(PolicyFinding::new(message)),
        None => match phase.message(validation) {
            Ok(message) => Some(PolicyFinding {
                reason: validation.reason.clone(),
                ..PolicyFinding::new(message)
            }),
            Err(_) if policy.ignores_failures => None,
            Err(message) => Some(PolicyFinding::new(message)),
        },
    });
    Ok(findings.collect())
}

/// Returns the annotations that have no value; nothing if they take too many steps.
fn annotate(policy: &Policy, input: &PolicyInput<'_>) -> Result<Vec<PolicyFinding>, ()> {
    if policy.annotations.is_empty() {
        return Ok(Vec::new());
    }
    let mut phase = Phase::new(policy, input, false, STEPS_OF_POLICY);
    let mut findings = Vec::new();
    for annotation in &policy.annotations {
        match phase.evaluate(annotation) {
            Ok(_) => {}
            Err(Failed::Budget) => return Err(()),
            Err(Failed::Expression(_)) if policy.ignores_failures => {}
            Err(Failed::Expression(message)) => {
                findings.push(PolicyFinding { is_final: true, ..PolicyFinding::new(message) });
            }
        }
    }
    Ok(findings)
}

// === impl Phase ===

impl<'a> Phase<'a> {
    pub(super) fn new(
        policy: &'a Policy,
        input: &'a PolicyInput<'_>,
        is_match: bool,
        steps: usize,
    ) -> Self {
        let read = |value| cel::Value::read(value, &Type::Dyn);
        let authorizer = Authorization::new(input.authorizer);
        let resource = Authorization::of_request(input.authorizer, input.resource.clone());
        let (request, namespace) = if is_match {
            // Conditions do not see the namespace.
            (&input.condition_request, cel::Value::Null)
        } else {
            (&input.request, read(&input.namespace))
        };
        let variables = vec![
            ("object", read(&input.object)),
            ("oldObject", read(&input.old_object)),
            ("params", read(&input.params)),
            ("request", read(request)),
            ("namespaceObject", namespace),
            ("authorizer", cel::Value::Authorization(authorizer.into())),
            ("authorizer.requestResource", cel::Value::Authorization(resource.into())),
        ];
        let mut lazy = Lazy::default();
        for variable in &policy.variables {
            let compiled = variable.source.compiled.as_ref().map_err(String::as_str);
            lazy.add(&variable.full_name, &variable.name, compiled);
        }
        Self { evaluator: Evaluator::new(variables, 0).with_lazy(lazy), left: steps }
    }

    pub(super) fn evaluate(&mut self, source: &'a Source) -> Result<cel::Value<'a>, Failed> {
        let expr = match &source.compiled {
            Ok(expr) => expr,
            Err(error) => return Err(Failed::Expression(format!("compilation error: {error}"))),
        };
        self.evaluator.restart(STEPS_OF_EXPRESSION, self.left);
        let result = self.evaluator.evaluate(expr);
        let own = self.evaluator.steps().min(STEPS_OF_EXPRESSION);
        let spent = own.saturating_add(self.evaluator.steps_of_lazy());
        let Some(left) = self.left.checked_sub(spent) else {
            self.left = 0;
            return Err(Failed::Budget);
        };
        self.left = left;
        result.map_err(|error| {
            let text = &source.text;
            Failed::Expression(format!("expression '{text}' resulted in error: {error}"))
        })
    }

    /// Returns the message of a validation that is false; an error if it takes too many steps.
    fn message(&mut self, validation: &'a Validation) -> Result<String, String> {
        let computed = match validation.message_source.as_ref().map(|source| self.evaluate(source))
        {
            Some(Err(Failed::Budget)) => {
                return Err(format!("failed messageExpression: {NO_BUDGET}"));
            }
            Some(Ok(cel::Value::String(text))) => text.trim().to_owned(),
            _ => String::new(),
        };
        let is_usable =
            !computed.is_empty() && computed.len() <= MAX_MESSAGE && !computed.contains('\n');
        Ok(match validation.message.as_str() {
            _ if is_usable => computed,
            "" => format!("failed expression: {}", validation.source.text.trim()),
            stated => stated.to_owned(),
        })
    }
}
