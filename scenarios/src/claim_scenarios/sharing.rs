//! Claims that several consumers share.

use anyhow::ensure;
use homeostat::kube_client::api::DeleteParams;
use homeostat_apiserver::cluster::ClaimScheduler;
use homeostat_faults::Verb;
use serde_json::json;

use super::REST;
use crate::World;
use crate::resource_claims::{ResourceClaims, on_node, pod_using};

pub(super) async fn shared_claim(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    user.create_claim(&json!({"name": "shared"})).await?;
    user.allocate("shared").await?;
    for n in 0..256 {
        user.create_pod(&on_node(pod_using(&format!("web-{n:03}"), "shared"))).await?;
    }
    let controller = world.run_claim_controller();
    user.wait("all pods have reserved", async || Ok(user.consumers("shared").await?.len() == 256))
        .await?;
    let writes = world.faults().count(Verb::Patch, "resourceclaims/status");
    ensure!((1..=64).contains(&writes), "{writes} writes for 256 pods");
    user.create_pod(&on_node(pod_using("one-too-many", "shared"))).await?;
    tokio::time::sleep(REST).await;
    let consumers = user.consumers("shared").await?;
    ensure!(!consumers.contains(&"one-too-many".to_owned()), "the claim is full");
    user.kill("web-000").await?;
    user.wait("the freed place is taken", async || {
        Ok(user.consumers("shared").await?.contains(&"one-too-many".to_owned()))
    })
    .await?;
    controller.stop().await
}

/// The scheduler has reserved a claim for as many pods as it can have. After their deletion it
/// reserves the claim for the pods that waited (upstream's `testShareResourceClaimSequentially`).
pub(super) async fn shared_in_turn(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    user.create_claim(&json!({"name": "shared"})).await?;
    user.allocate("shared").await?;
    let mut consumers = Vec::new();
    for n in 0..256 {
        let name = format!("web-{n:03}");
        let pod = user.create_pod(&on_node(pod_using(&name, "shared"))).await?;
        consumers.push(json!({"resource": "pods", "name": name, "uid": pod.metadata.uid}));
    }
    user.patch_claim_status("shared", &json!({"reservedFor": consumers})).await?;
    let _scheduler = ClaimScheduler::start(world.user().clone());
    let controller = world.run_claim_controller();
    for n in 0..4 {
        user.create_pod(&pod_using(&format!("later-{n}"), "shared")).await?;
    }
    tokio::time::sleep(REST).await;
    ensure!(user.consumers("shared").await?.len() == 256, "the claim is full");
    for n in 0..256 {
        user.kill(&format!("web-{n:03}")).await?;
    }
    user.wait_for_consumers("shared", &["later-0", "later-1", "later-2", "later-3"]).await?;
    controller.stop().await
}

pub(super) async fn foreign_consumer(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    user.create_claim(&json!({"name": "shared"})).await?;
    user.allocate("shared").await?;
    let foreign = json!({"apiGroup": "example.com", "resource": "jobs", "name": "job", "uid": "j"});
    user.patch_claim_status("shared", &json!({"reservedFor": [foreign]})).await?;
    let controller = world.run_claim_controller();
    user.create_pod(&on_node(pod_using("web", "shared"))).await?;
    user.wait_for_consumers("shared", &["job", "web"]).await?;
    user.finish("web").await?;
    user.wait_for_consumers("shared", &["job"]).await?;
    tokio::time::sleep(REST).await;
    let status = user.claims.get("shared").await?.status.unwrap_or_default();
    ensure!(status.allocation.is_some(), "the other consumer still uses it");
    controller.stop().await
}

pub(super) async fn deleted_while_reserved(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    user.create_claim(&json!({"name": "shared"})).await?;
    user.create_claim(&json!({"name": "unused"})).await?;
    user.allocate("shared").await?;
    user.allocate("unused").await?;
    let controller = world.run_claim_controller();
    user.create_pod(&on_node(pod_using("web", "shared"))).await?;
    user.wait_for_consumers("shared", &["web"]).await?;
    for name in ["shared", "unused"] {
        user.claims.delete(name, &DeleteParams::default()).await?;
    }
    user.wait_for_claims(&["shared"]).await?;
    tokio::time::sleep(REST).await;
    user.wait_for_consumers("shared", &["web"]).await?;
    user.kill("web").await?;
    user.wait_for_claims(&[]).await?;
    controller.stop().await
}
