//! Decides on requests in a small world of its own.

use homeostat_core::LabelSelector;
use homeostat_schema::{AccessCheck, AccessDecision, Authorizer};
use serde_json::{Value, json};

use super::attributes::{Attributes, GroupKind, Matched, Operation, Place};
use super::binding::Binding;
use super::decide::{Denial, Outcome, decide};
use super::param_kind::ParamKind;
use super::policy::{Policies, Policy};
use super::world::World;
use crate::access::User;
use crate::fields::Fields;

/// A world with the namespace `shop`, and with the parameters `a` and `b`.
#[derive(Debug)]
struct Small;

impl Authorizer for Small {
    fn authorize(&self, _: &AccessCheck) -> AccessDecision {
        AccessDecision::default()
    }
}

impl World for Small {
    fn namespace(&self, name: &str) -> Option<Value> {
        (name == "shop").then(|| json!({"metadata": {"name": "shop", "labels": {"guard": "yes"}}}))
    }

    fn equivalents(&self, _: &Attributes<'_>) -> Vec<Matched> {
        let of = |version| Matched {
            resource: Place::new("", version, "configmaps"),
            kind: GroupKind::new("", version, "ConfigMap"),
        };
        ["v0", "v1"].map(of).into()
    }

    fn converted(&self, object: &Value, to: &Matched) -> Result<Value, String> {
        let mut object = object.clone();
        object["apiVersion"] = json!(to.kind.version);
        Ok(object)
    }

    fn is_namespaced(&self, kind: &ParamKind) -> Option<bool> {
        match kind.0.kind.as_str() {
            "Inside" => Some(true),
            "Outside" => Some(false),
            _ => None,
        }
    }

    fn param(&self, _: &ParamKind, namespace: &str, name: &str) -> Option<Value> {
        let object = json!({"metadata": {"name": name, "namespace": namespace}});
        ["a", "b"].contains(&name).then_some(object)
    }

    fn params(&self, kind: &ParamKind, namespace: &str, _: &LabelSelector) -> Vec<Value> {
        ["a", "b"].iter().filter_map(|name| self.param(kind, namespace, name)).collect()
    }

    fn authorizer(&self) -> &dyn Authorizer {
        self
    }
}

fn fields(value: &Value) -> Fields {
    value.as_object().cloned().unwrap_or_default()
}

/// Returns the rules for all that happens to `configmaps`.
fn rules() -> Value {
    json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
        "resources": ["configmaps"]}])
}

/// Returns the policy `p` that refuses everything, with changes.
fn refusing(change: impl FnOnce(&mut Value)) -> Value {
    let mut spec = json!({"matchConstraints": {"resourceRules": rules()},
        "validations": [{"expression": "false", "message": "no"}]});
    change(&mut spec);
    spec
}

fn request(user: &User) -> Attributes<'_> {
    Attributes {
        operation: Operation::Create,
        resource: Place::new("", "v1", "configmaps"),
        subresource: "",
        kind: GroupKind::new("", "v1", "ConfigMap"),
        namespace: "shop",
        name: "c",
        object: json!({"apiVersion": "v1", "metadata": {"name": "c", "labels": {"a": "b"}}}),
        old: Value::Null,
        options: Value::Null,
        dry_run: false,
        user,
    }
}

/// Decides on a request by the policy `p` with the binding `b`.
fn outcome(spec: &Value, binding: &Value, request: &Attributes<'_>) -> Outcome {
    let policy = Policy::read(&fields(&json!({"metadata": {"name": "p"}, "spec": spec})));
    let mut bound = json!({"policyName": "p", "validationActions": ["Deny"]});
    for (name, value) in fields(binding) {
        bound[name] = value;
    }
    let binding = Binding::read(&fields(&json!({"metadata": {"name": "b"}, "spec": bound})));
    decide(&Policies::new(&[policy.into()], &[binding.into()]), request, &Small)
}

/// Returns the text of the refusal of a request; `None` if it is accepted.
fn refusal(spec: &Value, binding: &Value, request: &Attributes<'_>) -> Option<String> {
    match outcome(spec, binding, request).denial? {
        Denial::Refused { message, .. } => Some(message),
        Denial::NoNamespace(name) => Some(format!("no namespace {name}")),
        Denial::Unconverted(why) => Some(why),
    }
}

/// Returns true if a policy with these constraints applies to a request.
fn applies(constraints: &Value, request: &Attributes<'_>) -> bool {
    let spec = refusing(|spec| {
        for (name, value) in fields(constraints) {
            spec["matchConstraints"][name] = value;
        }
    });
    refusal(&spec, &json!({}), request).is_some()
}

fn rule(member: &str, value: Value) -> Value {
    let mut rules = rules();
    rules[0][member] = value;
    json!({"resourceRules": rules})
}

#[test]
fn each_member_of_a_rule_restricts_it() {
    let user = User::new("jane");
    let request = request(&user);
    for (member, matching, other) in [
        ("operations", json!(["UPDATE", "CREATE"]), json!(["UPDATE"])),
        ("apiGroups", json!([""]), json!(["apps"])),
        ("resources", json!(["*"]), json!(["*/status"])),
        ("resources", json!(["*/*"]), json!(["configmaps/status", "secrets"])),
        ("scope", json!("Namespaced"), json!("Cluster")),
        ("resourceNames", json!(["d", "c"]), json!(["d"])),
    ] {
        assert!(applies(&rule(member, matching.clone()), &request), "{member}: {matching}");
        assert!(!applies(&rule(member, other.clone()), &request), "{member}: {other}");
    }
    assert!(!applies(&json!({"excludeResourceRules": rules()}), &request));
    let part = Attributes { subresource: "status", ..request };
    assert!(applies(&rule("resources", json!(["configmaps/*"])), &part));
    assert!(!applies(&json!({}), &part));
}

#[test]
fn selectors_see_the_object_and_its_namespace() {
    let user = User::new("jane");
    let selector = |key: &str| json!({"matchLabels": {key: if key == "guard" {"yes"} else {"b"}}});
    let (namespaces, objects) = ("namespaceSelector", "objectSelector");
    assert!(applies(&json!({namespaces: selector("guard")}), &request(&user)));
    assert!(!applies(&json!({namespaces: selector("a")}), &request(&user)));
    assert!(applies(&json!({objects: selector("a")}), &request(&user)));
    assert!(!applies(&json!({objects: selector("guard")}), &request(&user)));
    let mut deletion = request(&user);
    std::mem::swap(&mut deletion.object, &mut deletion.old);
    assert!(applies(&json!({objects: selector("a")}), &deletion), "the stored object counts, too");
    let cluster_scoped = Attributes { namespace: "", ..request(&user) };
    assert!(applies(&json!({namespaces: selector("a")}), &cluster_scoped));
}

#[test]
fn rule_for_another_version_sees_the_object_in_it() {
    let user = User::new("jane");
    let spec = |policy: &str| {
        refusing(|spec| {
            spec["matchConstraints"] = rule("apiVersions", json!(["v0"]));
            spec["matchConstraints"]["matchPolicy"] = json!(policy);
            spec["validations"][0]["messageExpression"] =
                json!("object.apiVersion + request.kind.version + request.requestKind.version");
        })
    };
    let refused = refusal(&spec("Equivalent"), &json!({}), &request(&user)).unwrap();
    assert!(refused.ends_with("denied request: v0v0v1"), "{refused}");
    assert_eq!(refusal(&spec("Exact"), &json!({}), &request(&user)), None);
}

#[test]
fn actions_decide_what_a_refusal_does() {
    let user = User::new("jane");
    let of = |actions: &[&str]| {
        outcome(&refusing(|_| {}), &json!({"validationActions": actions}), &request(&user))
    };
    let (denied, warned, silent) = (of(&["Deny", "Audit"]), of(&["Warn"]), of(&["Audit"]));
    assert!(denied.denial.is_some() && denied.warnings.is_empty());
    let warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no";
    assert_eq!((&warned.denial, &*warned.warnings), (&None, &[warning.to_owned()][..]));
    assert_eq!((&silent.denial, silent.warnings.len()), (&None, 0));
    let actions = |outcome: &Outcome| -> Vec<&'static str> {
        outcome.enforcements.iter().map(|enforcement| enforcement.action).collect()
    };
    let all = [&denied, &warned, &silent].map(actions);
    assert_eq!(all, [vec!["deny", "audit"], vec!["warn"], vec!["audit"]]);
    assert_eq!(silent.enforcements[0].error, "invalid_error");
}

#[test]
fn annotation_that_fails_refuses_whatever_the_actions_are() {
    let user = User::new("jane");
    let spec = refusing(|spec| {
        spec["validations"] = json!([]);
        spec["auditAnnotations"] = json!([{"key": "k", "valueExpression": "string(object.x)"}]);
    });
    let outcome = outcome(&spec, &json!({"validationActions": ["Warn"]}), &request(&user));
    assert!(outcome.denial.is_some() && outcome.warnings.is_empty());
}

#[test]
fn policies_and_reviews_are_exempt() {
    let user = User::new("jane");
    let spec = refusing(|spec| spec["matchConstraints"] = rule("resources", json!(["*"])));
    for (group, plural, is_exempt) in [
        ("admissionregistration.k8s.io", "validatingadmissionpolicies", true),
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", true),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", false),
        ("authorization.k8s.io", "subjectaccessreviews", true),
        ("example.com", "validatingadmissionpolicies", false),
    ] {
        let resource = Place::new(group, "v1", plural);
        let request = Attributes { resource, ..request(&user) };
        assert_eq!(refusal(&spec, &json!({}), &request).is_none(), is_exempt, "{plural}");
    }
}

#[test]
fn parameters_are_those_that_the_binding_names() {
    let user = User::new("jane");
    let message =
        "params == null ? 'none' : string(params.metadata.name + params.metadata.namespace)";
    let spec = |kind: &str| {
        refusing(|spec| {
            spec["paramKind"] = json!({"apiVersion": "e.com/v1", "kind": kind});
            spec["validations"] = json!([
                {"expression": "params != null && params.metadata.name == 'a'",
                "messageExpression": message},
            ]);
        })
    };
    let of = |kind: &str, reference: Value| {
        let text = refusal(&spec(kind), &json!({"paramRef": reference}), &request(&user));
        text.map(|text| text.split("denied request: ").nth(1).unwrap().to_owned())
    };
    let (some, text) = (|text: &str| Some(text.to_owned()), "no params found for policy binding");
    assert_eq!(of("Inside", Value::Null), some("none"));
    assert_eq!(of("Inside", json!({"name": "a"})), None);
    assert_eq!(of("Inside", json!({"name": "b"})), some("bshop"));
    assert_eq!(of("Inside", json!({"name": "b", "namespace": "other"})), some("bother"));
    assert_eq!(of("Inside", json!({"selector": {}})), some("bshop"));
    assert_eq!(of("Outside", json!({"name": "b"})), some("b"));
    assert_eq!(of("Inside", json!({"name": "c", "parameterNotFoundAction": "Allow"})), None);
    let missing = of("Inside", json!({"name": "c", "parameterNotFoundAction": "Deny"})).unwrap();
    assert!(missing.contains(text), "{missing}");
    let misplaced = of("Outside", json!({"name": "b", "namespace": "other"})).unwrap();
    assert!(misplaced.contains("must not be provided for a cluster-scoped"), "{misplaced}");
    let unknown = of("Odd", json!({"name": "a"})).unwrap();
    assert!(unknown.ends_with("paramKind: 'e.com/v1, Kind=Odd'"), "{unknown}");
}

#[test]
fn error_of_a_policy_is_ignored_if_it_says_so() {
    let user = User::new("jane");
    let spec = |failures: &str| {
        refusing(|spec| {
            spec["failurePolicy"] = json!(failures);
            spec["paramKind"] = json!({"apiVersion": "e.com/v1", "kind": "Odd"});
        })
    };
    assert!(refusal(&spec("Fail"), &json!({}), &request(&user)).is_some());
    assert_eq!(refusal(&spec("Ignore"), &json!({}), &request(&user)), None);
}

#[test]
fn request_without_its_namespace_is_refused() {
    let user = User::new("jane");
    let request = Attributes { namespace: "gone", ..request(&user) };
    let refused = refusal(&refusing(|_| {}), &json!({}), &request);
    assert_eq!(refused.as_deref(), Some("no namespace gone"));
}
