//! Evaluates the mutations of a policy, and writes their values as JSON.

mod native;
mod patch;
#[cfg(test)]
mod tests;

use homeostat_core::go_quote;
use serde_json::{Map, Value as Json, json};

use super::run::{Failed, NO_BUDGET, Phase, STEPS_OF_POLICY};
use super::{PatchType, Policy, PolicyInput, PolicyPatch};
use crate::cel::{StructValue, Value};

pub(super) fn mutate(
    policy: &Policy,
    position: usize,
    input: &PolicyInput<'_>,
) -> Result<PolicyPatch, String> {
    let Some(mutation) = policy.mutations.get(position) else {
        return Ok(PolicyPatch::Operations(Vec::new()));
    };
    if let Err(problem) = &mutation.source.compiled {
        return Err(problem.clone());
    }
    let mut phase = Phase::new(policy, input, false, STEPS_OF_POLICY);
    let value = phase.evaluate(&mutation.source).map_err(|failed| match failed {
        Failed::Budget => NO_BUDGET.to_owned(),
        Failed::Expression(message) => message,
    })?;
    match mutation.patch_type {
        PatchType::Configuration => configuration(&value).map(PolicyPatch::Configuration),
        PatchType::Patch => patch::operations(&value).map(PolicyPatch::Operations),
    }
}

fn configuration(value: &Value<'_>) -> Result<Map<String, Json>, String> {
    let Value::Struct(object) = value else {
        let kind = value.type_name();
        return Err(format!("unsupported return type from ApplyConfiguration expression: {kind}"));
    };
    check_names(object)?;
    native::members(object).map_err(|_| "invalid return type: *dynamic.ObjectVal".to_owned())
}

/// Returns a number as Go writes it in JSON: an integer if it has no fraction.
#[expect(clippy::cast_possible_truncation, reason = "the number has no fraction, and is in bounds")]
fn json_number(number: f64) -> Json {
    let is_integer = number.fract() == 0.0 && number.abs() < 9e15;
    if is_integer { json!(number as i64) } else { json!(number) }
}

/// Checks that the type of each part of an object has the name of the fields that lead to it.
fn check_names(object: &StructValue<'_>) -> Result<(), String> {
    let mut wrong = Vec::new();
    visit_names(object, object.name(), &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

fn visit_names(object: &StructValue<'_>, expected: &str, wrong: &mut Vec<String>) {
    let found = object.name();
    if found != expected {
        let (found, expected) = (go_quote(found), go_quote(expected));
        wrong.push(format!(
            "unexpected type name {found}, expected {expected}, which matches field name path from \
             root Object type"
        ));
    }
    for (name, value) in object.fields() {
        visit_parts(value, &format!("{expected}.{name}"), wrong);
    }
}

/// Visits the objects in a value. Lists and maps have no part in the names.
fn visit_parts(value: &Value<'_>, expected: &str, wrong: &mut Vec<String>) {
    match value {
        Value::Struct(object) => visit_names(object, expected, wrong),
        Value::List(items) => items.iter().for_each(|item| visit_parts(item, expected, wrong)),
        Value::Map(entries) => {
            entries.iter().for_each(|(_, value)| visit_parts(value, expected, wrong));
        }
        _ => {}
    }
}
