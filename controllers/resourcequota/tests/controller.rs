//! The controller against the embedded API server, in virtual time. The period of the full recount
//! is off, unless a test says otherwise: each recount has a reason.

#![expect(clippy::expect_used, clippy::panic, reason = "a test may panic")]

#[path = "controller/convergence.rs"]
mod convergence;
#[path = "controller/devices.rs"]
mod devices;
#[path = "controller/discovery.rs"]
mod discovery;
#[path = "controller/outages.rs"]
mod outages;
#[path = "controller/reports.rs"]
mod reports;
#[path = "controller/scopes.rs"]
mod scopes;
#[path = "controller/world.rs"]
mod world;

use std::time::Duration;

use homeostat_faults::{ApiError, Calls, Verb};
use homeostat_resourcequota::Options;
use serde_json::json;
use tokio::time::sleep;

use self::world::{World, foo, pod, quota, secret, watched, without_period};

#[tokio::test(start_paused = true)]
async fn usage_follows_creations_and_deletions() {
    let world = World::new().await;
    world.create(&pod("a", "100m")).await;
    let hard = json!({"pods": "5", "requests.cpu": "2", "secrets": "3", "count/services": "2"});
    world.create(&quota("q", &hard)).await;
    let base = "count/services=0,pods=1,requests.cpu=100m,secrets=0";
    world.wait_for_used("q", base).await;
    world.create(&pod("b", "200m")).await;
    world.create(&secret("s")).await;
    world.wait_for_used("q", "count/services=0,pods=2,requests.cpu=300m,secrets=1").await;
    world.delete(&pod("b", "200m")).await;
    world.delete(&secret("s")).await;
    world.wait_for_used("q", base).await;
    world.patch(&pod("a", "1"), "/status", &json!({"status": {"phase": "Succeeded"}})).await;
    world.wait_for_used("q", "count/services=0,pods=0,requests.cpu=0,secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn counter_reads_the_present_version_of_its_resource() {
    let world = World::new().await;
    world.offer("v1");
    for name in ["a", "b", "c"] {
        world.create(&foo(name)).await;
    }
    world.create(&quota("q", &json!({"count/foos.example.com": "9"}))).await;
    world.wait_for_used("q", "count/foos.example.com=3").await;
    world.offer("v2");
    sleep(Duration::from_secs(40)).await;
    let requests = world.requests();
    assert!(requests.iter().any(|line| line.contains("/example.com/v2/foos")), "{requests:#?}");
    world.delete(&foo("a")).await;
    world.delete(&foo("b")).await;
    world.wait_for_used("q", "count/foos.example.com=1").await;
    sleep(Duration::from_secs(300)).await;
    let requests = world.requests();
    assert!(!requests.iter().any(|line| line.contains("/v1/foos")), "v1 is left: {requests:#?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resource_that_is_served_later_is_counted_when_it_is_discovered() {
    let world = World::new().await;
    world.create(&quota("q", &json!({"count/foos.example.com": "9", "secrets": "1"}))).await;
    world.wait_for_used("q", "secrets=0").await;
    world.offer("v1");
    // Admission refuses each create while the usage is unknown.
    let took = world.wait_for_used("q", "count/foos.example.com=0,secrets=0").await;
    assert!(took < Duration::from_secs(32), "{took:?}");
    world.create(&foo("a")).await;
    world.wait_for_used("q", "count/foos.example.com=1,secrets=0").await;
    world.offer("");
    // No version serves it any more.
    world.wait_for_used("q", "count/foos.example.com=0,secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changed_scope_selector_is_recounted() {
    let world = World::new().await;
    let of_class = |name: &str, class: &str| {
        let mut pod = pod(name, "1");
        pod["spec"]["priorityClassName"] = json!(class);
        pod
    };
    for (name, value) in [("high", 1000), ("low", 10)] {
        world.create_class(name, value).await;
    }
    world.create(&of_class("a", "high")).await;
    world.create(&of_class("b", "low")).await;
    world.create(&of_class("c", "low")).await;
    let selector = |class: &str| {
        json!({"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": [class]},
        ]})
    };
    let mut quota = quota("q", &json!({"pods": "9"}));
    quota["spec"]["scopeSelector"] = selector("high");
    world.create(&quota).await;
    world.wait_for_used("q", "pods=1").await;
    world.patch(&quota, "", &json!({"spec": {"scopeSelector": selector("low")}})).await;
    world.wait_for_used("q", "pods=2").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn service_that_loses_node_ports_is_recounted() {
    let world = World::new().await;
    let ports = |count: u16| -> Vec<_> {
        (1..=count).map(|port| json!({"name": format!("p{port}"), "port": port})).collect()
    };
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                         "spec": {"type": "NodePort", "ports": ports(3)}});
    world.create(&service).await;
    world.create(&quota("q", &json!({"services.nodeports": "9"}))).await;
    world.wait_for_used("q", "services.nodeports=3").await;
    world.patch(&service, "", &json!({"spec": {"ports": ports(1)}})).await;
    world.wait_for_used("q", "services.nodeports=1").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn charge_of_a_pod_that_is_stuck_in_termination_ends_without_an_event() {
    let world = World::new().await;
    let mut stuck = pod("stuck", "1");
    stuck["metadata"]["finalizers"] = json!(["example.com/stuck"]);
    stuck["spec"]["terminationGracePeriodSeconds"] = json!(30);
    stuck["spec"]["nodeName"] = json!("node-1");
    world.create(&stuck).await;
    world.create(&quota("q", &json!({"count/pods": "9", "pods": "9"}))).await;
    world.wait_for_used("q", "count/pods=1,pods=1").await;
    world.delete_gracefully(&stuck).await;
    // The deletion time includes the grace period, and upstream charges one more.
    sleep(Duration::from_secs(58)).await;
    assert_eq!(world.used("q").await, "count/pods=1,pods=1");
    world.wait_for_used("q", "count/pods=1,pods=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn charge_that_a_late_cache_took_back_is_restored_by_the_addition() {
    let world = World::new().await;
    // The cache of pods is always late.
    let late = Duration::from_secs(20);
    let _late = world.faults.delay_events(Calls::watch("pods").always(), late);
    world.create(&pod("a", "1")).await;
    world.create(&quota("q", &json!({"pods": "9", "secrets": "9"}))).await;
    world.create(&secret("s")).await;
    world.wait_for_used("q", "pods=1,secrets=1").await;
    world.charge("q", &json!({"pods": "2"})).await;
    world.create(&pod("b", "1")).await;
    // Another reason for a recount: it writes what the cache of pods has.
    world.delete(&secret("s")).await;
    world.wait_for_used("q", "pods=1,secrets=0").await;
    world.wait_for_used("q", "pods=2,secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn addition_never_lowers_a_charge() {
    let world = World::new().await;
    world.create(&quota("q", &json!({"pods": "9", "secrets": "9"}))).await;
    world.wait_for_used("q", "pods=0,secrets=0").await;
    // Admission has charged 3 pods that are not stored yet.
    world.charge("q", &json!({"pods": "3"})).await;
    sleep(Duration::from_secs(1)).await;
    world.create(&pod("a", "1")).await;
    world.create(&secret("s")).await;
    world.wait_for_used("q", "pods=3,secrets=1").await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(world.used("q").await, "pods=3,secrets=1");
    world.delete(&pod("a", "1")).await;
    world.wait_for_used("q", "pods=0,secrets=1").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resource_that_never_syncs_withholds_only_its_own_names() {
    let world = World::new().await;
    let refuse =
        |verb| world.faults.refuse(Calls::to(verb, "secrets").always(), ApiError::forbidden());
    let _refused = [refuse(Verb::List), refuse(Verb::Watch)];
    world.create(&pod("a", "1")).await;
    world.create(&quota("pods", &json!({"pods": "9"}))).await;
    world.create(&quota("both", &json!({"pods": "9", "secrets": "9"}))).await;
    let took = world.wait_for_used("pods", "pods=1").await;
    assert!(took < Duration::from_secs(2), "another quota does not wait: {took:?}");
    assert_eq!(world.used("both").await, "", "the first status waits for 30 s");
    let took = world.wait_for_used("both", "pods=1").await;
    assert!(took < Duration::from_secs(32), "{took:?}");
    world.create(&pod("b", "1")).await;
    world.wait_for_used("both", "pods=2").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn burst_of_deletions_costs_few_writes_and_no_conflict() {
    let world = World::new().await;
    let pods: Vec<_> = (0..100).map(|number| pod(&format!("p{number}"), "1")).collect();
    for pod in &pods {
        world.create(pod).await;
    }
    world.create(&quota("q", &json!({"pods": "999"}))).await;
    world.wait_for_used("q", "pods=100").await;
    world.requests();
    for pod in &pods {
        world.delete(pod).await;
        sleep(Duration::from_millis(5)).await;
    }
    world.wait_for_used("q", "pods=0").await;
    let requests = world.requests();
    let writes: Vec<_> = requests.iter().filter(|line| line.starts_with("PUT")).collect();
    assert!(writes.len() <= 8, "{} writes", writes.len());
    assert!(writes.iter().all(|line| line.ends_with(" 200")), "{writes:#?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn informer_runs_while_a_quota_names_its_resource_and_ten_minutes_more() {
    let world = World::new().await;
    let secrets = quota("q", &json!({"secrets": "1"}));
    world.create(&secrets).await;
    world.wait_for_used("q", "secrets=0").await;
    let watches = watched(&world.requests());
    assert_eq!(watches.iter().collect::<Vec<_>>(), ["resourcequotas", "secrets"]);
    assert_eq!(world.server.watches(), 2);
    world.delete(&secrets).await;
    sleep(Duration::from_secs(590)).await;
    assert_eq!(world.server.watches(), 2);
    sleep(Duration::from_secs(20)).await;
    assert_eq!(world.server.watches(), 1);
    world.create(&secrets).await;
    world.wait_for_used("q", "secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn storage_of_a_claim_is_counted_in_the_unit_of_its_request() {
    let world = World::new().await;
    world.create(&quota("q", &json!({"requests.storage": "9Gi", "secrets": "9"}))).await;
    let claim = |name: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
               "spec": {"accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}}}})
    };
    world.create(&claim("a")).await;
    world.wait_for_used("q", "requests.storage=1Gi,secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn periodic_recount_corrects_a_usage_that_is_too_high() {
    let options = Options { sync_period: Some(Duration::from_secs(60)), ..without_period() };
    let world = World::with(options).await;
    world.create(&quota("q", &json!({"pods": "9"}))).await;
    world.wait_for_used("q", "pods=0").await;
    // Admission charged a pod, and the create failed.
    world.charge("q", &json!({"pods": "1"})).await;
    let took = world.wait_for_used("q", "pods=0").await;
    assert!(took <= Duration::from_secs(61), "{took:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn idle_controller_writes_nothing() {
    let world = World::new().await;
    world.create(&quota("q", &json!({"pods": "9"}))).await;
    world.create(&quota("empty", &json!({}))).await;
    world.wait_for_used("q", "pods=0").await;
    sleep(Duration::from_secs(5)).await;
    world.requests();
    sleep(Duration::from_secs(1200)).await;
    let requests = world.requests();
    assert!(!requests.iter().any(|line| line.starts_with("PUT")), "{requests:#?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn manifest_grants_the_used_permissions() {
    let world = World::new().await;
    let limits = json!({
        "pods": "9", "services": "9", "requests.storage": "9Gi", "secrets": "9",
        "count/leases.coordination.k8s.io": "9",
        "gpu.deviceclass.resource.k8s.io/devices": "9",
    });
    world.create(&quota("q", &limits)).await;
    let counted = "count/leases.coordination.k8s.io=0,gpu.deviceclass.resource.k8s.io/devices=0";
    world
        .wait_for_used("q", &format!("{counted},pods=0,requests.storage=0,secrets=0,services=0"))
        .await;
    // A write that is refused and one whose reply is lost are repeated, with the same right.
    let status = || Calls::update("resourcequotas").subresource("status");
    world.faults.refuse(status().nth(1), ApiError::conflict());
    world.faults.lose_reply(status().nth(1));
    world.create(&pod("a", "1")).await;
    world
        .wait_for_used("q", &format!("{counted},pods=1,requests.storage=0,secrets=0,services=0"))
        .await;
    world.delete(&pod("a", "1")).await;
    world
        .wait_for_used("q", &format!("{counted},pods=0,requests.storage=0,secrets=0,services=0"))
        .await;
    // After a watch has expired, the controller lists or requests the list as a stream.
    world.faults.expire_watches("*");
    world.create(&pod("b", "1")).await;
    world
        .wait_for_used("q", &format!("{counted},pods=1,requests.storage=0,secrets=0,services=0"))
        .await;
    // Lists are for a server that has no streaming lists.
    world.requested.compare(&[include_str!("../rbac.yaml")], &["list *.*"]).unwrap();
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn admission_refuses_what_does_not_fit_until_the_controller_lowers_the_usage() {
    let world = World::enforcing().await;
    world.create(&quota("q", &json!({"requests.cpu": "1", "secrets": "1"}))).await;
    world.wait_for_used("q", "requests.cpu=0,secrets=0").await;
    world.create(&pod("a", "600m")).await;
    assert_eq!(world.used("q").await, "requests.cpu=600m,secrets=0", "charged at once");
    let text = "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=900m, used: \
                requests.cpu=600m, limited: requests.cpu=1";
    assert_eq!(world.refusal(&pod("b", "900m")).await, text);
    let mut bare = pod("c", "1");
    bare["spec"]["containers"][0]["resources"] = json!({});
    let text = "pods \"c\" is forbidden: failed quota: q: must specify requests.cpu for: c";
    assert_eq!(world.refusal(&bare).await, text);
    world.patch(&pod("a", "1"), "/status", &json!({"status": {"phase": "Succeeded"}})).await;
    world.wait_for_used("q", "requests.cpu=0,secrets=0").await;
    world.create(&pod("b", "900m")).await;
    world.create(&secret("s")).await;
    let text = "secrets \"t\" is forbidden: exceeded quota: q, requested: secrets=1, used: \
                secrets=1, limited: secrets=1";
    assert_eq!(world.refusal(&secret("t")).await, text);
    world.stop().await;
}
