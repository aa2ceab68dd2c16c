//! [`ManagedFields`]: which manager owns which fields of an object, and the changes to that by
//! writes and by server-side apply.

mod conflict;
mod encoded_set;
mod entries;
mod last_applied;
mod owners;
mod renewal;
mod scale;
mod updater;
mod writer;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use homeostat_core::go_quote;
use serde_json::Value;

pub use self::conflict::{Conflict, Conflicts};
pub use self::entries::ManagedFieldsError;
pub use self::owners::{Applied, ApplyError};
pub use self::writer::{ConvertVersion, FieldWriter};
use crate::field_set::FieldSet;

/// The owners of an object's fields: `metadata.managedFields`.
///
/// # Examples
///
/// ```
/// use homeostat_schema::ManagedFields;
/// use serde_json::json;
///
/// let entries = json!([{
///     "manager": "kubectl", "operation": "Apply", "apiVersion": "v1",
///     "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
///     "fieldsV1": {"f:data": {"f:color": {}}},
/// }]);
/// let managed = ManagedFields::decode(&entries)?;
/// let (manager, owned) = managed.iter().next().unwrap();
/// assert_eq!((manager.name(), owned.fields().to_string()), ("kubectl", ".data.color".into()));
/// assert_eq!(managed.encode(), Some(entries));
/// # Ok::<(), homeostat_schema::ManagedFieldsError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedFields {
    /// No set is empty after an update or an apply.
    entries: BTreeMap<Manager, Owned>,
}

/// The identity of an entry of `managedFields`.
///
/// Managers sort by their identity's JSON text, as upstream sorts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    name: String,
    operation: Operation,
    /// Empty for [`Operation::Apply`]: an applier keeps its entry when it changes the version.
    api_version: String,
    subresource: String,
    /// True for the entry that a write to the scale adds to another one of the same manager.
    is_second: bool,
}

/// The kind of write that made a manager the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// The fields that one manager owns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owned {
    fields: FieldSet,
    /// The version whose fields these are.
    api_version: String,
    /// The time of the last change; `None` if the manager changed no value.
    time: Option<String>,
}

// === impl ManagedFields ===

impl ManagedFields {
    /// Creates an object without owners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `metadata.managedFields`.
    ///
    /// # Errors
    ///
    /// If an entry has no known operation, version or type, or its set does not parse.
    pub fn decode(entries: &Value) -> Result<Self, ManagedFieldsError> {
        entries::decode(entries)
    }

    /// Returns `metadata.managedFields`; `None` if there is no entry.
    pub fn encode(&self) -> Option<Value> {
        if self.is_empty() {
            return None;
        }
        serde_json::to_value(entries::sorted(self, FieldSet::to_fields_v1)).ok()
    }

    /// Reads the JSON text of `metadata.managedFields`. What does not parse has no owners.
    pub fn from_json(text: &str) -> Self {
        let entries: Value = serde_json::from_str(text).unwrap_or_default();
        Self::decode(&entries).unwrap_or_default()
    }

    /// Returns the JSON text of `metadata.managedFields`; `None` if there is no entry.
    pub fn to_json(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        Some(entries::join(&entries::sorted(self, FieldSet::to_json)))
    }

    /// Returns true if there is no manager.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the managers with what they own, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&Manager, &Owned)> {
        self.entries.iter()
    }

    /// Returns what a manager owns.
    pub fn get(&self, manager: &Manager) -> Option<&Owned> {
        self.entries.get(manager)
    }

    /// Returns true if both are equal, apart from times.
    pub fn is_same_except_times(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.iter().zip(other.iter()).all(|((a, owned_a), (b, owned_b))| {
                a == b
                    && owned_a.api_version == owned_b.api_version
                    && owned_a.fields == owned_b.fields
            })
    }

    /// Removes managers that own nothing.
    fn drop_empty(&mut self) {
        self.entries.retain(|_, owned| !owned.fields.is_empty());
    }
}

// === impl Manager ===

impl Manager {
    /// Creates the identity of a manager that applies. An empty name becomes `unknown`.
    pub fn applier(name: &str, subresource: &str) -> Self {
        Self::new(name, Operation::Apply, "", subresource)
    }

    /// Creates the identity of a manager that writes in `api_version`.
    pub fn updater(name: &str, api_version: &str, subresource: &str) -> Self {
        Self::new(name, Operation::Update, api_version, subresource)
    }

    fn new(name: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let name = if name.is_empty() { "unknown" } else { name };
        Self {
            name: name.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
            is_second: false,
        }
    }

    /// Returns the name, such as `kubectl`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of write.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Returns the subresource through which the manager writes; empty for the object.
    pub fn subresource(&self) -> &str {
        &self.subresource
    }

    /// Returns what orders managers: the names and texts of the identity's parts, without empty
    /// parts.
    fn sort_key(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let parts = [
            ("manager", self.name.as_str()),
            ("operation", self.operation.as_str()),
            ("apiVersion", self.api_version.as_str()),
            ("subresource", self.subresource.as_str()),
            ("time", if self.is_second { "0" } else { "" }),
        ];
        parts.into_iter().filter(|(_, value)| !value.is_empty())
    }
}

impl Ord for Manager {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut parts, mut others) = (self.sort_key(), other.sort_key());
        loop {
            let order = match (parts.next(), others.next()) {
                (None, None) => return Ordering::Equal,
                (Some((name, text)), Some((other_name, other_text))) => {
                    name.cmp(other_name).then_with(|| compare_as_json(text, other_text))
                }
                (part, other) => part.is_some().cmp(&other.is_some()),
            };
            if order.is_ne() {
                return order;
            }
        }
    }
}

impl PartialOrd for Manager {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Shows the manager as upstream's conflicts do: `"kubectl" using v1`.
impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&go_quote(&self.name))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", go_quote(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// Compares the JSON texts of two strings.
fn compare_as_json(a: &str, b: &str) -> Ordering {
    let is_escaped =
        |text: &str| text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'));
    if is_escaped(a) || is_escaped(b) {
        return Value::from(a).to_string().cmp(&Value::from(b).to_string());
    }
    // The closing quote sorts before most characters, but not before a space.
    a.bytes().chain([b'"']).cmp(b.bytes().chain([b'"']))
}

// === impl Operation ===

impl Operation {
    /// Returns the text in `managedFields`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

// === impl Owned ===

impl Owned {
    /// Returns the owned fields.
    pub fn fields(&self) -> &FieldSet {
        &self.fields
    }

    /// Returns the version whose fields these are.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Returns the time of the last change.
    pub fn time(&self) -> Option<&str> {
        self.time.as_deref()
    }
}

#[cfg(test)]
mod tests;
