//! The kinds of a `CustomResourceDefinition`: a row for each of its versions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use homeostat_schema::{Rules, Schema};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::columns::{Scale, Status};
use super::definition::{Definition, Family, Names, PrinterColumn, version_rank};
use super::kind::Kind;
use crate::fields::{Fields, read_path};
use crate::json_path::JsonPath;

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
    #[serde(default)]
    conversion: Conversion,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Conversion {
    strategy: String,
    webhook: Value,
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
            replicas: spec.replicas(),
            retired: CancellationToken::new(),
            webhook: spec.conversion.webhook(),
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

// === impl Spec ===

impl Spec {
    /// Returns the apiVersion of each version with a scale, and the path of its replicas.
    fn replicas(&self) -> Vec<(String, String)> {
        let scaled = self.versions.iter().filter_map(|version| {
            let scale = version.subresources.scale.as_ref()?;
            Some((format!("{}/{}", self.group, version.name), path_of(&scale.wanted)))
        });
        scaled.collect()
    }
}

// === impl Conversion ===

impl Conversion {
    /// Returns the webhook; `None` if it is not called.
    fn webhook(&self) -> Option<Value> {
        (self.strategy == "Webhook").then(|| self.webhook.clone())
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
