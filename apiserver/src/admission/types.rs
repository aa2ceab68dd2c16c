//! The JSON types of the metadata's members, which all later code relies on.

use serde_json::Value;

use crate::fields::Fields;
use crate::go_json::kind_of;

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

/// Returns Go's error about the first member of the metadata that has the wrong type.
pub(crate) fn wrong_metadata(object: &Fields) -> Option<String> {
    let metadata = match object.get("metadata") {
        None | Some(Value::Null) => return None,
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            let found = kind_of(other);
            return Some(format!(
                "json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"
            ));
        }
    };
    MEMBERS.iter().find_map(|(name, expected)| {
        let value = metadata.get(*name).filter(|value| !value.is_null())?;
        expected.reject(name, value)
    })
}

impl Type {
    fn reject(self, name: &str, value: &Value) -> Option<String> {
        let path = format!("ObjectMeta.{name}");
        let reject = |wrong: &Value, expected: &str| Some(cannot(wrong, &path, expected));
        match (self, value) {
            (Self::Text, Value::String(_)) => None,
            (Self::Text, other) => reject(other, "string"),
            (Self::Map, Value::Object(members)) => members
                .values()
                .find(|value| !value.is_string())
                .and_then(|wrong| reject(wrong, "string")),
            (Self::Map, other) => reject(other, "map[string]string"),
            (Self::Texts, Value::Array(items)) => items
                .iter()
                .find(|item| !item.is_string())
                .and_then(|wrong| reject(wrong, "string")),
            (Self::Texts, other) => reject(other, "[]string"),
            (Self::Objects, Value::Array(items)) => items
                .iter()
                .find(|item| !item.is_object())
                .and_then(|wrong| reject(wrong, "v1.OwnerReference")),
            (Self::Objects, other) => reject(other, "[]v1.OwnerReference"),
        }
    }
}

fn cannot(value: &Value, path: &str, expected: &str) -> String {
    let found = kind_of(value);
    format!("json: cannot unmarshal {found} into Go struct field {path} of type {expected}")
}
