use serde_json::{Value, json};

use super::{Policy, PolicyInput};
use crate::authorizer::{AccessCheck, AccessDecision, Authorizer};

/// Permits the request's user what begins with `may`, and service accounts everything.
#[derive(Debug)]
struct Roles;

impl Authorizer for Roles {
    fn authorize(&self, check: &AccessCheck) -> AccessDecision {
        let allowed = check.account.is_some() || check.verb.starts_with("may");
        let AccessCheck { verb, group, resource, subresource, namespace, name, path, .. } = check;
        let path = path.as_deref().unwrap_or_default();
        let reason = format!("{verb} {group}/{resource}/{subresource} {namespace}/{name} {path}");
        AccessDecision { allowed, reason }
    }
}

/// Returns the messages of a policy for an object.
fn messages(spec: &Value, object: &Value) -> Vec<String> {
    let mut input = PolicyInput::new(&Roles);
    input.object = object.clone();
    input.request = json!({"operation": "CREATE", "resource": {"version": "v1"}});
    input.condition_request = json!({"operation": "CREATE", "resource": {"version": "v2"}});
    input.namespace = json!({"metadata": {"name": "shop"}});
    input.resource = AccessCheck::of_resource("apps", "deployments", "scale").of_object("ns", "a");
    assert!(Policy::problems(spec).is_empty(), "{:?}", Policy::problems(spec));
    Policy::compile(spec).check(&input).into_iter().map(|finding| finding.message).collect()
}

#[track_caller]
fn assert_holds(expression: &str) {
    let spec = json!({"validations": [{"expression": expression}]});
    assert_eq!(messages(&spec, &json!({"a": 1, "s": "x"})), [""; 0], "{expression}");
}

fn problems(spec: &Value) -> Vec<String> {
    Policy::problems(spec).iter().map(ToString::to_string).collect()
}

#[test]
fn message_is_computed_or_stated_or_the_expression() {
    let spec = json!({"validations": [
        {"expression": "object.a == 2", "messageExpression": "'a is ' + string(object.a)"},
        {"expression": "object.a == 2", "messageExpression": "' '", "message": " stated "},
        {"expression": " object.a == 2 ", "messageExpression": "string(object.b)"},
        {"expression": "object.a == 1", "message": "holds"},
    ]});
    let expected = ["a is 1", "stated", "failed expression: object.a == 2"];
    assert_eq!(messages(&spec, &json!({"a": 1})), expected);
}

#[test]
fn variable_is_evaluated_when_it_is_read() {
    let spec = json!({
        "variables": [
            {"name": "a", "expression": "object.a"},
            {"name": "twice", "expression": "variables.a + variables.a"},
            {"name": "broken", "expression": "object.missing"},
        ],
        "validations": [
            {"expression": "[7].all(object, variables.a == 1 && object == 7)"},
            {"expression": "variables.twice == 2"},
            {"expression": "has(variables.broken) && variables.?twice.orValue(0) == 2"},
            {"expression": "object.a == 1 || variables.broken == 1"},
        ],
    });
    assert_eq!(messages(&spec, &json!({"a": 1})), [""; 0]);
    let failed = messages(&spec, &json!({"a": 2}));
    let text = "expression 'object.a == 1 || variables.broken == 1' resulted in error: composited \
                variable \"broken\" fails to evaluate: no such key: missing";
    assert_eq!(failed.last().unwrap(), text);
}

#[test]
fn variables_of_one_name_do_not_recurse() {
    let spec = json!({
        "variables": [
            {"name": "a", "expression": "1"},
            {"name": "a", "expression": "variables.a + 1"},
        ],
        "validations": [{"expression": "variables.a == 2"}],
    });
    assert!(messages(&spec, &json!({}))[0].ends_with("a variable reads itself"));
}

#[test]
fn deep_variables_are_refused() {
    let mut variables = vec![json!({"name": "v0", "expression": "[1]"})];
    for next in 1..300 {
        let expression = format!("[variables.v{}]", next - 1);
        variables.push(json!({"name": format!("v{next}"), "expression": expression}));
    }
    let spec = json!({"variables": variables, "validations": [{"expression": "true"}]});
    let found = problems(&spec);
    assert!(found[0].ends_with("expression recursion limit exceeded: 250"), "{}", found[0]);
}

#[test]
fn types_that_double_are_compiled_quickly() {
    let mut variables = vec![json!({"name": "v0", "expression": "{1: 1}"})];
    for next in 1..60 {
        let expression = format!("{{variables.v{0}: variables.v{0}}}", next - 1);
        variables.push(json!({"name": format!("v{next}"), "expression": expression}));
    }
    let all: String = (0..60).map(|_| ".map(x, {x: x})").collect();
    let spec = json!({"variables": variables, "validations": [
        {"expression": "size(variables.v59) == 1"}, {"expression": format!("[1]{all} == []")},
    ]});
    assert!(problems(&spec).is_empty(), "{:?}", problems(&spec));
}

#[test]
fn all_steps_of_a_policy_are_limited() {
    let costly = "lists.range(400).all(x, lists.range(400).all(y, x + y >= 0))";
    let budget = "validation failed due to running out of cost budget, no further validation rules \
                  will be run";
    let many = vec![json!({"expression": costly}); 30];
    assert_eq!(messages(&json!({"validations": many}), &json!({})), [budget]);
    let variables: Vec<Value> =
        (0..30).map(|n| json!({"name": format!("v{n}"), "expression": costly})).collect();
    let all: Vec<String> = (0..30).map(|n| format!("variables.v{n}")).collect();
    let all = json!([{"expression": all.join(" && ") + " == true"}]);
    let spec = json!({"variables": variables, "validations": all});
    assert_eq!(messages(&spec, &json!({})), [budget]);
    let ignored = json!({"failurePolicy": "Ignore", "validations": many});
    assert_eq!(messages(&ignored, &json!({})), [""; 0]);
}

#[test]
fn failure_is_ignored_if_the_policy_says_so() {
    let validations = json!([{"expression": "object.b == 1"}, {"expression": "object.a == 2"}]);
    let annotations = json!([{"key": "k", "valueExpression": "string(object.b)"}]);
    let mut spec = json!({"validations": validations, "auditAnnotations": annotations});
    assert_eq!(messages(&spec, &json!({"a": 1})).len(), 3);
    spec["failurePolicy"] = json!("Ignore");
    assert_eq!(messages(&spec, &json!({"a": 1})), ["failed expression: object.a == 2"]);
}

#[test]
fn false_condition_wins_over_failed_ones() {
    let conditions = |list: &[&str]| {
        let list: Vec<Value> =
            list.iter().map(|one| json!({"name": "n", "expression": one})).collect();
        json!({"matchConditions": list, "validations": [{"expression": "false", "message": "no"}]})
    };
    let of = |list: &[&str]| messages(&conditions(list), &json!({"a": 1}));
    assert_eq!(of(&["object.a == 1", "true"]), ["no"]);
    assert_eq!(of(&["object.b == 1", "object.a == 2"]), [""; 0]);
    let failed = "expression 'object.b == 1' resulted in error: no such key: b";
    assert_eq!(of(&["object.b == 1", "true"]), [failed]);
    assert_eq!(of(&["object.b == 1", "object.b == 1"]), [failed]);
    let both = of(&["object.b == 1", "object.c == 1"]);
    assert_eq!(both, [format!("[{failed}, {}]", failed.replace("b ", "c ").replace(": b", ": c"))]);
    assert_eq!(of(&["namespaceObject == null && request.resource.version == 'v2'"]), ["no"]);
}

#[test]
fn null_has_no_fields() {
    assert_holds("oldObject == null");
    assert_holds("!has(oldObject.a) && oldObject.?a.orValue(7) == 7 && !has(object.s.t)");
    let spec = json!({"paramKind": {}, "validations": [{"expression": "params.a == 1"}]});
    let expected = "expression 'params.a == 1' resulted in error: no such key: a";
    assert_eq!(messages(&spec, &json!({})), [expected]);
}

#[test]
fn authorizer_decides_with_all_that_is_stated() {
    assert_holds("authorizer.requestResource.check('may').allowed()");
    assert_holds(
        "authorizer.requestResource.check('x').reason() == 'x apps/deployments/scale ns/a '",
    );
    assert_holds("!authorizer.requestResource.name('b').check('x').errored()");
    assert_holds(
        "authorizer.group('g').resource('r').subresource('s').namespace('n').name('m').check('v')
         .reason() == 'v g/r/s n/m '",
    );
    assert_holds("authorizer.path('/a').check('get').reason() == 'get // / /a'");
    assert_holds(
        "authorizer.serviceAccount('n', 'a').group('').resource('r').check('x').allowed()",
    );
    let failing = |expression: &str| {
        let spec = json!({"validations": [{"expression": expression}]});
        messages(&spec, &json!({})).remove(0)
    };
    let invalid = "authorizer.serviceAccount('N', 'a').path('/').check('x').allowed()";
    assert!(failing(invalid).ends_with("Invalid service account namespace"));
    let twice = "authorizer.path('/').check('may').allowed()";
    let thrice = [twice; 3].join(" && ");
    assert!(failing(&thrice).ends_with("actual cost limit exceeded"), "{}", failing(&thrice));
}

#[test]
fn problems_name_the_place_of_an_expression() {
    let spec = json!({
        "matchConditions": [{"name": "a", "expression": " variables.a "}],
        "variables": [{"name": "a", "expression": "'x'"}, {"name": "b", "expression": "nope"}],
        "validations": [
            {"expression": "variables.a", "messageExpression": "authorizer"},
            {"expression": "variables.b && params.x"},
            {"expression": ""},
        ],
        "auditAnnotations": [{"key": "k", "valueExpression": "1"}],
    });
    let found = problems(&spec);
    let expected = [
        "spec.matchConditions[0].expression: Invalid value: \"variables.a\": compilation failed",
        "spec.variables[1].expression: Invalid value: \"nope\": compilation failed",
        "spec.validations[0].expression: Invalid value: \"variables.a\": must evaluate to bool but \
         got string",
        "spec.validations[0].messageExpression: Invalid value: \"authorizer\": compilation failed",
        "spec.validations[1].expression: Invalid value: \"variables.b && params.x\": compilation",
        "spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of \
         [string null_type] but got int",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}
