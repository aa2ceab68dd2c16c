//! Compiles the expressions of a policy.

use std::collections::HashMap;

use serde_json::Value;

use super::environment::{Environment, full_name};
use super::{Mutation, PatchType, Policy, Source, Validation, Variable};
use crate::cel::{self, Expr, MAX_DEPTH, Scope, Type};
use crate::field_error::FieldError;

/// The longest expression of an annotation, in bytes.
const MAX_ANNOTATION: usize = 5 * 1024;

/// Compiles the expressions in a `spec`, and reports those that do not compile.
pub(super) fn compile(spec: &Value, problems: &mut Vec<FieldError>) -> Policy {
    let (variables, has_params) = (items(spec, "variables"), !spec["paramKind"].is_null());
    let mutations = items(spec, "mutations");
    // A policy that mutates may read `variables` also if it has none.
    let has_variables = !variables.is_empty() || !mutations.is_empty();
    let environment = Environment::new(has_params, has_variables);
    let mut compiler = Compiler { environment, heights: HashMap::new(), problems };
    let conditions = compiler.conditions(items(spec, "matchConditions"));
    let variables = compiler.variables(variables);
    let validations = compiler.validations(items(spec, "validations"));
    let annotations = compiler.annotations(items(spec, "auditAnnotations"));
    let mutations = compiler.mutations(mutations);
    let ignores_failures = text(spec, "failurePolicy") == "Ignore";
    Policy { conditions, variables, validations, annotations, mutations, ignores_failures }
}

#[derive(Debug)]
struct Compiler<'p> {
    environment: Environment,
    /// The levels of variables, with those of the variables that they read.
    heights: HashMap<String, usize>,
    problems: &'p mut Vec<FieldError>,
}

/// The value that an expression must have.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Bool,
    String,
    StringOrNull,
    /// The value of a mutation.
    Patch(PatchType),
    Any,
}

fn items<'a>(spec: &'a Value, name: &str) -> &'a [Value] {
    spec.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(of: &'a Value, name: &str) -> &'a str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

// === impl Compiler ===

impl Compiler<'_> {
    fn conditions(&mut self, list: &[Value]) -> Vec<Source> {
        let mut compiled = Vec::new();
        for (place, condition) in list.iter().enumerate() {
            let source = text(condition, "expression");
            let expr = checked(source.trim(), &self.environment.conditions, Wanted::Bool);
            let at = format!("spec.matchConditions[{place}].expression");
            self.report(at, source.trim(), &expr);
            compiled.push(Source { text: source.to_owned(), compiled: compiled_of(expr) });
        }
        compiled
    }

    fn variables(&mut self, list: &[Value]) -> Vec<Variable> {
        let mut compiled = Vec::new();
        for (place, variable) in list.iter().enumerate() {
            let (name, source) = (text(variable, "name"), text(variable, "expression"));
            let expr = checked(source, &self.environment.validations, Wanted::Any);
            let expr = self.with_height(expr);
            self.report(format!("spec.variables[{place}].expression"), source, &expr);
            let full_name = full_name(name);
            let kind = expr.as_ref().map_or(Type::Dyn, |(_, kind)| kind.clone());
            let height = expr.as_ref().map_or(0, |(expr, _)| self.height(expr));
            self.environment.add(&full_name, kind);
            self.heights.insert(full_name.clone(), height);
            let source = Source { text: source.to_owned(), compiled: compiled_of(expr) };
            compiled.push(Variable { name: name.to_owned(), full_name, source });
        }
        compiled
    }

    fn validations(&mut self, list: &[Value]) -> Vec<Validation> {
        let mut compiled = Vec::new();
        for (place, validation) in list.iter().enumerate() {
            let at = |name: &str| format!("spec.validations[{place}].{name}");
            let source = text(validation, "expression");
            let expr = checked(source, &self.environment.validations, Wanted::Bool);
            let source = self.source(at("expression"), source, expr);
            let computed = text(validation, "messageExpression");
            let message_source = (!computed.trim().is_empty()).then(|| {
                let expr = checked(computed, &self.environment.messages, Wanted::String);
                self.source(at("messageExpression"), computed, expr)
            });
            compiled.push(Validation {
                source,
                message: text(validation, "message").trim().to_owned(),
                message_source,
                reason: validation.get("reason").and_then(Value::as_str).map(str::to_owned),
            });
        }
        compiled
    }

    fn annotations(&mut self, list: &[Value]) -> Vec<Source> {
        let mut compiled = Vec::new();
        for (place, annotation) in list.iter().enumerate() {
            let source = text(annotation, "valueExpression");
            if source.trim().len() > MAX_ANNOTATION {
                continue;
            }
            let scope = &self.environment.validations;
            let expr = checked(source.trim(), scope, Wanted::StringOrNull);
            let at = format!("spec.auditAnnotations[{place}].valueExpression");
            compiled.push(self.source(at, source, expr));
        }
        compiled
    }

    fn mutations(&mut self, list: &[Value]) -> Vec<Mutation> {
        let scope = self.environment.mutations();
        let mut compiled = Vec::new();
        for (place, mutation) in list.iter().enumerate() {
            let patch_type = match text(mutation, "patchType") {
                "ApplyConfiguration" => PatchType::Configuration,
                "JSONPatch" => PatchType::Patch,
                _ => continue,
            };
            let member = patch_type.member();
            let Some(source) = mutation.get(member) else { continue };
            let source = text(source, "expression");
            let expr = checked(source.trim(), &scope, Wanted::Patch(patch_type));
            let at = format!("spec.mutations[{place}].{member}.expression");
            let source = self.source(at, source.trim(), expr);
            compiled.push(Mutation { patch_type, source });
        }
        compiled
    }

    fn source(&mut self, at: String, text: &str, expr: Checked) -> Source {
        let expr = self.with_height(expr);
        self.report(at, text, &expr);
        Source { text: text.to_owned(), compiled: compiled_of(expr) }
    }

    fn report(&mut self, at: String, source: &str, expr: &Checked) {
        if let Err(problem) = expr
            && !source.trim().is_empty()
        {
            self.problems.push(match problem {
                Problem::Invalid(detail) => FieldError::invalid(at, &source.into(), detail),
                Problem::Internal(detail) => FieldError::internal(at, detail),
            });
        }
    }

    /// Returns the levels of an expression, with those of the variables that it reads.
    fn height(&self, expr: &Expr) -> usize {
        let mut inner = 0;
        expr.visit_idents(&mut |name| {
            inner = inner.max(self.heights.get(name).copied().unwrap_or_default());
        });
        expr.height + inner
    }

    /// Refuses an expression that nests too deep with its variables: its evaluation recurses.
    fn with_height(&self, checked: Checked) -> Checked {
        match checked {
            Ok((expr, _)) if self.height(&expr) > MAX_DEPTH => {
                let detail = format!("expression recursion limit exceeded: {MAX_DEPTH}");
                Err(Problem::Invalid(detail))
            }
            other => other,
        }
    }
}

/// An expression and the type of its value, or the real server's error.
type Checked = Result<(Expr, Type), Problem>;

/// An error of an expression.
#[derive(Debug)]
enum Problem {
    Invalid(String),
    /// The program cannot be made, such as for a constant that cannot be converted.
    Internal(String),
}

fn compiled_of(checked: Checked) -> Result<Expr, String> {
    let (Ok(compiled) | Err(compiled)) = checked.map(|(expr, _)| Ok(expr)).map_err(|problem| {
        let (Problem::Invalid(detail) | Problem::Internal(detail)) = problem;
        Err(detail)
    });
    compiled
}

fn checked(source: &str, scope: &Scope, wanted: Wanted) -> Checked {
    let failed = |issues: cel::Issues| {
        Problem::Invalid(format!("compilation failed: {}", issues.show(source)))
    };
    let mut expr = cel::parse(source).map_err(failed)?;
    let found = cel::check(&mut expr, scope).map_err(failed)?;
    let problem = match wanted {
        Wanted::Bool if found != Type::Bool => "must evaluate to bool",
        Wanted::String if found != Type::String => "must evaluate to string",
        Wanted::StringOrNull if !matches!(found, Type::String | Type::Null) => {
            "must evaluate to one of [string null_type]"
        }
        Wanted::Patch(patch_type) if found != patch_type.result() => match patch_type {
            PatchType::Configuration => "must evaluate to Object",
            PatchType::Patch => "must evaluate to list(JSONPatch)",
        },
        _ => {
            let failed = |why| Problem::Internal(format!("program instantiation failed: {why}"));
            return cel::instantiate(&expr).map(|()| (expr, found)).map_err(failed);
        }
    };
    let found = if found == Type::Null { "null_type".to_owned() } else { found.to_string() };
    Err(Problem::Invalid(format!("{problem} but got {found}")))
}
