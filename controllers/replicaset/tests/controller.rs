//! The whole controller against an API server in this process, in virtual time.

#[path = "controller/world.rs"]
mod world;

use std::time::Duration;

use homeostat::kube_client::api::{DeleteParams, PropagationPolicy};
use homeostat_faults::{ApiError, Calls, Verb};
use homeostat_replicaset::Options;
use serde_json::json;

use self::world::{World, epoch, web};

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[tokio::test(start_paused = true)]
async fn desired_pods_are_created_from_the_template() {
    let world = World::new().await;
    world.create(&web(3)).await;
    let pods = world.settles_at(3).await;
    let pod = world.pods().get(&pods[0].name).await.unwrap();
    assert!(pods[0].name.starts_with("web-"));
    assert_eq!(pod.metadata.annotations.unwrap()["note"], "kept");
    let owner = &pod.metadata.owner_references.unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.api_version.as_str()), ("ReplicaSet", "apps/v1"));
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
    let status = world.status().await;
    assert_eq!((status.replicas, status.fully_labeled_replicas), (3, Some(3)));
    assert_eq!((status.observed_generation, status.terminating_replicas), (Some(1), Some(0)));
    let events = world.events().await;
    assert_eq!(events.len(), 3);
    for pod in &pods {
        let event = ("SuccessfulCreate".to_owned(), format!("Created pod: {}", pod.name));
        assert!(events.contains(&event), "{events:?}");
    }
    assert_eq!(world.faults.count(Verb::Create, "pods"), 3);
    assert!(world.stop().await < seconds(5));
}

#[tokio::test(start_paused = true)]
async fn replica_set_scales_up_and_down_and_to_zero() {
    let world = World::new().await;
    world.create(&web(2)).await;
    world.settles_at(2).await;
    world.scale(20).await;
    world.settles_at(20).await;
    world.scale(7).await;
    world.settles_at(7).await;
    world.scale(0).await;
    world.settles_at(0).await;
    assert_eq!(world.faults.count(Verb::Create, "pods"), 20);
    assert_eq!(world.faults.count(Verb::Delete, "pods"), 20);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn more_pods_than_a_burst_are_created_in_several_passes() {
    let world = World::with(Options { burst_replicas: 8, ..Options::default() }).await;
    world.create(&web(30)).await;
    world.settles_at(30).await;
    assert_eq!(world.faults.count(Verb::Create, "pods"), 30);
    world.scale(3).await;
    world.settles_at(3).await;
    assert_eq!(world.faults.count(Verb::Delete, "pods"), 27);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn matching_orphan_is_adopted_and_counts() {
    let world = World::new().await;
    let orphan = json!({"metadata": {"name": "stray", "labels": {"app": "web"}},
                        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world.create_pod(&orphan).await;
    world.create(&web(2)).await;
    let pods = world.settles_at(2).await;
    assert!(pods.iter().any(|pod| pod.name == "stray"));
    let mut late = orphan.clone();
    late["metadata"]["name"] = json!("late");
    world.create_pod(&late).await;
    world.settles_at(2).await;
    assert_eq!(world.faults.count(Verb::Create, "pods"), 1);
    assert_eq!(world.faults.count(Verb::Patch, "pods"), 2);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn relabelled_pod_is_released_and_replaced() {
    let world = World::new().await;
    world.create(&web(2)).await;
    let pods = world.settles_at(2).await;
    world.patch_pod(&pods[0].name, &json!({"metadata": {"labels": {"app": "debug"}}})).await;
    let after = world.settles_at(2).await;
    assert!(!after.contains(&pods[0]) && after.contains(&pods[1]));
    let all = world.seen().await;
    let released = all.iter().find(|pod| pod.name == pods[0].name).unwrap();
    assert_eq!(released.owner, None);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_pod_is_replaced_and_kept() {
    let world = World::new().await;
    world.create(&web(2)).await;
    let pods = world.settles_at(2).await;
    world.patch_pod_status(&pods[0].name, &json!({"phase": "Failed"})).await;
    let after = world.settles_at(2).await;
    assert!(!after.iter().any(|pod| pod.name == pods[0].name));
    assert_eq!(world.seen().await.len(), 3);
    assert_eq!(world.faults.count(Verb::Delete, "pods"), 0);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn leaving_pod_is_replaced_at_once() {
    let world = World::new().await;
    world.create(&web(2)).await;
    let pods = world.settles_at(2).await;
    let name = &pods[0].name;
    world.patch_pod(name, &json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    world.pods().delete(name, &DeleteParams::default()).await.unwrap();
    world.settles_at(2).await;
    assert_eq!(world.seen().await.len(), 3, "the old one is still there");
    assert_eq!(world.status().await.terminating_replicas, Some(1));
    world.patch_pod(name, &json!({"metadata": {"finalizers": null}})).await;
    world.settles_at(2).await;
    assert_eq!(world.status().await.terminating_replicas, Some(0));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn terminating_replicas_are_not_reported_with_the_gate_off() {
    let gates = "DeploymentReplicaSetTerminatingReplicas=false".parse().unwrap();
    let world = World::with(Options { gates, ..Options::default() }).await;
    world.create(&web(1)).await;
    world.settles_at(1).await;
    assert_eq!(world.status().await.terminating_replicas, None);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn leaving_replica_set_only_writes_its_status() {
    let world = World::new().await;
    let mut set = web(2);
    set["metadata"]["finalizers"] = json!(["example.com/hold"]);
    world.create(&set).await;
    let pods = world.settles_at(2).await;
    let orphan = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    world.sets().delete("web", &orphan).await.unwrap();
    world.pods().delete(&pods[0].name, &DeleteParams::default()).await.unwrap();
    world.until(async || world.status().await.replicas == 1).await;
    world.pass(seconds(60)).await;
    assert_eq!(world.faults.count(Verb::Create, "pods"), 2, "none in its place");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn quota_causes_few_requests_and_a_condition() {
    let world = World::new().await;
    let exceeded =
        ApiError::new(http::StatusCode::FORBIDDEN, "Forbidden", "exceeded quota: compute");
    world.faults.refuse(Calls::create("pods").always(), exceeded);
    world.create(&web(100)).await;
    world.until(async || world.status().await.conditions.is_some()).await;
    let condition = world.status().await.conditions.unwrap().remove(0);
    assert_eq!(condition.type_.as_deref(), Some("ReplicaFailure"));
    assert_eq!(condition.reason.as_deref(), Some("FailedCreate"));
    assert_eq!(condition.message.as_deref(), Some("exceeded quota: compute"));
    world.pass(seconds(60)).await;
    let asked = world.faults.count(Verb::Create, "pods");
    assert!(asked <= 20, "one at a time, with back-off: {asked}");
    let event = ("FailedCreate".to_owned(), "Error creating: exceeded quota: compute".to_owned());
    assert!(world.events().await.contains(&event));
    world.faults.heal();
    world.settles_at(100).await;
    assert_eq!(world.status().await.conditions, None, "it is over");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn late_cache_creates_no_pod_twice() {
    let world = World::new().await;
    world.create(&web(1)).await;
    world.settles_at(1).await;
    let held = world.faults.hold_watches("pods");
    world.scale(10).await;
    // Longer than upstream waits: after five minutes it trusts the cache again, and makes nine
    // more.
    world.pass(seconds(400)).await;
    assert_eq!(world.owned().await.len(), 10);
    assert_eq!(world.faults.count(Verb::Create, "pods"), 10);
    drop(held);
    world.settles_at(10).await;
    assert_eq!(world.faults.count(Verb::Create, "pods"), 10);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn create_whose_reply_was_lost_is_not_repeated() {
    for nth in 1..=5 {
        let world = World::new().await;
        world.faults.lose_reply(Calls::create("pods").nth(nth));
        world.create(&web(5)).await;
        world.settles_at(5).await;
        assert_eq!(world.seen().await.len(), 5, "reply {nth}");
        assert_eq!(world.faults.count(Verb::Create, "pods"), 5, "reply {nth}");
        world.faults.assert_all_hit();
        world.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn create_that_never_arrived_is_repeated_within_seconds() {
    for nth in 1..=5 {
        let world = World::new().await;
        world.faults.drop_request(Calls::create("pods").nth(nth));
        world.create(&web(5)).await;
        let start = tokio::time::Instant::now();
        world.until(async || world.owned().await.len() == 5).await;
        assert!(start.elapsed() < seconds(7), "request {nth} took {:?}", start.elapsed());
        world.settles_at(5).await;
        assert_eq!(world.faults.count(Verb::Create, "pods"), 6, "request {nth}");
        world.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn delete_whose_reply_was_lost_deletes_no_other_pod() {
    let world = World::new().await;
    world.create(&web(5)).await;
    let before = world.settles_at(5).await;
    world.faults.lose_reply(Calls::delete("pods").nth(1));
    world.faults.drop_request(Calls::delete("pods").nth(2));
    world.scale(2).await;
    let after = world.settles_at(2).await;
    assert_eq!(world.seen().await.len(), 2);
    assert!(after.iter().all(|pod| before.contains(pod)), "one was replaced: {after:?}");
    assert_eq!(world.faults.count(Verb::Create, "pods"), 5);
    world.faults.assert_all_hit();
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn replicas_are_reached_under_any_faults_and_exceeded_only_by_lost_creates() {
    let mut hits = 0;
    for seed in 1..=20 {
        let (world, mut lost) = (World::new().await, 0);
        world.create(&web(0)).await;
        for (step, replicas) in (1..).zip([6, 9, 2, 5]) {
            lost += usize::from(break_something(&world, seed * 31 + step));
            let asked = usize::try_from(replicas).unwrap();
            let most = world.owned().await.len().max(asked) + lost;
            world.scale(replicas).await;
            world.reaches(asked, most).await;
            world.settles_at(asked).await;
            world.faults.heal();
        }
        hits += world.faults.trace().faults();
        world.stop().await;
    }
    assert!(hits >= 60, "only {hits} faults");
}

/// A seed says what befalls which request: the same in every run, another mixture for each. Says
/// whether the reply to a create may get lost.
fn break_something(world: &World, seed: u64) -> bool {
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (nth, kind) = (1 + (mixed >> 8) % 4, (mixed >> 32) % 5);
    for calls in [Calls::create("pods").nth(nth), Calls::delete("pods").nth(nth)] {
        let _rule = match kind {
            0 => world.faults.lose_reply(calls),
            1 => world.faults.drop_request(calls),
            2 => world.faults.refuse(calls, ApiError::internal_error()),
            3 => world.faults.refuse(calls, ApiError::timeout()),
            _ => world.faults.refuse(calls, ApiError::forbidden()),
        };
    }
    if mixed.is_multiple_of(3) {
        world.faults.tear_watches("pods");
    }
    kind == 0
}

#[tokio::test(start_paused = true)]
async fn status_conflict_takes_one_read_and_one_more_write() {
    let world = World::new().await;
    world.create(&web(0)).await;
    world.settles_at(0).await;
    let (reads, writes) = (world.faults.count(Verb::Get, "replicasets"), status_writes(&world));
    world
        .faults
        .refuse(Calls::update("replicasets").subresource("status").nth(1), ApiError::conflict());
    world.scale(1).await;
    world.until(async || world.status().await.observed_generation == Some(2)).await;
    assert_eq!(world.faults.count(Verb::Get, "replicasets"), reads + 1);
    world.settles_at(1).await;
    assert!(status_writes(&world) <= writes + 4);
    world.stop().await;
}

fn status_writes(world: &World) -> u64 {
    world.faults.count(Verb::Update, "replicasets/status")
        + world.faults.count(Verb::Update, "replicasets")
}

#[tokio::test(start_paused = true)]
async fn pods_become_available_after_min_ready_seconds() {
    let world = World::new().await;
    let mut set = web(2);
    set["spec"]["minReadySeconds"] = json!(30);
    world.create(&set).await;
    let pods = world.settles_at(2).await;
    let begun = tokio::time::Instant::now();
    world.make_ready(&pods[0].name, world.now()).await;
    world.pass(seconds(10)).await;
    world.make_ready(&pods[1].name, world.now()).await;
    world.until(async || world.status().await.ready_replicas == Some(2)).await;
    assert_eq!(world.status().await.available_replicas, None);
    world.until(async || world.status().await.available_replicas == Some(1)).await;
    world.until(async || world.status().await.available_replicas == Some(2)).await;
    let took = begun.elapsed();
    assert!(took >= seconds(38) && took < seconds(45), "{took:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn largest_min_ready_seconds_do_not_stop_the_controller() {
    let world = World::new().await;
    let mut set = web(1);
    set["spec"]["minReadySeconds"] = json!(i32::MAX);
    world.create(&set).await;
    let pods = world.settles_at(1).await;
    world.make_ready(&pods[0].name, epoch()).await;
    world.until(async || world.status().await.ready_replicas == Some(1)).await;
    world.scale(2).await;
    world.settles_at(2).await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn broken_and_expired_watches_lose_no_event() {
    let world = World::new().await;
    world.create(&web(3)).await;
    world.settles_at(3).await;
    assert_eq!(world.faults.tear_watches("*"), 2, "ReplicaSets and pods");
    world.scale(6).await;
    world.settles_at(6).await;
    assert_eq!(world.faults.expire_watches("*"), 2);
    world.scale(2).await;
    world.settles_at(2).await;
    assert_eq!(world.faults.count(Verb::Create, "pods"), 6);
    assert_eq!(world.faults.count(Verb::Delete, "pods"), 4);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_of_another_replica_set_is_not_changed() {
    let world = World::new().await;
    let mut other = web(2);
    other["metadata"]["name"] = json!("other");
    world.create(&other).await;
    world.until(async || world.seen().await.len() == 2).await;
    world.create(&web(2)).await;
    world.settles_at(2).await;
    assert_eq!(
        world.seen().await.len(),
        4,
        "both select the same labels, and neither takes the other's"
    );
    assert_eq!(world.faults.count(Verb::Patch, "pods"), 0);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn recreated_replica_set_starts_without_expectations() {
    let world = World::new().await;
    world.create(&web(2)).await;
    world.settles_at(2).await;
    // The first one awaits two creates that the cache does not show.
    let held = world.faults.hold_watches("pods");
    world.scale(4).await;
    world.until(async || world.owned().await.len() == 4).await;
    let old = world.owned().await;
    world.sets().delete("web", &DeleteParams::background()).await.unwrap();
    world.create(&web(3)).await;
    let start = tokio::time::Instant::now();
    let created = async || {
        let pods = world.owned().await;
        pods.into_iter().filter(|pod| !old.contains(pod)).count()
    };
    world.until(async || created().await == 3).await;
    assert!(start.elapsed() < seconds(3), "it waited for {:?}", start.elapsed());
    drop(held);
    world.until(async || world.status().await.replicas == 3).await;
    world.pass(seconds(30)).await;
    assert_eq!(created().await, 3);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn manifest_grants_the_used_permissions() {
    let world = World::new().await;
    world.faults.lose_reply(Calls::create("pods").nth(2));
    world.faults.drop_request(Calls::create("pods").nth(3));
    world.create(&web(5)).await;
    let pods = world.settles_at(5).await;
    world.patch_pod(&pods[0].name, &json!({"metadata": {"labels": {"app": "debug"}}})).await;
    world.settles_at(5).await;
    world.patch_pod(&pods[0].name, &json!({"metadata": {"labels": {"app": "web"}}})).await;
    world.settles_at(5).await;
    world
        .faults
        .refuse(Calls::update("replicasets").subresource("status").nth(1), ApiError::conflict());
    world.scale(0).await;
    world.settles_at(0).await;
    // For a server that has no streaming lists, and for admission.
    let spare = ["list replicasets.apps", "update replicasets/finalizers.apps"];
    world.requested.compare(&[include_str!("../rbac.yaml")], &spare).unwrap();
    world.stop().await;
}
