//! The groups `autoscaling` and `policy`.

use serde_json::{Value, json};

use super::{ALL, KEEPS_SPEC, OF_SPEC, named};
use crate::fields::Fields;
use crate::kinds::DefaultValue::{From, Json, Merge};
use crate::kinds::{Defaults, Kind, StoredAs, checks};
use crate::names;

pub(super) fn rows() -> Vec<Kind> {
    vec![autoscaler(), autoscaler_v1(), disruption_budget()]
}

/// The default target of an autoscaler, in percent of the requested CPU time.
const CPU_UTILIZATION: i64 = 80;

fn autoscaler() -> Kind {
    const UP: &str = r#"{"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15}]}"#;
    const DOWN: &str = r#"{"selectPolicy": "Max", "policies": [
        {"type": "Percent", "value": 100, "periodSeconds": 15}]}"#;
    Kind {
        version: "v2".into(),
        short_names: &["hpa"],
        categories: ALL,
        status: KEEPS_SPEC,
        generation: OF_SPEC,
        defaults: &[
            Defaults {
                under: "spec",
                rules: &[("minReplicas", Json("1")), ("metrics", From(default_metrics))],
            },
            Defaults {
                under: "spec.behavior",
                rules: &[
                    ("scaleUp", Json(UP)),
                    ("scaleUp", Merge(|_| parsed(UP))),
                    ("scaleDown", Json(DOWN)),
                    ("scaleDown", Merge(|_| parsed(DOWN))),
                ],
            },
        ],
        validate: checks::autoscaling::autoscaler,
        ..named("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("the text is JSON")
}

fn default_metrics(_: &Fields) -> Value {
    json!([cpu_metric(&json!(CPU_UTILIZATION))])
}

fn cpu_metric(percent: &Value) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": percent});
    json!({"type": "Resource", "resource": {"name": "cpu", "target": target}})
}

/// The first version has one target, the utilization of the CPU. Other metrics are not in it.
fn autoscaler_v1() -> Kind {
    const AS_V2: StoredAs = StoredAs {
        group: "autoscaling",
        plural: "horizontalpodautoscalers",
        renames: &[],
        convert: to_v2,
        convert_back: from_v2,
    };
    Kind { version: "v1".into(), stored_as: Some(&AS_V2), ..autoscaler() }
}

const TARGET: &str = "targetCPUUtilizationPercentage";
const CURRENT: &str = "currentCPUUtilizationPercentage";

fn to_v2(object: &mut Fields) {
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
}

fn from_v2(object: &mut Fields) {
    for (member, list, values, name) in
        [("spec", "metrics", "target", TARGET), ("status", "currentMetrics", "current", CURRENT)]
    {
        let Some(Value::Object(part)) = object.get_mut(member) else { continue };
        let metrics = part.remove(list).unwrap_or_default();
        let metrics = metrics.as_array().into_iter().flatten();
        let of_cpu = metrics.filter_map(|metric| metric.get("resource"));
        let mut of_cpu = of_cpu.filter(|resource| resource["name"] == "cpu");
        let percent = of_cpu.find_map(|resource| resource[values].get("averageUtilization"));
        if let Some(percent) = percent {
            part.insert(name.to_owned(), percent.clone());
        }
    }
}

fn disruption_budget() -> Kind {
    Kind {
        short_names: &["pdb"],
        name: names::path_segment,
        status: KEEPS_SPEC,
        generation: OF_SPEC,
        unconditional_update: false,
        validate: checks::autoscaling::disruption_budget,
        ..named("policy", "PodDisruptionBudget", "poddisruptionbudgets")
    }
}
