//! The groups `autoscaling` and `policy`.

use serde_json::Value;

use super::{ALL, KEEPS_SPEC, OF_SPEC, named};
use crate::kinds::DefaultValue::{From, Json, Merge};
use crate::kinds::{Defaults, Kind, StoredAs, autoscaler_v1, checks};
use crate::names;

pub(super) fn rows() -> Vec<Kind> {
    vec![autoscaler(), autoscaler_v1(), disruption_budget()]
}

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
                rules: &[
                    ("minReplicas", Json("1")),
                    ("metrics", From(autoscaler_v1::default_metrics)),
                ],
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

/// The first version, as the second one stores it.
fn autoscaler_v1() -> Kind {
    const AS_V2: StoredAs = StoredAs {
        group: "autoscaling",
        plural: "horizontalpodautoscalers",
        renames: &[],
        convert: autoscaler_v1::to_v2,
        convert_back: autoscaler_v1::from_v2,
    };
    Kind { version: "v1".into(), stored_as: Some(&AS_V2), ..autoscaler() }
}

fn disruption_budget() -> Kind {
    Kind {
        short_names: &["pdb"],
        name: names::path_segment,
        status: KEEPS_SPEC,
        status_checks_finalizers: false,
        generation: OF_SPEC,
        unconditional_update: false,
        validate: checks::disruption::budget,
        ..named("policy", "PodDisruptionBudget", "poddisruptionbudgets")
    }
}
