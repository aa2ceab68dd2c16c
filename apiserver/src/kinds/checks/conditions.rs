//! Conditions of the type that kinds share (`metav1.Condition`).

use serde_json::Value;

use super::Test::{AtLeast, By, OneOf, Required, Text};
use super::{Check, items, member};
use crate::names::{self, Problems};
use crate::status::Cause;

/// The longest reason and message.
const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;

/// Checks a list of conditions.
pub(super) fn list(_: &Value, list: &Value, at: &str, causes: &mut Vec<Cause>) {
    const CONDITION: &[Check] = &[
        ("type", Required("is required")),
        ("type", Text(names::qualified)),
        ("status", Required("")),
        ("status", By(status)),
        ("observedGeneration", AtLeast(0, "must be greater than or equal to zero")),
        ("lastTransitionTime", Required("")),
        ("reason", Required("")),
        ("reason", Text(reason)),
        ("reason", By(|_, it, at, causes| short(it, MAX_REASON, at, causes))),
        ("message", By(|_, it, at, causes| short(it, MAX_MESSAGE, at, causes))),
    ];
    let all = items(list);
    for (place, condition) in all.iter().enumerate() {
        let at = format!("{at}[{place}]");
        let kind = member(condition, "type");
        if all[..place].iter().any(|known| member(known, "type") == kind) {
            causes.push(Cause::duplicate(&at, kind));
        }
        super::run(CONDITION, condition, &at, causes);
    }
}

fn status(_: &Value, status: &Value, at: &str, causes: &mut Vec<Cause>) {
    const STATUSES: &[Check] = &[("", OneOf(&["False", "True", "Unknown"]))];
    if status != "" {
        super::run(STATUSES, status, at, causes);
    }
}

fn short(text: &Value, most: usize, at: &str, causes: &mut Vec<Cause>) {
    if text.as_str().is_some_and(|text| text.len() > most) {
        causes.push(Cause::too_long(at, most));
    }
}

fn reason(reason: &str) -> Problems {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte);
    let bytes = reason.as_bytes();
    let starts = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    let ends = bytes.last().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    if starts && ends && bytes.iter().copied().all(is_inner) {
        return Problems::new();
    }
    let detail = "a condition reason must start with alphabetic character, optionally followed by \
                  a string of alphanumeric characters or '_,:', and must end with an alphanumeric \
                  character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or \
                  'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
                  '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
    vec![detail.into()]
}
