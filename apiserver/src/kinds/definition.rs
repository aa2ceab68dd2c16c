//! A version of a `CustomResourceDefinition`, and what it does to objects.

use std::sync::Arc;

use homeostat_core::go_quote;
use homeostat_schema::{FieldError, FieldErrorReason, Rules, Schema};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::columns::Scale;
use super::embedded;
use crate::fields::{Fields, read_path};
use crate::json_path::JsonPath;
use crate::object::without_owners;
use crate::status::Cause;

/// A version of a definition: what its objects are, beyond the columns of a [`Kind`](super::Kind).
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) names: Names,
    pub(crate) api_version: String,
    /// `openAPIV3Schema`, as its author wrote it. The text takes a tenth of the memory of its tree.
    pub(crate) document: String,
    pub(crate) schema: Schema,
    pub(super) rules: Rules,
    pub(crate) columns: Vec<PrinterColumn>,
    /// The warning for every request, if the version is deprecated.
    pub(crate) deprecation: Option<String>,
    /// Differs between any two schemas.
    pub(crate) form: u64,
    pub(super) selectable: Vec<String>,
    pub(super) family: Arc<Family>,
}

/// The part that the versions of a definition share.
#[derive(Debug)]
pub(super) struct Family {
    /// The apiVersion and the schema of each version.
    pub(super) schemas: Vec<(String, Schema)>,
    /// The paths of the selectable fields of all versions.
    pub(super) selectable: Vec<String>,
    /// The apiVersion of each version with a scale, and the path of its replicas.
    pub(super) replicas: Vec<(String, String)>,
    pub(super) retired: CancellationToken,
    /// The webhook that converts objects, as the definition describes it; `None` if they differ in
    /// their `apiVersion` alone.
    pub(super) webhook: Option<Value>,
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
        self.complete_stored(object);
        self.convert(object);
    }

    /// Completes a stored object by the schema of the version that it states.
    pub(crate) fn complete_stored(&self, object: &mut Fields) {
        let stored = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        complete(self.schema_of(stored), object);
    }

    /// Removes unknown members from an object of a version of the definition.
    pub(crate) fn prune_converted(&self, object: &mut Fields) {
        let stated = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let schema = self.schema_of(stated);
        with_value(object, |value| schema.prune(value));
    }

    /// Returns the schema of a version.
    fn schema_of(&self, api_version: &str) -> &Schema {
        let own = self.family.schemas.iter().find(|(version, _)| version == api_version);
        own.map_or(&self.schema, |(_, schema)| schema)
    }

    /// Returns the path of the replicas in a version, if it has a scale.
    pub(crate) fn replicas_path(&self, api_version: &str) -> Option<&str> {
        let found = self.family.replicas.iter().find(|(version, _)| version == api_version);
        found.map(|(_, path)| path.as_str())
    }

    /// Returns the webhook that converts objects, as the definition describes it; `None` if they
    /// differ in their `apiVersion` alone.
    pub(crate) fn webhook(&self) -> Option<&Value> {
        self.family.webhook.as_ref()
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

    /// Removes the nulls of an applied object that the real server does not read back from its
    /// storage: those of members that are not nullable. An object with others is invalid.
    pub(crate) fn forget_nulls(&self, object: &mut Fields) {
        with_value(object, |value| self.schema.prune_nulls(value));
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
