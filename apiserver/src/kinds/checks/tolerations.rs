//! Tolerations of taints.

use serde_json::{Value, json};

use super::Test::{By, OneOf, Text};
use super::{Check, member, text};
use crate::names;
use crate::status::Cause;

pub(crate) const TOLERATION: &[Check] = &[
    ("key", Text(names::qualified)),
    ("", By(toleration)),
    ("effect", OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"])),
];

fn toleration(_: &Value, toleration: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [key, operator, value] = ["key", "operator", "value"].map(|name| text(toleration, name));
    let operator_at = format!("{at}.operator");
    if key.is_empty() && operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values \
            and all keys\"";
        causes.push(Cause::invalid(&operator_at, &json!(operator), detail));
    }
    let effect = text(toleration, "effect");
    if !member(toleration, "tolerationSeconds").is_null() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.push(Cause::invalid(format!("{at}.effect"), &json!(effect), detail));
    }
    match operator {
        "" | "Equal" => {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                causes.push(Cause::invalid(&operator_at, &json!(value), &wrong.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            causes.push(Cause::invalid(&operator_at, &json!(value), detail));
        }
        "Exists" => {}
        // The feature of comparisons is off.
        "Lt" | "Gt" => {
            let known = &["Equal", "Exists", "Lt", "Gt"];
            causes.push(Cause::unsupported(&operator_at, &json!(operator), known));
        }
        other => {
            let known = &["Equal", "Exists"];
            causes.push(Cause::unsupported(&operator_at, &json!(other), known));
        }
    }
}
