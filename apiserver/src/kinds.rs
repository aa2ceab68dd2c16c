//! The table of kinds: what differs between two kinds is a column, never a branch in a handler.

mod checks;
mod claim;
mod defaults;
mod job;
mod label_selector;
mod limits;
mod namespace;
mod node;
mod pod;
mod registry;
mod scale;
mod secret;
mod service;
mod table;
mod workload;

use std::borrow::Cow;

use serde_json::Value;

use crate::names::Judge;
use crate::object::Fields;
use crate::status::Cause;
use crate::types::{Type, Types, Wrong, tidy_kind, wrong_member};

pub(crate) use checks::selectors;
pub(crate) use registry::{Kinds, ResourceId, Served};
pub(crate) use table::{ALWAYS_THERE, built_in};

/// One kind that the server serves: a row of its table.
///
/// The built-in kinds are always there. A row for a custom resource is made with [`Kind::custom`] and given to
/// [`Builder::kind`](crate::Builder::kind); such a kind has no schema, so nothing is validated, pruned or defaulted.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are columns of a table, not states of a machine"
)]
#[expect(clippy::struct_field_names, reason = "`kind` is what the API calls it")]
pub struct Kind {
    pub(crate) group: Cow<'static, str>,
    pub(crate) version: Cow<'static, str>,
    pub(crate) kind: Cow<'static, str>,
    pub(crate) plural: Cow<'static, str>,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) categories: &'static [&'static str],
    pub(crate) namespaced: bool,
    pub(crate) custom: bool,
    /// Why a name is not one for this kind.
    pub(crate) name: Judge,
    /// Whether `/status` exists, and who may write the status through the object itself.
    pub(crate) status: Status,
    pub(crate) generation: Generation,
    /// Whether a PUT may leave out the resourceVersion.
    pub(crate) unconditional_update: bool,
    /// Whether a PUT may create.
    pub(crate) create_on_update: bool,
    /// Whether a finished DELETE answers with the object, and not with a Status.
    pub(crate) returns_deleted: bool,
    pub(crate) dependents: Dependents,
    /// Whether a DELETE may name a whole collection.
    pub(crate) deletes_collections: bool,
    /// The field labels beside `metadata.name` and `metadata.namespace`.
    pub(crate) fields: &'static [FieldLabel],
    pub(crate) defaults: &'static [Defaults],
    /// What follows from other members, whenever it is written.
    pub(crate) derive: fn(&mut Fields),
    /// What only a create fills in.
    pub(crate) prepare: fn(&mut Fields),
    /// What an update takes over from the stored object (the second) when it does not say it.
    pub(crate) inherits: fn(&mut Fields, &Fields),
    pub(crate) validate: fn(&Fields, Option<&Fields>, &mut Vec<Cause>),
    /// Paths that an update may not change.
    pub(crate) immutable: &'static [&'static str],
    /// The grace that a delete gives, in seconds, unless it asks for another.
    pub(crate) grace: Option<fn(&Fields, Option<i64>) -> i64>,
    /// What a delete that cannot finish at once leaves in the object, beside its mark.
    pub(crate) on_mark: fn(&mut Fields),
    /// A list of names that, as finalizers do, keeps a deleted object until `/finalize` has emptied it.
    pub(crate) finalize: Option<&'static str>,
    /// Where `/scale` finds its numbers, if there is one.
    pub(crate) scale: Option<Scale>,
    /// Subresources that write one member, and the path of that: `(name, path)`.
    pub(crate) parts: &'static [(&'static str, &'static str)],
    pub(crate) admission: Option<Admission>,
    /// What a client that writes such an object is warned of.
    pub(crate) warn: fn(&Fields) -> Vec<String>,
    /// What a client is warned of that deletes one, and does not say what becomes of its dependents.
    pub(crate) unsaid_policy: Option<&'static str>,
    /// What POST on a subresource does to the object.
    pub(crate) actions: &'static [Action],
    /// Objects that may not be deleted.
    pub(crate) protected: &'static [&'static str],
    /// The kind whose objects these are under other names.
    pub(crate) stored_as: Option<&'static StoredAs>,
}

/// How a kind treats its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The kind has none.
    None,
    /// A subresource of its own; a write to the object leaves it alone. What a write to it leaves alone is listed.
    Subresource { kept: &'static [&'static str], on_create: OnCreate },
}

/// What becomes of a status that a create brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCreate {
    Drop,
    Keep,
}

/// What becomes of an object's dependents when a DELETE does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// The finalizers stay as they are.
    Collected,
    /// They are orphaned: so it was before there was a choice.
    Orphaned,
    /// There are none, whatever it says.
    None,
}

/// What counts as a change of what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has no generation.
    None,
    /// A change of what is at one of these paths.
    Of(&'static [&'static str]),
    /// A change of anything but metadata and status.
    Content,
}

/// A field that selectors may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldLabel {
    pub(crate) label: &'static str,
    /// The first of these that is there gives the value.
    pub(crate) paths: &'static [&'static str],
    pub(crate) missing: &'static str,
}

/// Rules for the members under one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) under: &'static str,
    pub(crate) rules: &'static [(&'static str, DefaultValue)],
}

/// What a member is when nobody says.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    /// This JSON text.
    Json(&'static str),
    /// Computed from the members beside it; null for none.
    From(fn(&Fields) -> Value),
    /// An object that fills the gaps of the one that is there, computed from the latter.
    Merge(fn(&Fields) -> Value),
}

/// Where an object has what its `/scale` shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) wanted: &'static str,
    pub(crate) counted: &'static str,
    pub(crate) selector: &'static str,
}

/// What a POST on a subresource does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Action {
    pub(crate) name: &'static str,
    /// The kind of the body, its version, and its name in the table of types.
    pub(crate) body: &'static str,
    pub(crate) api_version: &'static str,
    pub(crate) body_type: &'static str,
    pub(crate) effect: Effect,
}

/// What becomes of the object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect {
    /// The server changes it, as the body says, now.
    Change(fn(&mut Fields, &Fields, &str) -> Result<(), Trouble>),
    /// It is deleted.
    Delete,
}

/// Why the server does not change an object.
#[derive(Debug)]
pub(crate) enum Trouble {
    Conflict(String),
    Invalid(String),
}

/// What of a new object depends on others, all of one kind in version 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admission {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    /// How the names of those start that the server itself has made.
    pub(crate) built_in: &'static str,
    /// Completes the object; finds one other by its name, or all that the server has not made.
    pub(crate) apply: Admit,
}

pub(crate) type Admit = fn(
    &mut Fields,
    &dyn Fn(&str) -> Option<Fields>,
    &dyn Fn() -> Vec<Fields>,
) -> Result<(), String>;

/// A kind that shares the objects of another.
#[derive(Debug)]
pub(crate) struct StoredAs {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    /// (name here, name there)
    pub(crate) renames: &'static [(&'static str, &'static str)],
}

// === impl Kind ===

impl Kind {
    /// A namespaced custom resource with a `/status` subresource and a generation.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::{ApiServer, Kind};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let server = ApiServer::builder().kind(Kind::custom("example.com", "v1", "Widget", "widgets")).build();
    /// # drop(server);
    /// # });
    /// ```
    pub fn custom(
        group: impl Into<Cow<'static, str>>,
        version: impl Into<Cow<'static, str>>,
        kind: impl Into<Cow<'static, str>>,
        plural: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            custom: true,
            status: Status::Subresource { kept: &["*"], on_create: OnCreate::Drop },
            generation: Generation::Content,
            unconditional_update: false,
            ..table::PLAIN
        }
    }

    /// The same kind without namespaces.
    #[must_use]
    pub fn cluster_scoped(mut self) -> Self {
        self.namespaced = false;
        self
    }

    /// The same kind without a `/status` subresource: its status is a member like any other.
    #[must_use]
    pub fn without_status(mut self) -> Self {
        self.status = Status::None;
        self
    }

    /// The same kind with a `/scale` subresource, and where an object has what that shows: how many replicas are wanted, how
    /// many there are, and the selector as a text (`""` for none). Paths are like `spec.replicas`.
    #[must_use]
    pub fn with_scale(
        mut self,
        wanted: &'static str,
        counted: &'static str,
        selector: &'static str,
    ) -> Self {
        self.scale = Some(Scale { wanted, counted, selector });
        self
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `replicasets.apps`, as messages call it.
    pub(crate) fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.to_string()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `ReplicaSet.apps`, as messages call it.
    pub(crate) fn group_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_string()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// The members that say what an object is, as they start its bytes.
    pub(crate) fn type_members(&self) -> String {
        format!("\"kind\":\"{}\",\"apiVersion\":\"{}\",", self.kind, self.api_version())
    }

    pub(crate) fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    pub(crate) fn has_status(&self) -> bool {
        self.status != Status::None
    }

    /// The path of the member that a subresource writes.
    pub(crate) fn part(&self, name: &str) -> Option<&'static str> {
        self.parts.iter().find(|(part, _)| *part == name).map(|(_, path)| *path)
    }

    pub(crate) fn action(&self, name: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// Whether `name` is a subresource of this kind.
    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        match name {
            "status" => self.has_status(),
            "finalize" => self.finalize.is_some(),
            "scale" => self.scale.is_some(),
            other if self.part(other).is_some() => true,
            other => self.action(other).is_some(),
        }
    }

    /// The key of an object in storage, and its place in the order of lists.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// The key as the real server's storage calls it; some messages show it.
    pub(crate) fn storage_key(&self, namespace: &str, name: &str) -> String {
        let key = self.key(namespace, name);
        if self.custom {
            format!("/registry/{}/{}/{key}", self.group, self.plural)
        } else {
            format!("/registry/{}/{key}", self.plural)
        }
    }

    /// The object as the real server encodes it: nothing unknown or empty, and what nobody said filled in.
    pub(crate) fn complete(&self, object: &mut Fields) {
        if let Some(known) = self.known_type() {
            tidy_kind(known, object);
        }
        for defaults in self.defaults {
            defaults.apply(object);
        }
        (self.derive)(object);
    }

    /// What its members may be; nothing is known of a custom resource.
    pub(crate) fn known_type(&self) -> Option<&'static Type> {
        if self.custom { None } else { Types::all().of_kind(&self.group, &self.kind) }
    }

    /// The first member of a wrong type.
    pub(crate) fn wrong_member(&self, object: &Fields) -> Option<Wrong> {
        wrong_member(self.known_type()?, object)
    }

    /// Names this kind's members as the kind that stores them does.
    pub(crate) fn rename_for_storage(&self, object: &mut Fields) {
        let renames = self.stored_as.map_or(&[][..], |home| home.renames);
        for (here, there) in renames {
            if let Some(value) = object.remove(*here) {
                object.insert((*there).to_owned(), value);
            }
        }
    }

    /// The way back.
    pub(crate) fn rename_from_storage(&self, object: &mut Fields) {
        let renames = self.stored_as.map_or(&[][..], |home| home.renames);
        for (here, there) in renames {
            if let Some(value) = object.remove(*there) {
                object.insert((*here).to_owned(), value);
            }
        }
        if let Some(known) = self.known_type().filter(|_| self.stored_as.is_some()) {
            tidy_kind(known, object);
        }
    }

    /// What is wrong with `object` beyond its metadata.
    pub(crate) fn check(&self, object: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
        (self.validate)(object, old, causes);
        let Some(old) = old else { return };
        for path in self.immutable {
            let (new, old) = (read_path(object, path), read_path(old, path));
            if new != old {
                causes.push(Cause::invalid(
                    *path,
                    new.unwrap_or(&Value::Null),
                    "field is immutable",
                ));
            }
        }
    }
}

// === impl FieldLabel ===

impl FieldLabel {
    pub(crate) fn read(&self, object: &Fields) -> String {
        let found = self.paths.iter().find_map(|path| read_path(object, path));
        match found {
            None => self.missing.to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }
}

/// The value at a path like `spec.nodeName`.
pub(crate) fn read_path<'a>(object: &'a Fields, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = object.get(parts.next()?)?;
    parts.try_fold(first, |value, part| value.get(part))
}

impl Kind {
    pub(crate) fn is(&self, group: &str, version: &str, plural: &str) -> bool {
        self.group == group && self.version == version && self.plural == plural
    }
}
