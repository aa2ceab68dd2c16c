//! JSON merge patch: objects are merged, null removes, every other value replaces.

use serde_json::{Map, Value};

use super::PatchError;
use crate::go_json::{self, kind_of};

pub(super) fn apply(mut current: Value, body: &[u8]) -> Result<Value, PatchError> {
    // A patch that is not an object would replace the whole document, but no API object is a list
    // or a scalar.
    let refusal = |why: &str| PatchError::BadRequest(why.to_owned());
    let patch: Map<String, Value> = match go_json::parse(body) {
        Ok(Value::Object(patch)) => patch,
        Ok(Value::Null) => return Err(refusal("Invalid JSON Patch")),
        Ok(other) => {
            return Err(refusal(&format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type \
                 map[string]interface {{}}",
                kind_of(&other)
            )));
        }
        Err(_) => return Err(refusal("invalid JSON patch")),
    };
    merge_into(&mut current, Value::Object(patch));
    Ok(current)
}

fn merge_into(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(members), Value::Object(patch)) => {
            for (name, value) in patch {
                match (members.get_mut(&name), value) {
                    (_, Value::Null) => {
                        members.remove(&name);
                    }
                    (Some(member), value) => merge_into(member, value),
                    (None, value) => {
                        members.insert(name, without_nulls(value));
                    }
                }
            }
        }
        (target, patch) => *target = without_nulls(patch),
    }
}

/// Removes null members at every depth, also in lists: typed objects have no null there.
pub(super) fn without_nulls(mut value: Value) -> Value {
    remove_nulls(&mut value);
    value
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, member| {
            remove_nulls(member);
            !member.is_null()
        }),
        Value::Array(elements) => elements.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::patch::strategic::tests::any_object;

    fn patched(current: Value, patch: &Value) -> Value {
        apply(current, patch.to_string().as_bytes()).unwrap()
    }

    // The cases of RFC 7386, appendix A, whose documents are objects.
    #[test]
    fn examples_of_rfc_7386_hold() {
        for (current, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(patched(current.clone(), &patch), expected, "{current} {patch}");
        }
    }

    #[test]
    fn strategic_directives_are_plain_members_here() {
        assert_eq!(
            patched(
                json!({"l": [{"name": "a"}]}),
                &json!({"l": [{"$patch": "delete", "name": "a"}]})
            ),
            json!({"l": [{"$patch": "delete", "name": "a"}]})
        );
    }

    #[test]
    fn patch_that_is_no_object_is_a_bad_request() {
        let decoding = |found: &str| {
            format!(
                "error decoding patch: json: cannot unmarshal {found} into Go value of type \
                 map[string]interface {{}}"
            )
        };
        for (body, why) in [
            ("", "invalid JSON patch".to_owned()),
            ("{", "invalid JSON patch".to_owned()),
            ("[]", decoding("array")),
            ("3", decoding("number")),
            ("null", "Invalid JSON Patch".to_owned()),
        ] {
            let error = apply(json!({}), body.as_bytes()).unwrap_err();
            assert_eq!(error, PatchError::BadRequest(why), "{body}");
        }
    }

    proptest! {
        #[test]
        fn empty_patch_changes_nothing(object in any_object()) {
            prop_assert_eq!(patched(object.clone(), &json!({})), object);
        }

        #[test]
        fn merging_twice_is_merging_once(object in any_object(), patch in any_object()) {
            let once = patched(object, &patch);
            prop_assert_eq!(patched(once.clone(), &patch), once);
        }
    }
}
