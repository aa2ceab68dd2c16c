//! Roles and bindings.

use serde_json::{Value, json};

use super::selectors::selector;
use super::{Causes, check_text, is_empty, items, member, text};
use crate::access::RBAC_GROUP;
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

pub(crate) fn role(role: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    rules(role, true, causes);
}

pub(crate) fn cluster_role(role: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    rules(role, false, causes);
    let Some(aggregation) = role.get("aggregationRule").filter(|rule| !rule.is_null()) else {
        return;
    };
    let selectors = member(aggregation, "clusterRoleSelectors");
    let at = "aggregationRule.clusterRoleSelectors";
    if is_empty(selectors) {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        causes.push(Cause::required(at, detail));
    }
    for (place, one) in items(selectors).iter().enumerate() {
        let (at, before) = (format!("{at}[{place}]"), causes.len());
        selector(aggregation, one, &at, causes);
        if causes.len() > before {
            causes.push(Cause::invalid(at, &Value::Null, "invalid label selector."));
        }
    }
}

fn rules(role: &Fields, is_namespaced: bool, causes: Causes<'_>) {
    let rules = items(role.get("rules").unwrap_or(&Value::Null));
    for (place, one) in rules.iter().enumerate() {
        rule(one, is_namespaced, &format!("rules[{place}]"), causes);
    }
    required(rules, "rules", "verbs", causes);
}

/// Checks a member of each item that the real server checks in a second pass.
fn required(list: &[Value], at: &str, name: &str, causes: Causes<'_>) {
    for (place, one) in list.iter().enumerate() {
        if is_empty(member(one, name)) {
            causes.push(Cause::required(format!("{at}[{place}].{name}"), ""));
        }
    }
}

fn rule(rule: &Value, is_namespaced: bool, at: &str, causes: Causes<'_>) {
    let lacks = |name: &str| is_empty(member(rule, name));
    let urls = member(rule, "nonResourceURLs");
    if !is_empty(urls) {
        let mut refuse = |detail: &str| {
            causes.push(Cause::invalid(format!("{at}.nonResourceURLs"), urls, detail));
        };
        if is_namespaced {
            refuse("namespaced rules cannot apply to non-resource URLs");
        }
        if !(lacks("apiGroups") && lacks("resources") && lacks("resourceNames")) {
            refuse("rules cannot apply to both regular resources and non-resource URLs");
        }
        return;
    }
    for (name, singular) in [("apiGroups", "api group"), ("resources", "resource")] {
        if lacks(name) {
            let detail = format!("resource rules must supply at least one {singular}");
            causes.push(Cause::required(format!("{at}.{name}"), &detail));
        }
    }
}

pub(crate) fn binding(new: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    any_binding(new, old, &["Role", "ClusterRole"], causes);
}

pub(crate) fn cluster_binding(new: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    any_binding(new, old, &["ClusterRole"], causes);
}

fn any_binding(new: &Fields, old: Option<&Fields>, kinds: &[&str], causes: Causes<'_>) {
    let reference = new.get("roleRef").unwrap_or(&Value::Null);
    let name = text(reference, "name");
    if text(reference, "apiGroup") != RBAC_GROUP {
        let found = json!(text(reference, "apiGroup"));
        causes.push(Cause::unsupported("roleRef.apiGroup", &found, &[RBAC_GROUP]));
    }
    if !kinds.contains(&text(reference, "kind")) {
        let found = json!(text(reference, "kind"));
        causes.push(Cause::unsupported("roleRef.kind", &found, kinds));
    }
    if !name.is_empty() {
        check_text(&json!(name), names::path_segment, "roleRef.name", causes);
    }
    let is_namespaced = kinds.len() > 1;
    let subjects = items(new.get("subjects").unwrap_or(&Value::Null));
    for (place, one) in subjects.iter().enumerate() {
        subject(one, is_namespaced, &format!("subjects[{place}]"), causes);
    }
    required(subjects, "subjects", "name", causes);
    if name.is_empty() {
        causes.push(Cause::required("roleRef.name", ""));
    }
    if old.is_some_and(|old| old.get("roleRef") != new.get("roleRef")) {
        // The real server shows its own type, which has other names.
        let (group, kind) = (text(reference, "apiGroup"), text(reference, "kind"));
        let shown = json!({"APIGroup": group, "Kind": kind, "Name": name});
        causes.push(Cause::invalid("roleRef", &shown, "field is immutable"));
    }
}

fn subject(subject: &Value, is_namespaced: bool, at: &str, causes: Causes<'_>) {
    let (name, group) = (text(subject, "name"), text(subject, "apiGroup"));
    let group_is = |wanted: &str, causes: Causes<'_>| {
        if group != wanted {
            let at = format!("{at}.apiGroup");
            causes.push(Cause::unsupported(at, &json!(group), &[wanted]));
        }
    };
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                let at = format!("{at}.name");
                check_text(&json!(name), names::dns_subdomain, &at, causes);
            }
            group_is("", causes);
            if !is_namespaced && text(subject, "namespace").is_empty() {
                causes.push(Cause::required(format!("{at}.namespace"), ""));
            }
        }
        "User" | "Group" => group_is(RBAC_GROUP, causes),
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            causes.push(Cause::unsupported(format!("{at}.kind"), &json!(other), &known));
        }
    }
}
