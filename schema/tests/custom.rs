//! Validation, pruning and defaulting by the schema of a custom kind, with upstream's texts.

use homeostat_schema::{Schema, check_structural};
use serde_json::{Value, json};

/// Returns the schema of an object whose `spec` is this schema.
fn schema(spec: &Value) -> Schema {
    Schema::from_open_api(&json!({"type": "object", "properties": {"spec": spec}}))
}

#[track_caller]
fn assert_errors(spec: &Value, value: &Value, expected: &[&str]) {
    let errors = schema(spec).validate(&json!({"spec": value}), None);
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected);
}

#[test]
fn wrong_type_is_reported_with_both_names() {
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "name": {"type": "string"}, "on": {"type": "boolean"},
        "port": {"x-kubernetes-int-or-string": true}, "list": {"type": "array", "items":
        {"type": "string"}}, "ratio": {"type": "number"},
    }});
    let value =
        json!({"size": "1", "name": 5, "on": "yes", "port": true, "list": [1], "ratio": {}});
    assert_errors(
        &spec,
        &value,
        &[
            r#"spec.list[0]: Invalid value: "integer": spec.list[0] in body must be of type string: "integer""#,
            r#"spec.name: Invalid value: "integer": spec.name in body must be of type string: "integer""#,
            r#"spec.on: Invalid value: "string": spec.on in body must be of type boolean: "string""#,
            r#"spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean""#,
            r#"spec.ratio: Invalid value: "object": spec.ratio in body must be of type number: "object""#,
            r#"spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#,
        ],
    );
    assert_errors(&spec, &json!({"size": 2.0, "ratio": 1, "port": "http"}), &[]);
}

#[test]
fn integer_of_32_bits_must_fit_them() {
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "format": "int32"},
        "large": {"type": "integer", "format": "int64"},
    }});
    assert_errors(&spec, &json!({"size": 2_147_483_647, "large": 2_147_483_648_i64}), &[]);
    assert_errors(&spec, &json!({"size": -2_147_483_648_i64}), &[]);
    let text = "<nil>: Invalid value: \"\": Checked value must be of type integer with format \
                int32 in spec.size";
    assert_errors(&spec, &json!({"size": 2_147_483_648_i64}), &[text]);
    assert_errors(&spec, &json!({"size": -2_147_483_649_i64}), &[text]);
}

#[test]
fn null_fits_only_a_nullable_field() {
    let spec = json!({"type": "object", "properties": {
        "a": {"type": "string", "nullable": true}, "b": {"type": "string"},
    }});
    assert_errors(
        &spec,
        &json!({"a": null, "b": null}),
        &[r#"spec.b: Invalid value: "null": spec.b in body must be of type string: "null""#],
    );
}

#[test]
fn limits_are_reported_with_the_value_and_the_limit() {
    let spec = json!({"type": "object", "required": ["must"], "properties": {
        "must": {"type": "string"},
        "low": {"type": "integer", "minimum": 1}, "high": {"type": "integer", "maximum": 5},
        "open": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
        "step": {"type": "integer", "multipleOf": 5},
        "short": {"type": "string", "minLength": 3}, "long": {"type": "string", "maxLength": 2},
        "shape": {"type": "string", "pattern": "^[a-z]+$"},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "few": {"type": "array", "minItems": 2, "items": {"type": "string"}},
        "many": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
        "map": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
        "day": {"type": "string", "format": "date"},
    }});
    let value = json!({"low": 0, "high": 6, "open": 0, "step": 7, "short": "ab", "long": "abc",
        "shape": "A", "colour": "blue", "few": ["a"], "many": ["a", "b"],
        "map": {"a": "1", "b": "2"}, "day": "today"});
    assert_errors(
        &spec,
        &value,
        &[
            r#"spec.colour: Unsupported value: "blue": supported values: "red", "green""#,
            r#"spec.day: Invalid value: "today": spec.day in body must be of type date: "today""#,
            "spec.few: Invalid value: 1: spec.few in body should have at least 2 items",
            "spec.high: Invalid value: 6: spec.high in body should be less than or equal to 5",
            "spec.long: Too long: may not be more than 2 bytes",
            "spec.low: Invalid value: 0: spec.low in body should be greater than or equal to 1",
            "spec.many: Too many: 2: must have at most 1 item",
            "spec.map: Too many: 2: must have at most 1 item",
            "spec.open: Invalid value: 0: spec.open in body should be greater than 0",
            r#"spec.shape: Invalid value: "A": spec.shape in body should match '^[a-z]+$'"#,
            r#"spec.short: Invalid value: "ab": spec.short in body should be at least 3 chars long"#,
            "spec.step: Invalid value: 7: spec.step in body should be a multiple of 5",
            "spec.must: Required value",
        ],
    );
}

#[test]
fn condition_that_fails_has_no_field() {
    let spec = json!({"type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    });
    assert_errors(
        &spec,
        &json!({"a": "1", "b": "2"}),
        &[
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    assert_errors(
        &spec,
        &json!({}),
        &[
            r#"<nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.a: Required value",
        ],
    );
    let not = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "not": {"required": ["a"]}});
    let text = r#"<nil>: Invalid value: "": "spec" must not validate the schema (not)"#;
    assert_errors(&not, &json!({"a": "1"}), &[text]);
}

#[test]
fn second_occurrence_in_a_set_or_a_list_map_is_a_duplicate() {
    let spec = json!({"type": "object", "properties": {
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"}, "protocol": {"type": "string"}}}},
    }});
    let value = json!({"tags": ["a", "b", "a", "a"],
        "ports": [{"port": 1, "protocol": "TCP"}, {"port": 1}, {"port": 1, "protocol": "TCP"}]});
    assert_errors(
        &spec,
        &value,
        &[
            r#"spec.ports[2]: Duplicate value: {"port":1,"protocol":"TCP"}"#,
            r#"spec.tags[2]: Duplicate value: "a""#,
        ],
    );
}

#[test]
fn unchanged_value_is_not_checked_again() {
    let schema = schema(&json!({"type": "object", "properties": {
        "a": {"type": "integer", "maximum": 1}, "b": {"type": "integer", "maximum": 1},
        "list": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "size": {"type": "integer", "maximum": 1}}}},
        "atomic": {"type": "array", "items": {"type": "integer", "maximum": 1}},
    }}));
    let old = json!({"spec": {"a": 5, "b": 1, "list": [{"name": "x", "size": 5}], "atomic": [5]}});
    let new = json!({"spec": {"a": 5, "b": 6,
        "list": [{"name": "y", "size": 6}, {"name": "x", "size": 5}], "atomic": [5, 1]}});
    let errors = schema.validate(&new, Some(&old));
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["spec.atomic[0]", "spec.b", "spec.list[0].size"]);
}

#[test]
fn pruning_keeps_declared_preserved_and_embedded_fields() {
    let schema = schema(&json!({"type": "object", "properties": {
        "known": {"type": "object", "properties": {"a": {"type": "string"}}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "inner": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {}}},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
            "spec": {"type": "object"}}},
    }}));
    let mut object = json!({"kind": "Foo", "metadata": {"x": 1}, "top": 1, "spec": {
        "known": {"a": "1", "b": 2}, "any": {"x": {"y": 1}},
        "half": {"x": 1, "inner": {"a": "1", "b": 2}}, "map": {"k": {"x": 1}},
        "embedded": {"kind": "Pod", "metadata": {"name": "a"}, "status": {}, "spec": {"x": 1}},
    }});
    let removed = schema.prune(&mut object);
    let expected = [
        "spec.embedded.spec.x",
        "spec.embedded.status",
        "spec.half.inner.b",
        "spec.known.b",
        "spec.map.k.x",
        "top",
    ];
    assert_eq!(removed, expected);
    assert_eq!(
        object,
        json!({"kind": "Foo", "metadata": {"x": 1}, "spec": {
            "known": {"a": "1"}, "any": {"x": {"y": 1}},
            "half": {"x": 1, "inner": {"a": "1"}}, "map": {"k": {}},
            "embedded": {"kind": "Pod", "metadata": {"name": "a"}, "spec": {}},
        }})
    );
}

#[test]
fn defaults_fill_absent_fields_also_inside_a_default() {
    let schema = schema(&json!({"type": "object", "default": {"size": 7}, "properties": {
        "size": {"type": "integer", "default": 3},
        "inner": {"type": "object", "default": {}, "properties": {
            "a": {"type": "string", "default": "x"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {
            "b": {"type": "string", "default": "y"}}}},
        "maybe": {"type": "string", "nullable": true, "default": "z"},
        "gone": {"type": "string"},
    }}));
    let mut absent = json!({});
    schema.set_defaults(&mut absent);
    let expected = json!({"spec": {"size": 7, "inner": {"a": "x"}, "maybe": "z"}});
    assert_eq!(absent, expected);
    let mut object = json!({"spec": {"size": null, "list": [{}], "maybe": null, "gone": null}});
    schema.prune_nulls(&mut object);
    schema.set_defaults(&mut object);
    assert_eq!(
        object,
        json!({"spec": {"size": 3, "inner": {"a": "x"}, "list": [{"b": "y"}], "maybe": null}})
    );
}

#[test]
fn metadata_name_can_be_restricted() {
    let schema = Schema::from_open_api(&json!({"type": "object", "properties": {
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}},
    }}));
    let errors = schema.validate(&json!({"metadata": {"name": "long"}}), None);
    assert_eq!(errors[0].to_string(), "metadata.name: Too long: may not be more than 3 bytes");
}

#[track_caller]
fn assert_structural(schema: &Value, expected: &[&str]) {
    let errors = check_structural(schema, "s");
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected);
}

#[test]
fn schema_without_structure_is_refused() {
    assert_structural(&json!({}), &["s.type: Required value: must not be empty at the root"]);
    assert_structural(
        &json!({"type": "array"}),
        &[
            "s.items: Required value: must be specified",
            r#"s.type: Invalid value: "array": must be object at the root"#,
        ],
    );
    assert_structural(
        &json!({"type": "object", "additionalProperties": {"type": "string"}}),
        &["s.additionalProperties: Forbidden: must not be used at the root"],
    );
    assert_structural(
        &json!({"type": "object", "properties": {"metadata": {"type": "object", "properties":
            {"labels": {"type": "object"}}}}}),
        &["s.properties[metadata]: Forbidden: must not specify anything other than name and \
           generateName, but metadata is implicitly specified"],
    );
    assert_structural(
        &json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [
            {"properties": {"a": {"type": "string"}, "b": {"minimum": 1}}}]}),
        &[
            "s.anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
            "s.properties[b]: Required value: because it is defined in s.anyOf[0].properties[b]",
        ],
    );
    let int_or_string = json!({"type": "object", "properties": {"p": {
        "x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}});
    assert_structural(&int_or_string, &[]);
}

#[test]
fn number_or_text_passes_the_pattern_of_int_or_string() {
    let spec = json!({"type": "object", "properties": {"p": {
        "x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}});
    assert_errors(&spec, &json!({"p": 1}), &[]);
    assert_errors(&spec, &json!({"p": "http"}), &[]);
}

#[test]
fn list_map_in_another_order_is_unchanged() {
    let list = json!({"type": "array", "maxItems": 1, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"],
        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}});
    let schema = Schema::from_open_api(&json!({"type": "object", "properties": {"l": list}}));
    let of = |v: u64| json!({"k": "a", "v": v});
    let old = json!({"l": [of(1), {"k": "b"}]});
    assert_eq!(schema.validate(&json!({"l": [{"k": "b"}, of(1)]}), Some(&old)), []);
    let changed = schema.validate(&json!({"l": [{"k": "b"}, of(2)]}), Some(&old));
    assert_eq!(changed[0].to_string(), "l: Too many: 2: must have at most 1 item");
}

#[test]
fn duplicates_are_accepted_if_the_old_object_has_some() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let schema = Schema::from_open_api(&json!({"type": "object", "properties": {
        "a": set, "b": set}}));
    let both = json!({"a": ["x", "x"], "b": ["y", "y"]});
    assert_eq!(schema.validate(&both, Some(&json!({"a": ["x", "x"], "b": ["y"]}))), []);
    let errors = schema.validate(&both, Some(&json!({"a": ["x"], "b": ["y"]})));
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["a[1]", "b[1]"]);
}

#[test]
fn type_of_an_object_is_checked_even_if_it_did_not_change() {
    let kind = json!({"type": "string", "pattern": "^A$"});
    let schema = Schema::from_open_api(&json!({"type": "object", "properties": {"kind": kind}}));
    let object = json!({"kind": "B"});
    assert_eq!(schema.validate(&object, Some(&object)).len(), 1);
}
