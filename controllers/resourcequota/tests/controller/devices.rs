//! Claims to devices, and the extended resources that device classes map to them.

use std::time::Duration;

use homeostat_faults::{ApiError, Calls, Verb};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::world::{World, pod, quota};

/// A claim to one device of the class `gpu`.
fn claim(name: &str) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}})
}

#[tokio::test(start_paused = true)]
async fn device_class_that_went_while_no_quota_needed_it_is_forgotten() {
    let world = World::new().await;
    world.create_device_class("gpu", "example.com/gpu").await;
    world.create(&claim("c")).await;
    let gpus = quota("q", &json!({"requests.example.com/gpu": "9"}));
    world.create(&gpus).await;
    world.wait_for_used("q", "requests.example.com/gpu=1").await;
    world.delete(&gpus).await;
    sleep(Duration::from_secs(620)).await;
    world.delete_device_class("gpu").await;
    world.create(&gpus).await;
    world.wait_for_used("q", "requests.example.com/gpu=0").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.used("q").await, "requests.example.com/gpu=0");
    world.stop().await;
}

/// The numbers of upstream's "must run a pod with extended resource with resource quota".
#[tokio::test(start_paused = true)]
async fn claim_that_serves_a_pod_is_charged_for_what_the_pod_is_not() {
    const EXPLICIT: &str = "example.com/gpu";
    const IMPLICIT: &str = "deviceclass.resource.kubernetes.io/gpu";
    let world = World::new().await;
    let [claims, devices] =
        ["count/resourceclaims.resource.k8s.io", "gpu.deviceclass.resource.k8s.io/devices"];
    let names = [claims, devices, &format!("requests.{IMPLICIT}"), &format!("requests.{EXPLICIT}")];
    let all = |claims: &str, devices: &str| {
        let values = [claims, devices, devices, devices];
        let pairs = names.iter().zip(values).map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(",")
    };
    let hard: Value = names.iter().map(|name| ((*name).to_owned(), json!("10"))).collect();
    world.create(&quota("q", &hard)).await;
    world.wait_for_used("q", &all("0", "0")).await;

    world.create_device_class("gpu", EXPLICIT).await;
    let mut user = pod("p", "1");
    let of_pod = json!({EXPLICIT: "2", IMPLICIT: "2"});
    user["spec"]["containers"][0]["resources"] = json!({"requests": of_pod, "limits": of_pod});
    let uid = world.create_with_uid(&user).await;
    let mut serving = claim("serving");
    serving["metadata"]["annotations"] =
        json!({"resource.kubernetes.io/extended-resource-claim": "true"});
    serving["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true}]);
    serving["spec"]["devices"]["requests"][0]["exactly"]["count"] = json!(4);
    world.create(&serving).await;
    world.create(&claim("own")).await;
    world.wait_for_used("q", &all("2", "5")).await;
    // Without the pod the claim is charged for all of its devices.
    world.delete(&user).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(world.used("q").await, all("2", "5"));
    world.delete(&serving).await;
    world.wait_for_used("q", &all("1", "1")).await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn extended_resource_keeps_its_usage_until_the_device_classes_are_known() {
    let world = World::new().await;
    let refuse = |verb| {
        world.faults.refuse(Calls::to(verb, "deviceclasses").always(), ApiError::unavailable())
    };
    let _refused = [refuse(Verb::List), refuse(Verb::Watch)];
    world.create_device_class("gpu", "example.com/gpu").await;
    world.create(&claim("c")).await;
    let hard = json!({"requests.example.com/gpu": "9", "pods": "9"});
    world.create(&quota("q", &hard)).await;
    world.charge("q", &json!({"requests.example.com/gpu": "1"})).await;
    world.wait_for_hard("q", "pods=9,requests.example.com/gpu=9").await;
    assert_eq!(world.used("q").await, "pods=0,requests.example.com/gpu=1", "upstream: 0");
    world.create(&claim("d")).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.used("q").await, "pods=0,requests.example.com/gpu=1");
    world.faults.heal();
    world.wait_for_used("q", "pods=0,requests.example.com/gpu=2").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn name_that_counts_device_classes_delays_no_status() {
    let world = World::new().await;
    world.create_device_class("gpu", "example.com/gpu").await;
    let hard = json!({
        "count/deviceclasses.resource.k8s.io": "9", "count/resourceclaims.resource.k8s.io": "9",
    });
    world.create(&quota("q", &hard)).await;
    let took = world.wait_for_used("q", "count/resourceclaims.resource.k8s.io=0").await;
    assert!(took < Duration::from_secs(2), "they are in no namespace: {took:?}");
    world.stop().await;
}
