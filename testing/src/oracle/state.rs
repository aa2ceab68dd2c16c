//! [`end_state`]: the objects of a cluster, without what differs between two runs.

use kube_client::Api;
use kube_client::api::{ApiResource, DynamicObject, ListParams};
use serde_json::{Map, Value};

use crate::Simulation;

/// The members of metadata that differ between two runs which end in the same state.
const VOLATILE: [&str; 5] =
    ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];

/// Returns the objects of some kinds in all namespaces, without what differs between two runs that
/// end in the same state: uids, versions, times, generated names. An `observedGeneration` is
/// written as its distance from the generation of the object.
///
/// Each kind has a list under its plural, a dot and its group: `pods.`, `replicasets.apps`.
///
/// Two runs have converged to the same state if the results are equal. The result is text in JSON,
/// so that an assertion shows it.
///
/// # Errors
///
/// Fails if a list fails.
pub async fn end_state(
    simulation: &Simulation,
    kinds: &[ApiResource],
) -> Result<Value, kube_client::Error> {
    let mut state = Map::new();
    for kind in kinds {
        let api = Api::<DynamicObject>::all_with(simulation.user().clone(), kind);
        let list = api.list(&ListParams::default()).await?;
        let mut objects: Vec<Value> = list.items.iter().map(without_volatile).collect();
        objects.sort_by_key(ToString::to_string);
        state.insert(format!("{}.{}", kind.plural, kind.group), Value::Array(objects));
    }
    Ok(Value::Object(state))
}

fn without_volatile(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).expect("an object is JSON");
    if let Some(generation) = object.metadata.generation {
        relate_generations(&mut value, generation);
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for member in VOLATILE {
            metadata.remove(member);
        }
        if let Some(base) = metadata.remove("generateName") {
            metadata.insert("name".to_owned(), base);
        }
        for owner in
            metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten()
        {
            owner["uid"] = Value::Null;
        }
    }
    mask_times(&mut value);
    value
}

/// Replaces each observed generation by its distance from `generation`: writes that a crash repeats
/// change both.
fn relate_generations(value: &mut Value, generation: i64) {
    match value {
        Value::Array(values) => {
            for value in values {
                relate_generations(value, generation);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_i64().filter(|_| name == "observedGeneration") {
                    Some(observed) => *value = generation.saturating_sub(observed).into(),
                    None => relate_generations(value, generation),
                }
            }
        }
        _ => {}
    }
}

/// Replaces every text that is a time by `<time>`.
fn mask_times(value: &mut Value) {
    match value {
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => {
            "<time>".clone_into(text);
        }
        Value::Array(values) => values.iter_mut().for_each(mask_times),
        Value::Object(members) => members.values_mut().for_each(mask_times),
        _ => {}
    }
}
