//! Properties of pruning and defaulting by the schema of a custom kind.

use homeostat_schema::Schema;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Map, Value, json};

/// The names of fields: few, so that objects and schemas share some.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(str::to_owned)
}

fn object(
    fields: impl Strategy<Value = Value> + 'static,
) -> impl Strategy<Value = Map<String, Value>> {
    vec((name(), fields), 0..4).prop_map(|fields| fields.into_iter().collect())
}

/// A structural schema. Its defaults fit it.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "x"})),
        Just(json!({"type": "integer", "nullable": true})),
        Just(json!({"type": "integer", "default": 3, "nullable": true})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "object", "default": {"a": 1}, "properties": {
            "a": {"type": "integer"}, "b": {"type": "string", "default": "y"}}})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            object(inner.clone())
                .prop_map(|fields| json!({"type": "object", "properties": fields})),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner.prop_map(|values| json!({"type": "object", "additionalProperties": values})),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i8>().prop_map(Value::from),
        name().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            object(inner.clone()).prop_map(Value::Object),
            vec(inner, 0..4).prop_map(Value::Array),
        ]
    })
}

/// Returns the object as the API server stores it, and the removed fields.
fn complete(schema: &Schema, object: &Value) -> (Value, Vec<String>) {
    let mut object = object.clone();
    schema.prune_nulls(&mut object);
    schema.set_defaults(&mut object);
    let removed = schema.prune(&mut object);
    (object, removed)
}

proptest! {
    #[test]
    fn completing_twice_changes_nothing(spec in schema(), value in value()) {
        let document = json!({"type": "object", "properties": {"spec": spec}});
        let schema = Schema::from_open_api(&document);
        let (once, _) = complete(&schema, &json!({"spec": value}));
        let (twice, removed) = complete(&schema, &once);
        prop_assert_eq!(&twice, &once);
        prop_assert!(removed.is_empty(), "{:?}", removed);
    }

    #[test]
    fn pruned_object_has_only_fields_of_the_schema(fields in object(schema()), value in value()) {
        let spec = json!({"type": "object", "properties": fields});
        let document = json!({"type": "object", "properties": {"spec": spec}});
        let schema = Schema::from_open_api(&document);
        let (object, _) = complete(&schema, &json!({"spec": value, "bogus": 1}));
        prop_assert!(object.get("bogus").is_none());
        let kept = object.get("spec").and_then(Value::as_object);
        for name in kept.into_iter().flat_map(Map::keys) {
            prop_assert!(fields.contains_key(name), "{}", name);
        }
    }

    #[test]
    fn unchanged_object_is_valid_by_any_schema(spec in schema(), value in value()) {
        let document = json!({"type": "object", "properties": {"spec": spec}});
        let schema = Schema::from_open_api(&document);
        let object = json!({"spec": value});
        prop_assert!(schema.validate(&object, Some(&object)).is_empty());
    }
}
