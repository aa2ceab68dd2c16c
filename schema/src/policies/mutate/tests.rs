use serde_json::{Map, Value, json};

use crate::authorizer::{AccessCheck, AccessDecision, Authorizer};
use crate::built_in::schema_of;
use crate::{Policy, PolicyInput, PolicyPatch, merge_configuration};

#[derive(Debug)]
struct NoPermissions;

impl Authorizer for NoPermissions {
    fn authorize(&self, _: &AccessCheck) -> AccessDecision {
        AccessDecision::default()
    }
}

/// Returns the change that a mutation makes of an object.
fn mutated(patch_type: &str, expression: &str, object: &Value) -> Result<PolicyPatch, String> {
    let member = if patch_type == "JSONPatch" { "jsonPatch" } else { "applyConfiguration" };
    let mutation = json!({"patchType": patch_type, member: {"expression": expression}});
    let spec = json!({"mutations": [mutation]});
    assert!(Policy::problems(&spec).is_empty(), "{:?}", Policy::problems(&spec));
    let mut input = PolicyInput::new(&NoPermissions);
    input.object = object.clone();
    Policy::compile(&spec).mutate(0, &input)
}

fn configuration(expression: &str) -> Result<Map<String, Value>, String> {
    let object = json!({"spec": {"replicas": 2, "list": [{"a": 1}]}});
    match mutated("ApplyConfiguration", expression, &object)? {
        PolicyPatch::Configuration(configuration) => Ok(configuration),
        PolicyPatch::Operations(operations) => Err(format!("{operations:?}")),
    }
}

fn operations(expression: &str) -> Result<Value, String> {
    match mutated("JSONPatch", expression, &json!({"spec": {"replicas": 2}}))? {
        PolicyPatch::Operations(operations) => Ok(Value::Array(operations)),
        PolicyPatch::Configuration(configuration) => Err(format!("{configuration:?}")),
    }
}

fn problem(patch_type: &str, member: &str, expression: &str) -> String {
    let mutation = json!({"patchType": patch_type, member: {"expression": expression}});
    let problems = Policy::problems(&json!({"mutations": [mutation]}));
    problems.iter().map(|problem| problem.message.clone()).collect()
}

#[test]
fn object_is_made_of_its_parts() {
    let expression = "Object{spec: Object.spec{replicas: object.spec.replicas + 1, \
                      list: object.spec.list, half: 1.5, one: 1.0, \
                      names: [Object.spec.names{name: 'a'}], ?none: optional.none()}}";
    let spec = json!({"replicas": 3, "list": [{"a": 1}], "half": 1.5, "one": 1,
        "names": [{"name": "a"}]});
    assert_eq!(Value::Object(configuration(expression).unwrap()), json!({"spec": spec}));
}

#[test]
fn part_of_an_object_has_the_name_of_its_fields() {
    let found = configuration("Object{spec: Object.spec{list: [Object.list{a: 1}]}}").unwrap_err();
    assert_eq!(
        found,
        "type mismatch: unexpected type name \"Object.list\", expected \"Object.spec.list\", which \
         matches field name path from root Object type"
    );
}

#[test]
fn map_of_a_configuration_has_texts_as_keys() {
    let found = configuration("Object{spec: {1: 'a'}}").unwrap_err();
    assert_eq!(found, "invalid return type: *dynamic.ObjectVal");
}

#[test]
fn value_of_a_patch_may_be_anything_that_json_has() {
    let expression = "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('b/c~d'), value: [
        dyn(duration('90s')), dyn(timestamp('2026-01-02T03:04:05Z')), dyn(b'ab'), dyn(2.0),
        dyn(Object.spec{n: 7}), dyn(9007199254740993)
    ]}, JSONPatch{op: 'move', from: '/a', path: '/b'}]";
    let value = json!(["90s", "2026-01-02T03:04:05Z", "YWI=", 2, {"n": 7}, "9007199254740993"]);
    assert_eq!(
        operations(expression).unwrap(),
        json!([
            {"op": "add", "path": "/a/b~1c~0d", "value": value},
            {"op": "move", "path": "/b", "from": "/a"},
        ])
    );
}

#[test]
fn empty_list_is_no_list_of_patches_but_fits_one() {
    let empty = problem("JSONPatch", "jsonPatch", "[]");
    assert!(empty.ends_with("must evaluate to list(JSONPatch) but got list(dyn)"), "{empty}");
    assert_eq!(operations("true ? [] : [JSONPatch{op: 'remove', path: '/a'}]"), Ok(json!([])));
    assert_eq!(operations("[JSONPatch{op: 'a', path: 'b'}].filter(p, p.op != 'a')"), Ok(json!([])));
}

#[test]
fn types_of_mutations_are_unknown_elsewhere() {
    let spec = json!({"validations": [{"expression": "Object{} == jsonpatch.escapeKey('a')"}]});
    let found: String = Policy::problems(&spec).iter().map(|one| one.message.clone()).collect();
    for name in ["Object", "jsonpatch", "escapeKey"] {
        assert!(found.contains(&format!("undeclared reference to '{name}'")), "{found}");
    }
}

#[test]
fn constant_that_cannot_be_converted_is_an_internal_error() {
    let found = problem("ApplyConfiguration", "applyConfiguration", "Object{a: int('x')}");
    let expected = "Internal error: program instantiation failed: type conversion error from \
                    'string' to 'int'";
    assert_eq!(found, expected);
}

#[test]
fn atomic_parts_of_a_configuration_are_refused() {
    let schema = schema_of("apps", "v1", "Deployment").unwrap();
    let merged = |configuration: Value| {
        let object = json!({"spec": {"replicas": 1}});
        let (object, configuration) =
            (object.as_object().unwrap(), configuration.as_object().unwrap());
        merge_configuration(&schema, object, configuration)
    };
    let selector = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}});
    let refused = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
                   .spec.selector";
    assert_eq!(merged(selector), Err(refused.to_owned()));
    let annotations = json!({"metadata": {"annotations": {"a": "b"}}});
    assert!(merged(annotations).is_ok());
    let null = merged(json!({"spec": {"replicas": null}})).unwrap_err();
    assert!(null.contains(".spec.replicas: expected numeric"), "{null}");
}
