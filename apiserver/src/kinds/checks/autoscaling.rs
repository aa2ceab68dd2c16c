//! Autoscalers and disruption budgets.

use serde_json::{Value, json};

use super::Test::{AtLeast, By, Has, OneOf, Required};
use super::{Check, member, selectors};
use crate::fields::Fields;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

pub(crate) fn autoscaler(autoscaler: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const NAMED: &[Check] = &[("kind", Required("")), ("name", Required(""))];
    let spec = autoscaler.get("spec").unwrap_or(&Value::Null);
    let kind = target_kind(spec);
    let is_kept = old.and_then(|old| old.get("spec")).is_some_and(|old| target_kind(old) == kind);
    super::run(
        &[("maxReplicas", By(in_order)), ("scaleTargetRef", Has(NAMED))],
        spec,
        "spec",
        causes,
    );
    if !is_kept {
        super::run(&[("scaleTargetRef", By(group_version))], spec, "spec", causes);
    }
    bounds(spec, causes);
}

/// Returns the apiVersion and the kind of the target.
fn target_kind(spec: &Value) -> [&Value; 2] {
    let target = member(spec, "scaleTargetRef");
    [member(target, "apiVersion"), member(target, "kind")]
}

fn in_order(spec: &Value, most: &Value, at: &str, causes: Causes<'_>) {
    let number = most.as_i64().unwrap_or(0);
    if member(spec, "minReplicas").as_i64().is_some_and(|least| number < least) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid(at, &json!(number), detail));
    }
}

fn bounds(spec: &Value, causes: Causes<'_>) {
    const AT_LEAST_1: &str = "must be greater than or equal to 1";
    super::run(&[("minReplicas", AtLeast(1, AT_LEAST_1))], spec, "spec", causes);
    if member(spec, "maxReplicas").as_i64().unwrap_or(0) == 0 {
        causes.push(Cause::required("spec.maxReplicas", ""));
    } else {
        super::run(&[("maxReplicas", AtLeast(1, AT_LEAST_1))], spec, "spec", causes);
    }
}

/// Checks the apiVersion of a target. Only the one kind of the core group that can be scaled needs
/// no group.
fn group_version(_: &Value, target: &Value, at: &str, causes: Causes<'_>) {
    let version = member(target, "apiVersion").as_str().unwrap_or_default();
    let detail = match version.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            format!("unexpected GroupVersion string: {version}")
        }
        Some((group, _)) if !group.is_empty() => return,
        _ if member(target, "kind") == "ReplicationController" => return,
        _ => "apiVersion must specify API group".to_owned(),
    };
    causes.push(Cause::invalid(super::join(at, "apiVersion"), &json!(version), &detail));
}

pub(crate) fn disruption_budget(budget: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("minAvailable", By(share)),
        ("maxUnavailable", By(share)),
        ("selector", By(selectors::selector)),
        ("unhealthyPodEvictionPolicy", OneOf(&["AlwaysAllow", "IfHealthyBudget"])),
    ];
    let spec = budget.get("spec").unwrap_or(&Value::Null);
    if !member(spec, "minAvailable").is_null() && !member(spec, "maxUnavailable").is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let shown = json!({
            "MinAvailable": member(spec, "minAvailable"),
            "Selector": member(spec, "selector"),
            "MaxUnavailable": member(spec, "maxUnavailable"),
            "UnhealthyPodEvictionPolicy": member(spec, "unhealthyPodEvictionPolicy"),
        });
        causes.push(Cause::invalid("spec", &shown, detail));
    }
    super::run(SPEC, spec, "spec", causes);
    let status = budget.get("status").unwrap_or(&Value::Null);
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        let number = member(status, name);
        if number.as_i64().is_some_and(|number| number < 0) {
            causes.push(Cause::invalid(format!("status.{name}"), number, super::NOT_NEGATIVE));
        }
    }
}

/// A number of pods, or a percentage.
fn share(_: &Value, share: &Value, at: &str, causes: Causes<'_>) {
    match share {
        Value::Number(number) if number.as_i64().is_some_and(|number| number < 0) => {
            causes.push(Cause::invalid(at, share, super::NOT_NEGATIVE));
        }
        Value::String(text) => {
            let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty());
            let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            match digits.map(|digits| digits.parse::<u64>().unwrap_or(u64::MAX)) {
                None => {
                    let detail = "a valid percent string must be a numeric string followed by an \
                                  ending '%' (e.g. '1%',  or '93%', regex used for validation is \
                                  '[0-9]+%')";
                    causes.push(Cause::invalid(at, share, detail));
                }
                Some(percent) if percent > 100 => {
                    causes.push(Cause::invalid(at, share, "must not be greater than 100%"));
                }
                Some(_) => {}
            }
        }
        _ => {}
    }
}
