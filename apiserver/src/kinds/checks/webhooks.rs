//! Configurations of admission webhooks.

use std::borrow::Cow;
use std::collections::BTreeSet;

use homeostat_schema::Policy;
use serde_json::{Value, json};

use super::Test::{By, Each, OneOf};
use super::admission_rules::{self as rules, FAILURE_POLICY, MATCH_POLICY, REINVOCATION, RULE};
use super::{
    Causes, Check, check_text, client_config, is_empty, items, join, member, selectors, text,
};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

const SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const WEBHOOK: &[Check] = &[
    ("name", By(name)),
    ("rules", Each(RULE)),
    FAILURE_POLICY,
    MATCH_POLICY,
    ("sideEffects", By(side_effects)),
    ("timeoutSeconds", By(timeout)),
    ("namespaceSelector", By(selectors::selector)),
    ("objectSelector", By(selectors::selector)),
    ("reinvocationPolicy", OneOf(REINVOCATION)),
    ("clientConfig", By(client_config::client)),
    ("matchConditions", By(conditions)),
    ("admissionReviewVersions", By(versions)),
];

/// The resources that no webhook is called for, by their group.
const EXCLUDED: [(&str, &[&str]); 2] = [
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &[
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        ],
    ),
];

/// Checks a configuration of webhooks of either kind.
pub(crate) fn configuration(object: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let webhooks = object.get("webhooks").unwrap_or(&Value::Null);
    let mut known = BTreeSet::new();
    let before = old.and_then(|old| old.get("webhooks")).unwrap_or(&Value::Null);
    let are_known = old.is_some() && has_same_conditions(items(webhooks), items(before));
    for (place, webhook) in items(webhooks).iter().enumerate() {
        let at = format!("webhooks[{place}]");
        let mut checked = Cow::Borrowed(webhook);
        if are_known && let Value::Object(webhook) = checked.to_mut() {
            webhook.remove("matchConditions");
        }
        super::run(WEBHOOK, &checked, &at, causes);
        let name = text(webhook, "name");
        if !name.is_empty() && !known.insert(name) {
            causes.push(Cause::duplicate(join(&at, "name"), member(webhook, "name")));
        }
    }
    rules::name(object, old, causes);
}

/// Returns true if two lists of webhooks have the same conditions, which an update keeps whatever
/// they are.
fn has_same_conditions(webhooks: &[Value], before: &[Value]) -> bool {
    let conditions = |webhook| member(webhook, "matchConditions");
    webhooks.len() == before.len()
        && webhooks.iter().zip(before).all(|(new, old)| conditions(new) == conditions(old))
}

/// Checks the conditions of a webhook, and compiles their expressions.
fn conditions(of: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let mut found = Vec::new();
    rules::conditions(of, list, at, &mut found);
    for mut problem in Policy::problems(&json!({"matchConditions": list})) {
        problem.field = problem.field.replacen("spec.matchConditions", at, 1);
        let place = place(&problem.field, at);
        let next = found.iter().position(|cause: &Cause| self::place(cause.field(), at) > place);
        found.insert(next.unwrap_or(found.len()), problem.into());
    }
    causes.append(&mut found);
}

/// Returns the position of an error about a condition: expressions come before names.
fn place(field: &str, at: &str) -> Option<(usize, bool)> {
    let rest = field.strip_prefix(at)?.strip_prefix('[')?;
    let (place, member) = rest.split_once(']')?;
    Some((place.parse().ok()?, member == ".name"))
}

/// Returns the warnings about a configuration.
pub(crate) fn warn(object: &Fields, old: Option<&Fields>) -> Vec<String> {
    let mut warnings = rules::warn(object, old);
    let webhooks = object.get("webhooks").unwrap_or(&Value::Null);
    for (place, webhook) in items(webhooks).iter().enumerate() {
        for (number, rule) in items(member(webhook, "rules")).iter().enumerate() {
            let without_effect = |resource| {
                format!(
                    "webhooks[{place}].rules[{number}]: {resource} is excluded from admission \
                     webhooks; this rule will have no effect"
                )
            };
            warnings.extend(excluded(rule).into_iter().map(without_effect));
        }
    }
    warnings
}

/// Returns the excluded resources that a rule without wildcards names, once each.
fn excluded(rule: &Value) -> Vec<String> {
    let texts = |list| items(member(rule, list)).iter().filter_map(Value::as_str);
    let mut found = Vec::new();
    if texts("apiGroups").chain(texts("resources")).any(|text| text == "*") {
        return found;
    }
    for group in texts("apiGroups") {
        let of_group = EXCLUDED.iter().find(|(excluded, _)| *excluded == group);
        let known = of_group.map_or(&[][..], |(_, resources)| resources);
        for resource in texts("resources").filter(|resource| known.contains(resource)) {
            let name = format!("{resource}.{group}");
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

/// Checks the name of a webhook, which is a domain with three parts at least.
fn name(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    if is_empty(name) {
        causes.push(Cause::required(at, ""));
        return;
    }
    let text = name.as_str().unwrap_or_default();
    let problems = names::dns_subdomain(text);
    if !problems.is_empty() {
        causes.push(Cause::invalid(at, name, &problems.join(",")));
    } else if text.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        causes.push(Cause::invalid(at, name, detail));
    }
}

fn side_effects(_: &Value, class: &Value, at: &str, causes: Causes<'_>) {
    if class.is_null() {
        causes.push(Cause::required(at, "must specify one of None, NoneOnDryRun"));
    } else if !SIDE_EFFECTS.iter().any(|known| class == known) {
        causes.push(Cause::unsupported(at, class, SIDE_EFFECTS));
    }
}

fn timeout(_: &Value, seconds: &Value, at: &str, causes: Causes<'_>) {
    if seconds.as_i64().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        causes.push(Cause::invalid(at, seconds, detail));
    }
}

/// Checks the versions of reviews that a webhook reads.
fn versions(_: &Value, list: &Value, at: &str, causes: Causes<'_>) {
    let all = items(list);
    if all.is_empty() {
        let detail = format!("must specify one of {}", VERSIONS.join(", "));
        causes.push(Cause::required(at, &detail));
        return;
    }
    for (place, version) in all.iter().enumerate() {
        let at = format!("{at}[{place}]");
        if all[..place].contains(version) {
            causes.push(Cause::invalid(at, version, "duplicate version"));
        } else {
            check_text(version, names::rfc_1035_label, &at, causes);
        }
    }
    if !all.iter().any(|version| VERSIONS.iter().any(|known| version == known)) {
        let detail = format!("must include at least one of {}", VERSIONS.join(", "));
        causes.push(Cause::invalid(at, &json!(all), &detail));
    }
}
