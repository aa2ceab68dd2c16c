//! The `APIService` objects of the groups of definitions, as the real server registers them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::conversion::Converter;
use super::removal;
use super::server_objects::{SERVER, store};
use crate::admission::delete::DeleteOptions;
use crate::core::Core;
use crate::kinds::{Kinds, Served};
use crate::object::Stored;

/// The group of registrations.
pub(super) const REGISTRATION_GROUP: &str = "apiregistration.k8s.io";

/// The label of the registrations that the server makes and removes.
const MANAGED: (&str, &str) = ("kube-aggregator.kubernetes.io/automanaged", "true");

/// The priorities of the groups of definitions, and of their versions.
const PRIORITIES: (u32, u32) = (1000, 100);

/// Carries out an effect of a definition. Registers the versions of its group that definitions
/// serve then, and removes the registrations of the others. A registration of a client stays.
///
/// A server without users has no registrations.
pub(super) fn following<T>(core: &Core, definition: &str, effect: impl FnOnce() -> T) -> T {
    let group = definition.split_once('.').map(|(_, group)| group);
    let Some(group) = group.filter(|_| core.access.authenticates()) else { return effect() };
    let before = versions(&core.kinds(), group);
    let result = effect();
    let after = versions(&core.kinds(), group);
    let services = services(core);
    before.difference(&after).for_each(|version| remove(core, &services, version, group));
    register(core, &services, (group, &after));
    result
}

/// Registers all versions that definitions serve, and removes all other registrations of the
/// server: after a start, and after a client has removed one.
pub(super) fn repair(core: &Core) {
    if !core.access.authenticates() {
        return;
    }
    let (kinds, services) = (core.kinds(), services(core));
    let stored = core.read(|storage| storage.objects(services.resource).clone());
    let managed = stored.values().filter(|stored| is_managed(stored));
    for (version, group) in managed.filter_map(|stored| stored.selectable.name.split_once('.')) {
        if !versions(&kinds, group).contains(version) {
            remove(core, &services, version, group);
        }
    }
    let groups = kinds.installed_names().filter_map(|name| name.split_once('.'));
    let groups: BTreeSet<&str> = groups.map(|(_, group)| group).collect();
    for group in groups {
        register(core, &services, (group, &versions(&kinds, group)));
    }
}

fn services(core: &Core) -> Served {
    let services = core.kinds().find(REGISTRATION_GROUP, "v1", "apiservices");
    services.expect("the table has the kind")
}

/// Returns the versions of a group that definitions serve.
fn versions(kinds: &Kinds, group: &str) -> BTreeSet<String> {
    let rows = kinds.rows_of_group(group).filter(|kind| kind.definition.is_some());
    rows.map(|kind| kind.version.to_string()).collect()
}

/// Stores the registrations that are missing.
fn register(core: &Core, services: &Served, (group, versions): (&str, &BTreeSet<String>)) {
    for version in versions {
        store(core, services, &registration(version, group), SERVER);
    }
}

/// Removes a registration of the server.
fn remove(core: &Core, services: &Served, version: &str, group: &str) {
    let name = name(version, group);
    if core.get(services.resource, &name).is_some_and(|stored| is_managed(&stored)) {
        let converter = Converter::without_webhook(services);
        // One that is gone already is removed, too.
        let options = DeleteOptions::default();
        drop(removal::remove(core, &converter, (&name, &name), &options, &|_| Ok(())));
    }
}

/// Returns true if the server made the registration for a definition.
fn is_managed(registration: &Stored) -> bool {
    let (label, value) = MANAGED;
    registration.selectable.labels.get(label).is_some_and(|managed| managed == value)
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
