//! The row of a kind: a difference between two kinds is a column here, never a branch in a handler.

mod forms;
mod names;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::author::StatusWrite;
use super::columns::{
    Action, Admission, Allocate, Defaults, Dependents, FindDefault, Generation, Guard, Operations,
    Part, PartCheck, Protected, Relay, Resize, Review, Scale, Secured, Status, StoredAs,
};
use super::definition::Definition;
use super::limit_range::Limited;
use super::service_account::RunAs;
use super::signer::Issue;
use crate::access::User;
use crate::fields::{Fields, Paths, read_path};
use crate::names::NameCheck;
use crate::object::{Encoded, FieldLabel, Selectable};
use crate::plugin::{Addition, AdmissionPlugin, At, Off};
use crate::status::{Cause, ResourceName};
use crate::types::{Shape, Type, TypeMismatch, Types, wrong_member};

/// A kind that the server serves: a row of the table.
///
/// The built-in kinds are always served. [`Kind::custom`] makes the row of a custom resource, which
/// [`Builder::kind`](crate::Builder::kind) adds. Such a kind has no schema: nothing is validated,
/// pruned or defaulted.
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
    /// Checks a name.
    pub(crate) name: NameCheck,
    /// The status subresource, if the kind has one.
    pub(crate) status: Status,
    /// The members that a write to the object ignores, if the kind has a status subresource.
    pub(crate) reset: &'static [&'static str],
    pub(crate) generation: Generation,
    /// True if a PUT may omit the resourceVersion.
    pub(crate) unconditional_update: bool,
    /// True if a PUT may create an object.
    pub(crate) create_on_update: bool,
    /// True if a completed DELETE replies with the object, not with a Status.
    pub(crate) returns_deleted: bool,
    pub(crate) dependents: Dependents,
    /// True if a DELETE may name a whole collection.
    pub(crate) deletes_collections: bool,
    /// The field labels besides `metadata.name` and `metadata.namespace`.
    pub(crate) fields: &'static [FieldLabel],
    pub(crate) defaults: &'static [Defaults],
    /// True if a create checks the metadata by the rules of all kinds alone, and only if nothing
    /// else is wrong.
    pub(crate) lax_metadata: bool,
    /// True if a write to the status checks finalizers as one to the object does.
    pub(crate) status_checks_finalizers: bool,
    /// False if the real server has no watch cache of the kind: some reads have other errors then.
    pub(crate) cached: bool,
    /// Sets derived members, at each write.
    pub(crate) derive: fn(&mut Fields),
    /// Sets the members that only a create sets.
    pub(crate) prepare: fn(&mut Fields),
    /// Copies members from the stored object (the second) if an update omits them.
    pub(crate) inherits: fn(&mut Fields, &Fields),
    /// The lists among those that an update clears by an empty list.
    pub(crate) clearable: &'static [&'static str],
    /// The lists that are shown as null if they are empty, since the storage does not distinguish
    /// them. A client that sends an empty one owns it.
    pub(crate) null_if_empty: &'static [&'static str],
    /// Allocates the fields that are unique in the kind, such as cluster IPs. The second object is
    /// the stored object of an update.
    pub(crate) allocate: Option<Allocate>,
    pub(crate) validate: fn(&Fields, Option<&Fields>, &mut Vec<Cause>),
    /// Checks that the author of a write to the status may make its changes.
    pub(crate) permits: fn(&StatusWrite<'_>, &mut Vec<Cause>),
    /// Paths that an update may not change.
    pub(crate) immutable: &'static [&'static str],
    /// The default grace period of a delete, in seconds.
    pub(crate) grace: Option<fn(&Fields, Option<i64>) -> i64>,
    /// Changes an object when a delete marks it.
    pub(crate) on_mark: fn(&mut Fields),
    /// A list of names that, as finalizers do, keeps a deleted object until `/finalize` has emptied
    /// it.
    pub(crate) finalize: Option<&'static str>,
    /// The paths of the numbers in `/scale`, if the kind has it.
    pub(crate) scale: Option<Scale>,
    /// The rules of `/resize`, if the kind has it.
    pub(crate) resize: Option<Resize>,
    /// Subresources that write one member.
    pub(crate) parts: &'static [Part],
    /// The admission that looks at other objects, in turn.
    pub(crate) admissions: Cow<'static, [Admission]>,
    /// The members that admission adds without looking at other objects.
    pub(crate) additions: Cow<'static, [Addition]>,
    /// The admission that checks complete objects, in turn.
    pub(crate) guards: Cow<'static, [Guard]>,
    /// Returns the certificate that a write issues.
    pub(crate) issue: fn(&Fields, &Fields) -> Option<Issue>,
    /// The number by which the rows of a table are sorted; `None` if they are in the list's order.
    pub(crate) row_rank: Option<fn(&Fields) -> i64>,
    /// Finds the default among the objects of a list, which a table marks.
    pub(crate) find_default: Option<FindDefault>,
    /// The rules of limit ranges, if they apply to the kind.
    pub(crate) limited: Option<Limited>,
    pub(crate) run_as: Option<RunAs>,
    /// The effect of pod security, if it has one.
    pub(crate) secured: Option<Secured>,
    /// Returns the warnings about a new object as the client sent it.
    pub(crate) warn_sent: fn(&Fields) -> Vec<String>,
    /// Returns the warnings for a client that writes the object.
    pub(crate) warn: fn(&Fields, Option<&Fields>) -> Vec<String>,
    /// Returns the warnings for a client that writes the status.
    pub(crate) warn_status: fn(&Fields) -> Vec<String>,
    /// Adds what the real server's conversion from its internal type adds to an empty object.
    pub(crate) convert_empty: fn(&mut Fields),
    /// The warning for a delete without a propagation policy.
    pub(crate) no_policy_warning: Option<&'static str>,
    /// The effects of POST on a subresource.
    pub(crate) actions: &'static [Action],
    /// The question that a create asks, if the objects of the kind are questions.
    pub(crate) review: Option<Review>,
    pub(crate) operations: Operations,
    /// The warning with each reply; empty if there is none.
    pub(crate) deprecation: &'static str,
    /// The subresource that a create is a POST to: nothing of this kind is stored.
    pub(crate) relay: Option<Relay>,
    /// Records the user who creates an object.
    pub(crate) record_author: fn(&mut Fields, &User),
    /// Sets the time of what an update of the stored object (the second) changes.
    pub(crate) record_time: fn(&mut Fields, &Fields, &str),
    /// The objects that cannot be deleted by name.
    pub(crate) protected: Option<Protected>,
    /// The kind that stores these objects, under other names.
    pub(crate) stored_as: Option<&'static StoredAs>,
    /// The version of a `CustomResourceDefinition` that the row is made of.
    pub(crate) definition: Option<Arc<Definition>>,
}

// === impl Kind ===

impl Kind {
    pub(crate) fn is(&self, group: &str, version: &str, plural: &str) -> bool {
        self.plural == plural && self.group == group && self.version == version
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            [&*self.group, "/", &*self.version].concat()
        }
    }

    /// Returns the members `kind` and `apiVersion`, which start an object's bytes.
    pub(crate) fn type_members(&self) -> String {
        self.type_members_with(&self.api_version())
    }

    fn type_members_with(&self, api_version: &str) -> String {
        ["\"kind\":\"", &*self.kind, "\",\"apiVersion\":\"", api_version, "\","].concat()
    }

    /// Encodes an object for storage, without a resourceVersion.
    pub(crate) fn encode(&self, mut object: Fields) -> Encoded {
        let selectable = self.selectable(&object);
        let api_version = self.api_version();
        for (name, text) in [("kind", &*self.kind), ("apiVersion", &api_version)] {
            if object.get(name).is_none_or(|said| said != text) {
                object.insert(name.to_owned(), text.into());
            }
        }
        Encoded::new(&self.type_members_with(&api_version), selectable, object)
    }

    /// Returns the members of an object that selectors match.
    pub(crate) fn selectable(&self, object: &Fields) -> Selectable {
        let paths = &mut Paths::of(object);
        let mut values: Vec<String> = self.fields.iter().map(|field| field.read(paths)).collect();
        let mut form = 0;
        if let Some(definition) = &self.definition {
            form = definition.form;
            values.extend(definition.selectable_values(object));
        }
        Selectable::of(object, values, form)
    }

    /// Returns the position of a field label among the values of an object; `None` if the kind does
    /// not have the label.
    pub(crate) fn label_position(&self, label: &str) -> Option<usize> {
        let declared = self.fields.iter().position(|field| field.label == label);
        declared.or_else(|| self.definition.as_ref()?.selectable_position(label))
    }

    /// Returns true if the kind has field labels besides `metadata.name` and `metadata.namespace`.
    pub(crate) fn has_labels(&self) -> bool {
        !self.fields.is_empty()
    }

    pub(crate) fn has_status(&self) -> bool {
        self.status != Status::None
    }

    /// Returns the path of the member that a subresource writes.
    pub(crate) fn part(&self, name: &str) -> Option<&'static str> {
        self.parts.iter().find(|part| part.name == name).map(|part| part.path)
    }

    /// Returns the members that a write to one member ignores.
    pub(crate) fn part_reset(&self, path: &str) -> &'static [&'static str] {
        self.parts.iter().find(|part| part.path == path).map_or(&[], |part| part.reset)
    }

    /// Returns true if a write to one member may change labels and annotations, too.
    pub(crate) fn part_writes_metadata(&self, path: &str) -> bool {
        self.parts.iter().any(|part| part.path == path && part.writes_metadata)
    }

    /// Returns the check of a write to one member, if it has a check of its own.
    pub(crate) fn part_check(&self, path: &str) -> Option<PartCheck> {
        self.parts.iter().find(|part| part.path == path)?.validate
    }

    pub(crate) fn action(&self, name: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.name == name)
    }

    /// Returns true if `name` is a subresource of this kind.
    pub(crate) fn has_subresource(&self, name: &str) -> bool {
        match name {
            "status" => self.has_status(),
            "finalize" => self.finalize.is_some(),
            "scale" => self.scale.is_some(),
            "resize" => self.resize.is_some(),
            other if self.part(other).is_some() => true,
            other => self.action(other).is_some(),
        }
    }

    /// Returns the key of an object in storage, which also orders lists.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// Returns the object's key in the real server's etcd, which some messages show.
    pub(crate) fn storage_key(&self, namespace: &str, name: &str) -> String {
        let key = self.key(namespace, name);
        let prefix = match (&*self.group, &*self.plural) {
            ("", "endpoints") => "services/endpoints",
            ("", "nodes") => "minions",
            ("", "replicationcontrollers") => "controllers",
            ("", "services") => "services/specs",
            ("networking.k8s.io", "ingresses") => "ingress",
            (group @ ("apiextensions.k8s.io" | "apiregistration.k8s.io"), plural) => {
                return format!("/registry/{group}/{plural}/{key}");
            }
            (group, plural) if self.custom => return format!("/registry/{group}/{plural}/{key}"),
            (_, plural) => plural,
        };
        format!("/registry/{prefix}/{key}")
    }

    /// Returns the type of the kind; `None` for a custom resource.
    pub(crate) fn known_type(&self) -> Option<&'static Type> {
        if self.custom {
            return None;
        }
        Types::all().of_kind(&self.group, &self.version, &self.kind)
    }

    /// Returns the first member of a wrong type.
    pub(crate) fn wrong_member(&self, object: &Fields) -> Option<TypeMismatch> {
        wrong_member(self.known_type()?, object)
    }

    /// Checks `object`, except for its metadata. `check_embedded` checks that of the objects inside
    /// a custom object. Returns the warnings about what is accepted only because it did not change.
    pub(crate) fn check(
        &self,
        object: &Fields,
        old: Option<&Fields>,
        check_embedded: &dyn Fn(&mut Vec<Cause>),
        causes: &mut Vec<Cause>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        (self.validate)(object, old, causes);
        if let Some(definition) = &self.definition {
            let scale = self.scale.as_ref();
            warnings = definition.check((object, old), scale, check_embedded, causes);
        }
        let Some(old) = old else { return warnings };
        for path in self.immutable {
            let (new, old) = (read_path(object, path), read_path(old, path));
            if new != old {
                let none = self.none_at(path);
                causes.push(Cause::invalid(*path, new.unwrap_or(&none), "field is immutable"));
            }
        }
        warnings
    }

    /// Returns true if the finalizers of an object need no domain. The real server checks them by
    /// the rules for core objects or by those for all objects.
    pub(crate) fn has_any_finalizer(&self) -> bool {
        self.custom
            || self.lax_metadata
            || matches!(
                &*self.group,
                "admissionregistration.k8s.io"
                    | "apiextensions.k8s.io"
                    | "apiregistration.k8s.io"
                    | "coordination.k8s.io"
            )
    }

    /// Returns the value of a missing member, as the server's own version has it.
    fn none_at(&self, path: &str) -> Value {
        let mut known = self.known_type();
        for name in path.split('.') {
            let shape = known.and_then(|known| known.member(name)).map(|member| &member.shape);
            known = match shape {
                Some(Shape::Text) => return "".into(),
                Some(Shape::Object(id)) => Some(Types::all().get(*id)),
                _ => None,
            };
        }
        Value::Null
    }

    /// Adds to an object what the plugins of the kind add at a write.
    pub(crate) fn add(&self, at: At, object: &mut Fields, old: Option<&Fields>) {
        let due = |addition: &&Addition| addition.at == At::Write || at == At::Create;
        self.additions.iter().filter(due).for_each(|addition| (addition.apply)(object, old));
    }

    /// Switches plugins off.
    pub(super) fn switch_off(&mut self, off: &Off) {
        self.additions.to_mut().retain(|addition| !off.contains(&addition.plugin));
        self.admissions.to_mut().retain(|admission| !off.contains(&admission.plugin));
        self.guards.to_mut().retain(|guard| !off.contains(&guard.plugin));
        let is_on = |plugin| !off.contains(&plugin);
        self.limited = self.limited.filter(|_| is_on(AdmissionPlugin::LimitRanger));
        self.secured = self.secured.filter(|_| is_on(AdmissionPlugin::PodSecurity));
        self.protected = self.protected.filter(|protected| protected.plugin.is_none_or(is_on));
    }
}

// === impl ResourceName ===

impl<'a> From<&'a Kind> for ResourceName<'a> {
    fn from(kind: &'a Kind) -> Self {
        let Kind { group, kind: name, plural, custom, .. } = kind;
        Self { group, kind: name, plural, custom: *custom }
    }
}

impl<'a> From<&'a Arc<Kind>> for ResourceName<'a> {
    fn from(kind: &'a Arc<Kind>) -> Self {
        (&**kind).into()
    }
}
