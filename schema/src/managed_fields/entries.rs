//! The encoding of `metadata.managedFields`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::encoded_set::Rest;
use super::{ManagedFields, Manager, Operation, Owned};
use crate::field_set::{FieldSet, FieldsV1Error, write_quoted};

/// An entry of the owners with a set of the type `F`, as it is encoded: members sort by name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry<'e, F> {
    pub(super) api_version: &'e str,
    pub(super) fields_type: &'e str,
    pub(super) fields_v1: F,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) manager: &'e str,
    pub(super) operation: &'e str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) subresource: &'e str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) time: &'e str,
    /// The text that the entry was read from; `None` once it differs from that.
    #[serde(skip)]
    pub(super) encoded: Option<&'e str>,
}

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
        is_second: false,
    };
    let fields = match entry.get("fieldsV1") {
        None | Some(Value::Null) => FieldSet::new(),
        Some(set) => FieldSet::from_fields_v1(set)?,
    };
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((manager, Owned { fields, api_version, time }))
}

/// Returns the entries with encoded sets, sorted as upstream does.
pub(super) fn sorted<F>(
    owners: &ManagedFields,
    encode: impl Fn(&FieldSet) -> F,
) -> Vec<Entry<'_, F>> {
    let entry = |(manager, owned)| Entry::of(manager, owned, &encode);
    let mut entries: Vec<_> = owners.iter().map(entry).collect();
    entries.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    entries
}

/// Reads the entries, with encoded sets, from a text that
/// [`ManagedFields::to_json`](super::ManagedFields::to_json) has returned. `None` for another form,
/// and for a text with an escape.
pub(super) fn split(text: &str) -> Option<Vec<Entry<'_, &str>>> {
    let mut rest = Rest(text);
    let mut entries = Vec::new();
    let mut before = "[";
    while rest.skip(before) {
        before = ",";
        entries.push(Entry::read(&mut rest)?);
    }
    (rest.0 == "]").then_some(entries)
}

/// Writes entries with encoded sets.
pub(super) fn join<F: AsRef<str>>(entries: &[Entry<'_, F>]) -> String {
    // The members besides the set take some 150 bytes.
    let sizes = entries.iter().map(|entry| entry.fields_v1.as_ref().len() + 256);
    let mut text = String::with_capacity(sizes.sum());
    for entry in entries {
        text.push(if text.is_empty() { '[' } else { ',' });
        entry.write(&mut text);
    }
    text.push(']');
    text
}

// === impl Entry ===

impl<'e> Entry<'e, &'e str> {
    fn read(rest: &mut Rest<'e>) -> Option<Self> {
        let start = rest.0;
        let api_version = rest.text_after(r#"{"apiVersion":""#)?;
        let fields_type = rest.text_after(r#","fieldsType":""#)?;
        let fields_v1 = rest.skip(r#","fieldsV1":"#).then(|| rest.skip_set())??;
        let mut entry = Self {
            api_version,
            fields_type,
            fields_v1,
            manager: rest.text_after(r#","manager":""#)?,
            operation: rest.text_after(r#","operation":""#)?,
            subresource: rest.text_after(r#","subresource":""#)?,
            time: rest.text_after(r#","time":""#)?,
            encoded: None,
        };
        if !rest.skip("}") {
            return None;
        }
        entry.encoded = start.strip_suffix(rest.0);
        Some(entry)
    }
}

impl<F: AsRef<str>> Entry<'_, F> {
    fn write(&self, text: &mut String) {
        if let Some(encoded) = self.encoded {
            return text.push_str(encoded);
        }
        text.push_str(r#"{"apiVersion":"#);
        write_quoted("", self.api_version, text);
        text.push_str(r#","fieldsType":"#);
        write_quoted("", self.fields_type, text);
        text.push_str(r#","fieldsV1":"#);
        text.push_str(self.fields_v1.as_ref());
        let others = [
            (r#","manager":"#, self.manager),
            (r#","operation":"#, self.operation),
            (r#","subresource":"#, self.subresource),
            (r#","time":"#, self.time),
        ];
        for (before, value) in others.into_iter().filter(|(_, value)| !value.is_empty()) {
            text.push_str(before);
            write_quoted("", value, text);
        }
        text.push('}');
    }
}

impl<'e, F> Entry<'e, F> {
    fn of(manager: &'e Manager, owned: &'e Owned, encode: impl Fn(&FieldSet) -> F) -> Self {
        Self {
            api_version: &owned.api_version,
            fields_type: "FieldsV1",
            fields_v1: encode(&owned.fields),
            manager: &manager.name,
            operation: manager.operation.as_str(),
            subresource: &manager.subresource,
            time: owned.time.as_deref().unwrap_or_default(),
            encoded: None,
        }
    }

    /// Sorts appliers first, then by time, name, version and subresource. Times have one form, in
    /// UTC with seconds, so that texts compare as times do.
    pub(super) fn sort_key(&self) -> [&str; 5] {
        [self.operation, self.time, self.manager, self.api_version, self.subresource]
    }
}
