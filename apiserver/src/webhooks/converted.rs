//! The check of one converted object: a webhook may change everything but its identity and most of
//! its metadata.

use homeostat_schema::{aggregate, go_type};
use serde_json::{Value, json};

use super::review::text;
use crate::fields::{Fields, meta_text};
use crate::kinds::selectors;
use crate::status::Cause;

/// Checks a converted object, and restores the metadata that a webhook may not change. `of` is the
/// type of the original, for texts.
///
/// # Errors
///
/// Returns the rule that the object breaks.
pub(super) fn check(
    of: &str,
    (original, converted): (&Fields, &Value),
    to: &str,
) -> Result<Fields, String> {
    let returned = |why: String| format!("conversion webhook for {of} returned invalid {why}");
    let invalid = |why: String| returned(format!("object: {why}"));
    let at_index = |why: String| returned(format!("object at index 0: {why}"));
    let converted = match converted {
        Value::Object(converted) if !text(converted, "kind").is_empty() => converted,
        other => return Err(format!("Object 'Kind' is missing in '{other}'")),
    };
    for (what, member, expected) in
        [("groupVersion", "apiVersion", to), ("kind", "kind", text(original, "kind"))]
    {
        let got = text(converted, member);
        if got != expected {
            let why = format!("invalid {what} (expected {expected}, received {got})");
            return Err(at_index(why));
        }
    }
    for (what, member) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
        let (expected, got) = (meta_text(original, member), meta_text(converted, member));
        if got != expected {
            return Err(invalid(format!("must have the same {what}: {expected} != {got}")));
        }
    }
    let mut converted = converted.clone();
    let metadata = restored_metadata(original, converted.get("metadata"))
        .map_err(|why| returned(format!("metadata: {why}")))?;
    converted.insert("metadata".to_owned(), Value::Object(metadata));
    Ok(converted)
}

/// Returns the metadata of the original object with the labels and annotations of the converted
/// one.
fn restored_metadata(original: &Fields, converted: Option<&Value>) -> Result<Fields, String> {
    let converted = match converted {
        Some(Value::Object(metadata)) => metadata,
        None => return Err("missing metadata in converted object".to_owned()),
        Some(other) => {
            let kind = go_type(other);
            return Err(format!("invalid metadata of type {kind} in converted object"));
        }
    };
    let metadata = original.get("metadata").and_then(Value::as_object);
    let mut metadata = metadata.cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        match converted.get(name) {
            None | Some(Value::Null) => {
                metadata.remove(name);
            }
            Some(Value::Object(texts)) => {
                check_texts(name, texts, metadata.get(name))?;
                metadata.insert(name.to_owned(), json!(texts));
            }
            Some(other) => {
                let kind = go_type(other);
                return Err(format!("invalid metadata.{name} of type {kind} in converted object"));
            }
        }
    }
    Ok(metadata)
}

/// Checks labels or annotations. Those that did not change are not checked again.
fn check_texts(name: &str, texts: &Fields, before: Option<&Value>) -> Result<(), String> {
    if let Some((key, wrong)) = texts.iter().find(|(_, value)| !value.is_string()) {
        let kind = go_type(wrong);
        return Err(format!(
            "metadata.{name}[{key}] must be a string, but is {kind} in converted object"
        ));
    }
    if before.and_then(Value::as_object).map_or(texts.is_empty(), |before| before == texts) {
        return Ok(());
    }
    let (value, mut causes) = (Value::Object(texts.clone()), Vec::new());
    if name == "labels" {
        selectors::labels(&Value::Null, &value, "metadata.labels", &mut causes);
    } else {
        // The real server's path lacks the last letter, too.
        selectors::annotations(&value, "metadata.annotation", &mut causes);
    }
    if causes.is_empty() { Ok(()) } else { Err(aggregate(causes.iter().map(Cause::text))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(change: impl FnOnce(&mut Value)) -> Result<Value, String> {
        let metadata = json!({"name": "a", "uid": "u", "generation": 1, "labels": {"a": "b"}});
        let original = json!({"apiVersion": "g/v1", "kind": "K", "metadata": metadata, "old": 1});
        let mut converted = json!({"apiVersion": "g/v2", "kind": "K", "metadata": metadata});
        change(&mut converted);
        let checked = check("g/v1, Kind=K", (original.as_object().unwrap(), &converted), "g/v2");
        checked.map(Value::Object)
    }

    #[test]
    fn webhook_changes_only_labels_and_annotations_of_metadata() {
        let converted = checked(|object| {
            let metadata = json!({"name": "a", "uid": "u", "generation": 7, "finalizers": ["x"],
                "annotations": {"c": "d"}});
            object["metadata"] = metadata;
        });
        let kept = json!({"name": "a", "uid": "u", "generation": 1, "annotations": {"c": "d"}});
        assert_eq!(converted.unwrap()["metadata"], kept);
    }

    #[test]
    fn converted_object_keeps_its_identity() {
        let refused = |change: fn(&mut Value)| {
            let text = checked(change).unwrap_err();
            text.trim_start_matches("conversion webhook for g/v1, Kind=K returned ").to_owned()
        };
        assert_eq!(
            refused(|object| object["metadata"]["name"] = json!("b")),
            "invalid object: must have the same name: a != b"
        );
        assert_eq!(
            refused(|object| object["metadata"]["uid"] = json!("")),
            "invalid object: must have the same UID: u != "
        );
        assert_eq!(
            refused(|object| object["apiVersion"] = json!("g/v1")),
            "invalid object at index 0: invalid groupVersion (expected g/v2, received \
             g/v1)"
        );
        assert_eq!(
            refused(|object| object["metadata"]["labels"] = json!({"a": 1})),
            "invalid metadata: metadata.labels[a] must be a string, but is int64 in \
             converted object"
        );
        assert_eq!(
            refused(|object| object["metadata"]["labels"] = json!([])),
            "invalid metadata: invalid metadata.labels of type []interface {} in \
             converted object"
        );
    }
}
