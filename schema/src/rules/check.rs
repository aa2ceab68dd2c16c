//! Reports rules that do not compile or may cost too much.

use serde_json::{Value, json};

use super::budget::{Budget, MOST_OF_RULE, excess};
use super::compile::{
    MAX_DEPTH, Part, RULES, compile_expr, has_rules, parts, rules_of, text, type_of,
};
use crate::cel::{Bounds, Type, estimate, limit};
use crate::field_error::FieldError;
use crate::open_api::flag;

/// Reports the rules of a structural schema that do not compile, and those that may cost too much.
/// The rules at and above a place in `broken` are not checked.
pub(crate) fn check_rules(schema: &Value, at: &str, broken: &[FieldError]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !has_rules(schema, MAX_DEPTH) {
        return errors;
    }
    let mut checker = Checker { errors: &mut errors, broken, budget: Budget::default() };
    let bounds = Bounds::of_schema(schema, true);
    let place = Place {
        schema,
        kind: Type::of_schema(schema, true),
        bounds: bounds.as_ref(),
        most: Some(1),
        uncorrelated: None,
    };
    checker.check_place(&place, at);
    let Checker { budget, .. } = checker;
    budget.report(at, &mut errors);
    errors
}

/// A part of the schema.
#[derive(Debug)]
struct Place<'a> {
    schema: &'a Value,
    kind: Option<Type>,
    bounds: Option<&'a Bounds>,
    /// The largest number of values at this place; `None` if the schema does not limit it.
    most: Option<u64>,
    /// The path of a list around the place whose items have no identity.
    uncorrelated: Option<&'a str>,
}

#[derive(Debug)]
struct Checker<'e> {
    errors: &'e mut Vec<FieldError>,
    /// The errors of the schema itself.
    broken: &'e [FieldError],
    budget: Budget,
}

// === impl Place ===

impl Place<'_> {
    /// Returns the largest number of values at a part of this place.
    fn most_inside(&self) -> Option<u64> {
        let limited = match self.schema.get("type").and_then(Value::as_str) {
            Some("object") if self.schema.get("additionalProperties").is_some() => {
                limit(self.schema, "maxProperties")
            }
            Some("array") => limit(self.schema, "maxItems"),
            _ => Some(1),
        };
        Some(self.most?.saturating_mul(limited?))
    }

    fn bounds_of(&self, part: Part<'_>) -> Option<&Bounds> {
        match part {
            Part::Field(name) => self.bounds?.field(&crate::cel::escape(name)?),
            Part::Values | Part::Items => self.bounds?.inner(),
        }
    }
}

// === impl Checker ===

impl Checker<'_> {
    fn check_place(&mut self, place: &Place<'_>, at: &str) {
        let schema = place.schema;
        let is_map = schema.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("map");
        for (part, inner) in parts(schema) {
            let (path, list) = match part {
                Part::Field(name) => (format!("{at}.properties[{name}]"), None),
                Part::Values => (format!("{at}.additionalProperties"), None),
                Part::Items => (format!("{at}.items"), (!is_map).then_some(at)),
            };
            // Expressions cannot write some names, but rules of the value itself can run.
            let is_root = flag(inner, "x-kubernetes-embedded-resource");
            let own = match place.bounds_of(part) {
                None => Bounds::of_schema(inner, is_root),
                Some(_) => None,
            };
            // A value of an unknown type may have parts of known ones.
            let kind = type_of(part, inner, place.kind.as_ref());
            let inner = Place {
                schema: inner,
                kind: kind.or_else(|| Type::of_schema(inner, is_root)),
                bounds: place.bounds_of(part).or(own.as_ref()),
                most: place.most_inside(),
                uncorrelated: place.uncorrelated.or(list),
            };
            self.check_place(&inner, &path);
        }
        if self.broken.iter().any(|error| error.field.starts_with(at)) {
            return;
        }
        if place.kind.is_none() && rules_of(schema).next().is_some() {
            let detail = "internal error: failed to construct type information for \
                          x-kubernetes-validations rules: unable to convert structural schema to \
                          CEL declarations";
            self.errors.push(FieldError::internal(format!("{at}.{RULES}"), detail));
            return;
        }
        for (index, rule) in rules_of(schema).enumerate() {
            self.check_rule(rule, place, &format!("{at}.{RULES}[{index}]"));
        }
    }

    fn check_rule(&mut self, rule: &Value, place: &Place<'_>, at: &str) {
        let (Some(kind), Some(bounds)) = (&place.kind, place.bounds) else { return };
        let source = text(rule, "rule");
        if source.trim().is_empty() {
            return;
        }
        let path = format!("{at}.rule");
        let compiled = compile_expr(source, kind, rule, &Type::Bool);
        match &compiled {
            Ok(expr) => {
                let times = place.most.unwrap_or_else(|| bounds.most_in_request());
                let cost = estimate(expr, bounds).saturating_mul(times);
                self.spend(cost, path.clone(), "estimated rule cost");
            }
            Err(detail) => {
                self.errors.push(FieldError::invalid(path.as_str(), &shown(rule), detail));
            }
        }
        if compiled.is_ok() {
            self.check_message(rule, kind, bounds, format!("{at}.messageExpression"));
        }
        let uses_old = compiled.is_ok_and(|expr| expr.uses("oldSelf"));
        if let Some(list) = place.uncorrelated.filter(|_| uses_old) {
            let detail = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
            );
            self.errors.push(FieldError::invalid(path, &source.into(), &detail));
        }
        if let Some(optional) = rule.get("optionalOldSelf").filter(|_| !uses_old) {
            let detail = "may not be set if oldSelf is not used in rule";
            let path = format!("{at}.optionalOldSelf");
            self.errors.push(FieldError::invalid(path, optional, detail));
        }
    }

    fn check_message(&mut self, rule: &Value, kind: &Type, bounds: &Bounds, at: String) {
        let message = text(rule, "messageExpression");
        if message.is_empty() {
            return;
        }
        match compile_expr(message, kind, rule, &Type::String) {
            Ok(expr) => self.spend(estimate(&expr, bounds), at, "estimated messageExpression cost"),
            Err(detail) => self.errors.push(FieldError::invalid(at, &shown(rule), &detail)),
        }
    }

    /// Counts the cost of an expression, and reports one that is too large.
    fn spend(&mut self, cost: u64, at: String, name: &str) {
        if cost > MOST_OF_RULE {
            let detail = excess(name, cost, MOST_OF_RULE);
            self.errors.push(FieldError::forbidden(at.as_str(), &detail));
        }
        self.budget.add(cost, at);
    }
}

/// Returns a rule as messages show it: Go's struct.
fn shown(rule: &Value) -> Value {
    json!({
        "FieldPath": text(rule, "fieldPath"),
        "Message": text(rule, "message"),
        "MessageExpression": text(rule, "messageExpression"),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
        "Reason": rule.get("reason"),
        "Rule": text(rule, "rule"),
    })
}
