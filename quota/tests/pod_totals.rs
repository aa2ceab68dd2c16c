//! Upstream's table `TestPodEvaluatorUsageStats`: the pods of a namespace, added up under scopes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use homeostat_quantity::ResourceName;
use homeostat_quota::object::Object;
use homeostat_quota::{DeviceClassMapping, Gates, Quota, Recount, Registry};
use jiff::Timestamp;
use serde_json::{Value, json};

const HARD: [&str; 5] = ["pods", "count/pods", "cpu", "requests.cpu", "limits.cpu"];

/// A pod with one cpu, or without resources.
fn pod(class: &str, has_cpu: bool, phase: &str) -> Value {
    let amounts = if has_cpu { json!({"cpu": "1"}) } else { json!({}) };
    let container = json!({"resources": {"requests": amounts, "limits": amounts}});
    json!({"spec": {"priorityClassName": class, "containers": [container]},
           "status": {"phase": phase}})
}

/// Adds up pods under scopes, and under `PriorityClass In [high]` if `selects_high`.
fn total(pods: &[Value], scopes: &[&str], selects_high: bool) -> String {
    let high = json!({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]});
    let expressions = if selects_high { json!([high]) } else { json!([]) };
    let quota: Quota = serde_json::from_value(json!({"spec": {
        "scopes": scopes, "scopeSelector": {"matchExpressions": expressions},
    }}))
    .unwrap();
    let (registry, classes) = (Registry::new(Gates::default()), DeviceClassMapping::default());
    let scopes = quota.scopes();
    let recount =
        Recount { registry: &registry, classes: &classes, scopes: &scopes, now: Timestamp::now() };
    let usage = recount.calculate_usage(&HARD.map(ResourceName::from), |evaluator, tally| {
        pods.iter().try_for_each(|pod| {
            let object = Object::read(evaluator.resource(), pod).unwrap();
            tally.add(&evaluator.charge(&object, &classes).unwrap())
        })
    });
    assert!(usage.errors.is_empty(), "{:?}", usage.errors);
    usage.used.to_string()
}

fn charged(stored: usize, charged: usize) -> String {
    format!(
        "count/pods={stored},cpu={charged},limits.cpu={charged},pods={charged},\
         requests.cpu={charged}"
    )
}

#[test]
fn pods_of_a_namespace_are_added_up() {
    assert_eq!(total(&[], &[], false), charged(0, 0));
    let running = || pod("", true, "Running");
    assert_eq!(total(&[running(), running()], &[], false), charged(2, 2));
    assert_eq!(total(&[running(), pod("", true, "Succeeded")], &[], false), charged(2, 1));
}

#[test]
fn pods_outside_the_scopes_are_not_added_up() {
    let classes =
        [pod("high", true, "Running"), pod("high", true, "Succeeded"), pod("low", true, "Running")];
    assert_eq!(total(&classes, &[], true), charged(2, 1));
    assert_eq!(total(&classes, &["PriorityClass"], true), charged(2, 1));
    let [a, b, c] = classes;
    let pods = [a, b, c, pod("high", false, "Failed")];
    assert_eq!(total(&pods, &["PriorityClass", "BestEffort"], true), charged(1, 0));
}
