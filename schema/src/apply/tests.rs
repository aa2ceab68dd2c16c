//! Each operation on values, compared with the answers that structured-merge-diff gave.

use serde_json::{Map, Value};

use super::validate::validate;
use super::{
    Duplicates, Type, compare, compare_checked, field_set, merge, named_fields_as_members, remove,
};
use crate::field_set::FieldSet;
use crate::test_schema::{assert_same_errors, recorded, thing};

/// Returns the first of the values that does not fit, as upstream checks them.
fn check_all(of: Type<'_>, values: &[&Value]) -> Result<(), String> {
    let check = |value| validate(of, value, Duplicates::Allowed).map_err(|e| e.to_string());
    values.iter().copied().try_for_each(check)
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("each value is an object")
}

fn assert_answer(line: &Value, ours: Result<Value, String>) {
    let answer = &line["answer"];
    match (answer["error"].as_str(), ours) {
        (None, Ok(ours)) => assert_eq!(ours, *answer, "{line}"),
        (Some(error), Err(ours)) => assert_same_errors(&ours, error, &|| line.to_string()),
        (_, ours) => panic!("{ours:?} instead of {answer} for {line}"),
    }
}

#[test]
fn fields_of_values_are_those_of_upstream() {
    let schema = thing();
    let of = Type::Root(schema.root());
    for line in recorded("set") {
        let value = &line["value"];
        let ours = check_all(of, &[value]).and_then(|()| {
            let set = field_set(of, value).map_err(|errors| errors.to_string())?;
            Ok(serde_json::json!({"set": set.to_fields_v1()}))
        });
        assert_answer(&line, ours);
    }
}

#[test]
fn check_of_changed_parts_finds_what_the_check_of_all_finds() {
    let schema = thing();
    let of = Type::Root(schema.root());
    let check = |value: &Value| validate(of, value, Duplicates::Allowed);
    let (mut fit, mut wrong) = (0, 0);
    for line in recorded("compare") {
        let (old, new) = (&line["old"], &line["new"]);
        let pairs = [(old, new), (new, old)].into_iter();
        for (old, new) in pairs.filter(|(old, _)| check(old).is_ok()) {
            let found = compare_checked(of, &FieldSet::new(), object(old), object(new));
            if let Err(errors) = check(new) {
                wrong += 1;
                // Items without an identity are reported by the comparison, too.
                let found = found.unwrap_err();
                assert!(errors.iter().all(|error| found.iter().any(|one| one == error)), "{line}");
            } else {
                fit += 1;
                assert_eq!(found, compare(of, object(old), object(new)), "{line}");
            }
        }
    }
    assert!(fit > 100 && wrong > 10, "{fit} and {wrong} values");
}

#[test]
fn differences_of_values_are_those_of_upstream() {
    let schema = thing();
    let of = Type::Root(schema.root());
    for line in recorded("compare") {
        let (old, new) = (&line["old"], &line["new"]);
        let ours = check_all(of, &[old, new]).and_then(|()| {
            let compared =
                compare(of, object(old), object(new)).map_err(|errors| errors.to_string())?;
            Ok(serde_json::json!({
                "added": compared.added.to_fields_v1(),
                "modified": compared.modified.to_fields_v1(),
                "removed": compared.removed.to_fields_v1(),
            }))
        });
        assert_answer(&line, ours);
    }
}

#[test]
fn merged_values_are_those_of_upstream() {
    let schema = thing();
    let of = Type::Root(schema.root());
    for line in recorded("merge") {
        let (live, config) = (&line["live"], &line["config"]);
        let ours = check_all(of, &[live, config]).and_then(|()| {
            let merged =
                merge(of, object(live), object(config)).map_err(|errors| errors.to_string())?;
            Ok(serde_json::json!({"value": merged}))
        });
        assert_answer(&line, ours);
    }
}

#[test]
fn values_without_removed_fields_are_those_of_upstream() {
    let schema = thing();
    let of = Type::Root(schema.root());
    for line in recorded("remove") {
        let value = &line["value"];
        let ours = check_all(of, &[value]).map(|()| {
            let set = FieldSet::from_fields_v1(&line["set"]).expect("upstream wrote a set");
            serde_json::json!({"value": remove(of, value, &set)})
        });
        assert_answer(&line, ours);
    }
}

#[test]
fn object_with_owned_fields_counts_as_owned() {
    let schema = thing();
    let of = Type::Root(schema.root());
    let set = FieldSet::from_fields_v1(&serde_json::json!({
        "f:spec": {"f:pair": {"f:left": {}}, "f:groups": {"f:a": {"f:left": {}}}}
    }))
    .expect("a set");
    let named = named_fields_as_members(Some(of), &set);
    let dot = serde_json::json!({});
    assert_eq!(
        named.to_fields_v1(),
        serde_json::json!({"f:spec": {
            ".": dot,
            "f:pair": {".": dot, "f:left": {}},
            // The entry `a` is no declared field: it may exist without the one who owns `left`.
            "f:groups": {".": dot, "f:a": {"f:left": {}}},
        }})
    );
}
