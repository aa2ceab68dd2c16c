//! [`FieldWriter`]: one manager's write, and the types of the object in all versions.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use crate::apply::{Duplicates, Type, validate_object};
use crate::field_set::FieldSet;
use crate::schema::Schema;

/// Converts objects to other versions of their kind: upstream's `ObjectConvertor`.
pub trait ConvertVersion: fmt::Debug {
    /// Returns an object, without `managedFields`, in another version.
    ///
    /// # Errors
    ///
    /// If the object cannot be converted; the text says why.
    fn convert(
        &self,
        object: &Map<String, Value>,
        api_version: &str,
    ) -> Result<Map<String, Value>, String>;
}

/// A write by one manager: upstream's `FieldManager`.
///
/// # Examples
///
/// ```
/// use homeostat_schema::{FieldSet, FieldWriter, ManagedFields, Schema};
/// use serde_json::json;
///
/// let schema = Schema::any();
/// let (reset, empty) = (FieldSet::new(), serde_json::Map::new());
/// let writer = FieldWriter {
///     manager: "painter",
///     api_version: "v1",
///     subresource: "",
///     now: "2026-01-02T03:04:05Z",
///     schema: &schema,
///     other_versions: &[],
///     converter: None,
///     empty: &empty,
///     reset: &reset,
/// };
/// let live = json!({"data": {"color": "red"}});
/// let config = json!({"data": {"shape": "circle"}});
/// let (live, config) = (live.as_object().unwrap(), config.as_object().unwrap());
/// let applied = writer.apply(ManagedFields::new(), live, config, false)?;
/// let object = applied.object.unwrap();
/// assert_eq!(object["data"], json!({"color": "red", "shape": "circle"}));
/// assert_eq!(applied.owners.iter().count(), 2);
/// # Ok::<(), homeostat_schema::ApplyError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct FieldWriter<'a> {
    /// The name of the manager.
    pub manager: &'a str,
    /// The version in which the manager writes, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource that it writes; empty for the object.
    pub subresource: &'a str,
    /// The time of the write, in RFC 3339 with seconds.
    pub now: &'a str,
    /// The type of the object in the version of the write.
    pub schema: &'a Schema,
    /// The other versions of the object that the server has, with their types.
    pub other_versions: &'a [(&'a str, &'a Schema)],
    /// Converts the object to another version; `None` if the versions differ only in the
    /// `apiVersion`.
    pub converter: Option<&'a dyn ConvertVersion>,
    /// The object with only the members that every object of the kind has. What an object has
    /// beyond it, before its first apply, has an owner of its own.
    pub empty: &'a Map<String, Value>,
    /// The fields that a write to this subresource does not change (upstream's `resetFields`).
    pub reset: &'a FieldSet,
}

/// An object in the version of a manager, with its type there.
pub(super) type Converted<'a, 'o> = (Type<'a>, Cow<'o, Map<String, Value>>);

// === impl FieldWriter ===

impl<'a> FieldWriter<'a> {
    /// Returns the type of the object in the version of the write.
    pub(super) fn root(&self) -> Type<'a> {
        Type::Root(self.schema.root())
    }

    /// Returns the type of the object in any version.
    pub(super) fn type_of(&self, api_version: &str) -> Option<Type<'a>> {
        if api_version == self.api_version {
            return Some(self.root());
        }
        let found = self.other_versions.iter().find(|(version, _)| *version == api_version);
        found.map(|(_, schema)| Type::Root(schema.root()))
    }

    /// Returns an object in the version of a manager, with its type; `None` if the server no longer
    /// has the version.
    ///
    /// # Errors
    ///
    /// If the object cannot be converted or has fields that the version lacks, or the version of a
    /// custom object is gone.
    pub(super) fn converted<'o>(
        &self,
        api_version: &str,
        object: &'o Map<String, Value>,
    ) -> Result<Option<Converted<'a, 'o>>, String> {
        let stated = object.get("apiVersion").and_then(Value::as_str);
        let is_own = match self.converter {
            Some(_) => stated.unwrap_or(self.api_version) == api_version,
            None => self.api_version == api_version,
        };
        let found = self.type_of(api_version);
        let Some(of) = found.filter(|_| !is_own) else {
            if found.is_none() && !self.schema.is_built_in() {
                let text = "request to convert CR to an invalid group/version";
                return Err(format!("{text}: {api_version}"));
            }
            return Ok(found.map(|of| (of, Cow::Borrowed(object))));
        };
        // The owners of a stored object are packed: they fit no type.
        let mut stripped = object.clone();
        if let Some(Value::Object(metadata)) = stripped.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        let Some(converter) = self.converter else {
            let checked = validate_object(of, &stripped, Duplicates::Refused);
            return match checked {
                Ok(()) => Ok(Some((of, Cow::Borrowed(object)))),
                Err(errors) => Err(errors.to_string()),
            };
        };
        let object = converter.convert(&stripped, api_version)?;
        validate_object(of, &object, Duplicates::Refused).map_err(|errors| errors.to_string())?;
        Ok(Some((of, Cow::Owned(object))))
    }
}
