//! The texts in annotations, as Go writes JSON.

use serde_json::{Value, json};

/// The members of all objects in annotations, in the order in which the real server writes them.
const ORDER: [&str; 40] = [
    "type",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "observedGeneration",
    "target",
    "kind",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetValue",
    "targetAverageUtilization",
    "targetAverageValue",
    "currentValue",
    "currentAverageUtilization",
    "currentAverageValue",
    "container",
    "selector",
    "averageValue",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Type",
    "Value",
    "PeriodSeconds",
    "Tolerance",
];

/// Returns the text of a structure, or of a list of them.
pub(super) fn of(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, true);
    text
}

/// Writes JSON as Go does. Members of structures have a fixed order, and labels that of their
/// names.
fn write(into: &mut String, value: &Value, is_structure: bool) {
    match value {
        Value::Array(list) => {
            into.push('[');
            for (place, item) in list.iter().enumerate() {
                into.push_str(if place == 0 { "" } else { "," });
                write(into, item, true);
            }
            into.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            if is_structure {
                members.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name));
            }
            into.push('{');
            for (place, (name, value)) in members.into_iter().enumerate() {
                into.push_str(if place == 0 { "" } else { "," });
                into.push_str(&json!(name).to_string());
                into.push(':');
                write(into, value, name != "matchLabels");
            }
            into.push('}');
        }
        Value::String(_) => {
            let text = value.to_string();
            let text = text.replace('&', "\\u0026").replace('<', "\\u003c");
            into.push_str(&text.replace('>', "\\u003e"));
        }
        other => into.push_str(&other.to_string()),
    }
}
