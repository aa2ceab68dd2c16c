//! The `ResourceClaim` controller crashes before and after each of its writes, and loses the reply
//! to each. Its successor brings the cluster to the same final state.

use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat::kube_client::api::ListParams;
use homeostat_apiserver::cluster::ClaimScheduler;
use homeostat_resourceclaim::Options;
use homeostat_scenarios::resource_claims::{ResourceClaims, on_node, pod, pod_using};
use homeostat_testing::{Outcome, Simulation, crash_at_every_call};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::{Value, json};

#[test]
fn successor_of_claim_controller_crashed_at_any_write_reaches_same_state() {
    let sweep = crash_at_every_call(11, world, controller).unwrap();
    // Creates, applies, reservations, releases, deallocations and deletes.
    assert!(sweep.calls >= 10, "{sweep:?}");
}

async fn controller(client: Client) {
    let options = Options { seed: Some(3), ..Options::default() };
    let ended = homeostat_resourceclaim::run(client, options, std::future::pending()).await;
    panic!("the controller ended: {ended:?}");
}

/// Pods with generated claims that the scheduler binds, and pods that share a claim without it.
async fn world(simulation: &Simulation) -> Outcome {
    let _scheduler = ClaimScheduler::start(simulation.server().client_as("scheduler"));
    let user = ResourceClaims::new(simulation.user());
    user.create_template().await?;
    user.create_claim(&json!({"name": "shared"})).await?;
    user.allocate("shared").await?;
    user.create_pod(&pod("web", 2)).await?;
    user.create_pod(&pod("stays", 1)).await?;
    for name in ["a", "b"] {
        user.create_pod(&on_node(pod_using(name, "shared"))).await?;
    }
    user.wait_for_names("web", 2).await?;
    for name in user.wait_for_names("stays", 1).await? {
        user.wait_for_consumers(&name, &["stays"]).await?;
    }
    user.wait_for_consumers("shared", &["a", "b"]).await?;
    user.finish("web").await?;
    user.kill("a").await?;
    user.wait("the live pod keeps its reservation", async || {
        let consumers = user.consumers("shared").await?;
        anyhow::ensure!(consumers.iter().any(|name| name == "b"), "{consumers:?}");
        Ok(consumers.len() == 1 && user.names().await?.len() == 2)
    })
    .await?;
    user.kill("b").await?;
    user.wait("the shared claim is deallocated", async || {
        let status = user.claims.get("shared").await?.status.unwrap_or_default();
        Ok(status.allocation.is_none())
    })
    .await?;
    // Every unknown outcome is resolved by now.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let claims = user.claims.list(&ListParams::default()).await?;
    let pods = user.pods.list(&ListParams::default()).await?;
    let claims: Vec<Value> = claims.items.iter().map(claim_state).collect();
    Ok(json!({"claims": claims, "pods": pods.items.iter().map(pod_state).collect::<Vec<_>>()}))
}

/// Returns a claim without what differs between runs: names, UIDs and times. The finalizer of an
/// unallocated claim may stay until the claim is deleted.
fn claim_state(claim: &ResourceClaim) -> Value {
    let status = claim.status.clone().unwrap_or_default();
    let consumers = status.reserved_for.unwrap_or_default();
    let owners = claim.metadata.owner_references.iter().flatten();
    json!({
        "annotations": claim.metadata.annotations,
        "owners": owners.map(|owner| &owner.name).collect::<Vec<_>>(),
        "allocated": status.allocation.is_some(),
        "consumers": consumers.into_iter().map(|it| it.name).collect::<Vec<_>>(),
    })
}

/// Returns a pod with the number of its recorded claims.
fn pod_state(pod: &Pod) -> Value {
    let status = pod.status.clone().unwrap_or_default();
    let recorded = status.resource_claim_statuses.unwrap_or_default();
    let entries: Vec<_> = recorded.into_iter().map(|it| it.name).collect();
    json!({"name": pod.metadata.name, "phase": status.phase, "recorded": entries})
}
