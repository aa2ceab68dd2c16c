use serde_json::{Value, json};

use super::*;
use crate::read_objects::decoded;

fn schema(name: &str, precedence: u32, level: &str, rule: &Value) -> Arc<FlowSchema> {
    let object = json!({
        "metadata": {"name": name, "uid": format!("uid of {name}")},
        "spec": {"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level},
            "rules": [rule]},
    });
    Arc::new(decoded(object.as_object().unwrap()))
}

fn level(name: &str, shares: u32) -> Arc<PriorityLevel> {
    let object = json!({
        "metadata": {"name": name, "uid": format!("uid of {name}")},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": shares}},
    });
    Arc::new(decoded(object.as_object().unwrap()))
}

fn everything(subject: &Value) -> Value {
    json!({
        "subjects": [subject],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
            "clusterScope": true, "namespaces": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    })
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "user": {"name": name}})
}

fn resource(verb: &str, namespace: &str, resource: &str, subresource: &str) -> Attributes {
    let [verb, namespace, resource, subresource] =
        [verb, namespace, resource, subresource].map(str::to_owned);
    Attributes { verb, namespace, resource, subresource, ..Attributes::default() }
}

fn path(path: &str) -> Attributes {
    let (verb, path) = ("get".to_owned(), Some(path.to_owned()));
    Attributes { verb, path, ..Attributes::default() }
}

/// Returns true if a schema with this rule takes a request.
fn takes(rule: &Value, client: &User, request: &Attributes) -> bool {
    let control = FlowControl::new(&[schema("one", 1, "low", rule)], vec![level("low", 1)]);
    control.flow_of(client, request).unwrap().schema == "uid of one"
}

#[test]
fn first_schema_in_order_that_matches_names_the_flow() {
    let schemas = [
        schema("last", 30, "low", &everything(&user("*"))),
        schema("b", 20, "low", &everything(&user("jane"))),
        schema("a", 20, "high", &everything(&user("jane"))),
        schema("first", 10, "high", &everything(&user("john"))),
    ];
    let control = FlowControl::new(&schemas, vec![level("low", 1), level("high", 1)]);
    let flow = |name: &str| {
        let Flow { schema, level } = control.flow_of(&User::new(name), &path("/version")).unwrap();
        (schema, level)
    };
    assert_eq!(flow("jane"), ("uid of a".to_owned(), "uid of high".to_owned()));
    assert_eq!(flow("john"), ("uid of first".to_owned(), "uid of high".to_owned()));
    assert_eq!(flow("mary"), ("uid of last".to_owned(), "uid of low".to_owned()));
}

#[test]
fn schema_without_its_level_takes_no_request() {
    let schemas = [schema("one", 1, "gone", &everything(&user("*")))];
    let control = FlowControl::new(&schemas, vec![level(CATCH_ALL, 5)]);
    assert!(!control.has_level("gone") && control.has_level(EXEMPT));
    let flow = control.flow_of(&User::new("jane"), &path("/version"));
    let level = format!("uid of {CATCH_ALL}");
    assert_eq!(flow, Some(Flow { schema: String::new(), level }));
}

#[test]
fn administrators_are_exempt_even_while_that_schema_is_deleted() {
    let schemas = [schema("one", 1, "low", &everything(&user("*")))];
    let control = FlowControl::new(&schemas, vec![level("low", 1)]);
    let flow = control.flow_of(&User::admin(), &path("/version"));
    assert_eq!(flow, Some(Flow::default()));
}

#[test]
fn request_that_lasts_has_no_flow_unless_it_is_a_watch() {
    let control = FlowControl::default();
    let jane = User::new("jane");
    for subresource in Attributes::LONG_RUNNING {
        let get = resource("get", "default", "pods", subresource);
        assert_eq!(control.flow_of(&jane, &get), None, "{subresource}");
    }
    assert!(control.flow_of(&jane, &resource("watch", "default", "pods", "")).is_some());
    assert!(control.flow_of(&jane, &resource("get", "default", "pods", "status")).is_some());
}

#[test]
fn subject_is_a_user_or_a_group_or_an_account() {
    let request = path("/version");
    let is = |subject: Value, client: &User| takes(&everything(&subject), client, &request);
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let account = |namespace: &str, name: &str| {
        json!({"kind": "ServiceAccount",
            "serviceAccount": {"namespace": namespace, "name": name}})
    };
    let (jane, web) = (User::new("jane").in_group("dev"), User::service_account("shop", "web"));
    assert!(is(user("jane"), &jane) && is(user("*"), &jane) && !is(user("john"), &jane));
    assert!(is(group("dev"), &jane) && is(group("*"), &jane) && !is(group("ops"), &jane));
    assert!(is(account("shop", "web"), &web) && is(account("shop", "*"), &web));
    assert!(!is(account("shop", "api"), &web) && !is(account("shops", "*"), &web));
    assert!(!is(account("shop", "*"), &jane) && !is(json!({"kind": "User"}), &jane));
}

#[test]
fn rule_names_verb_group_resource_and_scope() {
    let rule = |namespaces: Value, scope: bool| {
        json!({"subjects": [user("*")], "resourceRules": [{
            "verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/status"],
            "clusterScope": scope, "namespaces": namespaces}]})
    };
    let jane = User::new("jane");
    let of_shop = rule(json!(["shop"]), false);
    assert!(takes(&of_shop, &jane, &resource("get", "shop", "pods", "")));
    assert!(takes(&of_shop, &jane, &resource("list", "shop", "pods", "status")));
    for other in [
        resource("watch", "shop", "pods", ""),
        resource("get", "shop", "secrets", ""),
        resource("get", "shop", "pods", "scale"),
        resource("get", "default", "pods", ""),
        resource("get", "", "pods", ""),
        path("/version"),
    ] {
        assert!(!takes(&of_shop, &jane, &other), "{other:?}");
    }
    let of_apps = Attributes { group: "apps".to_owned(), ..resource("get", "shop", "pods", "") };
    assert!(!takes(&of_shop, &jane, &of_apps));
    let all = resource("list", "", "pods", "");
    assert!(takes(&rule(json!(null), true), &jane, &all));
    assert!(!takes(&rule(json!(["*"]), false), &jane, &all));
}

#[test]
fn path_is_covered_by_its_own_rule_and_by_that_of_a_parent() {
    for (rule, covered, other) in [
        ("/healthz", "/healthz", "/healthzs"),
        ("/healthz", "/healthz/ping", "/livez"),
        ("/healthz/*", "/healthz/ping", "/healthz"),
        ("/a/", "/a/b", "/ab"),
    ] {
        assert!(schema::covers(rule, covered), "{rule} {covered}");
        assert!(!schema::covers(rule, other), "{rule} {other}");
    }
    assert!(schema::covers("*", "/any") && schema::covers("/*", "/any"));
}

#[test]
fn seats_are_shared_and_rounded_up() {
    let control = FlowControl::new(&[], vec![level("a", 10), level("b", 20)]);
    let seats = control.nominal_seats();
    assert_eq!(seats, [("a", 172), ("b", 343), (CATCH_ALL, 86), (EXEMPT, 0)]);
    let none = FlowControl::new(&[], vec![level(CATCH_ALL, 0), level(EXEMPT, 0)]);
    assert_eq!(none.nominal_seats(), [(CATCH_ALL, 0), (EXEMPT, 0)]);
}
