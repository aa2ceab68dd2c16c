//! Decodes objects into projections.
#![cfg(feature = "derive")]

use homeostat_informer::{Object, ObjectKey, ObjectMeta, Projection};
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Deserializer};
use serde_json::{from_value, json};

#[derive(Debug, PartialEq, Projection)]
#[projection(kind = Pod)]
struct PodState {
    metadata: ObjectMeta,
    #[projection(path = "spec.nodeName")]
    node: Option<String>,
    #[projection(path = "spec.priority")]
    priority: i32,
    #[projection(path = "spec.securityContext.runAsUser")]
    user: Option<i64>,
    #[projection(path = "status.phase", with = upper_case)]
    phase: String,
    #[projection(path = "type")]
    type_: Option<String>,
}

fn upper_case<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.unwrap_or_default().to_uppercase())
}

#[test]
fn named_members_are_decoded() {
    let pod: PodState = from_value(json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"nodeName": "n", "priority": 7, "securityContext": {"runAsUser": 1000}},
        "type": "t",
    }))
    .expect("it decodes");
    assert_eq!((pod.node.as_deref(), pod.priority, pod.user), (Some("n"), 7, Some(1000)));
    assert_eq!(pod.type_.as_deref(), Some("t"));
    let key: ObjectKey<Pod> = pod.key();
    assert_eq!(key.to_string(), "shop/web");
}

#[test]
fn absent_and_null_members_are_defaults() {
    let objects = [
        json!({"metadata": {}}),
        json!({"metadata": {}, "spec": null, "status": null, "type": null}),
        json!({"metadata": {}, "spec": {"nodeName": null, "priority": null,
               "securityContext": null}, "status": {"phase": null}}),
        json!({"metadata": {}, "spec": {"securityContext": {}}, "status": {}}),
    ];
    for object in objects {
        let pod: PodState = from_value(object).expect("it decodes");
        assert_eq!((pod.node, pod.priority, pod.user), (None, 0, None));
        assert_eq!((pod.phase.as_str(), pod.type_), ("", None));
    }
}

#[test]
fn member_of_another_type_is_an_error() {
    for object in [
        json!({"metadata": {}, "spec": {"priority": "high"}}),
        json!({"metadata": {}, "spec": "none"}),
        json!({"spec": {}}),
    ] {
        assert!(from_value::<PodState>(object.clone()).is_err(), "{object}");
    }
}

#[test]
fn other_members_are_skipped() {
    let text = r#"{"metadata": {}, "kind": 1, "kind": 2, "nodeName": 3, "phase": [],
        "spec": {"phase": {}, "nodeName": "n", "volumes": [{"nodeName": 4}]}}"#;
    let pod: PodState = serde_json::from_str(text).expect("it decodes");
    assert_eq!(pod.node.as_deref(), Some("n"));
}

#[test]
fn function_of_the_author_decodes_a_field() {
    let object = json!({"metadata": {}, "status": {"phase": "Running"}});
    assert_eq!(from_value::<PodState>(object).expect("it decodes").phase, "RUNNING");
}

#[test]
fn paths_name_the_members() {
    let paths = ["metadata", "spec.nodeName", "spec.priority", "spec.securityContext.runAsUser"];
    assert_eq!(PodState::PATHS[..4], paths);
}
