//! The accepted names of all definitions. No name of a group belongs to two of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::conditions;
use crate::fields::{Fields, read_path};
use crate::kinds::Names;

/// The accepted names of all definitions, by group: a definition is checked without a look at the
/// others.
#[derive(Debug, Default)]
pub(crate) struct NamesInUse {
    groups: BTreeMap<String, Group>,
}

#[derive(Debug, Default)]
struct Group {
    /// The names of resources, with the definitions that have them.
    resources: BTreeMap<String, BTreeSet<String>>,
    kinds: BTreeMap<String, BTreeSet<String>>,
    accepted: BTreeMap<String, Names>,
    /// The definitions whose names are not accepted.
    refused: BTreeSet<String>,
}

/// The names that the other definitions of a group use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsedNames<'a> {
    group: Option<&'a Group>,
    /// The definition that asks.
    own: &'a str,
}

// === impl NamesInUse ===

impl NamesInUse {
    /// Records the names of a definition; `None` if it is gone.
    pub(crate) fn record(&mut self, name: &str, definition: Option<&Fields>) {
        let group = self.groups.entry(group_of(name).to_owned()).or_default();
        if let Some(before) = group.accepted.remove(name) {
            group.remove(name, &before);
        }
        group.refused.remove(name);
        if let Some(definition) = definition {
            let accepted = accepted(definition);
            group.add(name, &accepted);
            group.accepted.insert(name.to_owned(), accepted);
            if !conditions::is_true(definition, "NamesAccepted") {
                group.refused.insert(name.to_owned());
            }
        }
        if self.groups.get(group_of(name)).is_some_and(|group| group.accepted.is_empty()) {
            self.groups.remove(group_of(name));
        }
    }

    /// Returns the names that the other definitions of the group use.
    pub(crate) fn of_others<'a>(&'a self, name: &'a str) -> UsedNames<'a> {
        UsedNames { group: self.groups.get(group_of(name)), own: name }
    }

    /// Returns the definitions of the group whose names are not accepted.
    pub(crate) fn refused(&self, name: &str) -> Vec<String> {
        let group = self.groups.get(group_of(name));
        group.map(|group| group.refused.iter().cloned().collect()).unwrap_or_default()
    }
}

/// Returns the names that a definition has been given.
pub(super) fn accepted(definition: &Fields) -> Names {
    names(read_path(definition, "status.acceptedNames"))
}

/// Reads names; all are empty if there are none.
pub(super) fn names(value: Option<&Value>) -> Names {
    value.and_then(|names| serde_json::from_value(names.clone()).ok()).unwrap_or_default()
}

/// Returns the group of a definition.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

// === impl Group ===

impl Group {
    fn add(&mut self, name: &str, names: &Names) {
        for resource in resources(names) {
            self.resources.entry(resource.clone()).or_default().insert(name.to_owned());
        }
        for kind in kinds(names) {
            self.kinds.entry(kind.clone()).or_default().insert(name.to_owned());
        }
    }

    fn remove(&mut self, name: &str, names: &Names) {
        resources(names).for_each(|resource| forget(&mut self.resources, resource, name));
        kinds(names).for_each(|kind| forget(&mut self.kinds, kind, name));
    }
}

fn forget(uses: &mut BTreeMap<String, BTreeSet<String>>, resource: &str, name: &str) {
    if let Some(users) = uses.get_mut(resource) {
        users.remove(name);
        if users.is_empty() {
            uses.remove(resource);
        }
    }
}

fn resources(names: &Names) -> impl Iterator<Item = &String> {
    [&names.plural, &names.singular].into_iter().chain(&names.short_names)
}

fn kinds(names: &Names) -> impl Iterator<Item = &String> {
    [&names.kind, &names.list_kind].into_iter()
}

// === impl UsedNames ===

impl UsedNames<'_> {
    pub(crate) fn has_resource(self, wanted: &str) -> bool {
        self.group.is_some_and(|group| self.has(&group.resources, wanted))
    }

    pub(crate) fn has_kind(self, wanted: &str) -> bool {
        self.group.is_some_and(|group| self.has(&group.kinds, wanted))
    }

    fn has(self, uses: &BTreeMap<String, BTreeSet<String>>, wanted: &str) -> bool {
        uses.get(wanted).is_some_and(|users| users.iter().any(|user| user != self.own))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(kind: &str, plural: &str, accepted: &str) -> Fields {
        let value = json!({"status": {
            "acceptedNames": {"kind": kind, "plural": plural, "shortNames": ["s"]},
            "conditions": [{"type": "NamesAccepted", "status": accepted}],
        }});
        match value {
            Value::Object(fields) => fields,
            _ => Fields::new(),
        }
    }

    #[test]
    fn name_is_free_after_its_definition_goes() {
        let mut names = NamesInUse::default();
        names.record("bars.example.com", Some(&definition("Bar", "bars", "True")));
        names.record("foos.example.com", Some(&definition("Foo", "foos", "False")));
        let used = names.of_others("foos.example.com");
        assert!(used.has_resource("bars") && used.has_resource("s") && used.has_kind("Bar"));
        assert!(!used.has_resource("foos") && !used.has_kind("bars"));
        assert!(!names.of_others("foos.example.org").has_resource("bars"), "another group");
        assert_eq!(names.refused("bars.example.com"), ["foos.example.com"]);

        names.record("bars.example.com", Some(&definition("Baz", "bars", "True")));
        let used = names.of_others("foos.example.com");
        assert!(!used.has_kind("Bar") && used.has_kind("Baz"));
        names.record("bars.example.com", None);
        assert!(!names.of_others("foos.example.com").has_resource("s"));
        names.record("foos.example.com", None);
        assert!(names.groups.is_empty());
    }
}
