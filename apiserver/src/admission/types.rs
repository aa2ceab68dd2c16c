//! The JSON types of the metadata's members, which everything after relies on.

use serde_json::Value;

use crate::{go_json::kind_of, object::Fields};

#[derive(Debug, Clone, Copy)]
enum Type {
    Text,
    Map,
    Texts,
    Objects,
}

const MEMBERS: [(&str, Type); 12] = [
    ("name", Type::Text),
    ("generateName", Type::Text),
    ("namespace", Type::Text),
    ("uid", Type::Text),
    ("resourceVersion", Type::Text),
    ("selfLink", Type::Text),
    ("creationTimestamp", Type::Text),
    ("deletionTimestamp", Type::Text),
    ("labels", Type::Map),
    ("annotations", Type::Map),
    ("finalizers", Type::Texts),
    ("ownerReferences", Type::Objects),
];

/// Finds the first member of the metadata that is not what it must be, and says so as Go's decoder does.
pub(crate) fn wrong_metadata(object: &Fields) -> Option<String> {
    let metadata = match object.get("metadata") {
        None | Some(Value::Null) => return None,
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Some(cannot(other, "metadata", "v1.ObjectMeta")),
    };
    MEMBERS.iter().find_map(|(name, expected)| {
        let value = metadata.get(*name).filter(|value| !value.is_null())?;
        expected.refuse(name, value)
    })
}

impl Type {
    fn refuse(self, name: &str, value: &Value) -> Option<String> {
        let path = format!("ObjectMeta.metadata.{name}");
        let refuse = |wrong: &Value, expected: &str| Some(cannot(wrong, &path, expected));
        match (self, value) {
            (Self::Text, Value::String(_)) => None,
            (Self::Text, other) => refuse(other, "string"),
            (Self::Map, Value::Object(members)) => members
                .values()
                .find(|value| !value.is_string())
                .and_then(|wrong| refuse(wrong, "string")),
            (Self::Map, other) => refuse(other, "map[string]string"),
            (Self::Texts, Value::Array(items)) => items
                .iter()
                .find(|item| !item.is_string())
                .and_then(|wrong| refuse(wrong, "string")),
            (Self::Texts, other) => refuse(other, "[]string"),
            (Self::Objects, Value::Array(items)) => items
                .iter()
                .find(|item| !item.is_object())
                .and_then(|wrong| refuse(wrong, "v1.OwnerReference")),
            (Self::Objects, other) => refuse(other, "[]v1.OwnerReference"),
        }
    }
}

fn cannot(value: &Value, path: &str, expected: &str) -> String {
    let found = kind_of(value);
    format!("json: cannot unmarshal {found} into Go struct field {path} of type {expected}")
}
