use serde_json::json;

use super::*;

fn pod(value: &serde_json::Value) -> Pod {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn ready_since(time: Option<&str>) -> Pod {
    pod(&json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": time},
    ]}}))
}

#[test]
fn pod_with_unknown_fields_decodes() {
    let pod = pod(&json!({
        "apiVersion": "v1", "kind": "Pod", "future": {"deep": [1, {"er": null}]},
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u1", "resourceVersion": "7",
                     "labels": {"app": "web"}, "somethingNew": true},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "unheardOf": 1}],
                 "initContainers": [
                     {"name": "setup"}, {"name": "proxy", "restartPolicy": "Always"}],
                 "volumes": [{"name": "v", "brandNew": {}}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1",
                   "conditions": [{"type": "PodScheduled", "status": "True"},
                                  {"type": "Ready", "status": "True", "observedGeneration": 4,
                                   "lastTransitionTime": "2026-01-02T03:04:05Z"}],
                   "containerStatuses": [{"name": "c", "restartCount": 2, "state": {"running": {}}},
                                         {"name": "d", "restartCount": 5}],
                   "initContainerStatuses": [{"name": "proxy", "restartCount": 3},
                                             {"name": "setup", "restartCount": 9}]}
    }));
    assert_eq!(pod.metadata.name.as_deref(), Some("web-1"));
    assert_eq!(pod.spec.node_name.as_deref(), Some("n1"));
    assert_eq!(pod.status.phase, Phase::Running);
    assert_eq!(pod.status.ready.unwrap().since, Some(at("2026-01-02T03:04:05Z")));
    assert_eq!(pod.status.restarts, 5);
    assert_eq!(pod.sidecar_restarts(), 3, "the other init container is no sidecar");
}

#[test]
fn nulls_and_empty_strings_are_defaults() {
    let pod = pod(&json!({
        "metadata": {"creationTimestamp": null},
        "spec": {"nodeName": "", "initContainers": null},
        "status": {"phase": null, "conditions": null, "containerStatuses": null,
                   "initContainerStatuses": null},
    }));
    assert_eq!(pod.spec.node_name, None);
    assert!(pod.is_active() && !pod.is_ready());
    let bare: Pod = serde_json::from_str(r#"{"spec": null, "status": null}"#).unwrap();
    assert!(bare.is_active());
}

#[test]
fn pod_with_wrong_types_does_not_decode() {
    for wrong in [
        json!({"spec": {"nodeName": 1}}),
        json!({"status": {"phase": {}}}),
        json!({"status": {"conditions": {}}}),
        json!({"status": {"containerStatuses": [{"restartCount": "many"}]}}),
        json!({"metadata": {"labels": []}}),
    ] {
        assert!(serde_json::from_str::<Pod>(&wrong.to_string()).is_err(), "{wrong}");
    }
}

#[test]
fn finished_and_leaving_pods_do_not_count() {
    let cases = [
        (json!({}), (true, false, false)),
        (json!({"status": {"phase": ""}}), (true, false, false)),
        (json!({"status": {"phase": "Unknown"}}), (true, false, false)),
        (json!({"status": {"phase": "Succeeded"}}), (false, true, false)),
        (json!({"status": {"phase": "Failed"}}), (false, true, false)),
        (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), (false, false, true)),
        (
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
                   "status": {"phase": "Failed"}}),
            (false, true, false),
        ),
    ];
    for (value, (active, terminal, terminating)) in cases {
        let pod = pod(&value);
        assert_eq!(pod.is_active(), active, "{value}");
        assert_eq!(pod.is_terminal(), terminal, "{value}");
        assert_eq!(pod.is_terminating(), terminating, "{value}");
    }
}

#[test]
fn pod_is_available_exactly_after_min_ready_seconds() {
    let pod = ready_since(Some("2026-01-01T00:00:00Z"));
    assert!(!pod.is_available(10, at("2026-01-01T00:00:09.999999999Z")));
    assert!(pod.is_available(10, at("2026-01-01T00:00:10Z")));
    assert!(pod.is_available(0, at("2025-01-01T00:00:00Z")), "nothing to wait for");
    assert_eq!(pod.available_in(10, at("2026-01-01T00:00:04Z")), Some(6_000_000_000));
    assert_eq!(pod.available_in(10, at("2026-01-01T00:00:10Z")), None);
    assert_eq!(pod.available_in(0, at("2026-01-01T00:00:00Z")), None);
}

#[test]
fn ready_pod_without_a_time_is_available_only_without_min_ready_seconds() {
    let pod = ready_since(None);
    assert!(pod.is_available(0, at("2026-01-01T00:00:00Z")));
    assert!(!pod.is_available(1, at("2026-01-01T00:00:00Z")));
    assert_eq!(pod.available_in(1, at("2026-01-01T00:00:00Z")), None);
}

#[test]
fn largest_min_ready_seconds_do_not_overflow() {
    let pod = ready_since(Some("2026-01-01T00:00:00Z"));
    let now = at("2026-01-01T00:00:00Z");
    assert!(!pod.is_available(i32::MAX, now));
    assert_eq!(pod.available_in(i32::MAX, now), Some(i128::from(i32::MAX) * 1_000_000_000));
    assert!(pod.is_available(i32::MIN, now));
    assert!(pod.is_available(i32::MAX, Timestamp::MAX));
}

#[test]
fn first_ready_condition_counts() {
    let pod = pod(&json!({"status": {"conditions": [
        {"type": "Ready", "status": "False"},
        {"type": "Ready", "status": "True"},
    ]}}));
    assert!(!pod.is_ready());
}

#[test]
fn only_a_controller_reference_makes_an_owner() {
    let pod = pod(&json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "a"},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "b",
         "controller": true},
    ]}}));
    assert!(pod.is_controlled_by("b"));
    assert!(!pod.is_controlled_by("a"));
}

#[test]
fn escaped_strings_decode_too() {
    let text = r#"{"status":{"conditions":[{"type":"\u0052eady","status":"Tru\u0065"}]}}"#;
    assert!(serde_json::from_str::<Pod>(text).unwrap().is_ready());
}
