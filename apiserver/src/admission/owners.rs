//! Field ownership: what a write does to `metadata.managedFields`.
//!
//! The objects here have packed owners: see [`Stored::packed_fields`](crate::object::Stored).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use homeostat_schema::{
    Applied, ApplyError, Field, FieldSet, FieldWriter, ManagedFields, Object, PathElement, Schema,
    built_in,
};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::target::Target;
use super::{meta_text, metadata_mut};
use crate::fields::{Fields, set_or_remove};
use crate::kinds::managers::managers_of;
use crate::kinds::{Kind, Status};
use crate::types::normalize_kind;

/// The client that writes, as `managedFields` records it.
#[derive(Debug, Clone)]
pub(crate) struct FieldManager {
    pub(crate) name: String,
    /// Empty for a write to the object itself.
    pub(crate) subresource: String,
    pub(crate) target: Target,
    /// The time of the write, in RFC 3339.
    pub(crate) now: String,
}

/// The owners after a write.
#[derive(Debug, Clone)]
pub(crate) enum Ownership {
    /// The writer owns what it changes.
    Tracked(FieldManager),
    /// The owners that an apply led to.
    Known(ManagedFields),
    /// The owners after admission by webhooks or policies.
    Admitted(Admitted),
    /// The server changes the object itself: the owners stay.
    Kept,
}

/// The owners that webhooks or policies left.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub(crate) owners: ManagedFields,
    /// The owners as they left them, in their order; null if those before admission count.
    pub(crate) given: Value,
    /// The time of the write.
    pub(crate) now: String,
}

/// An object and its scale.
#[derive(Debug)]
pub(crate) struct Scaled<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) object: &'a Fields,
    /// The path of the replicas in the object.
    pub(crate) replicas: &'a str,
    pub(crate) live: &'a Fields,
}

// === impl Scaled ===

impl Scaled<'_> {
    fn path(&self) -> Vec<PathElement> {
        self.replicas.split('.').map(PathElement::field).collect()
    }

    fn owners(&self) -> ManagedFields {
        decode(stored(self.object))
    }

    fn with_owners(&self, before: &ManagedFields, scale: &ManagedFields) -> ManagedFields {
        before.with_scale(scale, &self.path(), &self.kind.api_version())
    }
}

// === impl Ownership ===

impl Ownership {
    /// Returns the time of the write, if a client makes it.
    pub(super) fn now(&self) -> Option<&str> {
        match self {
            Self::Tracked(manager) => Some(&manager.now),
            Self::Admitted(admitted) => Some(&admitted.now),
            Self::Known(_) | Self::Kept => None,
        }
    }

    /// Returns the owners of `object` that are checked: those that a webhook or a policy left, or
    /// that the client sent.
    pub(super) fn given<'a>(&'a self, object: &'a Fields, is_sent: bool) -> Option<&'a Value> {
        match self {
            Self::Admitted(admitted) => Some(&admitted.given),
            _ if is_sent => managers_of(object),
            _ => None,
        }
    }

    /// Sets the owners of a new object; `requested` is what the client sent as `managedFields`.
    pub(crate) fn of_new(&self, kind: &Kind, object: &mut Fields, requested: Option<&Value>) {
        let owners = match self {
            Self::Tracked(manager) if kind.stored_as.is_some() => {
                manager.create(kind, &shown_as(kind, object), requested).to_json()
            }
            Self::Tracked(manager) => manager.create(kind, object, requested).to_json(),
            Self::Known(owners) | Self::Admitted(Admitted { owners, .. }) => owners.to_json(),
            Self::Kept => return,
        };
        set(object, owners);
    }

    /// Sets the owners of an object that replaces `old`. Both are in the form in which they are
    /// stored; the client owns the members of the kind that it used.
    pub(crate) fn of_changed(
        &self,
        kind: &Kind,
        old: &Fields,
        new: &mut Fields,
        requested: Option<&Value>,
    ) {
        if kind.stored_as.is_none() {
            return self.of_changed_as(kind, old, new, requested);
        }
        let mut shown = shown_as(kind, new);
        self.of_changed_as(kind, &shown_as(kind, old), &mut shown, requested);
        move_owners(&mut shown, new);
    }

    fn of_changed_as(
        &self,
        kind: &Kind,
        old: &Fields,
        new: &mut Fields,
        requested: Option<&Value>,
    ) {
        let before = stored(old);
        let is_same = is_same_content(old, new);
        let keeps = requested.is_none_or(|sent| before == Some(sent.to_string().as_str()));
        if let Self::Tracked(manager) = self
            && keeps
            && !is_same
        {
            if let Some(before) = before {
                manager.update_kept(kind, before, old, new);
            }
            return;
        }
        let owners = match self {
            Self::Tracked(_) if is_same && keeps => None,
            Self::Tracked(manager) => manager.update(kind, old, new, requested),
            Self::Known(owners) | Self::Admitted(Admitted { owners, .. }) => Some(owners.clone()),
            Self::Kept => None,
        };
        let Some(owners) = owners else { return set(new, before.map(str::to_owned)) };
        // A write that changes only times is no write.
        let is_noop = is_same && decode(before).is_same_except_times(&owners);
        set(new, if is_noop { before.map(str::to_owned) } else { owners.to_json() });
    }
}

// === impl FieldManager ===

impl FieldManager {
    /// Returns the owners of a new object.
    pub(crate) fn create(
        &self,
        kind: &Kind,
        object: &Fields,
        requested: Option<&Value>,
    ) -> ManagedFields {
        let before = requested.and_then(|sent| ManagedFields::decode(sent).ok());
        let before = before.unwrap_or_default();
        let empty = empty_object(kind);
        self.with_writer(kind, &empty, |writer| {
            writer.update(before.clone(), &empty, object).unwrap_or(before)
        })
    }

    /// Returns the owners of a new object of this group, version and kind, which is not stored.
    pub(crate) fn create_unstored(
        &self,
        (group, version, kind): (&str, &str, &str),
        object: &Fields,
    ) -> ManagedFields {
        let api_version =
            if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let schema = built_in::schema_of(group, version, kind).unwrap_or_else(Schema::any);
        let type_meta = [("apiVersion", &*api_version), ("kind", kind)];
        let type_meta = type_meta.map(|(name, text)| (name.to_owned(), json!(text)));
        let mut empty = Fields::from_iter(type_meta);
        empty.insert("spec".to_owned(), json!({}));
        let writer = FieldWriter {
            manager: &self.name,
            api_version: &api_version,
            subresource: &self.subresource,
            now: &self.now,
            schema: &schema,
            other_versions: &[],
            empty: &empty,
            reset: &FieldSet::new(),
        };
        writer.update(ManagedFields::new(), &empty, object).unwrap_or_default()
    }

    /// Sets the owners after an update by a client that keeps those of `old`.
    fn update_kept(&self, kind: &Kind, before: &str, old: &Fields, new: &mut Fields) {
        let updated =
            self.with_writer(kind, &Fields::new(), |writer| writer.update_json(before, old, new));
        set(new, updated);
    }

    /// Returns the owners after an update; `None` if those of `old` stay.
    fn update(
        &self,
        kind: &Kind,
        old: &Fields,
        new: &Fields,
        requested: Option<&Value>,
    ) -> Option<ManagedFields> {
        let live = || decode(stored(old));
        let before = match requested {
            // A subresource does not write the list.
            Some(_) if !self.subresource.is_empty() => live(),
            // The client resets the list: an empty one, or an empty entry. The metadata of a custom
            // object has no empty lists.
            Some(sent) if *sent == json!([]) && kind.definition.is_none() => ManagedFields::new(),
            Some(sent) if *sent == json!([{}]) => ManagedFields::new(),
            // Clients that do not know the field must not remove it.
            Some(sent) => match ManagedFields::decode(sent) {
                Ok(owners) if !owners.is_empty() => owners,
                _ => live(),
            },
            None => live(),
        };
        if before.is_empty() {
            // The object is not tracked; an apply starts it.
            return Some(before);
        }
        // Only the first apply needs the members that each object has.
        self.with_writer(kind, &Fields::new(), |writer| writer.update(before, old, new).ok())
    }

    /// Applies a configuration to `live`, or to nothing.
    pub(crate) fn apply(
        &self,
        kind: &Kind,
        live: Option<&Fields>,
        config: &Fields,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let empty = empty_object(kind);
        let mut live = live.unwrap_or(&empty).clone();
        let owners = decode(stored(&live));
        metadata_mut(&mut live).remove("managedFields");
        self.with_writer(kind, &empty, |writer| writer.apply(owners, &live, config, force))
    }

    /// Applies the configuration of a scale. Returns the new scale, if it changes, and the owners
    /// of the object after that.
    ///
    /// # Errors
    ///
    /// Returns the reason why the apply fails.
    pub(crate) fn apply_scale(
        &self,
        scaled: &Scaled<'_>,
        config: &Fields,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let before = scaled.owners();
        let of_scale = before.of_scale(&scaled.path());
        let mut applied =
            self.with_scale_writer(|writer| writer.apply(of_scale, scaled.live, config, force))?;
        applied.owners = scaled.with_owners(&before, &applied.owners);
        Ok(applied)
    }

    /// Returns the owners of an object after a write to its scale that is no apply; `None` if they
    /// stay.
    pub(crate) fn update_scale(&self, scaled: &Scaled<'_>, new: &Fields) -> Option<ManagedFields> {
        let before = scaled.owners();
        let of_scale = before.of_scale(&scaled.path());
        if of_scale.is_empty() {
            return None;
        }
        let after =
            self.with_scale_writer(|writer| writer.update(of_scale, scaled.live, new)).ok()?;
        Some(scaled.with_owners(&before, &after))
    }

    fn with_scale_writer<T>(&self, run: impl FnOnce(FieldWriter<'_>) -> T) -> T {
        let (api_version, kind) = ("autoscaling/v1", "Scale");
        let schema = built_in::schema_of("autoscaling", "v1", kind).unwrap_or_else(Schema::any);
        let type_meta = [("apiVersion", api_version), ("kind", kind)];
        let empty = type_meta.map(|(name, text)| (name.to_owned(), json!(text)));
        run(FieldWriter {
            manager: &self.name,
            api_version,
            subresource: &self.subresource,
            now: &self.now,
            schema: &schema,
            other_versions: &[],
            empty: &Fields::from_iter(empty),
            reset: &FieldSet::new(),
        })
    }

    fn with_writer<T>(
        &self,
        kind: &Kind,
        empty: &Fields,
        run: impl FnOnce(FieldWriter<'_>) -> T,
    ) -> T {
        let api_version = kind.api_version();
        let schema = schema_of(kind);
        let definition = kind.definition.as_ref();
        let others = definition.map(|definition| definition.other_versions()).unwrap_or_default();
        run(FieldWriter {
            manager: &self.name,
            api_version: &api_version,
            subresource: &self.subresource,
            now: &self.now,
            schema: &schema,
            other_versions: &others,
            empty,
            reset: &reset_fields(kind, self.target),
        })
    }
}

/// Returns the text of the owners of a stored object.
fn stored(object: &Fields) -> Option<&str> {
    object.get("metadata")?.get("managedFields")?.as_str()
}

fn decode(owners: Option<&str>) -> ManagedFields {
    owners.map(ManagedFields::from_json).unwrap_or_default()
}

/// Removes and returns the owners that a client sent.
pub(crate) fn take_requested(object: &mut Fields) -> Option<Value> {
    metadata_mut(object).remove("managedFields").filter(|sent| !sent.is_null())
}

/// Sets the packed owners; `None` removes those that the object has.
fn set(object: &mut Fields, owners: Option<String>) {
    set_or_remove(metadata_mut(object), "managedFields", owners.map(Value::String));
}

/// Returns a stored object as the kind shows it.
fn shown_as(kind: &Kind, stored: &Fields) -> Fields {
    let mut shown = stored.clone();
    kind.rename_from_storage(&mut shown);
    shown.insert("apiVersion".to_owned(), json!(kind.api_version()));
    shown
}

fn move_owners(from: &mut Fields, to: &mut Fields) {
    let owners = metadata_mut(from).remove("managedFields");
    set_or_remove(metadata_mut(to), "managedFields", owners);
}

/// Returns whether both objects are equal, apart from their owners. The last members differ most
/// often, as in [`are_equal`](crate::fields::are_equal).
fn is_same_content(old: &Fields, new: &Fields) -> bool {
    old.len() == new.len()
        && old.iter().rev().all(|(name, value)| match (name.as_str(), value, new.get(name)) {
            ("metadata", Value::Object(old), Some(Value::Object(new))) => {
                let differs = |(key, value): (&String, &Value)| {
                    key != "managedFields" && new.get(key) != Some(value)
                };
                let added =
                    |key: &&String| key.as_str() != "managedFields" && !old.contains_key(*key);
                !old.iter().any(differs) && new.keys().find(added).is_none()
            }
            (_, old, new) => Some(old) == new,
        })
}

/// Returns an object with only the members that each object of the kind has.
fn empty_object(kind: &Kind) -> Fields {
    let mut empty = Fields::new();
    if let Some(known) = kind.known_type() {
        normalize_kind(known, &mut empty);
    }
    empty.insert("apiVersion".to_owned(), json!(kind.api_version()));
    empty.insert("kind".to_owned(), json!(kind.kind));
    empty
}

/// Returns the schema that decides who owns what, and how configurations are merged.
pub(crate) fn schema_of(kind: &Kind) -> Schema {
    /// The schema of a custom resource that states none: only its metadata is known.
    static CUSTOM: LazyLock<Schema> = LazyLock::new(|| {
        let types = built_in::types();
        let metadata = types.find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let metadata = metadata.expect("the table has metadata");
        let object = Object::new([Field::new("metadata", metadata)]);
        Schema::new(Arc::clone(types), object.preserving_unknown_fields())
    });
    if let Some(definition) = &kind.definition {
        return definition.schema.clone();
    }
    built_in::schema_of(&kind.group, &kind.version, &kind.kind).unwrap_or_else(|| CUSTOM.clone())
}

/// Returns the fields that a write to `target` ignores (upstream's `GetResetFields`).
fn reset_fields(kind: &Kind, target: Target) -> Arc<FieldSet> {
    /// The sets by their paths, of which the table of kinds has some ten lists.
    static SETS: RwLock<BTreeMap<&[&str], Arc<FieldSet>>> = RwLock::new(BTreeMap::new());
    let paths: &'static [&'static str] = match (target, kind.status) {
        (Target::Object | Target::Finalize, Status::Subresource { .. }) => &["status"],
        (Target::Status, Status::Subresource { kept: ["*"], .. }) => &["metadata", "spec"],
        (Target::Status, Status::Subresource { kept, .. }) => kept,
        _ => &[],
    };
    if let Some(set) = SETS.read().get(paths) {
        return Arc::clone(set);
    }
    let mut reset = FieldSet::new();
    for path in paths {
        let elements: Vec<PathElement> = path.split('.').map(PathElement::field).collect();
        reset.insert(&elements);
    }
    let reset = Arc::new(reset);
    SETS.write().insert(paths, Arc::clone(&reset));
    reset
}

/// Returns the group, version and kind as upstream's messages show them.
pub(crate) fn type_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Returns the object as upstream's messages show it: its namespace, name and type.
pub(crate) fn object_text(object: &Fields) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let of = type_text(text("apiVersion"), text("kind"));
    format!("{}/{}; {of}", meta_text(object, "namespace"), meta_text(object, "name"))
}
