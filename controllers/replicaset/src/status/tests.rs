use serde_json::{Value, json};

use super::*;
use crate::workload::ReplicaSet;

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

fn set(value: &Value) -> ReplicaSet {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn pod(app: &str, ready_since: Option<&str>) -> Arc<Pod> {
    let mut value = json!({"metadata": {"labels": {"app": app, "extra": "x"}}});
    if let Some(since) = ready_since {
        value["status"] = json!({"conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": since}]});
    }
    Arc::new(serde_json::from_str(&value.to_string()).unwrap())
}

fn web(replicas: i32, min_ready_seconds: i32, status: &Value) -> ReplicaSet {
    set(&json!({
        "metadata": {"generation": 4},
        "spec": {"replicas": replicas, "minReadySeconds": min_ready_seconds,
                 "template": {"metadata": {"labels": {"app": "web"}}}},
        "status": status,
    }))
}

fn next(set: &ReplicaSet, active: &[Arc<Pod>], failure: Option<&str>) -> Value {
    let observed = Observed { active, created: 0, terminating: None, failure, now: now() };
    serde_json::to_value(next_status(set, observed)).unwrap()
}

#[test]
fn pods_are_counted_by_their_state() {
    let set = web(4, 10, &json!({}));
    let active = [
        pod("web", Some("2026-06-01T11:59:50Z")), // available, to the second
        pod("web", Some("2026-06-01T11:59:51Z")),
        pod("db", Some("2026-06-01T11:00:00Z")),
        pod("web", None),
    ];
    assert_eq!(
        next(&set, &active, None),
        json!({"replicas": 4, "fullyLabeledReplicas": 3, "readyReplicas": 3,
               "availableReplicas": 2, "observedGeneration": 4})
    );
}

#[test]
fn created_pods_are_replicas_that_are_not_ready() {
    let set = web(4, 0, &json!({}));
    let active = [pod("web", Some("2026-06-01T11:59:50Z"))];
    let observed =
        Observed { active: &active, created: 2, terminating: None, failure: None, now: now() };
    assert_eq!(
        serde_json::to_value(next_status(&set, observed)).unwrap(),
        json!({"replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 1,
               "availableReplicas": 1, "observedGeneration": 4})
    );
}

#[test]
fn zero_pods_are_reported_as_upstream() {
    assert_eq!(
        next(&web(0, 0, &json!({})), &[], None),
        json!({"replicas": 0, "observedGeneration": 4})
    );
}

#[test]
fn terminating_replicas_are_reported_or_cleared() {
    let set = web(0, 0, &json!({"replicas": 0, "terminatingReplicas": 3, "observedGeneration": 4}));
    let with = |terminating| {
        let observed = Observed { active: &[], created: 0, terminating, failure: None, now: now() };
        next_status(&set, observed)
    };
    assert_eq!(with(Some(0)).terminating_replicas, Some(0));
    assert_eq!(with(None).terminating_replicas, None);
    assert!(!is_current(&set, &with(Some(0))));
    assert!(!is_current(&set, &with(None)), "absent is not zero");
    assert!(is_current(&set, &with(Some(3))));
}

#[test]
fn failure_is_reported_once_and_removed_with_its_cause() {
    let fresh = web(2, 0, &json!({}));
    let failed = next(&fresh, &[], Some("no quota"));
    assert_eq!(
        failed["conditions"],
        json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                "message": "no quota", "lastTransitionTime": "2026-06-01T12:00:00Z"}])
    );
    let reported = web(2, 0, &failed);
    assert_eq!(next(&reported, &[], Some("another")), failed, "the first message stays");
    assert_eq!(next(&reported, &[], None).get("conditions"), None);
}

#[test]
fn reason_names_the_failed_operation() {
    let active = [pod("web", None), pod("web", None)];
    let reason = |replicas| {
        next(&web(replicas, 0, &json!({})), &active, Some("x"))["conditions"][0]["reason"].clone()
    };
    assert_eq!(reason(3), json!("FailedCreate"));
    assert_eq!(reason(1), json!("FailedDelete"));
    assert_eq!(reason(2), Value::Null);
}

#[test]
fn unknown_conditions_stay_in_place() {
    let others = json!([{"type": "Strange", "status": "False", "message": "m"}]);
    let set = web(1, 0, &json!({"conditions": others}));
    assert_eq!(next(&set, &[], None)["conditions"], others);
    let failed = next(&set, &[], Some("x"));
    assert_eq!(failed["conditions"][0], others[0]);
    assert_eq!(failed["conditions"][1]["type"], json!("ReplicaFailure"));
}

#[test]
fn zero_missing_and_empty_values_are_equal() {
    let set = web(
        0,
        0,
        &json!({"replicas": 0, "readyReplicas": 0, "observedGeneration": 4, "conditions": []}),
    );
    let observed =
        Observed { active: &[], created: 0, terminating: None, failure: None, now: now() };
    assert!(is_current(&set, &next_status(&set, observed)));
    let older = web(0, 0, &json!({"replicas": 0, "observedGeneration": 3}));
    assert!(!is_current(&older, &next_status(&older, observed)), "the generation was not observed");
}

fn next_check(set: &ReplicaSet, active: &[Arc<Pod>], later: i64) -> Option<Duration> {
    let status = next_status(
        set,
        Observed { active, created: 0, terminating: None, failure: None, now: now() },
    );
    next_availability(set, &status, active, now(), || {
        now() + jiff::SignedDuration::from_secs(later)
    })
}

#[test]
fn next_check_is_when_the_first_pod_becomes_available() {
    let active = [
        pod("web", Some("2026-06-01T11:59:58Z")),
        pod("web", Some("2026-06-01T11:59:55Z")),
        pod("web", None),
    ];
    let seconds = |s| Some(Duration::from_secs(s));
    assert_eq!(next_check(&web(3, 10, &json!({})), &active, 0), seconds(5));
    assert_eq!(next_check(&web(3, 10, &json!({})), &active, 2), seconds(3), "measured again");
    assert_eq!(next_check(&web(3, 10, &json!({})), &active, 60), seconds(0), "meanwhile available");
    assert_eq!(next_check(&web(3, 0, &json!({})), &active, 0), None);
    assert_eq!(next_check(&web(3, 1, &json!({})), &active, 0), None, "all are available");
}

#[test]
fn ready_pod_without_a_time_is_checked_after_min_ready_seconds() {
    let undated: Pod =
        serde_json::from_str(r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#)
            .unwrap();
    let active = [Arc::new(undated)];
    let set = web(1, 7, &json!({}));
    assert_eq!(next_check(&set, &active, 0), Some(Duration::from_secs(7)));
}

#[test]
fn longest_wait_does_not_overflow() {
    let set = web(1, i32::MAX, &json!({}));
    let active = [pod("web", Some("2026-06-01T12:00:00Z"))];
    assert_eq!(next_check(&set, &active, 0), Some(Duration::from_secs(2_147_483_647)));
}

#[test]
fn undecodable_pods_set_the_condition_and_keep_the_counts() {
    let reported = web(3, 0, &json!({"replicas": 2, "observedGeneration": 3}));
    let status = blocked_status(&reported, &["a", "b", "c", "d"], now());
    let value = serde_json::to_value(&status).unwrap();
    assert_eq!(
        (value["replicas"].clone(), value["observedGeneration"].clone()),
        (json!(2), json!(3))
    );
    let condition = &value["conditions"][0];
    assert_eq!(condition["type"], json!("ReplicaFailure"));
    assert_eq!(condition["reason"], json!("UndecodablePods"));
    let message = "not creating or deleting pods: 4 of them cannot be decoded (a, b, c, …)";
    assert_eq!(condition["message"], json!(message));
    assert_eq!(condition["lastTransitionTime"], json!("2026-06-01T12:00:00Z"));
}

#[test]
fn condition_of_undecodable_pods_replaces_a_failure_and_keeps_its_time() {
    let failed = json!({"replicas": 2, "conditions": [
        {"type": "Other", "status": "True"},
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
         "lastTransitionTime": "2026-06-01T11:00:00Z"}]});
    let status = blocked_status(&web(3, 0, &failed), &["a"], now());
    let conditions = serde_json::to_value(status.conditions.unwrap()).unwrap();
    assert_eq!(conditions.as_array().unwrap().len(), 2);
    assert_eq!(conditions[1]["reason"], json!("UndecodablePods"));
    assert_eq!(conditions[1]["lastTransitionTime"], json!("2026-06-01T11:00:00Z"));
}

#[test]
fn condition_of_undecodable_pods_is_removed_once_they_decode() {
    let blocked = json!({"replicas": 1, "conditions": [
        {"type": "ReplicaFailure", "status": "True", "reason": "UndecodablePods"}]});
    let status = next(&web(1, 0, &blocked), &[pod("web", None)], None);
    assert_eq!(status.get("conditions"), None);
    let status = next(&web(1, 0, &blocked), &[], Some("no quota"));
    assert_eq!(status["conditions"][0]["reason"], json!("FailedCreate"), "the new failure");
}
