//! Watches that expire, a server that is restored from a backup, objects that do not fit.

use std::time::Duration;

use homeostat_faults::{ApiError, Calls};
use serde_json::json;
use tokio::time::sleep;

use crate::world::{World, pod, quota, secret};

#[tokio::test(start_paused = true)]
async fn usage_is_right_after_the_watches_have_expired() {
    let world = World::new().await;
    world.create(&quota("q", &json!({"pods": "9", "secrets": "9"}))).await;
    world.create(&pod("a", "1")).await;
    world.create(&secret("s")).await;
    world.wait_for_used("q", "pods=1,secrets=1").await;
    world.faults.refuse(Calls::watches().always(), ApiError::unavailable());
    world.server.restart();
    world.delete(&pod("a", "1")).await;
    world.create(&secret("t")).await;
    // What happened meanwhile is in no history any more: each watch gets a 410.
    world.server.expire_history();
    sleep(Duration::from_secs(5)).await;
    world.faults.heal();
    let expired = world.faults.refuse(Calls::watches().times(2), ApiError::expired());
    world.wait_for_used("q", "pods=0,secrets=2").await;
    expired.assert_hit();
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_write_is_repeated_within_a_second() {
    let world = World::new().await;
    world.create(&quota("q", &json!({"pods": "9"}))).await;
    world.wait_for_used("q", "pods=0").await;
    let updates = || Calls::update("resourcequotas").subresource("status").always();
    world.faults.refuse(updates(), ApiError::internal_error());
    world.create(&pod("a", "1")).await;
    sleep(Duration::from_secs(60)).await;
    world.faults.heal();
    // No event wakes the quota, and upstream's back-off is at 41 s now.
    let took = world.wait_for_used("q", "pods=1").await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn writes_whose_replies_were_lost_delay_no_later_write() {
    let world = World::new().await;
    let names: Vec<_> = (0..40).map(|number| format!("q{number}")).collect();
    for name in &names {
        world.create(&quota(name, &json!({"pods": "9"}))).await;
    }
    for name in &names {
        world.wait_for_used(name, "pods=0").await;
    }
    // The server carries out these writes, so their repetition finds nothing to write.
    let updates = || Calls::update("resourcequotas").subresource("status");
    let lost = world.faults.lose_reply(updates().times(40));
    world.create(&pod("a", "1")).await;
    for name in &names {
        world.wait_for_used(name, "pods=1").await;
    }
    sleep(Duration::from_secs(60)).await;
    lost.assert_hit();
    let refused = world.faults.refuse(updates().nth(1), ApiError::conflict());
    world.create(&pod("b", "1")).await;
    for name in &names {
        let took = world.wait_for_used(name, "pods=2").await;
        assert!(took < Duration::from_secs(1), "{name}: {took:?}");
    }
    refused.assert_hit();
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn refused_write_is_repeated_less_and_less() {
    let world = World::new().await;
    world.create(&quota("q", &json!({"pods": "9"}))).await;
    world.wait_for_used("q", "pods=0").await;
    let updates = Calls::update("resourcequotas").subresource("status").always();
    world.faults.refuse(updates, ApiError::forbidden());
    world.create(&pod("a", "1")).await;
    world.requests();
    sleep(Duration::from_secs(600)).await;
    let requests = world.requests();
    let writes = requests.iter().filter(|line| line.starts_with("PUT")).count();
    // 5 ms, doubled at each failure: 17 attempts in the first 327 s.
    assert!((15..=19).contains(&writes), "{writes} writes");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn usage_is_right_after_the_server_was_restored_from_a_backup() {
    let world = World::new().await;
    world.create(&quota("q", &json!({"pods": "9", "secrets": "9"}))).await;
    world.create(&pod("a", "1")).await;
    world.wait_for_used("q", "pods=1,secrets=0").await;
    let backup = world.server.backup();
    for name in ["b", "c"] {
        world.create(&pod(name, "1")).await;
        world.create(&secret(name)).await;
    }
    world.wait_for_used("q", "pods=3,secrets=2").await;
    world.server.restore(&backup);
    assert_eq!(world.used("q").await, "pods=1,secrets=0");
    world.create(&pod("d", "1")).await;
    // The server accepts a watch from a version that it has not reached again, and sends nothing:
    // the restore is noticed when that watch ends.
    sleep(Duration::from_secs(1800)).await;
    assert_eq!(world.used("q").await, "pods=2,secrets=0");
    world.delete(&pod("a", "1")).await;
    world.wait_for_used("q", "pods=1,secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn object_that_does_not_fit_its_type_keeps_the_names_of_its_evaluator() {
    let world = World::new().await;
    // The server sends a deadline of another type, as a newer version might.
    world.misfit("\"activeDeadlineSeconds\":4242", "\"activeDeadlineSeconds\":\"soon\"");
    world.create(&quota("before", &json!({"pods": "9", "secrets": "9"}))).await;
    world.create(&pod("a", "1")).await;
    world.wait_for_used("before", "pods=1,secrets=0").await;
    let mut misfit = pod("misfit", "1");
    misfit["spec"]["activeDeadlineSeconds"] = json!(4242);
    world.create(&misfit).await;
    world.create(&secret("s")).await;
    world.wait_for_used("before", "pods=1,secrets=1").await;
    // A new quota of the namespace has no usage of pods: nothing is guessed.
    world.create(&quota("after", &json!({"pods": "9", "secrets": "9"}))).await;
    world.wait_for_used("after", "secrets=1").await;
    assert_eq!(world.used("before").await, "pods=1,secrets=1");
    world.delete(&misfit).await;
    for name in ["before", "after"] {
        world.wait_for_used(name, "pods=1,secrets=1").await;
    }
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn quota_that_fits_its_type_again_is_recounted() {
    let world = World::new().await;
    world.misfit("\"secrets\":\"4242\"", "\"secrets\":\"many\"");
    let secrets = |count: &str| quota("q", &json!({"pods": "9", "secrets": count}));
    world.create(&pod("a", "1")).await;
    world.create(&secrets("9")).await;
    world.wait_for_used("q", "pods=1,secrets=0").await;
    world.patch(&secrets("9"), "", &json!({"spec": secrets("4242")["spec"]})).await;
    sleep(Duration::from_secs(1)).await;
    world.delete(&pod("a", "1")).await;
    sleep(Duration::from_secs(1)).await;
    world.patch(&secrets("9"), "", &json!({"spec": secrets("9")["spec"]})).await;
    world.wait_for_used("q", "pods=0,secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn object_that_fits_its_type_again_causes_a_recount() {
    let world = World::new().await;
    world.misfit("\"activeDeadlineSeconds\":4242", "\"activeDeadlineSeconds\":\"soon\"");
    world.create(&quota("q", &json!({"pods": "9"}))).await;
    for name in ["a", "b"] {
        world.create(&pod(name, "1")).await;
    }
    world.wait_for_used("q", "pods=2").await;
    let deadline = |seconds: u32| json!({"spec": {"activeDeadlineSeconds": seconds}});
    world.patch(&pod("a", "1"), "", &deadline(4243)).await;
    sleep(Duration::from_secs(1)).await;
    world.patch(&pod("a", "1"), "", &deadline(4242)).await;
    sleep(Duration::from_secs(1)).await;
    world.delete(&pod("b", "1")).await;
    // The passes fail meanwhile, with a back-off of minutes in the end.
    sleep(Duration::from_secs(600)).await;
    world.patch(&pod("a", "1"), "", &deadline(4241)).await;
    let took = world.wait_for_used("q", "pods=1").await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    world.stop().await;
}
