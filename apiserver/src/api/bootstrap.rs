//! The objects that a server starts with: those that every server has, and those of a state file.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::api_services::REGISTRATION_GROUP;
use super::kept_objects::load;
use super::server_objects::{SERVER, store, try_store};
use super::{addresses, api_services, definitions, flow_schemas, published_authorities};
use crate::access::RBAC_GROUP;
use crate::clock::day;
use crate::core::Core;
use crate::flow_control::FLOW_CONTROL_GROUP;
use crate::kinds::{BUILT_IN_OBJECTS, BUILT_IN_ROLES, BUILT_IN_SETTINGS, Kinds, Served};
use crate::state::{Contents, State};
use crate::storage::ResourceId;

/// The time from the deletion of a built-in namespace, or of an object of flow control, until the
/// server creates it again: the period at which the real server looks for it.
const LONG_PERIOD: Duration = Duration::from_secs(60);

/// The same time for the other built-in objects.
const PERIOD: Duration = Duration::from_secs(10);

/// An object that every server has.
struct BuiltIn {
    served: Served,
    object: Value,
    /// The name under which the server writes it.
    manager: &'static str,
}

/// The name of an object that is not made again: the real server may wait for half an hour.
const TOKEN_TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";

/// The name under which flow control creates them.
const FLOW_MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// Stores the objects that every server has, as far as they are missing.
pub(crate) fn populate(core: &Core) {
    let built_in = built_in(core);
    for BuiltIn { served, object, manager } in &built_in {
        store(core, served, object, manager);
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
                store(core, &served, object, SERVER);
            }
        }
    }
    report(core);
}

/// Sets the conditions that the real server's controllers set.
fn report(core: &Core) {
    addresses::repair(core);
    addresses::report_range(core);
    flow_schemas::report(core);
    api_services::repair(core);
}

/// Creates deleted objects of the resource again, after a while, as the real server's controllers
/// do.
pub(crate) async fn recreate(core: Arc<Core>, resource: ResourceId) {
    let built_in: Vec<_> =
        built_in(&core).into_iter().filter(|one| one.served.resource == resource).collect();
    let is_slow = built_in.iter().any(BuiltIn::is_slow);
    tokio::select! {
        biased;
        () = core.stopped.cancelled() => return,
        () = tokio::time::sleep(if is_slow { LONG_PERIOD } else { PERIOD }) => {}
    }
    for BuiltIn { served, object, manager } in built_in.iter().filter(|one| one.is_recreated()) {
        if let Err(failure) = try_store(&core, served, object, manager) {
            let (kind, error) = (&served.kind.kind, &failure.message);
            tracing::warn!(%kind, %error, "cannot create a deleted object of the server again");
        }
    }
    report(&core);
}

fn built_in(core: &Core) -> Vec<BuiltIn> {
    let kinds = core.kinds();
    let namespaces = ["default", "kube-node-lease", "kube-public", "kube-system"];
    let namespaces = namespaces.map(|name| BuiltIn {
        served: kinds.namespaces(),
        object: json!({"metadata": {"name": name}}),
        manager: SERVER,
    });
    let others = BUILT_IN_OBJECTS.iter().map(|(group, plural, object)| BuiltIn {
        served: kinds.find(group, "v1", plural).expect("the table has the kind"),
        object: serde_json::from_str(object).expect("the text is JSON"),
        manager: SERVER,
    });
    let mut built_in: Vec<BuiltIn> = namespaces.into_iter().chain(others).collect();
    if core.access.authenticates() {
        built_in.extend(settings(&kinds));
        built_in.extend(config_maps(core, &kinds));
    }
    built_in
}

/// Returns the registrations of the groups, the flow schemas and the priority levels.
fn settings(kinds: &Kinds) -> Vec<BuiltIn> {
    let settings: BTreeMap<String, Vec<Value>> =
        serde_json::from_str(BUILT_IN_SETTINGS).expect("the text is JSON");
    let of_resource = |(plural, objects): (String, Vec<Value>)| {
        let (group, manager) = match plural.as_str() {
            "apiservices" => (REGISTRATION_GROUP, SERVER),
            _ => (FLOW_CONTROL_GROUP, FLOW_MANAGER),
        };
        let served = kinds.find(group, "v1", &plural).expect("the table has the kind");
        objects.into_iter().map(move |object| BuiltIn { served: served.clone(), object, manager })
    };
    settings.into_iter().flat_map(of_resource).collect()
}

/// Returns the objects of the system's namespace that clients of the server read.
fn config_maps(core: &Core, kinds: &Kinds) -> [BuiltIn; 2] {
    let served = kinds.find("", "v1", "configmaps").expect("the table has the kind");
    // The day since which the server notes the use of the tokens of secrets.
    let tracking = json!({
        "metadata": {"namespace": "kube-system", "name": TOKEN_TRACKING},
        "data": {"since": day(core.clock.now())},
    });
    [published_authorities::config_map(core), tracking].map(|object| BuiltIn {
        served: served.clone(),
        object,
        manager: SERVER,
    })
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
    /// Returns true if the server creates the object again if it is deleted. It does not for the
    /// system's priority classes, the registrations of its groups and the tracking of tokens.
    fn is_recreated(&self) -> bool {
        !matches!(&*self.served.home.plural, "priorityclasses" | "apiservices")
            && self.object["metadata"]["name"] != TOKEN_TRACKING
    }

    fn is_slow(&self) -> bool {
        self.served.home.group == FLOW_CONTROL_GROUP || self.served.home.plural == "namespaces"
    }

    fn key(&self) -> String {
        let metadata = &self.object["metadata"];
        let text = |member: &str| metadata[member].as_str().unwrap_or_default();
        self.served.home.key(text("namespace"), text("name"))
    }
}
