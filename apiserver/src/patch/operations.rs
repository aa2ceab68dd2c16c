//! The JSON patches of mutating webhooks and policies, with the texts of the library that the real
//! server uses.

use serde_json::Value;

use super::PatchKind;
use crate::go_json::{kind_of, syntax_error};

/// The reason why a patch does not apply.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct OperationError {
    text: String,
    /// True if an operation `test` finds another value.
    pub(crate) is_failed_test: bool,
}

/// Reads the operations of a patch.
///
/// # Errors
///
/// Returns the reason why it is none.
pub(crate) fn read_operations(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let wrong = |found: &Value, wanted: &str| {
        format!(
            "json: cannot unmarshal {} into Go value of type jsonpatch.{wanted}",
            kind_of(found)
        )
    };
    match serde_json::from_slice(bytes) {
        Ok(Value::Array(operations)) => {
            match operations.iter().find(|operation| !operation.is_object()) {
                Some(other) => Err(wrong(other, "Operation")),
                None => Ok(operations),
            }
        }
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(other) => Err(wrong(&other, "Patch")),
        Err(error) => Err(syntax_error(bytes).unwrap_or_else(|| error.to_string())),
    }
}

/// Applies the operations of a patch.
///
/// # Errors
///
/// Returns the reason why one of them does not apply.
pub(crate) fn apply_operations(
    object: Value,
    operations: &[Value],
) -> Result<Value, OperationError> {
    operations.iter().try_fold(object, |object, operation| {
        let body = Value::Array(vec![operation.clone()]).to_string();
        let before = object.clone();
        super::apply(PatchKind::Json, object, body.as_bytes(), "", "").map_err(|_| {
            let text = refusal(&before, operation);
            let is_failed_test = operation["op"] == "test" && text.ends_with("test failed");
            OperationError { text, is_failed_test }
        })
    })
}

/// Returns the reason why an operation does not apply to an object.
fn refusal(object: &Value, operation: &Value) -> String {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let op = text("op").unwrap_or("unknown");
    let Some(path) = text("path") else {
        return format!("{op} operation failed to decode path: missing value");
    };
    let (parent, key) = parent_of(object, path);
    match (op, parent) {
        ("test", None) => {
            format!("test operation does not apply: is missing path: {path}: missing value")
        }
        ("test", Some(_)) => format!("testing value {path} failed: test failed"),
        ("add" | "remove", None) => {
            format!("{op} operation does not apply: doc is missing path: \"{path}\": missing value")
        }
        ("replace", None) => {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        }
        ("replace", Some(_)) => {
            format!("replace operation does not apply: doc is missing key: {path}: missing value")
        }
        ("add", Some(Value::Array(_))) => {
            format!("error in add for path: '{path}': {}", wrong_index(&key, true))
        }
        ("remove", Some(Value::Object(_))) => format!(
            "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing \
             value"
        ),
        ("remove", Some(Value::Array(_))) => {
            format!("error in remove for path: '{path}': {}", wrong_index(&key, false))
        }
        ("move" | "copy", _) => {
            let from = text("from").unwrap_or_default();
            refused_source(object, op, from).unwrap_or_else(|| match parent {
                Some(Value::Array(_)) if op == "copy" => {
                    format!("error while adding value during copy: {}", wrong_index(&key, true))
                }
                Some(Value::Array(_)) => {
                    format!("error in move for path: '{path}': {}", wrong_index(&key, true))
                }
                _ => missing(op, "destination", path),
            })
        }
        _ => format!("Unexpected kind: {op}"),
    }
}

/// Returns the object or the list that a path leads into, and the key there.
fn parent_of<'a>(object: &'a Value, path: &str) -> (Option<&'a Value>, String) {
    let (parent, key) =
        path.rsplit_once('/').map_or((None, path), |(parent, key)| (Some(parent), key));
    let parent = parent.and_then(|parent| object.pointer(parent));
    let parent = parent.filter(|parent| parent.is_object() || parent.is_array());
    (parent, key.replace("~1", "/").replace("~0", "~"))
}

/// Returns the reason why a value cannot be moved or copied from a path; `None` if it can.
fn refused_source(object: &Value, op: &str, from: &str) -> Option<String> {
    if object.pointer(from).is_some() {
        return None;
    }
    let (parent, key) = parent_of(object, from);
    Some(match (op, parent) {
        (_, None) => missing(op, "from", from),
        ("move", Some(Value::Array(_))) => {
            format!("error in move for path: '{key}': {}", wrong_index(&key, false))
        }
        (_, Some(Value::Array(_))) => {
            format!("error in copy for from: '{from}': {}", wrong_index(&key, false))
        }
        ("move", Some(_)) => format!(
            "error in move for path: '{key}': Unable to remove nonexistent key: {key}: missing \
             value"
        ),
        // A copy of a missing member is null.
        (_, Some(_)) => return None,
    })
}

fn missing(op: &str, side: &str, at: &str) -> String {
    format!("{op} operation does not apply: doc is missing {side} path: {at}: missing value")
}

/// Returns the reason why a key is no index of a list.
fn wrong_index(key: &str, may_end: bool) -> String {
    if let Ok(index) = key.parse::<i64>() {
        return format!("Unable to access invalid index: {index}: invalid index referenced");
    }
    let why = format!("strconv.Atoi: parsing {}: invalid syntax", Value::from(key));
    if may_end { format!("value was not a proper array index: '{key}': {why}") } else { why }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operation_that_does_not_apply_has_the_text_of_the_real_server() {
        let object = json!({"data": {"a": "1"}, "list": [1]});
        let refused = |operation: Value| {
            apply_operations(object.clone(), &[operation]).unwrap_err().to_string()
        };
        assert_eq!(
            refused(json!({"op": "add", "path": "/spec/x", "value": 1})),
            "add operation does not apply: doc is missing path: \"/spec/x\": missing value"
        );
        assert_eq!(
            refused(json!({"op": "remove", "path": "/data/b"})),
            "error in remove for path: '/data/b': Unable to remove nonexistent key: b: missing \
             value"
        );
        assert_eq!(
            refused(json!({"op": "move", "from": "/data/b", "path": "/data/c"})),
            "error in move for path: 'b': Unable to remove nonexistent key: b: missing value"
        );
        assert_eq!(
            refused(json!({"op": "move", "from": "/spec/b", "path": "/data/c"})),
            "move operation does not apply: doc is missing from path: /spec/b: missing value"
        );
        assert_eq!(
            refused(json!({"op": "copy", "from": "/list/7", "path": "/data/c"})),
            "error in copy for from: '/list/7': Unable to access invalid index: 7: invalid index \
             referenced"
        );
        assert_eq!(
            refused(json!({"op": "copy", "from": "/data/a", "path": "/spec/c"})),
            "copy operation does not apply: doc is missing destination path: /spec/c: missing value"
        );
        assert_eq!(
            refused(json!({"op": "add", "path": "/list/7", "value": 1})),
            "error in add for path: '/list/7': Unable to access invalid index: 7: invalid index \
             referenced"
        );
        assert_eq!(
            refused(json!({"op": "test", "path": "/data/a", "value": "2"})),
            "testing value /data/a failed: test failed"
        );
        assert_eq!(refused(json!({"op": "dance", "path": "/data"})), "Unexpected kind: dance");
    }

    #[test]
    fn text_that_is_no_patch_is_refused() {
        assert_eq!(
            read_operations(b"{}").unwrap_err(),
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        );
        assert_eq!(
            read_operations(b"nonsense").unwrap_err(),
            "invalid character 'o' in literal null (expecting 'u')"
        );
        assert_eq!(read_operations(b"null").unwrap(), Vec::<Value>::new());
    }
}
