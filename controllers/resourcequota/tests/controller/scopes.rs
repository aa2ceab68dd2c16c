//! Upstream's table `TestSyncResourceQuota`: the usage of pods under each scope, with its texts.

use serde_json::{Value, json};

use crate::world::{World, quota, resized};

/// A quota's scopes, its scope selector, and the expected usage.
type Case = (&'static str, Value, &'static str);

const ALL: &str = "cpu=200m,memory=2Gi,pods=2";
const NONE: &str = "cpu=0,memory=0,pods=0";

fn class(operator: &str, values: &[&str]) -> Value {
    let mut class = json!({"scopeName": "PriorityClass", "operator": operator});
    if !values.is_empty() {
        class["values"] = json!(values);
    }
    class
}

fn pod(name: &str, requests: &[&str; 2], class: &str) -> Value {
    let [cpu, memory] = requests;
    let requests = match *cpu {
        "" => json!({}),
        _ => json!({"cpu": cpu, "memory": memory}),
    };
    let container = json!({"name": "c", "image": "i", "resources": {"requests": requests}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
           "spec": {"containers": [container], "priorityClassName": class}})
}

/// Creates two pods that run and one that has failed, then a quota for each case.
async fn check(pods: [Value; 2], cases: &[Case]) {
    let world = World::new().await;
    for (name, value) in [("high", 1000), ("low", 10)] {
        world.create_class(name, value).await;
    }
    for pod in &pods {
        world.create(pod).await;
        world.patch(pod, "/status", &json!({"status": {"phase": "Running"}})).await;
    }
    let failed = pod("failed", &["100m", "1Gi"], "");
    world.create(&failed).await;
    world.patch(&failed, "/status", &json!({"status": {"phase": "Failed"}})).await;
    for (number, (scope, selector, _)) in cases.iter().enumerate() {
        // The API server takes only pods as the limit of this scope.
        let hard = match *scope {
            "BestEffort" => json!({"pods": "5"}),
            _ => json!({"cpu": "3", "memory": "100Gi", "pods": "5"}),
        };
        let mut quota = quota(&format!("q{number}"), &hard);
        if !scope.is_empty() {
            quota["spec"]["scopes"] = json!([scope]);
        }
        if !selector.is_null() {
            quota["spec"]["scopeSelector"] = json!({"matchExpressions": [selector]});
        }
        world.create(&quota).await;
    }
    for (number, (.., expected)) in cases.iter().enumerate() {
        world.wait_for_used(&format!("q{number}"), expected).await;
    }
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pods_without_a_class_are_in_the_scopes_of_their_absence() {
    let small = ["100m", "1Gi"];
    let cases = [
        ("", Value::Null, ALL),
        ("BestEffort", Value::Null, "pods=0"),
        ("", class("Exists", &[]), NONE),
        ("", class("NotIn", &["random"]), ALL),
        ("", class("DoesNotExist", &[]), ALL),
    ];
    check([pod("a", &small, ""), pod("b", &small, "")], &cases).await;
}

#[tokio::test(start_paused = true)]
async fn pods_without_requests_are_best_effort() {
    let cases = [("BestEffort", Value::Null, "pods=2")];
    check([pod("a", &["", ""], ""), pod("b", &["", ""], "")], &cases).await;
}

#[tokio::test(start_paused = true)]
async fn pods_are_counted_by_their_priority_class() {
    let (high, low) = ("cpu=500m,memory=50Gi,pods=1", "cpu=100m,memory=1Gi,pods=1");
    let both = "cpu=600m,memory=51Gi,pods=2";
    let cases = [
        ("", class("Exists", &[]), both),
        ("", class("In", &["high", "low"]), both),
        ("", class("In", &["high"]), high),
        ("", class("In", &["low"]), low),
        ("", class("NotIn", &["high"]), low),
        ("", class("In", &["random"]), NONE),
    ];
    let pods = [pod("a", &["500m", "50Gi"], "high"), pod("b", &["100m", "1Gi"], "low")];
    check(pods, &cases).await;
}

#[tokio::test(start_paused = true)]
async fn changed_limit_reaches_the_status() {
    let world = World::new().await;
    let limited = quota("q", &json!({"cpu": "3"}));
    world.create(&limited).await;
    world.wait_for_used("q", "cpu=0").await;
    world.patch(&limited, "", &json!({"spec": {"hard": {"cpu": "4"}}})).await;
    world.wait_for_hard("q", "cpu=4").await;
    assert_eq!(world.used("q").await, "cpu=0");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resize_in_place_is_charged() {
    let world = World::new().await;
    let pod = crate::world::pod("a", "1");
    world.create(&pod).await;
    world.create(&quota("q", &json!({"requests.cpu": "9"}))).await;
    world.wait_for_used("q", "requests.cpu=1").await;
    // The node runs the pod with more than its specification says now.
    world.patch(&pod, "/status", &json!({"status": resized("2")})).await;
    world.wait_for_used("q", "requests.cpu=2").await;
    world.patch(&pod, "/status", &json!({"status": resized("500m")})).await;
    world.wait_for_used("q", "requests.cpu=1").await;
    world.stop().await;
}
