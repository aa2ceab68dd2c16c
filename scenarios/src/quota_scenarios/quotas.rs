//! Scenarios about the quotas themselves: several of one namespace, one that is made again, and
//! writes beside those of admission.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{DEADLINE, Shop, options, pod, quota};
use crate::World;

/// Returns the quota with another name.
fn named(name: &str, mut quota: Value) -> Value {
    quota["metadata"]["name"] = json!(name);
    quota
}

/// Each quota of a namespace counts the same objects, under its own limits.
pub(super) async fn overlapping(world: &mut World) -> anyhow::Result<()> {
    let shop = Shop::open(world, &quota(&json!({"pods": "9", "requests.cpu": "9"}))).await?;
    let counts = named("counts", quota(&json!({"count/pods": "9", "pods": "5"})));
    shop.create("/api/v1", "resourcequotas", &counts).await?;
    let running = world.run_quota_controller(options());
    shop.wait_for_used("pods=0,requests.cpu=0").await?;
    shop.wait_for_used_of("counts", "count/pods=0,pods=0").await?;
    shop.create("/api/v1", "pods", &pod("a", "100m")).await?;
    shop.create("/api/v1", "pods", &pod("b", "200m")).await?;
    shop.wait_for_used("pods=2,requests.cpu=300m").await?;
    shop.wait_for_used_of("counts", "count/pods=2,pods=2").await?;
    let done = json!({"status": {"phase": "Succeeded"}});
    shop.send("PATCH", "/api/v1/namespaces/shop/pods/b/status", &done).await?;
    shop.wait_for_used("pods=1,requests.cpu=100m").await?;
    shop.wait_for_used_of("counts", "count/pods=2,pods=1").await?;
    shop.delete("/api/v1", "pods", "b").await?;
    shop.wait_for_used_of("counts", "count/pods=1,pods=1").await?;
    running.stop().await
}

/// A quota that is deleted and created with other limits is counted from the start.
pub(super) async fn recreated(world: &mut World) -> anyhow::Result<()> {
    let shop = Shop::open(world, &quota(&json!({"pods": "9"}))).await?;
    let running = world.run_quota_controller(options());
    shop.wait_for_used("pods=0").await?;
    for name in ["a", "b", "c"] {
        shop.create("/api/v1", "pods", &pod(name, "100m")).await?;
    }
    shop.wait_for_used("pods=3").await?;
    for (hard, used) in [
        (json!({"requests.cpu": "9"}), "requests.cpu=300m"),
        (json!({"pods": "1"}), "pods=3"),
        (json!({"count/pods": "9", "secrets": "9"}), "count/pods=3,secrets=0"),
    ] {
        shop.delete("/api/v1", "resourcequotas", "q").await?;
        shop.create("/api/v1", "resourcequotas", &quota(&hard)).await?;
        shop.wait_for_used(used).await?;
    }
    shop.delete("/api/v1", "pods", "a").await?;
    shop.wait_for_used("count/pods=2,secrets=0").await?;
    running.stop().await
}

/// Three users create and delete pods while the controller writes: each write of admission and of
/// the controller may conflict with another.
pub(super) async fn beside_admission(world: &mut World) -> anyhow::Result<()> {
    let shop = Shop::open(world, &quota(&json!({"pods": "90", "requests.cpu": "90"}))).await?;
    let running = world.run_quota_controller(options());
    shop.wait_for_used("pods=0,requests.cpu=0").await?;
    let user = async |user: usize| -> anyhow::Result<()> {
        for number in 0..8 {
            let name = format!("pod-{user}-{number}");
            create_until_accepted(&shop, &name).await?;
            if number % 2 == 1 {
                shop.delete("/api/v1", "pods", &name).await?;
            }
        }
        Ok(())
    };
    let all = futures::future::try_join3(user(0), user(1), user(2));
    tokio::time::timeout(DEADLINE, all).await.context("the users do not finish")??;
    // A create that failed after its charge leaves the usage too high until the next deletion.
    shop.delete("/api/v1", "pods", "pod-0-0").await?;
    shop.wait_for_used("pods=11,requests.cpu=1100m").await?;
    running.stop().await
}

/// Repeats a create that admission could not charge, since the quota changed again and again.
async fn create_until_accepted(shop: &Shop, name: &str) -> anyhow::Result<()> {
    while let Err(error) = shop.create("/api/v1", "pods", &pod(name, "100m")).await {
        anyhow::ensure!(format!("{error:#}").contains("resourcequotas \"q\""), error);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
