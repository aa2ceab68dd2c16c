//! JSON patch: all operations are applied, or none.

use serde_json::{Map, Value};

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

/// An object or a list, and the name of a member or the index of an item.
type Place<'v> = (&'v mut Value, String);

pub(super) fn apply(mut current: Value, body: &[u8]) -> Result<Value, PatchError> {
    let mut copied = 0;
    for operation in &parse(body)? {
        // The result of a failed operation is dropped.
        run(&mut current, operation, &mut copied)
            .map_err(|detail| PatchError::Unprocessable { detail })?;
    }
    Ok(current)
}

/// Runs one operation by the rules of the library that the API server uses: indexes may be signed
/// and have zeros in front, a negative one counts from the end, the part of a path before the first
/// slash has no effect, and an absent member is as good as null.
fn run(current: &mut Value, operation: &Value, copied: &mut usize) -> Result<(), String> {
    let text = |name: &str| {
        let text = operation.get(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("the operation has no {name}"))
    };
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match text("op")? {
        "add" => add(current, text("path")?, value()),
        "remove" => take(current, text("path")?).map(|_| ()),
        "replace" => replace(current, text("path")?, value()),
        "move" => {
            let moved = take(current, text("from")?)?;
            add(current, text("path")?, moved)
        }
        "copy" => {
            let copy = get(current, text("from")?)?;
            *copied += copy.to_string().len();
            if *copied > MAX_COPIED {
                return Err(format!("copies add more than {MAX_COPIED} bytes"));
            }
            add(current, text("path")?, copy)
        }
        "test" => {
            let path = text("path")?;
            let found = if path.is_empty() { current.clone() } else { get(current, path)? };
            if found == value() { Ok(()) } else { Err(format!("the test of {path} failed")) }
        }
        other => Err(format!("the operation {other} is unknown")),
    }
}

/// Returns the value around the one that a path names.
fn place<'v>(current: &'v mut Value, path: &str) -> Result<Place<'v>, String> {
    let missing = || format!("there is no {path}");
    let (_, inside) = path.split_once('/').ok_or_else(missing)?;
    let (around, name) = inside.rsplit_once('/').map_or((None, inside), |(a, b)| (Some(a), b));
    let mut found = current;
    for part in around.into_iter().flat_map(|around| around.split('/')) {
        let part = decoded(part);
        found = match found {
            Value::Object(members) => members.get_mut(&part),
            Value::Array(items) => {
                index(&part, items.len()).filter(|at| *at < items.len()).map(|at| &mut items[at])
            }
            _ => None,
        }
        .ok_or_else(missing)?;
    }
    Ok((found, decoded(name)))
}

fn decoded(part: &str) -> String {
    let mut decoded = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('~') {
        decoded.push_str(before);
        let (c, length) = match after.as_bytes().first() {
            Some(b'0') => ('~', 1),
            Some(b'1') => ('/', 1),
            _ => ('~', 0),
        };
        decoded.push(c);
        rest = &after[length..];
    }
    decoded + rest
}

/// Reads an index of a list of `length` items; it may be the length or more.
fn index(text: &str, length: usize) -> Option<usize> {
    let index: i64 = text.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    usize::try_from(if index < 0 { index + length } else { index }).ok()
}

/// Returns a copy of a value; null for an absent member.
fn get(current: &mut Value, path: &str) -> Result<Value, String> {
    match place(current, path)? {
        (Value::Object(members), name) => Ok(members.get(&name).cloned().unwrap_or(Value::Null)),
        (Value::Array(items), name) => {
            let found = index(&name, items.len()).and_then(|at| items.get(at));
            found.cloned().ok_or_else(|| format!("there is no {path}"))
        }
        _ => Err(format!("there is no {path}")),
    }
}

fn take(current: &mut Value, path: &str) -> Result<Value, String> {
    let taken = match place(current, path)? {
        (Value::Object(members), name) => members.remove(&name),
        (Value::Array(items), name) => {
            let at = index(&name, items.len()).filter(|at| *at < items.len());
            at.map(|at| items.remove(at))
        }
        _ => None,
    };
    taken.ok_or_else(|| format!("there is no {path}"))
}

fn add(current: &mut Value, path: &str, value: Value) -> Result<(), String> {
    check_depth(path, &value)?;
    match place(current, path)? {
        (Value::Object(members), name) => {
            members.insert(name, value);
        }
        (Value::Array(items), name) if name == "-" => items.push(value),
        (Value::Array(items), name) => {
            // A negative index counts from the end of the longer list.
            let at = index(&name, items.len() + 1).filter(|at| *at <= items.len());
            items.insert(at.ok_or_else(|| format!("there is no {path}"))?, value);
        }
        _ => return Err(format!("there is no {path}")),
    }
    Ok(())
}

fn replace(current: &mut Value, path: &str, value: Value) -> Result<(), String> {
    check_depth(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("the value is no object and no list".to_owned());
        }
        *current = value;
        return Ok(());
    }
    match place(current, path)? {
        (Value::Object(members), name) => {
            members.insert(name, value);
            Ok(())
        }
        (Value::Array(items), name) => {
            let item = index(&name, items.len()).and_then(|at| items.get_mut(at));
            item.map(|item| *item = value).ok_or_else(|| format!("there is no {path}"))
        }
        _ => Err(format!("there is no {path}")),
    }
}

fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    if path.matches('/').count() + depth(value) > MAX_DEPTH {
        return Err(format!("the object nests deeper than {MAX_DEPTH}"));
    }
    Ok(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn parse(body: &[u8]) -> Result<Vec<Value>, PatchError> {
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
    match operations.iter().find_map(wrong_operation) {
        // An invalid operation fails when it is its turn, like one that does not apply.
        None => Ok(operations),
        Some(why) => Err(refusal(&format!("error decoding patch: json: cannot unmarshal {why}"))),
    }
}

/// Returns the error about a member of an operation that has the wrong type.
fn wrong_operation(operation: &Value) -> Option<String> {
    match operation {
        Value::Null => None,
        Value::Object(members) => wrong_member(members),
        other => Some(format!("{} into Go value of type handlers.jsonPatchOp", kind_of(other))),
    }
}

fn wrong_member(members: &Map<String, Value>) -> Option<String> {
    ["op", "from", "path"].iter().find_map(|name| {
        let wrong = members.get(*name).filter(|value| !value.is_string() && !value.is_null())?;
        let found = kind_of(wrong);
        Some(format!("{found} into Go struct field jsonPatchOp.{name} of type string"))
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
            json!({"op": "copy", "from": "/b/c", "path": "/c"}),
            json!({"op": "copy", "from": "", "path": "/c"}),
            json!({"op": "add", "path": "", "value": {}}),
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
            ("[null]", 422),
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
    fn paths_are_read_as_the_servers_library_reads_them() {
        for (operation, wanted) in [
            (json!({"op": "add", "path": "/l/-1", "value": 0}), json!({"l": [1, 2, 0], "x~2": 1})),
            (json!({"op": "add", "path": "/l/-3", "value": 0}), json!({"l": [0, 1, 2], "x~2": 1})),
            (json!({"op": "add", "path": "/l/+01", "value": 0}), json!({"l": [1, 0, 2], "x~2": 1})),
            (json!({"op": "remove", "path": "/l/-1"}), json!({"l": [1], "x~2": 1})),
            (json!({"op": "replace", "path": "/l/-2", "value": 0}), json!({"l": [0, 2], "x~2": 1})),
            (json!({"op": "remove", "path": "/x~2"}), json!({"l": [1, 2]})),
            (json!({"op": "add", "path": "any/x~02", "value": 2}), json!({"l": [1, 2], "x~2": 2})),
            (
                json!({"op": "copy", "from": "/absent", "path": "/x~2"}),
                json!({"l": [1, 2], "x~2": null}),
            ),
            (json!({"op": "replace", "path": "", "value": {"a": 1}}), json!({"a": 1})),
        ] {
            let current = json!({"l": [1, 2], "x~2": 1});
            assert_eq!(patched(current, &json!([operation])).unwrap(), wanted, "{operation}");
        }
        for path in ["/l/3", "/l/-4", "/l/x", "/l/", "/l/1/a", "/x~2/a", "/l/9999999999999999999"] {
            let add = json!([{"op": "add", "path": path, "value": 0}]);
            let error = patched(json!({"l": [1, 2], "x~2": 1}), &add).unwrap_err();
            assert_eq!(error.code(), 422, "{path}");
        }
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
