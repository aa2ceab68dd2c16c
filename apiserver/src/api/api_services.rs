//! The `APIService` objects of the groups of definitions, as the real server registers them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::conversion::Converter;
use super::removal::remove;
use super::server_objects::{SERVER, store};
use crate::admission::delete::DeleteOptions;
use crate::core::Core;
use crate::kinds::{Kinds, Served};

/// The group of registrations.
pub(super) const REGISTRATION_GROUP: &str = "apiregistration.k8s.io";

/// The label of the registrations that the server makes and removes.
const MANAGED: (&str, &str) = ("kube-aggregator.kubernetes.io/automanaged", "true");

/// The priorities of the groups of definitions, and of their versions.
const PRIORITIES: (u32, u32) = (1000, 100);

/// Registers the versions of a group that definitions serve now, and removes what the server has
/// registered for others. A registration of a client stays.
///
/// It does nothing in a server without users, which has no registrations of its own.
pub(super) fn follow(core: &Core, group: &str) {
    if !core.access.authenticates() {
        return;
    }
    let kinds = core.kinds();
    let services = kinds.find(REGISTRATION_GROUP, "v1", "apiservices");
    let services = services.expect("the table has the kind");
    let wanted = versions(&kinds, group);
    for version in registered(core, &services, group).difference(&wanted) {
        let name = name(version, group);
        let converter = Converter::without_webhook(&services);
        // One that is gone already is removed, too.
        drop(remove(core, &converter, (&name, &name), &DeleteOptions::default(), &|_| Ok(())));
    }
    for version in &wanted {
        store(core, &services, &registration(version, group), SERVER);
    }
}

/// Registers all groups of definitions again, after a client has removed a registration.
pub(super) fn repair(core: &Core) {
    let kinds = core.kinds();
    let groups: BTreeSet<&str> =
        kinds.installed_names().filter_map(|name| group_of(name)).collect();
    for group in groups {
        follow(core, group);
    }
}

/// Returns the group of a definition from its name.
pub(super) fn group_of(definition: &str) -> Option<&str> {
    definition.split_once('.').map(|(_, group)| group)
}

/// Returns the versions of a group that definitions serve.
fn versions(kinds: &Kinds, group: &str) -> BTreeSet<String> {
    let rows = kinds.rows_of_group(group).filter(|kind| kind.definition.is_some());
    rows.map(|kind| kind.version.to_string()).collect()
}

/// Returns the versions of a group that the server has registered for definitions.
fn registered(core: &Core, services: &Served, group: &str) -> BTreeSet<String> {
    let (label, value) = MANAGED;
    let stored = core.read(|storage| storage.objects(services.resource).clone());
    let managed = stored.values().filter(|stored| {
        stored.selectable.labels.get(label).is_some_and(|is_managed| is_managed == value)
    });
    let names = managed.filter_map(|stored| stored.selectable.name.split_once('.'));
    names.filter(|(_, of)| *of == group).map(|(version, _)| version.to_owned()).collect()
}

fn name(version: &str, group: &str) -> String {
    format!("{version}.{group}")
}

fn registration(version: &str, group: &str) -> Value {
    let (label, value) = MANAGED;
    let (group_priority, version_priority) = PRIORITIES;
    json!({
        "metadata": {"name": name(version, group), "labels": {label: value}},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": group_priority,
            "versionPriority": version_priority,
        },
    })
}
