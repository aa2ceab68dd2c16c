//! The JSON types of the metadata's members, which all later code relies on.

use serde_json::Value;

use crate::fields::Fields;
use crate::go_json::kind_of;
use crate::types::{Types, wrong_member};

/// Returns Go's error about the first member of the metadata of a custom object that has the wrong
/// type.
pub(crate) fn wrong_metadata(object: &Fields) -> Option<String> {
    match object.get("metadata") {
        None | Some(Value::Null) => None,
        Some(Value::Object(metadata)) => {
            wrong_member(Types::all().metadata(), metadata).map(|wrong| wrong.decoded)
        }
        Some(other) => {
            let found = kind_of(other);
            Some(format!("json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_member_of_a_wrong_type_is_reported() {
        let wrong = |metadata: Value| {
            let object = Fields::from_iter([("metadata".to_owned(), metadata)]);
            wrong_metadata(&object).unwrap_or_default()
        };
        let cannot = "json: cannot unmarshal";
        for (metadata, expected) in [
            (json!({"name": "a", "labels": {"a": "b"}, "generation": 1, "x": 1}), String::new()),
            (json!(null), String::new()),
            (json!("a"), format!("{cannot} string into Go value of type v1.ObjectMeta")),
            (
                json!({"name": 1, "labels": [], "generation": "x"}),
                format!("{cannot} string into Go struct field ObjectMeta.generation of type int64"),
            ),
            (
                json!({"uid": 1}),
                format!("{cannot} number into Go struct field ObjectMeta.uid of type types.UID"),
            ),
            (
                json!({"ownerReferences": [{"kind": 1}]}),
                format!(
                    "{cannot} number into Go struct field OwnerReference.ownerReferences.kind of \
                     type string"
                ),
            ),
        ] {
            assert_eq!(wrong(metadata.clone()), expected, "{metadata}");
        }
    }
}
