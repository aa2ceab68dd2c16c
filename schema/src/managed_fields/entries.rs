//! The encoding of `metadata.managedFields`.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::{ManagedFields, Manager, Operation, Owned};
use crate::field_set::{FieldSet, FieldsV1Error};

/// The reason why `metadata.managedFields` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    /// The value is not a list of objects.
    #[error("managedFields must be a list of objects")]
    NotAList,
    /// The operation is neither `Apply` nor `Update`.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// The version is missing.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// The type of the set is missing.
    #[error("missing fieldsType in managed fields entry {0}")]
    MissingFieldsType(usize),
    /// The type of the set is not `FieldsV1`.
    #[error("invalid fieldsType \"{fields_type}\" in managed fields entry {index}")]
    FieldsType {
        /// The position in the list.
        index: usize,
        /// The type found.
        fields_type: String,
    },
    /// The set does not parse.
    #[error("error decoding set: {0}")]
    Fields(#[from] FieldsV1Error),
}

pub(super) fn decode(entries: &Value) -> Result<ManagedFields, ManagedFieldsError> {
    let mut owners = ManagedFields::new();
    let list = match entries {
        Value::Null => return Ok(owners),
        Value::Array(list) => list,
        _ => return Err(ManagedFieldsError::NotAList),
    };
    for (index, entry) in list.iter().enumerate() {
        let entry = entry.as_object().ok_or(ManagedFieldsError::NotAList)?;
        let (manager, owned) = decode_entry(index, entry)?;
        owners.entries.insert(manager, owned);
    }
    Ok(owners)
}

fn decode_entry(
    index: usize,
    entry: &Map<String, Value>,
) -> Result<(Manager, Owned), ManagedFieldsError> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(ManagedFieldsError::Operation),
    };
    let api_version = text("apiVersion").to_owned();
    if api_version.is_empty() {
        return Err(ManagedFieldsError::ApiVersion);
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(ManagedFieldsError::MissingFieldsType(index)),
        other => {
            return Err(ManagedFieldsError::FieldsType { index, fields_type: other.to_owned() });
        }
    }
    let manager = Manager {
        name: text("manager").to_owned(),
        operation,
        api_version: match operation {
            Operation::Apply => String::new(),
            Operation::Update => api_version.clone(),
        },
        subresource: text("subresource").to_owned(),
    };
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::new(),
        Some(set) => FieldSet::from_fields_v1(set)?,
    };
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((manager, Owned { fields, api_version, time }))
}

pub(super) fn encode(owners: &ManagedFields) -> Option<Value> {
    let mut entries: Vec<(&Manager, &Owned)> = owners.iter().collect();
    entries.sort_by(|(a, owned_a), (b, owned_b)| order(a, owned_a, b, owned_b));
    let list: Vec<Value> =
        entries.into_iter().map(|(manager, owned)| encode_entry(manager, owned)).collect();
    (!list.is_empty()).then_some(Value::Array(list))
}

/// Sorts as upstream: appliers first, then by time, name, version and subresource.
fn order(a: &Manager, owned_a: &Owned, b: &Manager, owned_b: &Owned) -> Ordering {
    // Both times have the same form, in UTC with seconds, so that texts compare as times do.
    let by_operation = a.operation.as_str().cmp(b.operation.as_str());
    by_operation
        .then_with(|| owned_a.time.cmp(&owned_b.time))
        .then_with(|| a.name.cmp(&b.name))
        .then_with(|| owned_a.api_version.cmp(&owned_b.api_version))
        .then_with(|| a.subresource.cmp(&b.subresource))
}

fn encode_entry(manager: &Manager, owned: &Owned) -> Value {
    let mut entry = Map::new();
    if !manager.name.is_empty() {
        entry.insert("manager".to_owned(), json!(manager.name));
    }
    entry.insert("operation".to_owned(), json!(manager.operation.as_str()));
    entry.insert("apiVersion".to_owned(), json!(owned.api_version));
    if let Some(time) = &owned.time {
        entry.insert("time".to_owned(), json!(time));
    }
    entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
    entry.insert("fieldsV1".to_owned(), owned.fields.to_fields_v1());
    if !manager.subresource.is_empty() {
        entry.insert("subresource".to_owned(), json!(manager.subresource));
    }
    Value::Object(entry)
}
