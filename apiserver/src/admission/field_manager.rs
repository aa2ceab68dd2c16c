//! The client that writes: it becomes an owner of the fields that it sets.
//!
//! The objects here have packed owners: see [`Stored::packed_fields`](crate::object::Stored).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use homeostat_schema::{
    Applied, ApplyError, ConvertVersion, Field, FieldSet, FieldWriter, ManagedFields, Object,
    PathElement, Schema, built_in,
};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::metadata_mut;
use super::target::Target;
use crate::fields::{Fields, set_or_remove};
use crate::kinds::{Kind, Status, in_version, other_versions};
use crate::types::{Type, Types};

/// The client that writes, as `managedFields` records it.
#[derive(Debug, Clone)]
pub(crate) struct FieldManager {
    pub(crate) name: String,
    /// Empty for a write to the object itself.
    pub(crate) subresource: String,
    pub(crate) target: Target,
    /// The time of the write, in RFC 3339.
    pub(crate) now: String,
    /// Converts objects to the versions of other managers; `None` if they differ in their
    /// `apiVersion` alone.
    pub(crate) converter: Option<Arc<Converter>>,
}

/// Converts objects to other versions of their kind.
pub(crate) type Converter = dyn ConvertVersion + Send + Sync;

/// Converts objects of built-in kinds to other versions.
#[derive(Debug)]
struct Versions;

/// An object and its scale.
#[derive(Debug)]
pub(crate) struct Scaled<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) object: &'a Fields,
    pub(crate) live: &'a Fields,
}

// === impl Scaled ===

impl Scaled<'_> {
    /// Returns the owners of the scale.
    fn of_scale(&self, owners: &ManagedFields) -> ManagedFields {
        owners.of_scale(&|version| replicas_path(self.kind, version))
    }

    fn owners(&self) -> ManagedFields {
        decode(stored(self.object))
    }

    fn with_owners(&self, before: &ManagedFields, scale: &ManagedFields) -> ManagedFields {
        let path = |version: &str| replicas_path(self.kind, version);
        before.with_scale(scale, &path, &self.kind.api_version())
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
        let known = Types::all().of_kind(group, version, kind);
        let empty = empty_of_type(known, &api_version, kind);
        let writer = self.unstored_writer(&api_version, &schema, &empty);
        writer.update(ManagedFields::new(), &empty, object).unwrap_or_default()
    }

    /// Sets the owners after an update by a client that keeps those of `old`.
    pub(super) fn update_kept(&self, kind: &Kind, before: &str, old: &Fields, new: &mut Fields) {
        let updated =
            self.with_writer(kind, &Fields::new(), |writer| writer.update_json(before, old, new));
        set(new, updated);
    }

    /// Returns the owners after an update; `None` if those of `old` stay.
    pub(super) fn update(
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
        let of_scale = scaled.of_scale(&before);
        let mut applied =
            self.with_scale_writer(|writer| writer.apply(of_scale, scaled.live, config, force))?;
        applied.owners = scaled.with_owners(&before, &applied.owners);
        Ok(applied)
    }

    /// Returns the owners of a scale, as its client sees them in a patch.
    pub(crate) fn owners_of_scale(scaled: &Scaled<'_>) -> Option<Value> {
        scaled.of_scale(&scaled.owners()).encode()
    }

    /// Returns the owners of an object after a write to its scale that is no apply; `None` if they
    /// stay.
    pub(crate) fn update_scale(&self, scaled: &Scaled<'_>, new: &Fields) -> Option<ManagedFields> {
        let before = scaled.owners();
        let of_scale = scaled.of_scale(&before);
        if of_scale.is_empty() {
            return Some(before);
        }
        let after =
            self.with_scale_writer(|writer| writer.update(of_scale, scaled.live, new)).ok()?;
        Some(scaled.with_owners(&before, &after))
    }

    fn with_scale_writer<T>(&self, run: impl FnOnce(FieldWriter<'_>) -> T) -> T {
        let (api_version, kind) = ("autoscaling/v1", "Scale");
        let schema = built_in::schema_of("autoscaling", "v1", kind).unwrap_or_else(Schema::any);
        run(self.unstored_writer(api_version, &schema, &type_members(api_version, kind)))
    }

    /// Returns the writer of an object that is not stored, so it has one version and no status.
    fn unstored_writer<'a>(
        &'a self,
        api_version: &'a str,
        schema: &'a Schema,
        empty: &'a Fields,
    ) -> FieldWriter<'a> {
        FieldWriter {
            manager: &self.name,
            api_version,
            subresource: &self.subresource,
            now: &self.now,
            schema,
            other_versions: &[],
            converter: None,
            empty,
            reset: const { &FieldSet::new() },
        }
    }

    fn with_writer<T>(
        &self,
        kind: &Kind,
        empty: &Fields,
        run: impl FnOnce(FieldWriter<'_>) -> T,
    ) -> T {
        let api_version = kind.api_version();
        let schema = schema_of(kind);
        let built_in = other_versions(kind).map(|other| (other.api_version(), schema_of(other)));
        let built_in: Vec<(String, Schema)> = built_in.collect();
        let others = match &kind.definition {
            Some(definition) => definition.other_versions(),
            None => built_in.iter().map(|(version, schema)| (version.as_str(), schema)).collect(),
        };
        let converter = self.converter.as_deref().map(|converter| converter as _);
        run(FieldWriter {
            manager: &self.name,
            api_version: &api_version,
            subresource: &self.subresource,
            now: &self.now,
            schema: &schema,
            other_versions: &others,
            converter: converter.or_else(|| (!built_in.is_empty()).then_some(&Versions as _)),
            empty,
            reset: &reset_fields(kind, self.target),
        })
    }
}

impl ConvertVersion for Versions {
    fn convert(&self, object: &Fields, api_version: &str) -> Result<Fields, String> {
        in_version(object, api_version)
            .ok_or_else(|| format!("no kind is registered for {api_version}"))
    }
}

/// Returns the path of the replicas in an object of a kind in a version; `None` if that has no
/// scale.
pub(crate) fn replicas_path(kind: &Kind, api_version: &str) -> Option<Vec<PathElement>> {
    let path = match &kind.definition {
        Some(definition) => definition.replicas_path(api_version)?,
        None => &*kind.scale.as_ref()?.wanted,
    };
    Some(path.split('.').map(PathElement::field).collect())
}

/// Returns the text of the owners of a stored object.
pub(super) fn stored(object: &Fields) -> Option<&str> {
    object.get("metadata")?.get("managedFields")?.as_str()
}

pub(super) fn decode(owners: Option<&str>) -> ManagedFields {
    owners.map(ManagedFields::from_json).unwrap_or_default()
}

/// Sets the packed owners; `None` removes those that the object has.
pub(super) fn set(object: &mut Fields, owners: Option<String>) {
    set_or_remove(metadata_mut(object), "managedFields", owners.map(Value::String));
}

/// Returns an object with only the members that each object of the kind has.
pub(crate) fn empty_object(kind: &Kind) -> Fields {
    empty_of_type(kind.known_type(), &kind.api_version(), &kind.kind)
}

fn empty_of_type(known: Option<&Type>, api_version: &str, kind: &str) -> Fields {
    let mut empty = known.map(|known| known.empty().clone()).unwrap_or_default();
    empty.extend(type_members(api_version, kind));
    empty
}

/// Returns the members that state the type of an object.
fn type_members(api_version: &str, kind: &str) -> Fields {
    let members = [("apiVersion", api_version), ("kind", kind)];
    members.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect()
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
        (Target::Object, Status::Subresource { .. }) => kind.reset,
        (Target::Finalize, Status::Subresource { .. }) => &["status"],
        (Target::Part(path), _) => kind.part_reset(path),
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
