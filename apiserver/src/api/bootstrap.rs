//! The objects that a server starts with: those that every server has, and those of a state file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::kept_objects::load;
use super::server_objects::{store, try_store};
use super::{addresses, definitions};
use crate::access::RBAC_GROUP;
use crate::core::Core;
use crate::kinds::{BUILT_IN_OBJECTS, BUILT_IN_ROLES, Served};
use crate::state::{Contents, State};
use crate::storage::ResourceId;

/// The time from the deletion of a built-in namespace until the server creates it again: the
/// period at which the real server looks for it.
const NAMESPACE_PERIOD: Duration = Duration::from_secs(60);

/// The same time for the other built-in objects.
const PERIOD: Duration = Duration::from_secs(10);

/// An object that every server has.
struct BuiltIn {
    served: Served,
    object: Value,
}

/// Stores the objects that every server has, as far as they are missing.
pub(crate) fn populate(core: &Core) {
    let built_in = built_in(core);
    for BuiltIn { served, object } in &built_in {
        store(core, served, object);
    }
    let kept = built_in.iter().filter(|built_in| built_in.is_recreated());
    core.keep(kept.map(|built_in| (built_in.served.resource, built_in.key())).collect());
    if core.access.authenticates() {
        let roles: BTreeMap<String, Vec<Value>> =
            serde_json::from_str(BUILT_IN_ROLES).expect("the text is JSON");
        for (plural, objects) in &roles {
            let served = core.kinds().find(RBAC_GROUP, "v1", plural);
            let served = served.expect("the table has the kind");
            for object in objects {
                store(core, &served, object);
            }
        }
    }
    addresses::repair(core);
    addresses::report_range(core);
}

/// Creates deleted objects of the resource again, after a while, as the real server's controllers
/// do.
pub(crate) async fn recreate(core: Arc<Core>, resource: ResourceId) {
    let is_namespace = core.kinds().namespaces().resource == resource;
    tokio::select! {
        biased;
        () = core.stopped.cancelled() => return,
        () = tokio::time::sleep(if is_namespace { NAMESPACE_PERIOD } else { PERIOD }) => {}
    }
    let built_in = built_in(&core).into_iter().filter(BuiltIn::is_recreated);
    for BuiltIn { served, object } in built_in.filter(|one| one.served.resource == resource) {
        if let Err(failure) = try_store(&core, &served, &object) {
            let (kind, error) = (&served.kind.kind, &failure.message);
            tracing::warn!(%kind, %error, "cannot create a deleted object of the server again");
        }
    }
    addresses::repair(&core);
    addresses::report_range(&core);
}

fn built_in(core: &Core) -> Vec<BuiltIn> {
    let kinds = core.kinds();
    let namespaces = ["default", "kube-node-lease", "kube-public", "kube-system"];
    let namespaces = namespaces.map(|name| BuiltIn {
        served: kinds.namespaces(),
        object: json!({"metadata": {"name": name}}),
    });
    let others = BUILT_IN_OBJECTS.iter().map(|(group, plural, object)| BuiltIn {
        served: kinds.find(group, "v1", plural).expect("the table has the kind"),
        object: serde_json::from_str(object).expect("the text is JSON"),
    });
    namespaces.into_iter().chain(others).collect()
}

/// Loads the objects of a state file, and appends all later writes to it.
///
/// Objects of kinds that the server does not serve stay in the file.
pub(crate) fn resume(core: &Core, state: State) {
    let State { contents, mut journal } = state;
    let Contents { revision, mut resources } = contents;
    let kinds = core.kinds();
    for served in kinds.homes() {
        core.name_resource(served.resource, &served.resource_name());
    }
    // The definitions come first: the other objects may be of their kinds.
    let definitions = kinds.definitions();
    core.set_revision(revision);
    load(core, &definitions, resources.remove(&definitions.resource_name()).unwrap_or_default());
    definitions::reinstall(core);
    let kinds = core.kinds();
    let mut unserved = Contents::default();
    for (name, objects) in resources {
        if let Some(served) = kinds.find_resource(&name) {
            load(core, &served, objects);
            continue;
        }
        tracing::warn!(
            resource = %name, objects = objects.len(),
            "the state file has objects of a resource that is not served: they stay in the file"
        );
        unserved.resources.insert(name, objects);
    }
    journal.keep_unserved(unserved);
    core.keep_journal(journal);
}

// === impl BuiltIn ===

impl BuiltIn {
    /// Returns whether the server creates the object again if it is deleted. It does not for the
    /// system's priority classes.
    fn is_recreated(&self) -> bool {
        self.served.home.plural != "priorityclasses"
    }

    fn key(&self) -> String {
        let metadata = &self.object["metadata"];
        let text = |member: &str| metadata[member].as_str().unwrap_or_default();
        self.served.home.key(text("namespace"), text("name"))
    }
}
