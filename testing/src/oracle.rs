//! Ready-made oracles: they read the cluster and judge it.
//!
//! # Cancel safety
//!
//! The checks only read. Dropping the future of one has no effect.

mod bystanders;
mod state;
mod versions;

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_faults::Verb;
use kube_client::Api;
use kube_client::api::{ApiResource, DynamicObject, ListParams};
use serde_json::Value;
use tokio::time::Instant;

pub use self::bystanders::{Bystanders, are_untouched, bystanders};
pub use self::state::end_state;
use self::versions::{difference, versions};
use crate::Simulation;

/// The time between two looks at objects that may change.
const STEP: Duration = Duration::from_secs(1);

/// Checks that no controller owner has more children of a kind than `most`. Children that are being
/// deleted do not count, and neither do objects without a controller owner.
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
    let mut by_owner: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for child in list.items.iter().filter(|child| child.metadata.deletion_timestamp.is_none()) {
        let name = child.metadata.name.clone().unwrap_or_default();
        for owner in child.metadata.owner_references.iter().flatten() {
            if owner.controller == Some(true) {
                let owner = (owner.uid.as_str(), format!("{} {}", owner.kind, owner.name));
                by_owner.entry(owner).or_default().push(name.clone());
            }
        }
    }
    match by_owner.iter().find(|(_, children)| children.len() > most) {
        None => Ok(()),
        Some(((_, owner), names)) => Err(format!(
            "{owner} has {} {} instead of at most {most}: {}",
            names.len(),
            children.plural,
            names.join(", ")
        )),
    }
}

/// Waits until the objects of some kinds have not changed for `quiet`, and returns their
/// [end state](end_state).
///
/// It lists the objects once a second and compares their uids and versions. A change that is undone
/// between two lists is still a change; an object that is created and deleted in between is not
/// seen.
///
/// # Errors
///
/// Returns a message if they still change after `timeout`, or the failure of a list.
pub async fn converges(
    simulation: &Simulation,
    kinds: &[ApiResource],
    quiet: Duration,
    timeout: Duration,
) -> Result<Value, String> {
    let text = |error: kube_client::Error| error.to_string();
    let (start, mut since) = (Instant::now(), Instant::now());
    let mut known = versions(simulation, kinds).await.map_err(text)?;
    while since.elapsed() < quiet {
        tokio::time::sleep(STEP.min(quiet)).await;
        let now = versions(simulation, kinds).await.map_err(text)?;
        if now != known {
            if start.elapsed() > timeout {
                let changed = difference(&known, &now);
                return Err(format!("objects still change after {timeout:?}: {changed}"));
            }
            (known, since) = (now, Instant::now());
        }
    }
    end_state(simulation, kinds).await.map_err(text)
}

/// Checks that the client of this name sends at most `most` requests in `period`, watches included.
/// It finds hot loops of controllers that poll: [`requests_fall_to_zero`] is for the others.
///
/// # Errors
///
/// Returns the number of requests. A client that has never sent a request is an error, too: its
/// name may be wrong.
pub async fn no_hot_loop(
    simulation: &Simulation,
    client: &str,
    most: u64,
    period: Duration,
) -> Result<(), String> {
    let count = || simulation.faults().requests_by(client).values().sum::<u64>();
    let before = count();
    tokio::time::sleep(period).await;
    match count() - before {
        sent if sent <= most => has_sent(simulation, client),
        sent => {
            Err(format!("{client} sends {sent} requests in {period:?} instead of at most {most}"))
        }
    }
}

/// Waits `settle`, and then checks that the client of this name sends no request for `quiet`,
/// except watches, one list per watch of the same resource, and the renewal of leases. It finds hot
/// loops and periodic writes that change nothing.
///
/// An informer sends such a list: it begins with one, and where nothing at all happens, it asks now
/// and then by a list if the server has gone back to an older state.
///
/// # Errors
///
/// Returns the requests that were sent. A client that has never sent a request is an error, too:
/// its name may be wrong.
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
    let after = faults.requests_by(client);
    let more = |verb: Verb, resource: &str| {
        let of = (verb, resource.to_owned());
        let count = |counts: &BTreeMap<_, u64>| counts.get(&of).copied().unwrap_or(0);
        count(&after) - count(&before)
    };
    let mut sent: Vec<String> = Vec::new();
    for (verb, resource) in after.keys() {
        let watches = if *verb == Verb::List { more(Verb::Watch, resource) } else { 0 };
        let more = more(*verb, resource).saturating_sub(watches);
        if more > 0 && *verb != Verb::Watch && resource != "leases" {
            sent.push(format!("{more} × {verb} {resource}"));
        }
    }
    if sent.is_empty() {
        return has_sent(simulation, client);
    }
    Err(format!("{client} sends requests in {quiet:?} without a change: {}", sent.join(", ")))
}

/// Checks that the client of this name has sent a request.
fn has_sent(simulation: &Simulation, client: &str) -> Result<(), String> {
    if simulation.faults().requests_by(client).is_empty() {
        return Err(format!("{client} has sent no request: is this its name?"));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
    use serde_json::json;

    use super::*;
    use crate::in_virtual_time;

    async fn create(maps: &Api<ConfigMap>, name: &str) {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }

    /// Returns the result of [`converges`] while something happens between each two looks.
    async fn found_during(happens: &impl AsyncFn(&Api<ConfigMap>)) -> Result<Value, String> {
        let simulation = Simulation::start(1);
        let maps = Api::<ConfigMap>::default_namespaced(simulation.user().clone());
        create(&maps, "a").await;
        let kinds = [ApiResource::erase::<ConfigMap>(&())];
        let restless = async {
            tokio::time::sleep(STEP / 2).await;
            loop {
                happens(&maps).await;
                tokio::time::sleep(STEP).await;
            }
        };
        tokio::select! {
            found = converges(&simulation, &kinds, 10 * STEP, 60 * STEP) => found,
            () = restless => unreachable!(),
        }
    }

    #[test]
    fn change_that_is_undone_between_two_looks_is_seen() {
        let toggle = async |maps: &Api<ConfigMap>| {
            for text in ["b", "a"] {
                let patch = Patch::Merge(json!({"data": {"text": text}}));
                maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
            }
        };
        let found = in_virtual_time(found_during(&toggle));
        let expected = "objects still change after 60s: configmaps default/a";
        assert_eq!(found.unwrap_err(), expected);
    }

    #[test]
    fn object_that_exists_between_two_looks_alone_is_not_seen() {
        let flicker = async |maps: &Api<ConfigMap>| {
            create(maps, "b").await;
            maps.delete("b", &DeleteParams::default()).await.unwrap();
        };
        let found = in_virtual_time(found_during(&flicker));
        assert!(found.unwrap().to_string().contains("\"a\""));
    }
}
