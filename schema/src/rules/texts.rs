//! The texts of the rules of a schema.

use serde_json::Value;

use super::compile::{RULES, text};
use super::field_path;
use crate::field_error::FieldError;

/// The reasons that a rule may state.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the texts of the rules of a schema, not their expressions.
pub(crate) fn check_texts(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let rules = schema.get(RULES).and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let at = format!("{at}.{RULES}[{index}]");
        check_message(rule, &at, errors);
        check_reason(rule, &at, errors);
        check_message_expression(rule, &at, errors);
        check_field_path(rule, schema, &at, errors);
    }
}

/// Reports a missing expression, or a message that does not suit it.
fn check_message(rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let (expression, stated) = (text(rule, "rule").trim(), text(rule, "message"));
    let (message, path) = (stated.trim(), format!("{at}.message"));
    if expression.is_empty() {
        errors.push(FieldError::required(format!("{at}.rule"), "rule is not specified"));
    } else if !stated.is_empty() && message.is_empty() {
        errors.push(FieldError::invalid(path, &stated.into(), "must be non-empty if specified"));
    } else if is_multiline(message) {
        errors.push(FieldError::invalid(path, &stated.into(), "must not contain line breaks"));
    } else if is_multiline(expression) && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(path, detail));
    }
}

fn check_reason(rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let reason = rule.get("reason").and_then(Value::as_str);
    if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
        let path = format!("{at}.reason");
        errors.push(FieldError::not_supported(path, &reason.into(), &REASONS.map(Value::from)));
    }
}

fn check_message_expression(rule: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let message = text(rule, "messageExpression");
    if !message.is_empty() && message.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.push(FieldError::required(format!("{at}.messageExpression"), detail));
    }
}

/// Reports a `fieldPath` that is blank, has several lines, or leads nowhere.
fn check_field_path(rule: &Value, schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let path = text(rule, "fieldPath");
    let mut report = |detail| {
        errors.push(FieldError::invalid(format!("{at}.fieldPath"), &path.into(), detail));
    };
    if !path.is_empty() && path.trim().is_empty() {
        report("must be non-empty if specified");
    }
    if is_multiline(path) {
        report("must not contain line breaks");
    }
    if !path.is_empty() && field_path::normalized(path, schema).is_none() {
        report("must be a valid path");
    }
}

fn is_multiline(text: &str) -> bool {
    text.contains(['\n', '\r'])
}
