//! The uids and versions of objects, which show that an object has changed.

use std::collections::{BTreeMap, BTreeSet};

use kube_client::Api;
use kube_client::api::{ApiResource, DynamicObject, ListParams};

use crate::Simulation;

/// The uid and the version of objects, by resource and name.
pub(super) type Versions = BTreeMap<String, Option<(String, String)>>;

pub(super) async fn versions(
    simulation: &Simulation,
    kinds: &[ApiResource],
) -> Result<Versions, kube_client::Error> {
    let mut versions = Versions::new();
    for kind in kinds {
        let api = Api::<DynamicObject>::all_with(simulation.user().clone(), kind);
        let dot = if kind.group.is_empty() { "" } else { "." };
        let resource = [&kind.plural, dot, &kind.group].concat();
        for object in api.list(&ListParams::default()).await?.items {
            let metadata = object.metadata;
            let namespace = metadata.namespace.map(|name| name + "/").unwrap_or_default();
            let name = format!("{resource} {namespace}{}", metadata.name.unwrap_or_default());
            versions.insert(name, metadata.uid.zip(metadata.resource_version));
        }
    }
    Ok(versions)
}

/// Names the objects that only one of two states has, or that differ.
pub(super) fn difference(before: &Versions, after: &Versions) -> String {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    changed.map(String::as_str).collect::<Vec<_>>().join(", ")
}
