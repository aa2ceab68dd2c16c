//! Pruning and defaulting are idempotent and agree with each other, for generated schemas.

use homeostat_schema::Schema;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

fn cases() -> ProptestConfig {
    let cases = std::env::var("HOMEOSTAT_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(256), ..ProptestConfig::default() }
}

fn name() -> impl Strategy<Value = String> {
    "[abc]"
}

/// A value of any form.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..3).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(name(), inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

/// A structural schema, with defaults of any form.
fn schema() -> impl Strategy<Value = Value> {
    let default = || proptest::option::weighted(0.3, value());
    let leaf = (prop_oneof![Just("string"), Just("integer"), Just("boolean")], any::<bool>())
        .prop_map(|(type_name, nullable)| json!({"type": type_name, "nullable": nullable}));
    let leaf = prop_oneof![leaf, Just(json!({"x-kubernetes-preserve-unknown-fields": true}))];
    leaf.prop_recursive(4, 30, 3, move |inner| {
        let object = (btree_map(name(), inner.clone(), 0..4), any::<bool>()).prop_map(
            |(fields, preserve)| {
                json!({"type": "object", "properties": fields,
                    "x-kubernetes-preserve-unknown-fields": preserve})
            },
        );
        let map = inner
            .clone()
            .prop_map(|values| json!({"type": "object", "additionalProperties": values}));
        let list = inner.prop_map(|items| json!({"type": "array", "items": items}));
        (prop_oneof![object, map, list], default()).prop_map(|(mut schema, default)| {
            if let Some(default) = default {
                schema["default"] = default;
            }
            schema
        })
    })
}

fn object(fields: &Value) -> Schema {
    Schema::from_open_api(&json!({"type": "object", "properties": {"spec": fields}}))
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn pruning_twice_removes_nothing(schema in schema(), value in value()) {
        let schema = object(&schema);
        let mut once = json!({"spec": value});
        schema.prune(&mut once);
        let mut twice = once.clone();
        prop_assert_eq!(schema.prune(&mut twice), Vec::<String>::new());
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn defaulting_twice_changes_nothing(schema in schema(), value in value()) {
        let schema = object(&schema);
        let mut once = json!({"spec": value});
        schema.prune_nulls(&mut once);
        schema.set_defaults(&mut once);
        let mut twice = once.clone();
        schema.set_defaults(&mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn value_is_valid_against_itself_as_the_old_value(schema in schema(), value in value()) {
        let object = json!({"spec": value});
        let schema = self::object(&schema);
        prop_assert!(schema.validate(&object, Some(&object)).is_empty());
    }
}
