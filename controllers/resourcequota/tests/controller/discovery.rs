//! Discovery that fails, as a whole or for one group (upstream: `TestDiscoverySync`).

use std::time::Duration;

use homeostat_resourcequota::Options;
use serde_json::json;
use tokio::time::sleep;

use crate::world::{Discovery, World, foo, quota, secret, without_period};

/// A quota of pods and of a custom resource, and one object of it.
async fn world() -> World {
    let world = World::new().await;
    world.offer("v1");
    world.create(&foo("a")).await;
    world.create(&quota("q", &json!({"count/foos.example.com": "9", "secrets": "9"}))).await;
    world.wait_for_used("q", "count/foos.example.com=1,secrets=0").await;
    world
}

#[tokio::test(start_paused = true)]
async fn failed_discovery_keeps_all_informers() {
    let world = world().await;
    world.discovery(Discovery::Fails);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.server.watches(), 3, "quotas, secrets and foos");
    world.create(&foo("b")).await;
    let took = world.wait_for_used("q", "count/foos.example.com=2,secrets=0").await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    // What comes meanwhile is found as soon as discovery works again.
    world.create(&quota("late", &json!({"configmaps": "9"}))).await;
    world.wait_for_used("late", "configmaps=0").await;
    world.discovery(Discovery::Works);
    world.offer("");
    let took = world.wait_for_used("q", "count/foos.example.com=0,secrets=0").await;
    assert!(took < Duration::from_secs(32), "{took:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_discovery_of_a_group_keeps_its_resources_and_follows_the_others() {
    let world = world().await;
    world.discovery(Discovery::LacksGroup);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.server.watches(), 3);
    world.create(&foo("b")).await;
    world.wait_for_used("q", "count/foos.example.com=2,secrets=0").await;
    // A quota that comes meanwhile is counted from the informer that is kept.
    world.create(&quota("late", &json!({"count/foos.example.com": "9"}))).await;
    world.wait_for_used("late", "count/foos.example.com=2").await;
    world.discovery(Discovery::Works);
    sleep(Duration::from_secs(60)).await;
    world.delete(&foo("a")).await;
    world.wait_for_used("q", "count/foos.example.com=1,secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_discovery_of_the_core_group_keeps_its_resources_and_follows_the_others() {
    let world = world().await;
    world.discovery(Discovery::LacksCore);
    world.offer("");
    world.wait_for_used("q", "count/foos.example.com=0,secrets=0").await;
    world.create(&secret("s")).await;
    world.wait_for_used("q", "count/foos.example.com=0,secrets=1").await;
    world.offer("v1");
    world.wait_for_used("q", "count/foos.example.com=1,secrets=1").await;
    world.discovery(Discovery::Works);
    sleep(Duration::from_secs(60)).await;
    world.delete(&secret("s")).await;
    world.wait_for_used("q", "count/foos.example.com=1,secrets=0").await;
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn group_that_cannot_be_read_at_the_start_counts_when_it_can() {
    let world = World::new().await;
    world.offer("v1");
    world.discovery(Discovery::LacksGroup);
    world.create(&foo("a")).await;
    world.create(&quota("q", &json!({"count/foos.example.com": "9", "secrets": "9"}))).await;
    world.wait_for_used("q", "secrets=0").await;
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.used("q").await, "secrets=0");
    world.discovery(Discovery::Works);
    let took = world.wait_for_used("q", "count/foos.example.com=1,secrets=0").await;
    assert!(took < Duration::from_secs(32), "{took:?}");
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn period_of_any_length_works() {
    for discovery_period in [Duration::ZERO, Duration::MAX] {
        let world = World::with(Options { discovery_period, ..without_period() }).await;
        world.create(&quota("q", &json!({"secrets": "9"}))).await;
        world.wait_for_used("q", "secrets=0").await;
        world.stop().await;
    }
}
