//! Hostile schemas and values take bounded time and memory, and cause no panic.

#![expect(clippy::disallowed_types, reason = "the crate has no clock; the time of the test counts")]

use std::time::{Duration, Instant};

use homeostat_schema::{Schema, check_open_api, check_structural};
use serde_json::{Value, json};

/// Far above the time that each case takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!({"type": "string"}), |inner, _| wrap(inner))
}

#[track_caller]
fn assert_bounded(schema: &Value, object: &Value) {
    let start = Instant::now();
    drop(check_structural(schema, "schema"));
    let read = Schema::from_open_api(schema);
    let mut copy = object.clone();
    read.prune(&mut copy);
    read.prune_nulls(&mut copy);
    read.set_defaults(&mut copy);
    drop(read.validate(&copy, Some(object)));
    assert!(start.elapsed() < TIMEOUT, "took {:?}", start.elapsed());
}

#[test]
fn deeply_nested_schema_does_not_overflow_the_stack() {
    let schema = nested(400, |inner| json!({"type": "object", "properties": {"a": inner}}));
    let value = (0..400).fold(json!(1), |inner, _| json!({"a": inner}));
    assert_bounded(&schema, &value);
    let schema = nested(400, |inner| json!({"type": "array", "items": inner}));
    let value = (0..400).fold(json!(1), |inner, _| json!([inner]));
    assert_bounded(
        &json!({"type": "object", "properties": {"spec": schema}}),
        &json!({"spec": value}),
    );
    let schema = nested(400, |inner| json!({"allOf": [inner]}));
    assert_bounded(&json!({"type": "object", "properties": {"spec": schema}}), &json!({"spec": 1}));
}

#[test]
fn schema_of_a_megabyte_is_read() {
    let field = |at: usize| {
        (format!("field{at}"), json!({"type": "string", "default": "x", "minLength": 1}))
    };
    let fields: serde_json::Map<String, Value> = (0..20_000).map(field).collect();
    let schema =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    assert!(schema.to_string().len() > 1_000_000);
    assert_bounded(&schema, &json!({"spec": {}}));
}

#[test]
fn pattern_that_backtracks_elsewhere_is_linear_here() {
    let pattern = json!({"type": "string", "pattern": "^(a+)+$"});
    let schema = json!({"type": "object", "properties": {"spec": pattern}});
    assert_bounded(&schema, &json!({"spec": format!("{}b", "a".repeat(100_000))}));
}

#[test]
fn pattern_that_compiles_to_a_large_program_is_refused() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "string", "pattern": "((a{1000}){1000}){1000}"},
    }});
    let errors = check_structural(&schema, "schema");
    assert_eq!(errors[0].field, "schema.properties[spec].pattern");
    assert_bounded(&schema, &json!({"spec": "a"}));
}

#[test]
fn schema_of_wrong_types_is_no_panic() {
    for odd in [
        json!(null),
        json!([]),
        json!(7),
        json!("x"),
        json!({"type": 7, "properties": [],
        "items": 3, "allOf": {}, "required": "a", "enum": {}, "minimum": "x", "pattern": 7}),
    ] {
        assert_bounded(&odd, &json!({"a": [1, {"b": null}]}));
        let inside = json!({"type": "object", "properties": {"a": odd.clone()}, "items": odd});
        assert_bounded(&inside, &json!({"a": [1, {"b": null}]}));
    }
}

#[test]
fn list_of_many_equal_items_is_checked_in_linear_time() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "array",
        "x-kubernetes-list-type": "set", "uniqueItems": true, "items": {"type": "string"}}}});
    let items: Vec<String> = (0..50_000).map(|at| format!("{at}")).collect();
    assert_bounded(&schema, &json!({"spec": items}));
}

#[test]
fn rules_of_a_large_schema_are_checked_in_bounded_time() {
    let start = Instant::now();
    let rule = |text: &str| json!([{"rule": text}]);
    let field = |at: usize| {
        let field = json!({"type": "string", "maxLength": 10,
            "x-kubernetes-validations": rule("self != ''")});
        (format!("field{at}"), field)
    };
    let fields: serde_json::Map<String, Value> = (0..5_000).map(field).collect();
    let spec = json!({"type": "object", "properties": fields,
        "x-kubernetes-validations": rule("self.field1 != self.field2")});
    assert_eq!(
        check_open_api(&json!({"type": "object", "properties": {"spec": spec}}), "s", false),
        []
    );
    // Expressions cannot write these names: each level has a type of its own.
    let leaf = json!({"type": "integer", "x-kubernetes-validations": rule("self > 0")});
    let deep = (0..55).fold(leaf, |inner, _| {
        json!({"type": "object", "properties": {"1st": inner},
            "x-kubernetes-validations": rule("self == oldSelf")})
    });
    let schema = json!({"type": "object", "properties": {"spec": deep}});
    assert_eq!(check_open_api(&schema, "s", false), []);
    // The estimate of nested loops does not overflow.
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let loops =
        |depth: usize| format!("{}true{}", "self.l.all(x, ".repeat(depth), ")".repeat(depth));
    let spec = json!({"type": "object", "properties": {"l": list},
        "x-kubernetes-validations": rule(&loops(60))});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let errors = check_open_api(&schema, "s", false);
    assert!(errors[0].message.contains("factor of more than 100x"), "{errors:?}");
    assert!(start.elapsed() < TIMEOUT, "took {:?}", start.elapsed());
}
