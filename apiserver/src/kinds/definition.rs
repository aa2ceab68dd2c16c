//! The kinds of a `CustomResourceDefinition`: a row for each of its versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homeostat_core::go_quote;
use homeostat_schema::{FieldError, FieldErrorReason, Rules, Schema};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::columns::{Scale, Status};
use super::embedded;
use super::kind::Kind;
use crate::fields::{Fields, read_path};
use crate::json_path::JsonPath;
use crate::object::without_owners;
use crate::status::Cause;

/// A version of a definition: what its objects are, beyond the columns of [`Kind`].
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) names: Names,
    pub(crate) api_version: String,
    /// `openAPIV3Schema`, as its author wrote it. The text takes a tenth of the memory of its tree.
    pub(crate) document: String,
    pub(crate) schema: Schema,
    rules: Rules,
    pub(crate) columns: Vec<PrinterColumn>,
    /// The warning for every request, if the version is deprecated.
    pub(crate) deprecation: Option<String>,
    /// Differs between any two schemas.
    pub(crate) form: u64,
    selectable: Vec<String>,
    family: Arc<Family>,
}

/// The part that the versions of a definition share.
#[derive(Debug)]
struct Family {
    /// The apiVersion and the schema of each version.
    schemas: Vec<(String, Schema)>,
    /// The paths of the selectable fields of all versions.
    selectable: Vec<String>,
    retired: CancellationToken,
}

/// The names of a defined kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_field_names, reason = "they are the names of the API")]
pub(crate) struct Names {
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
}

/// A column of the kind's table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: JsonPath,
}

/// The rows of a definition.
#[derive(Debug)]
pub(crate) struct DefinedKinds {
    pub(crate) group: String,
    pub(crate) plural: String,
    /// Each version, and whether it is served.
    pub(crate) rows: Vec<(Arc<Kind>, bool)>,
    /// The row whose form stored objects have.
    pub(crate) home: Arc<Kind>,
    /// Cancelled when the definition changes or is deleted: ends the watches.
    pub(crate) retired: CancellationToken,
}

#[derive(Debug, Deserialize)]
struct Spec {
    group: String,
    scope: String,
    versions: Vec<Version>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Version {
    name: String,
    served: bool,
    storage: bool,
    deprecated: bool,
    deprecation_warning: Option<String>,
    schema: VersionSchema,
    subresources: Subresources,
    additional_printer_columns: Vec<Column>,
    selectable_fields: Vec<Selectable>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VersionSchema {
    #[serde(rename = "openAPIV3Schema")]
    document: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subresources {
    status: Option<Value>,
    scale: Option<ScalePaths>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ScalePaths {
    #[serde(rename = "specReplicasPath")]
    wanted: String,
    #[serde(rename = "statusReplicasPath")]
    counted: String,
    #[serde(rename = "labelSelectorPath")]
    selector: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    format: String,
    description: String,
    priority: i64,
    json_path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selectable {
    json_path: String,
}

const CREATED: &str = "CreationTimestamp is a timestamp representing the server time when this \
    object was created. It is not guaranteed to be set in happens-before order across separate \
    operations. Clients may not set this value. It is represented in RFC3339 form and is in \
    UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

// === impl DefinedKinds ===

impl DefinedKinds {
    /// Reads a definition; `None` if it is malformed, which validation has rejected before.
    pub(crate) fn of(definition: &Fields) -> Option<Self> {
        let spec: Spec = serde_json::from_value(definition.get("spec")?.clone()).ok()?;
        let names = read_path(definition, "status.acceptedNames")?;
        let names: Names = serde_json::from_value(names.clone()).ok()?;
        let schemas = spec.versions.iter().map(|version| {
            let api_version = format!("{}/{}", spec.group, version.name);
            (api_version, Schema::from_open_api(&version.schema.document))
        });
        let family = Arc::new(Family {
            schemas: schemas.collect(),
            selectable: spec.versions.iter().flat_map(Version::selectable).collect(),
            retired: CancellationToken::new(),
        });
        let rows = spec.versions.iter().zip(&family.schemas).map(|(version, schema)| {
            let definition = version.definition(&spec, &names, schema, &family);
            let kind = version.kind(&spec, &names, Arc::new(definition));
            (Arc::new(kind), version.served, version.storage)
        });
        let rows: Vec<_> = rows.collect();
        let home = rows.iter().find(|(.., storage)| *storage).map(|(kind, ..)| Arc::clone(kind))?;
        let rows = rows.into_iter().map(|(kind, served, _)| (kind, served)).collect();
        let retired = family.retired.clone();
        Some(Self { group: spec.group, plural: names.plural, rows, home, retired })
    }
}

// === impl Version ===

impl Version {
    fn selectable(&self) -> impl Iterator<Item = String> {
        self.selectable_fields.iter().map(|field| path_of(&field.json_path))
    }

    fn definition(
        &self,
        spec: &Spec,
        names: &Names,
        (api_version, schema): &(String, Schema),
        family: &Arc<Family>,
    ) -> Definition {
        static FORMS: AtomicU64 = AtomicU64::new(1);
        let stated = self.deprecation_warning.clone();
        let deprecation = self
            .deprecated
            .then(|| stated.unwrap_or_else(|| self.default_deprecation(spec, &names.kind)));
        Definition {
            names: names.clone(),
            api_version: api_version.clone(),
            document: self.schema.document.to_string(),
            schema: schema.clone(),
            rules: Rules::from_open_api(&self.schema.document),
            columns: self.columns(),
            deprecation,
            form: FORMS.fetch_add(1, Ordering::Relaxed),
            selectable: self.selectable().collect(),
            family: Arc::clone(family),
        }
    }

    /// Names the newest other version that is served and not deprecated.
    fn default_deprecation(&self, spec: &Spec, kind: &str) -> String {
        let (group, name) = (&spec.group, &self.name);
        let others = spec.versions.iter().filter(|other| other.served && !other.deprecated);
        let newer = others.map(|other| &other.name);
        let newer = newer.filter(|other| version_rank(other) > version_rank(name));
        match newer.max_by_key(|other| version_rank(other)) {
            Some(newest) => {
                format!("{group}/{name} {kind} is deprecated; use {group}/{newest} {kind}")
            }
            None => format!("{group}/{name} {kind} is deprecated"),
        }
    }

    fn columns(&self) -> Vec<PrinterColumn> {
        if self.additional_printer_columns.is_empty() {
            let path = JsonPath::parse(".metadata.creationTimestamp");
            let age = path.map(|path| PrinterColumn {
                name: "Age".to_owned(),
                kind: "date".to_owned(),
                format: String::new(),
                description: CREATED.to_owned(),
                priority: 0,
                path,
            });
            return age.into_iter().collect();
        }
        // The real server ignores all columns from the first one that it cannot read.
        self.additional_printer_columns.iter().map_while(Column::read).collect()
    }

    fn kind(&self, spec: &Spec, names: &Names, definition: Arc<Definition>) -> Kind {
        let group = spec.group.clone();
        let (plural, kind) = (names.plural.clone(), names.kind.clone());
        let mut row = Kind::custom(group, self.name.clone(), kind, plural);
        row.namespaced = spec.scope == "Namespaced";
        if self.subresources.status.is_none() {
            row.status = Status::None;
        }
        row.scale = self.subresources.scale.as_ref().map(|paths| Scale {
            wanted: path_of(&paths.wanted).into(),
            counted: path_of(&paths.counted).into(),
            selector: path_of(&paths.selector).into(),
        });
        row.definition = Some(definition);
        row
    }
}

// === impl Column ===

impl Column {
    fn read(&self) -> Option<PrinterColumn> {
        let description = match self.description.as_str() {
            "" => {
                let path = &self.json_path;
                format!("Custom resource definition column (in JSONPath format): {path}")
            }
            text => text.to_owned(),
        };
        Some(PrinterColumn {
            name: self.name.clone(),
            kind: self.kind.clone(),
            format: self.format.clone(),
            description,
            priority: self.priority,
            path: JsonPath::parse(&self.json_path)?,
        })
    }
}

/// `.spec.replicas` → `spec.replicas`
fn path_of(json_path: &str) -> String {
    json_path.strip_prefix('.').unwrap_or(json_path).to_owned()
}

/// Returns the rank of a version's name, as Kubernetes orders them: `v2` before `v1` before
/// `v1beta1` before `v1alpha1` before any other.
pub(crate) fn version_rank(name: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let parsed = || {
        let rest = name.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..end].parse().ok()?;
        let (stage, minor) = match &rest[end..] {
            "" => (3, "0"),
            rest if rest.starts_with("beta") => (2, &rest[4..]),
            rest if rest.starts_with("alpha") => (1, &rest[5..]),
            _ => return None,
        };
        Some((stage, major, minor.parse().ok()?))
    };
    let (stage, major, minor) = parsed().unwrap_or((0, 0, 0));
    let name = if stage == 0 { name } else { "" };
    (stage, major, minor, std::cmp::Reverse(name.to_owned()))
}

// === impl Definition ===

impl Definition {
    /// Removes nulls and fields that the schema does not name, and fills in defaults. Reports the
    /// removed fields: those of embedded metadata at the end.
    ///
    /// # Errors
    ///
    /// Fails if an embedded object has a type or metadata of a wrong type.
    pub(crate) fn complete(&self, object: &mut Fields) -> Result<Vec<String>, FieldError> {
        let removed = complete(&self.schema, object);
        let mut removed: Vec<String> =
            removed.iter().map(|path| format!("unknown field {}", go_quote(path))).collect();
        removed.extend(with_value(object, |value| embedded::normalize(&self.schema, value))?);
        Ok(removed)
    }

    /// Removes unknown members.
    pub(crate) fn prune(&self, object: &mut Fields) {
        with_value(object, |value| self.schema.prune(value));
    }

    /// Fills in defaults.
    pub(crate) fn set_defaults(&self, object: &mut Fields) {
        with_value(object, |value| self.schema.set_defaults(value));
    }

    /// Changes a stored object, which may be of another version or an earlier schema, to what this
    /// version shows of it.
    pub(crate) fn show(&self, object: &mut Fields) {
        let stored = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let schemas = self.family.schemas.iter();
        let own = schemas.clone().find(|(version, _)| *version == stored);
        let schema = own.map_or(&self.schema, |(_, schema)| schema);
        complete(schema, object);
        self.convert(object);
    }

    /// Changes an object of another version to one of this version.
    pub(crate) fn convert(&self, object: &mut Fields) {
        let api_version = json!(self.api_version);
        if object.get("apiVersion") == Some(&api_version) {
            return;
        }
        object.insert("apiVersion".to_owned(), api_version);
        with_value(object, |value| self.schema.prune(value));
    }

    /// Checks an object against the schema, the scale and the rules, in the order of the real
    /// server. Values that are as in `old` are not checked. `check_embedded` checks the metadata of
    /// the objects inside. Returns the warnings about rules that unchanged values break.
    pub(crate) fn check(
        &self,
        (object, old): (&Fields, Option<&Fields>),
        scale: Option<&Scale>,
        check_embedded: &dyn Fn(&mut Vec<Cause>),
        causes: &mut Vec<Cause>,
    ) -> Vec<String> {
        let shown = |object| Value::Object(without_owners(object));
        let (value, old) = (shown(object), old.map(shown));
        let errors = self.schema.validate_by_kind(&value, old.as_ref());
        causes.extend(errors.values.into_iter().map(Cause::from));
        causes.extend(scale.iter().flat_map(|scale| scale.check_object(object)));
        causes.extend(errors.embedded.into_iter().map(Cause::from));
        check_embedded(causes);
        causes.extend(errors.duplicates.into_iter().map(Cause::from));
        self.check_rules(&value, old.as_ref(), causes)
    }

    /// Checks the status of an object, as [`check`](Self::check) checks the object.
    pub(crate) fn check_status(
        &self,
        (object, old): (&Fields, &Fields),
        scale: Option<&Scale>,
        causes: &mut Vec<Cause>,
    ) -> Vec<String> {
        let shown = |object| Value::Object(without_owners(object));
        let (value, old) = (shown(object), shown(old));
        let errors = self.schema.validate_field("status", &value, Some(&old));
        let is_duplicate = |error: &FieldError| error.reason == FieldErrorReason::Duplicate;
        let (duplicates, errors): (Vec<_>, Vec<_>) = errors.into_iter().partition(is_duplicate);
        causes.extend(errors.into_iter().map(Cause::from));
        causes.extend(scale.iter().flat_map(|scale| scale.check_status(object)));
        causes.extend(duplicates.into_iter().map(Cause::from));
        self.check_rules(&value, Some(&old), causes)
    }

    /// Adds the errors of the rules, which need an object without certain other errors. The rules
    /// run once: returns their warnings.
    fn check_rules(
        &self,
        object: &Value,
        old: Option<&Value>,
        causes: &mut Vec<Cause>,
    ) -> Vec<String> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        if causes.iter().any(Cause::hides_rules) {
            let detail = "some validation rules were not checked because the object was invalid; \
                          correct the existing errors to complete validation";
            causes.push(Cause::invalid("<nil>", &Value::Null, detail));
            return Vec::new();
        }
        let verdict = self.rules.check(object, old);
        causes.extend(verdict.errors.into_iter().map(Cause::from));
        verdict.warnings.iter().map(ToString::to_string).collect()
    }

    /// Returns the paths and the metadata of the objects inside of an object.
    pub(crate) fn embedded_metadata(&self, object: &Fields) -> Vec<(String, Fields)> {
        embedded::metadata(&self.schema, object)
    }

    /// Returns the labels of the selectable fields of this version.
    pub(crate) fn selectable_labels(&self) -> &[String] {
        &self.selectable
    }

    /// Returns the schemas of the other versions, by apiVersion.
    pub(crate) fn other_versions(&self) -> Vec<(&str, &Schema)> {
        let all = self.family.schemas.iter().map(|(version, schema)| (version.as_str(), schema));
        all.filter(|(version, _)| *version != self.api_version).collect()
    }

    /// Returns the token that ends the watches when the definition changes or is deleted.
    pub(crate) fn retired(&self) -> &CancellationToken {
        &self.family.retired
    }

    /// Returns the values of the selectable fields of all versions.
    pub(crate) fn selectable_values(&self, object: &Fields) -> Vec<String> {
        let value = |path: &String| match read_path(object, path) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        self.family.selectable.iter().map(value).collect()
    }

    /// Returns the position of a selectable field of this version among the values.
    pub(crate) fn selectable_position(&self, label: &str) -> Option<usize> {
        self.selectable.iter().find(|path| *path == label)?;
        self.family.selectable.iter().position(|path| path == label)
    }
}

fn complete(schema: &Schema, object: &mut Fields) -> Vec<String> {
    with_value(object, |value| {
        schema.prune_nulls(value);
        schema.set_defaults(value);
        schema.prune(value)
    })
}

/// Calls `change` with the object as a value.
fn with_value<T>(object: &mut Fields, change: impl FnOnce(&mut Value) -> T) -> T {
    let mut value = Value::Object(std::mem::take(object));
    let result = change(&mut value);
    if let Value::Object(fields) = value {
        *object = fields;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::version_rank;

    #[test]
    fn versions_are_ordered_by_stage_then_number() {
        let ordered = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
        ];
        let mut names = ordered.to_vec();
        names.reverse();
        names.sort_by_key(|name| std::cmp::Reverse(version_rank(name)));
        assert_eq!(names, ordered);
    }
}
