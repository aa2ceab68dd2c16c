//! The kinds of one server, and the storage of their objects.

use std::sync::Arc;

use homeostat_schema::NameIndex;
use imbl::OrdMap;
use tokio_util::sync::CancellationToken;

use super::defined_kinds::DefinedKinds;
use super::kind::Kind;
use super::table::built_in;
use crate::access::RBAC_GROUP;
use crate::fields::Fields;
use crate::object::{Encoded, Stored};
use crate::plugin::{AdmissionPlugin, Off};
use crate::storage::ResourceId;

/// All kinds of one server. A change makes another table, which shares most of its memory.
#[derive(Debug, Clone)]
pub(crate) struct Kinds {
    /// The built-in kinds, and those of the builder.
    rows: Vec<Served>,
    /// The first bytes of the plural of each row: most searches need not look at other rows.
    starts: Arc<[u64]>,
    /// The served kinds of definitions, by `group/plural/version`.
    defined: OrdMap<String, Served>,
    /// The installed definitions, by name.
    definitions: OrdMap<String, Arc<Installed>>,
    /// The storage of each definition's objects, by name. An entry stays when its definition goes.
    resources: OrdMap<String, ResourceId>,
    next_resource: usize,
    /// Incremented by each change.
    generation: u64,
    off: Off,
}

/// A kind, as a request found it.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    pub(crate) kind: Arc<Kind>,
    /// The kind whose form the stored bytes have.
    pub(crate) home: Arc<Kind>,
    pub(crate) resource: ResourceId,
}

/// A definition whose kinds are in the table.
#[derive(Debug)]
pub(crate) struct Installed {
    /// The source of the kinds, in JSON: `spec` and the accepted names.
    source: String,
    pub(crate) served: Served,
    pub(crate) retired: CancellationToken,
}

// === impl Kinds ===

impl Kinds {
    /// Builds the table. A later row for the same resource replaces an earlier one.
    pub(crate) fn new(custom: Vec<Kind>) -> Self {
        let mut rows = built_in();
        for kind in custom {
            rows.retain(|row| !row.is(&kind.group, &kind.version, &kind.plural));
            rows.push(kind);
        }
        let kinds: Vec<Arc<Kind>> = rows.into_iter().map(Arc::new).collect();
        let home = |at: usize| {
            let home = kinds[at].stored_as?;
            kinds.iter().position(|other| other.group == home.group && other.plural == home.plural)
        };
        let served = |at: usize| {
            let home = home(at).unwrap_or(at);
            let (kind, resource) = (Arc::clone(&kinds[at]), ResourceId(home));
            Served { kind, home: Arc::clone(&kinds[home]), resource }
        };
        let rows: Vec<Served> = (0..kinds.len()).map(served).collect();
        Self {
            starts: starts_of(&rows),
            rows,
            defined: OrdMap::new(),
            definitions: OrdMap::new(),
            resources: OrdMap::new(),
            next_resource: kinds.len(),
            generation: 0,
            off: Off::new(),
        }
    }

    /// Switches plugins off.
    pub(crate) fn without_plugins(mut self, off: Off) -> Self {
        let switched = self.rows.iter().map(|row| {
            let mut kind = Kind::clone(&row.kind);
            kind.switch_off(&off);
            Arc::new(kind)
        });
        let switched: Vec<_> = switched.collect();
        for (row, kind) in self.rows.iter_mut().zip(&switched) {
            row.kind = Arc::clone(kind);
            // A kind that is its own home has equal pointers.
            row.home = Arc::clone(&switched[row.resource.0]);
        }
        self.off = off;
        self
    }

    /// Returns true if a plugin is on.
    pub(crate) fn runs(&self, plugin: AdmissionPlugin) -> bool {
        !self.off.contains(&plugin)
    }

    /// Returns the number of resources that the table has storage for.
    pub(crate) fn resources(&self) -> usize {
        self.next_resource
    }

    /// Returns a number that each change of the table increments.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the kinds: first the built-in ones.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.rows.iter().chain(self.defined.values()).map(|served| &served.kind)
    }

    /// Returns the kinds that have no definition.
    pub(crate) fn built_in_rows(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.rows.iter().map(|served| &served.kind)
    }

    /// Returns the kinds of a group, in the order of [`rows`](Self::rows). Definitions of other
    /// groups are not visited.
    pub(crate) fn rows_of_group<'a>(
        &'a self,
        group: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Kind>> {
        let prefix = format!("{group}/");
        let defined = self.defined.range(prefix.clone()..);
        let defined = defined.take_while(move |(key, _)| key.starts_with(&prefix));
        let built_in = self.built_in_rows().filter(move |kind| kind.group == group);
        built_in.chain(defined.map(|(_, served)| &served.kind))
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.rows_of_group(group).next().is_some()
    }

    /// Finds a kind, the kind that stores its objects, and their storage.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        let start = NameIndex::start_of(plural);
        let alike = self.rows.iter().zip(self.starts.iter()).filter(|(_, other)| **other == start);
        let row = alike.map(|(row, _)| row).find(|row| row.kind.is(group, version, plural));
        let found = match row {
            None if self.defined.is_empty() => None,
            None => self.defined.get(&defined_key(group, plural, version)),
            row => row,
        };
        found.cloned()
    }

    /// Returns the kinds whose objects are stored with those of another one, itself included: the
    /// versions of a resource, and resources of two groups that are one.
    pub(crate) fn sharing_storage(&self, served: &Served) -> Vec<Served> {
        let rows = self.rows.iter().filter(|row| row.resource == served.resource);
        let prefix = defined_key(&served.kind.group, &served.kind.plural, "");
        let defined = self.defined.range(prefix.clone()..);
        let defined = defined.take_while(|(key, _)| key.starts_with(&prefix));
        rows.chain(defined.map(|(_, served)| served)).cloned().collect()
    }

    /// Returns the kind `ValidatingAdmissionPolicy`, and that of its bindings.
    pub(crate) fn admission_policies(&self) -> [Served; 2] {
        self.policies(["validatingadmissionpolicies", "validatingadmissionpolicybindings"])
    }

    /// Returns the kinds of the policies of admission that change objects, and of their bindings.
    pub(crate) fn mutating_policies(&self) -> [Served; 2] {
        self.policies(["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"])
    }

    fn policies(&self, plurals: [&str; 2]) -> [Served; 2] {
        plurals.map(|plural| {
            let found = self.find("admissionregistration.k8s.io", "v1", plural);
            found.expect("the table has policies")
        })
    }

    /// Returns the kinds `MutatingWebhookConfiguration` and `ValidatingWebhookConfiguration`.
    pub(crate) fn webhook_configurations(&self) -> [Served; 2] {
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"].map(|plural| {
            let found = self.find("admissionregistration.k8s.io", "v1", plural);
            found.expect("the table has configurations")
        })
    }

    /// Returns the kind `FlowSchema`, and that of priority levels.
    pub(crate) fn flow_kinds(&self) -> [Served; 2] {
        ["flowschemas", "prioritylevelconfigurations"].map(|plural| {
            let found = self.find("flowcontrol.apiserver.k8s.io", "v1", plural);
            found.expect("the table has flow control")
        })
    }

    /// Returns the kinds of bindings, of the cluster and of namespaces, then those of roles.
    pub(crate) fn grant_kinds(&self) -> [Served; 4] {
        ["clusterrolebindings", "rolebindings", "clusterroles", "roles"].map(|plural| {
            let found = self.find(RBAC_GROUP, "v1", plural);
            found.expect("the table has roles")
        })
    }

    /// Finds the kind that stores the objects of a [named](Served::resource_name) resource.
    pub(crate) fn find_resource(&self, name: &str) -> Option<Served> {
        let is_same = |row: &&Served| row.resource_name() == name;
        let built_in = self
            .rows
            .iter()
            .find(is_same)
            .map(|row| Served { kind: Arc::clone(&row.home), ..row.clone() });
        built_in.or_else(|| self.installed(name).map(|installed| installed.served.clone()))
    }

    /// Returns the kinds that have storage of their own, without those of definitions.
    pub(crate) fn homes(&self) -> impl Iterator<Item = &Served> {
        self.rows.iter().filter(|served| Arc::ptr_eq(&served.kind, &served.home))
    }

    /// Returns the kind `Namespace`.
    pub(crate) fn namespaces(&self) -> Served {
        self.find("", "v1", "namespaces").expect("the table has namespaces")
    }

    /// Returns the kind `IPAddress`.
    pub(crate) fn ip_addresses(&self) -> Served {
        let found = self.find("networking.k8s.io", "v1", "ipaddresses");
        found.expect("the table has addresses")
    }

    /// Returns the kind `CustomResourceDefinition`.
    pub(crate) fn definitions(&self) -> Served {
        let found = self.find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        found.expect("the table has definitions")
    }

    /// Returns the installed definition of this name.
    pub(crate) fn installed(&self, name: &str) -> Option<&Arc<Installed>> {
        self.definitions.get(name)
    }

    /// Adds the kinds of a definition, or replaces them. Returns `None` if the table has them
    /// already.
    pub(crate) fn with_definition(&self, name: &str, definition: &Fields) -> Option<Self> {
        let source = source_of(definition);
        if self.installed(name).is_some_and(|installed| installed.source == source) {
            return None;
        }
        let kinds = DefinedKinds::of(definition)?;
        let mut table = self.clone();
        table.remove(name);
        let resource = table.resource_of(name, &kinds);
        let home = &kinds.home;
        let served =
            |kind: &Arc<Kind>| Served { kind: Arc::clone(kind), home: Arc::clone(home), resource };
        let is_shown = !table.is_shadowed(&kinds.group);
        for (kind, _) in kinds.rows.iter().filter(|(_, is_served)| *is_served && is_shown) {
            let key = defined_key(&kinds.group, &kinds.plural, &kind.version);
            table.defined.insert(key, served(kind));
        }
        let (served, retired) = (served(home), kinds.retired.clone());
        table.definitions.insert(name.to_owned(), Arc::new(Installed { source, served, retired }));
        table.generation += 1;
        Some(table)
    }

    /// Returns true if no kind of a definition is served: as on the real server, the built-in kinds
    /// have their groups to themselves.
    fn is_shadowed(&self, group: &str) -> bool {
        self.built_in_rows().any(|kind| !kind.custom && kind.group == group)
    }

    /// Removes the kinds of a definition. Returns `None` if the table has none of them.
    pub(crate) fn without_definition(&self, name: &str) -> Option<Self> {
        self.installed(name)?;
        let mut table = self.clone();
        table.remove(name);
        table.generation += 1;
        Some(table)
    }

    /// Returns the names of all installed definitions.
    pub(crate) fn installed_names(&self) -> impl Iterator<Item = &String> {
        self.definitions.keys()
    }

    fn remove(&mut self, name: &str) {
        let Some(installed) = self.definitions.remove(name) else { return };
        let home = &installed.served.home;
        let prefix = defined_key(&home.group, &home.plural, "");
        let keys = self.defined.range(prefix.clone()..).map(|(key, _)| key);
        let keys: Vec<String> = keys.take_while(|key| key.starts_with(&prefix)).cloned().collect();
        for key in keys {
            self.defined.remove(&key);
        }
    }

    /// Returns the storage of a definition's objects. It takes over that of a kind of the builder.
    fn resource_of(&mut self, name: &str, kinds: &DefinedKinds) -> ResourceId {
        let is_same = |row: &Served| {
            row.kind.custom && row.kind.group == kinds.group && row.kind.plural == kinds.plural
        };
        if let Some(row) = self.rows.iter().find(|row| is_same(row)) {
            self.resources.insert(name.to_owned(), row.resource);
            self.rows.retain(|row| !is_same(row));
            self.starts = starts_of(&self.rows);
        }
        if let Some(resource) = self.resources.get(name) {
            return *resource;
        }
        let resource = ResourceId(self.next_resource);
        self.next_resource += 1;
        self.resources.insert(name.to_owned(), resource);
        resource
    }
}

fn starts_of(rows: &[Served]) -> Arc<[u64]> {
    rows.iter().map(|row| NameIndex::start_of(&row.kind.plural)).collect()
}

fn defined_key(group: &str, plural: &str, version: &str) -> String {
    format!("{group}/{plural}/{version}")
}

fn source_of(definition: &Fields) -> String {
    let names = definition.get("status").and_then(|status| status.get("acceptedNames"));
    serde_json::to_string(&(definition.get("spec"), names)).expect("values are JSON")
}

// === impl Served ===

impl Served {
    /// Returns true if stored bytes have the form of this kind.
    pub(crate) fn shows(&self, stored: &Stored) -> bool {
        match &self.kind.definition {
            Some(definition) => stored.selectable.form == definition.form,
            None => Arc::ptr_eq(&self.kind, &self.home),
        }
    }

    /// Returns true if only the webhook of the definition can convert stored bytes to this kind.
    pub(crate) fn needs_webhook(&self, stored: &Stored) -> bool {
        self.has_webhook() && !stored.is_of_type(&self.kind.type_members())
    }

    /// Returns true if a webhook converts the objects.
    pub(crate) fn has_webhook(&self) -> bool {
        self.kind.definition.as_ref().is_some_and(|definition| definition.webhook().is_some())
    }

    /// Returns true if the object was stored by another schema, so that it may be stored with other
    /// bytes today.
    pub(crate) fn has_other_form(&self, stored: &Stored) -> bool {
        let Some(definition) = &self.home.definition else { return false };
        stored.selectable.form != definition.form
    }

    /// Returns the kind whose rules apply to a write: versions of a definition differ in them.
    pub(crate) fn rules(&self) -> &Arc<Kind> {
        if self.kind.definition.is_some() { &self.kind } else { &self.home }
    }

    /// Returns true if stored bytes have the form that the rules apply to.
    pub(crate) fn reads_as_stored(&self, stored: &Stored) -> bool {
        self.kind.definition.is_none() || self.shows(stored)
    }

    /// Returns an object in the form that the rules apply to.
    pub(crate) fn read(&self, stored: &Stored) -> Fields {
        let mut object = stored.fields();
        if let Some(definition) = &self.kind.definition
            && !self.shows(stored)
        {
            definition.show(&mut object);
        }
        object
    }

    /// Encodes an object, in the form that the rules apply to, for storage.
    pub(crate) fn encode(&self, mut object: Fields) -> Encoded {
        if let Some(definition) = &self.home.definition {
            definition.convert(&mut object);
        }
        self.home.encode(object)
    }

    /// Returns the name of the resource that stores the objects: `deployments.apps`, `pods.`. A
    /// definition has the same name.
    pub(crate) fn resource_name(&self) -> String {
        format!("{}.{}", self.home.plural, self.home.group)
    }

    /// Returns the object with the field labels of this kind.
    pub(crate) fn relabel(&self, stored: &Stored) -> Stored {
        let form = stored.selectable.form;
        let mut selectable = self.home.selectable(&self.read(stored));
        selectable.form = form;
        stored.with_selectable(selectable)
    }
}

#[cfg(test)]
impl Kinds {
    /// Adds a definition with one version.
    pub(crate) fn with_kind(&self, group: &str, plural: &str) -> Self {
        let names = serde_json::json!({"plural": plural, "kind": plural.to_uppercase()});
        let schema = serde_json::json!({"openAPIV3Schema": {"type": "object"}});
        let definition = serde_json::json!({
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema},
            ]},
            "status": {"acceptedNames": names},
        });
        let fields = definition.as_object().expect("an object");
        self.with_definition(&format!("{plural}.{group}"), fields).expect("a new definition")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_a_group_are_found_among_those_of_similar_groups() {
        let custom = Kind::custom("a.example.com", "v2", "Own", "owns");
        let mut kinds = Kinds::new(vec![custom]);
        for group in ["a.example.com", "a.example.com.x", "aa.example.com", "b.example.com"] {
            kinds = kinds.with_kind(group, "foos");
        }
        kinds = kinds.with_kind("a.example.com", "bars");
        let of = |group: &str| {
            let rows = kinds.rows_of_group(group);
            rows.map(|kind| kind.plural.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("a.example.com"), ["owns", "bars", "foos"]);
        assert_eq!(of("aa.example.com"), ["foos"]);
        assert!(!kinds.has_group("example.com") && !kinds.has_group("a.example"));
        let apps = kinds.rows().filter(|kind| kind.group == "apps");
        assert_eq!(of("apps"), apps.map(|kind| kind.plural.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn definition_hides_no_built_in_kind() {
        let kinds = Kinds::new(Vec::new());
        let group = "networking.k8s.io";
        let before = kinds.find(group, "v1", "networkpolicies").unwrap().resource;
        let kinds = kinds.with_kind(group, "foos").with_kind(group, "networkpolicies");
        assert!(kinds.find(group, "v1", "foos").is_none());
        let policies = kinds.find(group, "v1", "networkpolicies").unwrap();
        assert!(!policies.kind.custom && policies.resource == before);
    }
}
