//! JSON patch: all operations are applied, or none.

use json_patch::{AddOperation, PatchOperation};
use serde_json::Value;

use super::PatchError;
use crate::go_json::kind_of;

/// The API server's limit.
const MAX_OPERATIONS: usize = 10_000;

/// The API server's limit on copied bytes: each copy may double the object, so that a short patch
/// could otherwise grow it without bound.
const MAX_COPIED: usize = 3 << 20;

/// The limit on nesting. The parser bounds the depth of a body; operations that put one value into
/// another must not evade that.
const MAX_DEPTH: usize = 120;

pub(super) fn apply(mut current: Value, body: &[u8]) -> Result<Value, PatchError> {
    let unprocessable = |detail: String| PatchError::Unprocessable { detail };
    let mut copied = 0;
    for operation in &parse(body)? {
        if let Some(value) = inserted_value(&current, operation)
            && operation.path().count() + depth(value) > MAX_DEPTH
        {
            return Err(unprocessable(format!("the object nests deeper than {MAX_DEPTH}")));
        }
        if let (PatchOperation::Copy(_), Some(value)) =
            (operation, inserted_value(&current, operation))
        {
            copied += value.to_string().len();
        }
        if copied > MAX_COPIED {
            return Err(unprocessable(format!("copies add more than {MAX_COPIED} bytes")));
        }
        if tests_absence(&current, operation) {
            continue;
        }
        let added = add_if_missing(&current, operation);
        let operation = added.as_ref().unwrap_or(operation);
        // The result of a failed operation is dropped.
        json_patch::patch_unsafe(&mut current, std::slice::from_ref(operation))
            .map_err(|error| unprocessable(error.to_string()))?;
    }
    Ok(current)
}

/// Returns the value that an operation inserts, if any.
fn inserted_value<'a>(current: &'a Value, operation: &'a PatchOperation) -> Option<&'a Value> {
    match operation {
        PatchOperation::Add(add) => Some(&add.value),
        PatchOperation::Replace(replace) => Some(&replace.value),
        PatchOperation::Move(from) => current.pointer(from.from.as_str()),
        PatchOperation::Copy(from) => current.pointer(from.from.as_str()),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn parse(body: &[u8]) -> Result<Vec<PatchOperation>, PatchError> {
    let refusal = |why: &str| PatchError::BadRequest(why.to_owned());
    let operations = match serde_json::from_slice(body) {
        Ok(Value::Array(operations)) => operations,
        Ok(Value::Null) => return Ok(Vec::new()),
        Ok(other) => {
            return Err(refusal(&format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type \
                 []handlers.jsonPatchOp",
                kind_of(&other)
            )));
        }
        Err(_) => return Err(refusal("invalid JSON patch")),
    };
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    if let Some(why) = operations.iter().find_map(wrong_operation) {
        return Err(refusal(&format!("error decoding patch: json: cannot unmarshal {why}")));
    }
    // An invalid operation fails when it is its turn, like one that does not apply.
    let unprocessable =
        |error: serde_json::Error| PatchError::Unprocessable { detail: error.to_string() };
    operations
        .into_iter()
        .map(with_value)
        .map(|operation| serde_json::from_value(operation).map_err(unprocessable))
        .collect()
}

/// Returns the error about a member of an operation that has the wrong type.
fn wrong_operation(operation: &Value) -> Option<String> {
    match operation {
        Value::Null => None,
        Value::Object(members) => ["op", "from", "path"].iter().find_map(|name| {
            let wrong =
                members.get(*name).filter(|value| !value.is_string() && !value.is_null())?;
            let found = kind_of(wrong);
            Some(format!("{found} into Go struct field jsonPatchOp.{name} of type string"))
        }),
        other => Some(format!("{} into Go value of type handlers.jsonPatchOp", kind_of(other))),
    }
}

/// Adds the value null to an operation without a value.
fn with_value(mut operation: Value) -> Value {
    if let Value::Object(members) = &mut operation
        && matches!(members.get("op").and_then(Value::as_str), Some("add" | "replace" | "test"))
    {
        members.entry("value").or_insert(Value::Null);
    }
    operation
}

/// Returns true for a `test` that a member is null, if the member is absent: it passes, as in the
/// API server.
fn tests_absence(current: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let parent = test.path.parent().and_then(|parent| current.pointer(parent.as_str()));
    test.value.is_null()
        && parent.is_some_and(Value::is_object)
        && current.pointer(test.path.as_str()).is_none()
}

/// Turns a `replace` of a missing member into an `add`, as the API server does.
fn add_if_missing(current: &Value, operation: &PatchOperation) -> Option<PatchOperation> {
    let PatchOperation::Replace(replace) = operation else { return None };
    let parent = replace.path.parent()?;
    let is_member = current.pointer(parent.as_str()).is_some_and(Value::is_object);
    let is_missing = current.pointer(replace.path.as_str()).is_none();
    (is_member && is_missing).then(|| {
        PatchOperation::Add(AddOperation {
            path: replace.path.clone(),
            value: replace.value.clone(),
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patched(current: Value, patch: &Value) -> Result<Value, PatchError> {
        apply(current, patch.to_string().as_bytes())
    }

    #[test]
    fn every_operation_is_applied() {
        let current = json!({"a": 1, "list": [1, 2], "gone": true, "from": "x"});
        let patch = json!([
            {"op": "test", "path": "/a", "value": 1},
            {"op": "replace", "path": "/a", "value": 2},
            {"op": "add", "path": "/list/-", "value": 3},
            {"op": "add", "path": "/list/0", "value": 0},
            {"op": "remove", "path": "/gone"},
            {"op": "move", "from": "/from", "path": "/to"},
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/x~1y", "value": null},
        ]);
        assert_eq!(
            patched(current, &patch).unwrap(),
            json!({"a": 2, "b": 2, "list": [0, 1, 2, 3], "to": "x", "x/y": null})
        );
    }

    #[test]
    fn failed_test_is_unprocessable_with_the_servers_text() {
        let error = patched(
            json!({"spec": {"replicas": 5}}),
            &json!([{"op": "test", "path": "/spec/replicas", "value": 77}]),
        )
        .unwrap_err();
        assert_eq!((error.code(), error.reason()), (422, "Invalid"));
        assert_eq!(
            error.to_string(),
            "the server rejected our request due to an error in our request"
        );
    }

    #[test]
    fn missing_path_is_unprocessable() {
        for operation in [
            json!({"op": "remove", "path": "/b"}),
            json!({"op": "replace", "path": "/b/c", "value": 1}),
            json!({"op": "add", "path": "/b/c", "value": 1}),
            json!({"op": "copy", "from": "/b", "path": "/c"}),
        ] {
            let error = patched(json!({"a": 1}), &json!([operation])).unwrap_err();
            assert_eq!(error.code(), 422, "{operation}");
        }
    }

    #[test]
    fn invalid_patch_is_rejected() {
        for (body, code) in [
            ("{", 400),
            ("{}", 400),
            (r#"[{"op":"dance","path":"/a"}]"#, 422),
            (r#"[{"path":"/a"}]"#, 422),
            (r#"[{"op":1,"path":"/a"}]"#, 400),
            (r#"["add"]"#, 400),
            (r#"[{"op":"remove","path":"a"}]"#, 422),
        ] {
            let error = apply(json!({"a": 1}), body.as_bytes()).unwrap_err();
            assert_eq!(error.code(), code, "{body}");
        }
    }

    #[test]
    fn missing_value_means_null() {
        let add = json!([{"op": "add", "path": "/a"}]);
        assert_eq!(patched(json!({"a": 1}), &add).unwrap(), json!({"a": null}));
    }

    #[test]
    fn replace_adds_a_missing_member() {
        let replace = json!([{"op": "replace", "path": "/b", "value": 1}]);
        assert_eq!(patched(json!({"a": 1}), &replace).unwrap(), json!({"a": 1, "b": 1}));
    }

    #[test]
    fn copies_cannot_grow_an_object_without_bound() {
        let double = json!([
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "copy", "from": "", "path": "/a"},
        ]);
        let operations: Vec<_> = double.as_array().unwrap().iter().cycle().take(100).collect();
        let error = patched(json!({"a": "x"}), &json!(operations)).unwrap_err();
        assert_eq!(error.code(), 422);
    }

    #[test]
    fn operations_cannot_nest_deeper_than_a_body_can() {
        let into_itself = |levels: usize| {
            let path = |level: usize| "/a".repeat(level);
            let add = |level| json!({"op": "add", "path": path(level), "value": {}});
            json!((1..=levels).map(add).collect::<Vec<_>>())
        };
        let deep = patched(json!({}), &into_itself(119)).unwrap();
        assert!(serde_json::from_str::<Value>(&deep.to_string()).is_ok());
        assert_eq!(patched(json!({}), &into_itself(500)).unwrap_err().code(), 422);
        let moves = json!([
            {"op": "add", "path": "/b", "value": deep},
            {"op": "move", "from": "/b", "path": "/a/a"},
        ]);
        let error = patched(json!({"a": {}}), &moves).unwrap_err();
        assert_eq!(error.code(), 422);
    }

    #[test]
    fn ten_thousand_operations_pass_but_not_one_more() {
        let operation = json!({"op": "test", "path": "/a", "value": 1});
        let mut operations = vec![operation.clone(); MAX_OPERATIONS];
        assert!(patched(json!({"a": 1}), &json!(operations)).is_ok());
        operations.push(operation);
        let error = patched(json!({"a": 1}), &json!(operations)).unwrap_err();
        assert_eq!(error.code(), 413);
        assert_eq!(
            error.to_string(),
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, \
             got 10001"
        );
    }

    #[test]
    fn absent_member_passes_a_test_for_null() {
        let body = br#"[{"op":"test","path":"/metadata/finalizers","value":null},
            {"op":"add","path":"/metadata/finalizers","value":["example.com/f"]}]"#;
        let patched = apply(json!({"metadata": {}}), body).unwrap();
        assert_eq!(patched, json!({"metadata": {"finalizers": ["example.com/f"]}}));
        apply(patched, body).unwrap_err();
        apply(json!({}), body).unwrap_err();
    }
}
