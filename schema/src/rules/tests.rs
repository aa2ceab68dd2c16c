use serde_json::{Value, json};

use super::{Rules, Verdict};
use crate::definition::check_open_api;

/// Compiles the rules of a schema whose only field is `spec`.
#[track_caller]
fn rules_of(spec: &Value) -> Rules {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    assert_eq!(check_open_api(&schema, "s", false), []);
    Rules::from_open_api(&schema)
}

/// Compiles rules that a definition may not have, because they may cost too much.
#[track_caller]
fn costly_rules_of(spec: &Value) -> Rules {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let errors = check_open_api(&schema, "s", false);
    assert!(errors[0].message.contains("estimated rule cost exceeds budget"), "{errors:?}");
    Rules::from_open_api(&schema)
}

fn texts(rules: &Rules, new: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
    let object = |spec: &Value| json!({"spec": spec});
    let Verdict { errors, warnings } = rules.check(&object(new), old.map(object).as_ref());
    let shown = |list: Vec<crate::FieldError>| list.iter().map(ToString::to_string).collect();
    (shown(errors), shown(warnings))
}

fn list_of(items: &Value) -> Value {
    json!({"type": "object", "properties": {"list": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
        "items": items,
    }}})
}

#[test]
fn old_item_is_the_one_with_the_same_keys() {
    let rules = rules_of(&list_of(&json!({
        "type": "object", "required": ["id"],
        "properties": {"id": {"type": "string"}, "n": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.n >= oldSelf.n", "fieldPath": ".n"}],
    })));
    let old = json!({"list": [{"id": "a", "n": 1}, {"id": "b", "n": 5}]});
    let new = json!({"list": [{"id": "b", "n": 4}, {"id": "c", "n": 0}, {"id": "a", "n": 1}]});
    let expected = "spec.list[0].n: Invalid value: failed rule: self.n >= oldSelf.n";
    assert_eq!(texts(&rules, &new, Some(&old)), (vec![expected.to_owned()], vec![]));
    assert_eq!(texts(&rules, &new, None), (vec![], vec![]));
}

#[test]
fn unchanged_value_breaks_rules_with_a_warning() {
    let rules = rules_of(&json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]},
            "list": {"type": "array", "items": {
                "type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}],
            }},
        },
        "x-kubernetes-validations": [{"rule": "self.n > 3", "message": "small"}],
    }));
    let old = json!({"n": 1, "list": [1]});
    let [own, whole] =
        ["spec.n: Invalid value: 1: failed rule: self > 5", "spec: Invalid value: small"];
    let item = "spec.list[0]: Invalid value: 1: failed rule: self > 5";
    let owned = |list: &[&str]| list.iter().copied().map(str::to_owned).collect::<Vec<_>>();

    assert_eq!(texts(&rules, &old, None), (owned(&[whole, item, own]), vec![]));
    assert_eq!(texts(&rules, &old, Some(&old)), (vec![], owned(&[whole, item, own])));
    let longer = json!({"n": 1, "list": [1, 7]});
    // Items of this list have no identity: none counts as unchanged after a change of the list.
    assert_eq!(texts(&rules, &longer, Some(&old)), (owned(&[whole, item]), owned(&[own])));
}

#[test]
fn message_expression_that_fails_gives_way_to_the_message() {
    let message = |expression: &str| {
        let rules = rules_of(&json!({
            "type": "object", "properties": {
                "n": {"type": "integer"}, "s": {"type": "string", "maxLength": 100},
            },
            "x-kubernetes-validations": [
                {"rule": "self.n > 1", "message": "plain", "messageExpression": expression},
            ],
        }));
        let (errors, _) = texts(&rules, &json!({"n": 0, "s": "x\ny"}), None);
        errors[0].rsplit(": ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(message("'%d is small'.format([self.n])"), "0 is small");
    assert_eq!(message("string(1 / self.n)"), "plain");
    assert_eq!(message("' '"), "plain");
    assert_eq!(message("self.s"), "plain");
}

#[test]
fn steps_of_a_rule_are_bounded() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let rule = "self.a.all(x, self.a.all(y, self.a.all(z, x + y + z >= 0)))";
    let rules = costly_rules_of(&json!({
        "type": "object", "properties": {"a": list},
        "x-kubernetes-validations": [{"rule": rule, "message": "m"}, {"rule": "false"}],
    }));
    let numbers: Vec<i64> = (0..200).collect();
    let (errors, _) = texts(&rules, &json!({"a": numbers}), None);
    let expected = "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit \
                    exceeded': no further validation rules will be run due to call cost exceeds \
                    limit for rule: m";
    assert_eq!(errors, [expected]);
}

#[test]
fn steps_of_all_rules_are_bounded() {
    let rule = "self.c.all(x, self.c.all(y, self.c.all(z, x + y + z >= 0)))";
    let rules = costly_rules_of(&json!({
        "type": "object", "properties": {
            "b": {"type": "array", "items": {"type": "object", "properties": {
                "c": {"type": "array", "items": {"type": "integer"}}},
                "x-kubernetes-validations": [{"rule": rule}],
            }},
        },
    }));
    let numbers: Vec<i64> = (0..10).collect();
    let many: Vec<Value> = (0..50).map(|_| json!({"c": numbers})).collect();
    let object = json!({"spec": {"b": many}});
    assert_eq!(rules.check(&object, None).errors, []);
    let root = rules.root.as_deref().unwrap();
    // Each of the 50 rules takes more than 1,000 steps and less than 10,000.
    let errors = super::run::run(root, &object, None, 10_000).errors;
    assert_eq!(errors.len(), 1, "{errors:?}");
    let expected = "validation failed due to running out of cost budget, no further validation \
                    rules will be run";
    assert!(errors[0].message.ends_with(expected), "{errors:?}");
}

#[test]
fn rules_of_unusual_fields_run() {
    let rules = rules_of(&json!({
        "type": "object", "properties": {
            "1st": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}]},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "null": {"type": "string", "nullable": true,
                "x-kubernetes-validations": [{"rule": "self == 'x'"}]},
        },
    }));
    let (errors, _) = texts(&rules, &json!({"1st": 0, "any": 1, "null": null}), None);
    assert_eq!(errors, ["spec.1st: Invalid value: 0: failed rule: self > 0"]);
}

#[test]
fn embedded_object_has_its_type_and_name() {
    let rules = rules_of(&json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-validations": [{"rule": "self.kind == 'Pod' && self.metadata.name != ''"}],
    }));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    assert_eq!(texts(&rules, &pod, None), (vec![], vec![]));
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}});
    assert_eq!(texts(&rules, &node, None).0.len(), 1);
}

/// Returns the errors of the rules of a schema.
fn errors_of(schema: &Value) -> Vec<(String, String)> {
    let errors = check_open_api(schema, "s", false);
    errors.into_iter().map(|error| (error.field, error.message)).collect()
}

#[test]
fn rule_counts_for_each_value_that_it_is_about() {
    let numbers = json!({"type": "array", "maxItems": 1000, "items": {"type": "integer"}});
    let rule = json!([{"rule": "self.n.all(x, self.n.all(y, x != y))"}]);
    let places = |most: Value| {
        let mut list = json!({"type": "array", "items": {
            "type": "object", "properties": {"n": numbers}, "x-kubernetes-validations": rule,
        }});
        if most.is_number() {
            list["maxItems"] = most;
        }
        errors_of(&json!({"type": "object", "properties": {"l": list}}))
    };
    assert_eq!(places(json!(1)), []);
    let [(at, text)] = places(json!(3)).try_into().unwrap();
    assert_eq!(at, "s.properties[l].items.x-kubernetes-validations[0].rule");
    assert!(text.contains("factor of 1.5x"), "{text}");
    // Without a limit, as many values count as fit in a request.
    let [(_, own), (_, named), (at, sum)] = places(Value::Null).try_into().unwrap();
    assert!(own.contains("more than 100x") && sum.contains("more than 100x"), "{own} {sum}");
    assert!(named.contains("contributed to estimated rule cost total"), "{named}");
    assert_eq!(at, "s");
}

#[test]
fn sum_of_all_rules_is_limited() {
    let numbers = json!({"type": "array", "maxItems": 1000, "items": {"type": "integer"}});
    let rule = |at: usize| json!({"rule": format!("self.n.all(x, self.n.all(y, x + {at} != y))")});
    let schema = |count: usize| {
        let rules: Vec<Value> = (0..count).map(rule).collect();
        json!({"type": "object", "properties": {"spec": {"type": "object",
            "properties": {"n": numbers}, "x-kubernetes-validations": rules}}})
    };
    assert_eq!(errors_of(&schema(15)), []);
    let errors = errors_of(&schema(21));
    // The four largest are named.
    assert_eq!(errors.len(), 5, "{errors:?}");
    assert!(errors[4].1.contains("total for entire OpenAPIv3 schema exceeds budget by factor of"));
}

#[test]
fn rules_of_items_of_an_object_are_errors_where_a_list_is_left() {
    let backend = |stated: &str| {
        json!({"type": stated, "items": {"type": "object", "properties": {"n": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.n < 9"}]}})
    };
    let rules = |stated: &str| {
        Rules::from_open_api(&json!({"type": "object", "properties": {"b": backend(stated)}}))
    };
    let object = json!({"b": [{"n": 1}]});
    assert_eq!(rules("array").check(&object, Some(&object)), Verdict::default());
    let verdict = rules("object").check(&object, Some(&object));
    let errors: Vec<String> = verdict.errors.iter().map(ToString::to_string).collect();
    let expected = "b[0]: Invalid value: \"object\": rule compiler initialization error: failed to \
        convert to declType for CEL validation rules";
    assert_eq!(errors, [expected]);
    assert_eq!(rules("object").check(&json!({"b": {}}), None), Verdict::default());
}
