//! Flow schemas.

use serde_json::{Value, json};

use super::Test::{AtLeast, By, Each, Required, Text};
use super::{Causes, Check, check_text, is_empty, items, join, member, text};
use crate::fields::{Fields, read_path};
use crate::names;
use crate::status::Cause;

/// The kinds of subjects, sorted, and their members.
const KINDS: &[&str] = &["Group", "ServiceAccount", "User"];
/// The members of subjects and their kinds, in the order of the real server.
const MEMBERS: [(&str, &str); 3] =
    [("serviceAccount", "ServiceAccount"), ("user", "User"), ("group", "Group")];

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// The largest number that orders schemas. Only one schema has the smallest.
const LAST: i64 = 10_000;
const FIRST_SCHEMA: &str = "exempt";
/// The schema of the requests that no other one matches.
const LAST_SCHEMA: &str = "catch-all";

const RULE: &[Check] = &[
    ("subjects", Required("subjects must contain at least one value")),
    ("subjects", Each(&[("", By(subject))])),
    ("", By(some_rule)),
    ("resourceRules", Each(RESOURCES)),
    ("nonResourceRules", Each(PATHS)),
];

const RESOURCES: &[Check] = &[
    ("verbs", By(verbs)),
    ("apiGroups", Required("resource rules must supply at least one api group")),
    ("apiGroups", By(|_, list, at, causes| _ = exclusive(list, "api groups", at, causes))),
    ("resources", Required("resource rules must supply at least one resource")),
    ("resources", By(|_, list, at, causes| _ = exclusive(list, "resources", at, causes))),
    ("namespaces", By(namespaces)),
];

const PATHS: &[Check] = &[
    ("verbs", By(verbs)),
    ("nonResourceURLs", Required("nonResourceURLs must contain at least one value")),
    ("nonResourceURLs", By(paths)),
];

pub(crate) fn flow_schema(schema: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("matchingPrecedence", AtLeast(1, "must be a positive value")),
        ("matchingPrecedence", By(not_last)),
    ];
    const REST: &[Check] = &[
        ("distinguisherMethod", By(method)),
        ("priorityLevelConfiguration.name", Required("must reference a priority level")),
        ("priorityLevelConfiguration.name", Text(names::dns_subdomain)),
        ("rules", Each(RULE)),
    ];
    let spec = schema.get("spec").unwrap_or(&Value::Null);
    super::run(SPEC, spec, "spec", causes);
    let name = read_path(schema, "metadata.name").and_then(Value::as_str).unwrap_or_default();
    if *member(spec, "matchingPrecedence") == 1 && name != FIRST_SCHEMA {
        let detail =
            format!("only the schema named '{FIRST_SCHEMA}' may have matchingPrecedence 1");
        causes.push(Cause::invalid("spec.matchingPrecedence", &json!(1), &detail));
    }
    super::run(REST, spec, "spec", causes);
    if let Some(fixed) = fixed_spec(name) {
        let shown = |spec: &Value| super::internal("flowcontrol.FlowSchemaSpec", spec);
        let spec = shown(spec);
        if spec != shown(&fixed) {
            causes.push(Cause::invalid("spec", &spec, &must_equal(name, "")));
        }
    }
    conditions(schema, causes);
}

/// Returns the spec that a mandatory schema must have.
fn fixed_spec(name: &str) -> Option<Value> {
    let (precedence, groups, method): (_, &[&str], _) = match name {
        FIRST_SCHEMA => (1, &["system:masters"], Value::Null),
        LAST_SCHEMA => {
            let all = &["system:unauthenticated", "system:authenticated"];
            (LAST, all, json!({"type": "ByUser"}))
        }
        _ => return None,
    };
    let subject = |group: &&str| json!({"kind": "Group", "group": {"name": group}});
    let all = json!(["*"]);
    Some(json!({
        "priorityLevelConfiguration": {"name": name},
        "matchingPrecedence": precedence,
        "distinguisherMethod": method,
        "rules": [{
            "subjects": groups.iter().map(subject).collect::<Vec<_>>(),
            "resourceRules": [{"verbs": all, "apiGroups": all, "resources": all,
                "clusterScope": true, "namespaces": all}],
            "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}],
        }],
    }))
}

/// Returns the text about the changed spec of a mandatory object.
pub(super) fn must_equal(name: &str, except: &str) -> String {
    format!("spec of '{name}'{except} must equal the fixed value")
}

/// Checks the types of the conditions in a status.
pub(super) fn conditions(object: &Fields, causes: Causes<'_>) {
    let list = items(read_path(object, "status.conditions").unwrap_or(&Value::Null));
    for (place, condition) in list.iter().enumerate() {
        let at = format!("status.conditions[{place}]");
        let kind = member(condition, "type");
        if list[..place].iter().any(|known| member(known, "type") == kind) {
            causes.push(Cause::duplicate(join(&at, "type"), kind));
        }
        super::run(&[("type", Required(""))], condition, &at, causes);
    }
}

fn not_last(_: &Value, number: &Value, at: &str, causes: Causes<'_>) {
    if number.as_i64().is_some_and(|number| number > LAST) {
        causes.push(Cause::invalid(at, number, &format!("must not be greater than {LAST}")));
    }
}

/// Checks the method. The message shows all of it.
fn method(_: &Value, method: &Value, at: &str, causes: Causes<'_>) {
    const METHODS: &[&str] = &["ByNamespace", "ByUser"];
    let of_type = text(method, "type");
    if !method.is_null() && !METHODS.contains(&of_type) {
        causes.push(Cause::unsupported(join(at, "type"), &json!({"Type": of_type}), METHODS));
    }
}

fn some_rule(_: &Value, rule: &Value, at: &str, causes: Causes<'_>) {
    if is_empty(member(rule, "resourceRules")) && is_empty(member(rule, "nonResourceRules")) {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        causes.push(Cause::required(at, detail));
    }
}

fn subject(_: &Value, subject: &Value, at: &str, causes: Causes<'_>) {
    let kind = text(subject, "kind");
    let Some((own, _)) = MEMBERS.iter().find(|(_, of)| *of == kind) else {
        causes.push(Cause::unsupported(join(at, "kind"), &json!(kind), KINDS));
        return;
    };
    let (value, own_at) = (member(subject, own), join(at, own));
    if value.is_null() {
        let detail = format!("{own} is required when subject kind is '{kind}'");
        causes.push(Cause::required(own_at, &detail));
    } else {
        identity(value, kind, &own_at, causes);
    }
    for (other, of) in MEMBERS.iter().filter(|(_, of)| *of != kind) {
        if !member(subject, other).is_null() {
            let detail = format!("{other} is forbidden when subject kind is not '{of}'");
            causes.push(Cause::forbidden(join(at, other), &detail));
        }
    }
}

fn identity(subject: &Value, kind: &str, at: &str, causes: Causes<'_>) {
    const NAMESPACE: &[Check] = &[
        ("namespace", Required("must specify namespace for service account")),
        ("namespace", Text(names::dns_label)),
    ];
    super::run(&[("name", Required(""))], subject, at, causes);
    if kind != "ServiceAccount" {
        return;
    }
    let name = member(subject, "name");
    if *name != "*" && !is_empty(name) {
        check_text(name, names::dns_subdomain, &join(at, "name"), causes);
    }
    super::run(NAMESPACE, subject, at, causes);
}

/// Checks that `*` is alone in a list. Returns true if the list has it.
fn exclusive(list: &Value, others: &str, at: &str, causes: Causes<'_>) -> bool {
    let is_wild = items(list).iter().any(|item| item == "*");
    if is_wild && items(list).len() > 1 {
        let detail = format!("if '*' is present, must not specify other {others}");
        causes.push(Cause::invalid(at, list, &detail));
    }
    is_wild
}

fn verbs(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let is_known = |verb: &Value| VERBS.iter().any(|known| verb == known);
    if is_empty(list) {
        causes.push(Cause::required(at, "verbs must contain at least one value"));
    } else if !exclusive(list, "verbs", at, causes) && !items(list).iter().all(is_known) {
        causes.push(Cause::unsupported(at, list, VERBS));
    }
}

fn namespaces(rule: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    if is_empty(list) && *member(rule, "clusterScope") != true {
        let detail =
            "resource rules that are not cluster scoped must supply at least one namespace";
        causes.push(Cause::required(at, detail));
    }
    if exclusive(list, "namespaces", at, causes) {
        return;
    }
    for (place, namespace) in items(list).iter().enumerate() {
        for problem in names::dns_label(namespace.as_str().unwrap_or_default()) {
            let detail =
                format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
            causes.push(Cause::invalid(format!("{at}[{place}]"), namespace, &detail));
        }
    }
}

fn paths(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    if exclusive(list, "non-resource URLs", at, causes) {
        return;
    }
    for (place, path) in items(list).iter().enumerate() {
        if let Some(detail) = path_problem(path.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(format!("{at}[{place}]"), path, detail));
        }
    }
}

fn path_problem(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || (stars == 1 && !path.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}
