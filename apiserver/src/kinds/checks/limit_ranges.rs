//! Limit ranges.

use std::collections::BTreeSet;

use homeostat_quantity::Quantity;
use serde_json::{Value, json};

use super::quantities::{any_name, container_name, is_fixed};
use super::{Causes, check_text, is_empty, items, member, text};
use crate::fields::Fields;
use crate::status::Cause;
use crate::{names, quantity};

const KINDS: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];
const DEFAULTS: [&str; 2] = ["default", "defaultRequest"];
const RATIO: &str = "maxLimitRequestRatio";

/// Checks a limit range (`ValidateLimitRange`).
pub(crate) fn limit_range(object: &Fields, causes: Causes<'_>) {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let mut known = Vec::new();
    for (place, limit) in items(member(spec, "limits")).iter().enumerate() {
        let at = format!("spec.limits[{place}]");
        let kind = text(limit, "type");
        let before = causes.len();
        check_text(&json!(kind), names::qualified, &format!("{at}.type"), causes);
        if causes.len() == before && !KINDS.contains(&kind) && !kind.contains('/') {
            let detail = "must be a standard limit type or fully qualified";
            causes.push(Cause::invalid(format!("{at}.type"), &json!(kind), detail));
        }
        if known.contains(&kind) {
            causes.push(Cause::duplicate(format!("{at}.type"), &json!(kind)));
        }
        known.push(kind);
        check_names(kind, limit, &at, causes);
        check_amounts(kind, limit, &at, causes);
    }
}

/// Checks the names of resources, and which lists there are.
fn check_names(kind: &str, limit: &Value, at: &str, causes: Causes<'_>) {
    let check = |list: &str, causes: Causes<'_>| {
        for (name, _) in member(limit, list).as_object().into_iter().flatten() {
            let at = format!("{at}.{list}[{name}]");
            match kind {
                "Pod" | "Container" => container_name(name, &at, causes),
                _ => any_name(name, &at, causes),
            }
        }
    };
    check("max", causes);
    check("min", causes);
    for list in DEFAULTS {
        if kind != "Pod" {
            check(list, causes);
        } else if !is_empty(member(limit, list)) {
            let detail = "may not be specified when `type` is 'Pod'";
            causes.push(Cause::forbidden(format!("{at}.{list}"), detail));
        }
    }
    let has_storage = |list| !member(member(limit, list), "storage").is_null();
    if kind == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        causes.push(Cause::required(format!("{at}.limits"), detail));
    }
    check(RATIO, causes);
}

/// A member, and its name in messages.
type Called = (&'static str, &'static str);

/// Pairs of limits in ascending order: (the member at fault, the member that is shown, the smaller,
/// the larger, and their names).
const ORDER: [(&str, &str, Called, Called); 6] = [
    ("min", "min", ("min", "min value"), ("max", "max value")),
    (
        "defaultRequest",
        "defaultRequest",
        ("min", "min value"),
        ("defaultRequest", "default request value"),
    ),
    (
        "defaultRequest",
        "defaultRequest",
        ("defaultRequest", "default request value"),
        ("max", "max value"),
    ),
    (
        "defaultRequest",
        "defaultRequest",
        ("defaultRequest", "default request value"),
        ("default", "default limit value"),
    ),
    ("default", "min", ("min", "min value"), ("default", "default value")),
    ("default", "max", ("default", "default value"), ("max", "max value")),
];

fn check_amounts(kind: &str, limit: &Value, at: &str, causes: Causes<'_>) {
    let list = |list: &str| {
        let is_used = kind != "Pod" || !DEFAULTS.contains(&list);
        member(limit, list).as_object().filter(|_| is_used)
    };
    let all = ["max", "min", "default", "defaultRequest", RATIO];
    let names: BTreeSet<&String> =
        all.iter().filter_map(|name| list(name)).flatten().map(|(name, _)| name).collect();
    for name in names {
        let amount = |of: &str| quantity::read(list(of)?.get(name)?);
        for (fault, shown, (small, small_called), (large, large_called)) in ORDER {
            let (Some(less), Some(more)) = (amount(small), amount(large)) else { continue };
            if less > more {
                let detail = format!("{small_called} {less} is greater than {large_called} {more}");
                let shown = member(member(limit, shown), name);
                causes.push(Cause::invalid(format!("{at}.{fault}[{name}]"), shown, &detail));
            }
        }
        if let Some(ratio) = amount(RATIO) {
            let bounds = amount("min").zip(amount("max"));
            let at = format!("{at}.{RATIO}[{name}]");
            check_ratio(&ratio, bounds, member(member(limit, RATIO), name), &at, causes);
        }
        if let Some((own, request)) = amount("default").zip(amount("defaultRequest"))
            && is_fixed(name)
            && own != request
        {
            let detail = format!(
                "default value {own} must equal to defaultRequest value {request} in {name}"
            );
            let shown = member(member(limit, "defaultRequest"), name);
            causes.push(Cause::invalid(format!("{at}.defaultRequest[{name}]"), shown, &detail));
        }
    }
}

/// Checks the largest ratio of limit and request: it is possible between the bounds.
fn check_ratio(
    ratio: &Quantity,
    bounds: Option<(Quantity, Quantity)>,
    shown: &Value,
    at: &str,
    causes: Causes<'_>,
) {
    if *ratio < Quantity::from(1) {
        causes.push(Cause::invalid(at, shown, &format!("ratio {ratio} is less than 1")));
    }
    let exceeded = bounds.and_then(|(least, most)| exceeded(ratio, &least, &most));
    if let Some(largest) = exceeded {
        let detail = format!("ratio {ratio} is greater than max/min = {largest:.6}");
        causes.push(Cause::invalid(at, shown, &detail));
    }
}

/// Returns the largest possible ratio, if this one is larger.
#[expect(clippy::cast_precision_loss, reason = "as upstream, which compares floating points")]
fn exceeded(ratio: &Quantity, least: &Quantity, most: &Quantity) -> Option<f64> {
    /// The first number whose thousandths do not fit into 64 bits.
    const TOO_LARGE: i64 = i64::MAX / 1000;
    let fits = [ratio, least, most].iter().all(|amount| amount.value() < TOO_LARGE);
    let (ratio, least, most) = if fits {
        (ratio.milli_value() as f64 / 1000.0, least.milli_value(), most.milli_value())
    } else {
        (ratio.value() as f64, least.value(), most.value())
    };
    let largest = most as f64 / least as f64;
    (ratio > largest).then_some(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(limit: &Value) -> Vec<String> {
        let range = json!({"spec": {"limits": [limit]}});
        let mut causes = Vec::new();
        limit_range(range.as_object().unwrap(), &mut causes);
        causes.iter().map(Cause::text).collect()
    }

    fn ratio(ratio: &str, least: &str, most: &str) -> Vec<String> {
        check(&json!({"type": "Container", "min": {"cpu": least}, "max": {"cpu": most},
            "maxLimitRequestRatio": {"cpu": ratio}}))
    }

    #[test]
    fn ratio_is_possible_between_the_bounds() {
        let at = "spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value";
        assert_eq!(ratio("4", "500m", "2"), [""; 0]);
        let detail = "ratio 4500m is greater than max/min = 4.000000";
        assert_eq!(ratio("4500m", "500m", "2"), [format!("{at}: \"4500m\": {detail}")]);
        let detail = "ratio 3 is greater than max/min = 1.125000";
        assert_eq!(ratio("3", "8E", "9E"), [format!("{at}: \"3\": {detail}")]);
        assert_eq!(ratio("3", "0", "0"), [""; 0], "0/0 is no number");
    }

    #[test]
    fn defaults_of_what_cannot_be_overcommitted_are_equal() {
        let defaults = |name: &str| {
            let [two, one] = ["2", "1"].map(|amount| json!({name: amount}));
            check(&json!({"type": "Container", "default": two, "defaultRequest": one}))
        };
        assert_eq!(defaults("cpu"), [""; 0]);
        assert_eq!(defaults("kubernetes.io/a"), [""; 0]);
        let expected = "spec.limits[0].defaultRequest[example.com/a]: Invalid value: \"1\": \
                        default value 2 must equal to defaultRequest value 1 in example.com/a";
        assert_eq!(defaults("example.com/a"), [expected]);
    }

    #[test]
    fn defaults_of_a_pod_are_refused_but_not_compared() {
        let limit =
            json!({"type": "Pod", "max": {"cpu": "1"}, "default": {"odd": "2", "cpu": "2"}});
        let detail = "Forbidden: may not be specified when `type` is 'Pod'";
        assert_eq!(check(&limit), [format!("spec.limits[0].default: {detail}")]);
    }

    #[test]
    fn names_of_each_list_are_checked() {
        let of =
            |kind: &str, list: &str| check(&json!({"type": kind, list: {"storage": "1"}})).len();
        for list in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            assert_eq!(of("Container", list), 1, "{list}");
            assert_eq!(of("example.com/a", list), 0, "{list}");
        }
    }
}
