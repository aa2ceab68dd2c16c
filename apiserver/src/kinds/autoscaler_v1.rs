//! The first version of autoscalers: it has one target, the utilization of the CPU. The other
//! members of the second version are texts in its annotations.

mod metrics;
mod text;

use serde_json::{Map, Value, json};

use crate::fields::Fields;

/// The default target of an autoscaler, in percent of the requested CPU time.
const CPU_UTILIZATION: i64 = 80;

const TARGET: &str = "targetCPUUtilizationPercentage";
const CURRENT: &str = "currentCPUUtilizationPercentage";

/// The annotations, and the part and the member of the second version that each stands for.
const ANNOTATIONS: [(&str, &str, &str, Convert); 4] = [
    ("metrics", "spec", "metrics", Convert::Metrics("target")),
    ("behavior", "spec", "behavior", Convert::Case),
    ("current-metrics", "status", "currentMetrics", Convert::Metrics("current")),
    ("conditions", "status", "conditions", Convert::Nothing),
];
/// Annotations that a client may send, and which the server removes.
const UNUSED: [&str; 2] = ["scale-down-tolerance", "scale-up-tolerance"];

/// The difference between the text of an annotation and the member.
#[derive(Clone, Copy)]
enum Convert {
    Nothing,
    /// Metrics of the first version, which start the names of their values so.
    Metrics(&'static str),
    /// The names of all members start with a capital.
    Case,
}

/// Returns the metrics of an autoscaler that names none.
pub(super) fn default_metrics(_: &Fields) -> Value {
    json!([cpu_metric(&json!(CPU_UTILIZATION))])
}

fn cpu_metric(percent: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

fn is_cpu_metric(metric: &Value) -> bool {
    metric["resource"]["name"] == "cpu"
        && !metric["resource"]["target"]["averageUtilization"].is_null()
}

fn annotation(name: &str) -> String {
    format!("autoscaling.alpha.kubernetes.io/{name}")
}

/// Converts an object to the second version.
pub(super) fn to_v2(object: &mut Fields) {
    if let Some(Value::Object(spec)) = object.get_mut("spec")
        && let Some(percent) = spec.remove(TARGET).filter(|percent| !percent.is_null())
    {
        spec.insert("metrics".to_owned(), json!([cpu_metric(&percent)]));
    }
    if let Some(Value::Object(status)) = object.get_mut("status")
        && let Some(percent) = status.remove(CURRENT).filter(|percent| !percent.is_null())
    {
        let metric = json!({"type": "Resource", "resource":
            {"name": "cpu", "current": {"averageUtilization": percent, "averageValue": "0"}}});
        status.insert("currentMetrics".to_owned(), json!([metric]));
    }
    for (name, part, member, convert) in ANNOTATIONS {
        let text = take_annotation(object, name).unwrap_or_default();
        let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
        let Some(mut value) = convert.read(value) else { continue };
        let part = object.entry(part).or_insert_with(|| Value::Object(Map::new()));
        let Some(part) = part.as_object_mut() else { continue };
        if let (Some(Value::Array(own)), Value::Array(others), "metrics") =
            (part.get(member), &mut value, member)
        {
            others.extend(own.iter().cloned());
        }
        part.insert(member.to_owned(), value);
    }
    for name in UNUSED {
        take_annotation(object, name);
    }
}

fn take_annotation(object: &mut Fields, name: &str) -> Option<String> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut)?;
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut)?;
    let text = annotations.remove(&annotation(name))?;
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    text.as_str().map(str::to_owned)
}

/// Converts an object from the second version.
pub(super) fn from_v2(object: &mut Fields) {
    let mut texts = Vec::new();
    for (name, part, member, convert) in ANNOTATIONS {
        let Some(Value::Object(part)) = object.get_mut(part) else { continue };
        let Some(mut value) = part.remove(member).filter(|value| !value.is_null()) else {
            continue;
        };
        if let Some(list) = value.as_array_mut() {
            show_percent(part, member, list);
        }
        if !value.as_array().is_some_and(Vec::is_empty) {
            texts.push((annotation(name), json!(text::of(&convert.show(value)))));
        }
    }
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    if !texts.is_empty() {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations.as_object_mut().into_iter().for_each(|all| all.extend(texts.clone()));
    }
}

/// Shows the utilization of the CPU among metrics in a member of its own. A target is no other
/// metric then.
fn show_percent(part: &mut Fields, member: &str, list: &mut Vec<Value>) {
    let percent = |metric: &Value, values: &str| {
        let resource = &metric["resource"];
        Some(resource[values]["averageUtilization"].clone())
            .filter(|percent| !percent.is_null() && resource["name"] == "cpu")
    };
    let (name, found) = match member {
        "metrics" => (TARGET, list.iter().find_map(|metric| percent(metric, "target"))),
        "currentMetrics" => {
            (CURRENT, list.iter().rev().find_map(|metric| percent(metric, "current")))
        }
        _ => return,
    };
    if let Some(found) = found {
        part.insert(name.to_owned(), found);
    }
    if member == "metrics" {
        list.retain(|metric| !is_cpu_metric(metric));
    }
}

// === impl Convert ===

impl Convert {
    /// Returns the member that an annotation stands for; `None` if its type is wrong.
    fn read(self, value: Value) -> Option<Value> {
        match (self, value) {
            (Self::Nothing, list @ Value::Array(_)) => Some(list),
            (Self::Metrics(values), list @ Value::Array(_)) => {
                Some(each(list, |metric| metrics::read(metric, values)))
            }
            (Self::Case, Value::Object(rules)) if !rules.is_empty() => {
                Some(with_case(Value::Object(rules), str::to_ascii_lowercase))
            }
            _ => None,
        }
    }

    /// Returns what an annotation says for a member.
    fn show(self, value: Value) -> Value {
        match self {
            Self::Nothing => value,
            Self::Case => behavior(&value),
            Self::Metrics(values) => each(value, |metric| metrics::show(metric, values)),
        }
    }
}

fn each(list: Value, convert: impl Fn(Value) -> Value) -> Value {
    let Value::Array(list) = list else { return Value::Null };
    list.into_iter().map(convert).collect()
}

/// Changes the first letter of the names of all members. Members that are null go.
fn with_case(value: Value, change: fn(&str) -> String) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(|value| with_case(value, change)).collect(),
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            let changed = members.map(|(name, value)| {
                let (first, rest) = name.split_at(name.len().min(1));
                (format!("{}{rest}", change(first)), with_case(value, change))
            });
            Value::Object(changed.collect())
        }
        other => other,
    }
}

/// Returns a behavior as the server's own version has it: with members that are null.
fn behavior(behavior: &Value) -> Value {
    let rules = |name: &str| {
        let mut rules = with_case(behavior[name].clone(), str::to_ascii_uppercase);
        if let Some(members) = rules.as_object_mut() {
            for name in ["StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance"] {
                members.entry(name).or_insert(Value::Null);
            }
        }
        rules
    };
    json!({"ScaleUp": rules("scaleUp"), "ScaleDown": rules("scaleDown")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_the_second_version_survive_the_first() {
        let selector = json!({"matchLabels": {"type": "t", "a": "<&>"}});
        let Value::Object(v2) = json!({
            "metadata": {"name": "a"},
            "spec": {
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "m", "selector": selector},
                        "target": {"type": "AverageValue", "averageValue": "1"}}},
                    {"type": "Resource", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 50}}},
                ],
                "behavior": {"scaleUp": {"selectPolicy": "Max", "policies": [
                    {"type": "Pods", "value": 1, "periodSeconds": 2}]}},
            },
        }) else {
            unreachable!()
        };
        let mut v1 = v2.clone();
        from_v2(&mut v1);
        assert_eq!(v1["spec"], json!({TARGET: 50}));
        let annotations = &v1["metadata"]["annotations"];
        assert_eq!(
            annotations[annotation("metrics")],
            concat!(
                r#"[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1","#,
                r#""selector":{"matchLabels":{"a":"\u003c\u0026\u003e","type":"t"}}}}]"#,
            )
        );
        assert_eq!(
            annotations[annotation("behavior")],
            concat!(
                r#"{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","#,
                r#""Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":2}],"Tolerance":null},"#,
                r#""ScaleDown":null}"#,
            )
        );
        to_v2(&mut v1);
        assert_eq!(v1, v2);
    }
}
