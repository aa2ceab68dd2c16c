//! Ready-made oracles: they read the cluster and judge it.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_faults::Verb;
use kube_client::Api;
use kube_client::api::{ApiResource, DynamicObject, ListParams};
use serde_json::{Map, Value};

use crate::Simulation;

/// The members of metadata that differ between two runs which end in the same state.
const VOLATILE: [&str; 5] =
    ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];

/// Returns the objects of some kinds in all namespaces, without what differs between two runs that
/// end in the same state: uids, versions, times, generated names.
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

/// Checks that no controller owner has more children of a kind than `most`. Children that are being
/// deleted do not count.
///
/// # Errors
///
/// Returns a message that names the owner and its children, or the failure of the list.
pub async fn no_duplicate_children(
    simulation: &Simulation,
    children: &ApiResource,
    most: usize,
) -> Result<(), String> {
    let api = Api::<DynamicObject>::all_with(simulation.user().clone(), children);
    let list = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let mut by_owner: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for child in list.items.iter().filter(|child| child.metadata.deletion_timestamp.is_none()) {
        let name = child.metadata.name.clone().unwrap_or_default();
        for owner in child.metadata.owner_references.iter().flatten() {
            if owner.controller == Some(true) {
                let owner = format!("{} {}", owner.kind, owner.name);
                by_owner.entry(owner).or_default().push(name.clone());
            }
        }
    }
    match by_owner.iter().find(|(_, children)| children.len() > most) {
        None => Ok(()),
        Some((owner, names)) => Err(format!(
            "{owner} has {} {} instead of at most {most}: {}",
            names.len(),
            children.plural,
            names.join(", ")
        )),
    }
}

/// Waits `settle`, and then checks that the client of this name sends no request for `quiet`,
/// except watches and the renewal of leases. It finds hot loops and periodic writes that change
/// nothing.
///
/// # Errors
///
/// Returns the requests that were sent.
pub async fn requests_fall_to_zero(
    simulation: &Simulation,
    client: &str,
    settle: Duration,
    quiet: Duration,
) -> Result<(), String> {
    tokio::time::sleep(settle).await;
    let faults = simulation.faults();
    let before = faults.requests_by(client);
    tokio::time::sleep(quiet).await;
    let mut sent: Vec<String> = Vec::new();
    for ((verb, resource), count) in faults.requests_by(client) {
        let more = count - before.get(&(verb, resource.clone())).copied().unwrap_or(0);
        if more > 0 && verb != Verb::Watch && resource != "leases" {
            sent.push(format!("{more} × {verb} {resource}"));
        }
    }
    if sent.is_empty() {
        return Ok(());
    }
    Err(format!("{client} sends requests in {quiet:?} without a change: {}", sent.join(", ")))
}

/// Checks that no object of a kind waits for its finalizers.
///
/// # Errors
///
/// Returns a message that names the objects and their finalizers, or the failure of the list.
pub async fn finalizers_are_released(
    simulation: &Simulation,
    kind: &ApiResource,
) -> Result<(), String> {
    let api = Api::<DynamicObject>::all_with(simulation.user().clone(), kind);
    let list = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let waiting = list.items.iter().filter(|object| object.metadata.deletion_timestamp.is_some());
    let waiting = waiting.map(|object| {
        let finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        format!(
            "{} {} ({})",
            kind.plural,
            object.metadata.name.clone().unwrap_or_default(),
            finalizers.join(", ")
        )
    });
    let waiting: Vec<String> = waiting.collect();
    if waiting.is_empty() { Ok(()) } else { Err(format!("not deleted: {}", waiting.join("; "))) }
}

fn without_volatile(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).expect("an object is JSON");
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
