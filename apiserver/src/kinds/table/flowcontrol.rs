//! The groups `flowcontrol.apiserver.k8s.io` and `node.k8s.io`. The server stores these objects and
//! limits no request.

use serde_json::{Value, json};

use super::{KEEPS_METADATA, OF_SPEC, named};
use crate::fields::{Fields, read_path};
use crate::kinds::DefaultValue::Json;
use crate::kinds::{Defaults, Kind, checks};

pub(super) fn rows() -> Vec<Kind> {
    vec![flow_schema(), priority_level(), runtime_class()]
}

fn of_group(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        namespaced: false,
        status: KEEPS_METADATA,
        generation: OF_SPEC,
        ..named("flowcontrol.apiserver.k8s.io", kind, plural)
    }
}

fn flow_schema() -> Kind {
    Kind {
        row_rank: Some(|schema| {
            let precedence = read_path(schema, "spec.matchingPrecedence");
            precedence.and_then(Value::as_i64).unwrap_or_default()
        }),
        derive: |schema| replace_zeros(schema, "spec", &[("matchingPrecedence", 1000)]),
        validate: checks::flow_schemas::flow_schema,
        ..of_group("FlowSchema", "flowschemas")
    }
}

/// Replaces numbers that are 0 or missing, in the object at a path.
fn replace_zeros(object: &mut Fields, path: &str, defaults: &[(&str, i64)]) {
    let mut target = object;
    for part in path.split('.') {
        let Some(Value::Object(inner)) = target.get_mut(part) else { return };
        target = inner;
    }
    for (name, number) in defaults {
        if target.get(*name).and_then(Value::as_i64).unwrap_or(0) == 0 {
            target.insert((*name).to_owned(), json!(number));
        }
    }
}

fn priority_level() -> Kind {
    Kind {
        defaults: &[Defaults {
            under: "spec",
            rules: &[
                ("exempt.nominalConcurrencyShares", Json("0")),
                ("exempt.lendablePercent", Json("0")),
                ("limited.nominalConcurrencyShares", Json("30")),
                ("limited.lendablePercent", Json("0")),
            ],
        }],
        derive: |level| {
            let numbers = [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)];
            replace_zeros(level, "spec.limited.limitResponse.queuing", &numbers);
        },
        validate: checks::priority_levels::priority_level,
        ..of_group("PriorityLevelConfiguration", "prioritylevelconfigurations")
    }
}

fn runtime_class() -> Kind {
    Kind {
        namespaced: false,
        unconditional_update: false,
        create_on_update: true,
        validate: checks::runtime_class::runtime_class,
        ..named("node.k8s.io", "RuntimeClass", "runtimeclasses")
    }
}
