//! When a container restarts: after its end, and for a resize.

use serde_json::{Value, json};

use super::Test::{By, OneOf};
use super::{Check, items, member, text};
use crate::status::Cause;

const POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const ACTIONS: &[&str] = &["Restart", "RestartAllContainers"];
const OPERATORS: &[&str] = &["In", "NotIn"];
const MOST_RULES: usize = 20;
const MOST_CODES: usize = 255;

const RULE: &[Check] = &[("action", By(action)), ("exitCodes", By(exit_codes))];

const NO_POLICY: &str = "must specify restartPolicy when restart rules are used";

/// Checks the policy and the rules of a container (`validateContainerRestartPolicy`).
pub(super) fn check_rules(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let rules = items(member(container, "restartPolicyRules"));
    if !has_policy(container) && rules.is_empty() {
        return;
    }
    if !has_policy(container) {
        causes.push(Cause::required(format!("{at}.restartPolicy"), NO_POLICY));
    }
    super::run(&[("restartPolicy", OneOf(POLICIES))], container, at, causes);
    let at = format!("{at}.restartPolicyRules");
    if rules.len() > MOST_RULES {
        causes.push(Cause::too_many(&*at, rules.len(), MOST_RULES));
    }
    for (place, rule) in rules.iter().enumerate() {
        super::run(RULE, rule, &format!("{at}[{place}]"), causes);
    }
}

/// Checks the policy and the rules of an init container. Without a policy there are no rules.
pub(super) fn check_init(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    if has_policy(container) {
        check_rules(container, at, causes);
    } else if !items(member(container, "restartPolicyRules")).is_empty() {
        causes.push(Cause::required(format!("{at}.restartPolicy"), NO_POLICY));
    }
}

fn has_policy(container: &Value) -> bool {
    !member(container, "restartPolicy").is_null()
}

fn action(_: &Value, action: &Value, at: &str, causes: &mut Vec<Cause>) {
    known(action, ACTIONS, at, causes);
}

/// Checks that a text, which may be missing, is one of the known ones.
fn known(value: &Value, known: &[&str], at: &str, causes: &mut Vec<Cause>) {
    let value = value.as_str().unwrap_or_default();
    if !known.contains(&value) {
        causes.push(Cause::unsupported(at, &json!(value), known));
    }
}

fn exit_codes(_: &Value, codes: &Value, at: &str, causes: &mut Vec<Cause>) {
    if codes.is_null() {
        causes.push(Cause::required(at, "must be specified"));
        return;
    }
    known(member(codes, "operator"), OPERATORS, &format!("{at}.operator"), causes);
    let count = items(member(codes, "values")).len();
    if count > MOST_CODES {
        causes.push(Cause::too_many(format!("{at}.values"), count, MOST_CODES));
    }
}

/// Checks which resizes restart a container of a pod with this policy (`validateResizePolicy`).
pub(super) fn check_resizes(
    container: &Value,
    pod_restart: &str,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    const RESOURCES: &[&str] = &["cpu", "memory"];
    const RESTARTS: &[&str] = &["NotRequired", "RestartContainer"];
    let policies = items(member(container, "resizePolicy"));
    for (place, policy) in policies.iter().enumerate() {
        let [resource, restart] = ["resourceName", "restartPolicy"].map(|key| text(policy, key));
        let is_known = policies.iter().take(place).any(|one| text(one, "resourceName") == resource);
        if is_known {
            causes.push(Cause::duplicate(format!("{at}[{place}]"), &json!(resource)));
        }
        for (value, known) in [(resource, RESOURCES), (restart, RESTARTS)] {
            if value.is_empty() {
                causes.push(Cause::required(at, ""));
            } else if !known.contains(&value) {
                causes.push(Cause::unsupported(at, &json!(value), known));
            }
        }
        if pod_restart == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            causes.push(Cause::invalid(at, &json!(restart), detail));
        }
    }
}

/// Checks that no resize restarts an init container that ends before the others start.
pub(super) fn check_init_resizes(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (place, policy) in items(member(container, "resizePolicy")).iter().enumerate() {
        let restart = member(policy, "restartPolicy");
        if restart == "RestartContainer" {
            let detail = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            causes.push(Cause::invalid(format!("{at}[{place}].restartPolicy"), restart, detail));
        }
    }
}
