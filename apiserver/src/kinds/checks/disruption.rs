//! Disruption budgets.

use serde_json::{Value, json};

use super::Test::{By, OneOf};
use super::{Causes, Check, conditions, member, selectors};
use crate::fields::Fields;
use crate::status::Cause;

pub(crate) fn budget(budget: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
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
    super::run(&[("conditions", By(conditions::list))], status, "status", causes);
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
