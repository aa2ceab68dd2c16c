//! Nodes (`ValidateNode`, `ValidateNodeUpdate`).

use serde_json::{Value, json};

use super::service_cidr::read_range;
use super::{Causes, Test, check_text, is_empty, items, member, quantities, text};
use crate::fields::{Fields, read_path};
use crate::names;
use crate::status::Cause;

/// The longest name of a declared feature.
const MAX_FEATURE: usize = 253;

/// Checks a node, and an update of one.
pub(crate) fn node(node: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    taints(node, causes);
    resources(node, causes);
    let capacity = read_path(node, "status.nodeInfo.swap.capacity").unwrap_or(&Value::Null);
    if capacity.as_i64().is_some_and(|capacity| capacity <= 0) {
        let at = "metadata.nodeSwapStatus.capacity";
        causes.push(Cause::invalid(at, capacity, "must be greater than zero"));
    }
    features(node, causes);
    ranges(node, causes);
    let Some(old) = old else { return };
    addresses(node, causes);
    fixed(node, old, causes);
    // The real server checks them a second time, and reports them twice.
    taints(node, causes);
    let [id, before] = [node, old].map(|node| text(spec(node), "externalID"));
    if id != before {
        causes.push(Cause::forbidden("spec.externalID", "may not be updated"));
    }
}

fn spec(node: &Fields) -> &Value {
    node.get("spec").unwrap_or(&Value::Null)
}

fn status(node: &Fields) -> &Value {
    node.get("status").unwrap_or(&Value::Null)
}

fn taints(node: &Fields, causes: Causes<'_>) {
    const EFFECT: super::Check =
        ("effect", Test::OneOf(&["NoSchedule", "PreferNoSchedule", "NoExecute"]));
    let mut known = Vec::new();
    for (place, taint) in items(member(spec(node), "taints")).iter().enumerate() {
        let at = format!("metadata.taints[{place}]");
        let [key, value, effect] = ["key", "value", "effect"].map(|name| text(taint, name));
        check_text(&json!(key), names::qualified, &format!("{at}.key"), causes);
        let problems = names::label_value(value);
        if !problems.is_empty() {
            let detail = problems.join(";");
            causes.push(Cause::invalid(format!("{at}.value"), &json!(value), &detail));
        }
        if effect.is_empty() {
            causes.push(Cause::required(format!("{at}.effect"), ""));
        } else {
            super::run(&[EFFECT], taint, &at, causes);
        }
        if known.contains(&(key, effect)) {
            let shown = json!({
                "Key": key, "Value": value, "Effect": effect,
                "TimeAdded": member(taint, "timeAdded"),
            });
            let at_fault = format!("{shown}: taints must be unique by key and effect pair");
            causes.push(Cause::duplicate_text(at, &at_fault));
        }
        known.push((key, effect));
    }
}

/// Checks the amounts of resources that the node has.
fn resources(node: &Fields, causes: Causes<'_>) {
    for list in ["capacity", "allocatable"] {
        let amounts = member(status(node), list).as_object();
        for (name, amount) in amounts.into_iter().flatten() {
            quantities::amount(name, amount, &format!("status.{list}.{name}"), causes);
        }
    }
}

/// Checks the features that the node declares: known forms, in order, each once.
fn features(node: &Fields, causes: Causes<'_>) {
    const AT: &str = "status.declaredFeatures";
    let list = items(member(status(node), "declaredFeatures"));
    for (place, feature) in list.iter().enumerate() {
        let name = feature.as_str().unwrap_or_default();
        if let Some(problem) = problem_of_feature(name) {
            let detail = format!("invalid feature name {feature}: {problem}");
            causes.push(Cause::invalid(format!("{AT}[{place}]"), feature, &detail));
        }
        let Some(next) = list.get(place + 1) else { continue };
        let at = format!("{AT}[{}]", place + 1);
        if next == feature {
            causes.push(Cause::duplicate(at, next));
        } else if next.as_str().is_some_and(|next| next < name) {
            causes.push(Cause::invalid(at, next, "list must be sorted alphabetically"));
        }
    }
}

fn problem_of_feature(name: &str) -> Option<&'static str> {
    let is_segment = |segment: &str| {
        segment.starts_with(|first: char| first.is_ascii_alphabetic())
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let is_upper = name.starts_with(|first: char| first.is_ascii_uppercase());
    if name.len() > MAX_FEATURE {
        Some("must be no more than 253 characters")
    } else if !is_upper || !name.split('/').all(is_segment) {
        Some(
            "must start with an UpperCamelCase segment, with subsequent segments separated by '/' \
             (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric \
             characters and slashes",
        )
    } else {
        None
    }
}

/// Returns the ranges of the node's pods. The first one has a member of its own, too.
fn ranges_of(node: &Fields) -> Vec<&Value> {
    match items(member(spec(node), "podCIDRs")) {
        [] => {
            Some(member(spec(node), "podCIDR")).filter(|one| !is_empty(one)).into_iter().collect()
        }
        all => all.iter().collect(),
    }
}

fn ranges(node: &Fields, causes: Causes<'_>) {
    const AT: &str = "spec.podCIDRs";
    let ranges = ranges_of(node);
    for (place, range) in ranges.iter().enumerate() {
        if range.as_str().and_then(read_range).is_none() {
            let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
            causes.push(Cause::invalid(format!("{AT}[{place}]"), range, detail));
        }
    }
    let unread = |range: &&&Value| range.as_str().and_then(read_range).is_none();
    if ranges.len() > 1
        && let Some((place, range)) = ranges.iter().enumerate().find(|(_, range)| unread(range))
    {
        let range = range.as_str().unwrap_or_default();
        let detail = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{place}]: \
             <nil> (invalid CIDR address: {range})"
        );
        causes.push(Cause::internal(AT, &detail));
    }
    let is_v6 = |range: &&Value| range.as_str().is_some_and(|range| range.contains(':'));
    let six = ranges.iter().filter(|range| is_v6(range)).count();
    if ranges.len() > 1 && (ranges.len() > 2 || six != 1) {
        let detail = "may specify no more than one CIDR for each IP family";
        causes.push(Cause::invalid(AT, &json!(ranges), detail));
    }
}

/// Checks that no address is there twice.
fn addresses(node: &Fields, causes: Causes<'_>) {
    let mut known = Vec::new();
    for (place, address) in items(member(status(node), "addresses")).iter().enumerate() {
        let pair = ["type", "address"].map(|name| text(address, name));
        if known.contains(&pair) {
            let shown = json!({"Type": pair[0], "Address": pair[1]});
            causes.push(Cause::duplicate(format!("status.addresses[{place}]"), &shown));
        }
        known.push(pair);
    }
}

/// Checks what is set once: the ranges of the pods, and the provider's identity of the node.
fn fixed(node: &Fields, old: &Fields, causes: Causes<'_>) {
    let [ranges, before] = [node, old].map(ranges_of);
    let changed = match before.len() {
        0 => 0,
        len if len != ranges.len() => 1,
        _ => before.iter().zip(&ranges).filter(|(one, other)| one != other).count(),
    };
    for _ in 0..changed {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        causes.push(Cause::forbidden("spec.podCIDRs", detail));
    }
    let [id, before] = [node, old].map(|node| text(spec(node), "providerID"));
    if !before.is_empty() && id != before {
        let verb = if id.is_empty() { "cleared" } else { "modified" };
        let detail = format!("field cannot be {verb} once set");
        causes.push(Cause::invalid("spec.providerID", &Value::Null, &detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes(new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut causes = Vec::new();
        let old = old.map(|old| old.as_object().unwrap());
        node(new.as_object().unwrap(), old, &mut causes);
        causes.iter().map(Cause::text).collect()
    }

    #[test]
    fn declared_features_have_a_form_and_an_order() {
        let node = |list: &[&str]| json!({"status": {"declaredFeatures": list}});
        assert_eq!(causes(&node(&["A", "B/c", "B/d9"]), None), [""; 0]);
        let fields: Vec<_> = causes(&node(&["a", "B", "B", "A/"]), None)
            .iter()
            .map(|text| text.split(": ").take(2).collect::<Vec<_>>().join(": "))
            .collect();
        assert_eq!(
            fields,
            [
                "status.declaredFeatures[0]: Invalid value",
                "status.declaredFeatures[1]: Invalid value",
                "status.declaredFeatures[2]: Duplicate value",
                "status.declaredFeatures[3]: Invalid value",
                "status.declaredFeatures[3]: Invalid value",
            ]
        );
    }

    #[test]
    fn ranges_of_pods_are_set_once() {
        let node = |ranges: &[&str]| json!({"spec": {"podCIDRs": ranges}});
        let old = node(&["10.0.0.0/24", "fd00::/64"]);
        assert_eq!(causes(&old, Some(&node(&[]))), [""; 0]);
        assert_eq!(causes(&old, Some(&old)), [""; 0]);
        let refused = "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \
                       \"\" to valid";
        assert_eq!(causes(&node(&["10.0.0.0/24"]), Some(&old)), [refused]);
        let other = node(&["10.1.0.0/24", "fd01::/64"]);
        assert_eq!(causes(&other, Some(&old)), [refused, refused]);
        let expected = [
            "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more \
             than one CIDR for each IP family",
        ];
        assert_eq!(causes(&node(&["10.0.0.0/24", "10.1.0.0/24"]), None), expected);
    }

    #[test]
    fn identity_is_set_once() {
        let node = |id: &str| json!({"spec": {"providerID": id}});
        assert_eq!(causes(&node("a"), Some(&node(""))), [""; 0]);
        let refused =
            |verb| format!("spec.providerID: Invalid value: null: field cannot be {verb} once set");
        assert_eq!(causes(&node("b"), Some(&node("a"))), [refused("modified")]);
        assert_eq!(causes(&node(""), Some(&node("a"))), [refused("cleared")]);
    }
}
