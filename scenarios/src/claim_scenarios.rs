//! The scenarios of the `ResourceClaim` controller. Each runs on every [`Target`](crate::Target).

mod faults;
mod refusals;
mod sharing;

use std::time::Duration;

use anyhow::ensure;
use homeostat::kube_client::api::DeleteParams;
use homeostat_apiserver::cluster::ClaimScheduler;
use serde_json::json;

use crate::resource_claims::{ResourceClaims, on_node, pod, pod_with};
use crate::{Scenario, World};

/// Longer than the first retries, so that a wrong write would have been sent.
const REST: Duration = Duration::from_millis(1500);

/// The annotation of a claim that was created for an entry of a pod.
const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";

/// All scenarios of claims.
pub const CLAIMS: &[Scenario] = &[
    Scenario { name: "claim_lives_with_its_pod", play: |world| Box::pin(life(world, 1)) },
    Scenario { name: "pod_has_sixteen_claims", play: |world| Box::pin(life(world, 16)) },
    Scenario {
        name: "template_is_created_after_the_pod",
        play: |world| Box::pin(late_template(world)),
    },
    Scenario {
        name: "claim_that_was_deleted_is_created_again",
        play: |world| Box::pin(deleted_claim(world)),
    },
    Scenario {
        name: "foreign_claim_under_the_name_is_left_alone",
        play: |world| Box::pin(foreign_claim(world)),
    },
    Scenario {
        name: "pod_of_the_same_name_gets_a_claim_of_its_own",
        play: |world| Box::pin(recreated_pod(world)),
    },
    Scenario {
        name: "claim_is_shared_by_256_pods_in_few_writes",
        play: |world| Box::pin(sharing::shared_claim(world)),
    },
    Scenario {
        name: "later_pods_reserve_the_claim_after_256_scheduled_ones",
        play: |world| Box::pin(sharing::shared_in_turn(world)),
    },
    Scenario {
        name: "claims_of_failed_pod_are_deleted",
        play: |world| Box::pin(failed_pod(world)),
    },
    Scenario {
        name: "claim_of_pod_that_never_reached_a_node_is_deleted",
        play: |world| Box::pin(never_scheduled(world)),
    },
    Scenario {
        name: "foreign_consumer_keeps_the_allocation",
        play: |world| Box::pin(sharing::foreign_consumer(world)),
    },
    Scenario {
        name: "deleted_claim_stays_while_it_is_reserved",
        play: |world| Box::pin(sharing::deleted_while_reserved(world)),
    },
    Scenario {
        name: "claim_of_extended_resources_is_deleted_with_its_pod",
        play: |world| Box::pin(extended_resources(world)),
    },
    Scenario {
        name: "claim_with_admin_access_needs_the_label_of_its_namespace",
        play: |world| Box::pin(refusals::admin_access(world)),
    },
    Scenario {
        name: "terminating_namespace_ends_the_attempts_to_create",
        play: |world| Box::pin(refusals::terminating_namespace(world)),
    },
    Scenario {
        name: "older_of_two_claims_for_one_entry_is_taken",
        play: |world| Box::pin(two_claims(world)),
    },
    Scenario {
        name: "create_of_claim_with_lost_reply_makes_no_second_claim",
        play: |world| Box::pin(faults::lost_reply(world)),
    },
    Scenario {
        name: "successor_finds_the_claim_of_a_killed_controller",
        play: |world| Box::pin(faults::killed_controller(world)),
    },
    Scenario {
        name: "service_account_with_the_checked_in_roles_is_enough",
        play: |world| Box::pin(refusals::service_account(world)),
    },
    Scenario {
        name: "missing_permission_to_reserve_is_reported_until_it_is_granted",
        play: |world| Box::pin(refusals::missing_permission(world)),
    },
    Scenario {
        name: "torn_watches_lose_no_claim",
        play: |world| Box::pin(faults::torn_watches(world)),
    },
];

async fn life(world: &mut World, entries: usize) -> anyhow::Result<()> {
    let _scheduler = ClaimScheduler::start(world.user().clone());
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    user.create_template().await?;
    user.create_pod(&pod("web", entries)).await?;
    let names = user.wait_for_names("web", entries).await?;
    for name in &names {
        user.wait_for_consumers(name, &["web"]).await?;
    }
    user.wait("the pod runs", async || {
        let phase = user.pods.get("web").await?.status.and_then(|status| status.phase);
        Ok(phase.as_deref() == Some("Running"))
    })
    .await?;
    ensure!(user.names().await?.len() == entries, "one claim per entry");
    user.finish("web").await?;
    user.wait_for_claims(&[]).await?;
    ensure!(user.recorded("web").await?.len() == entries, "the names stay recorded");
    controller.stop().await
}

async fn late_template(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    user.create_pod(&pod("web", 2)).await?;
    tokio::time::sleep(REST).await;
    ensure!(user.names().await?.is_empty(), "there is no template");
    user.create_template().await?;
    user.wait_for_names("web", 2).await?;
    controller.stop().await
}

async fn deleted_claim(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    user.create_template().await?;
    user.create_pod(&pod("web", 2)).await?;
    let names = user.wait_for_names("web", 2).await?;
    let before = user.claims.get(&names[0]).await?.metadata.uid;
    user.claims.delete(&names[0], &DeleteParams::default()).await?;
    user.wait("the claim is there again", async || {
        let claim = user.claims.get_opt(&names[0]).await?;
        Ok(claim.is_some_and(|claim| claim.metadata.uid != before))
    })
    .await?;
    tokio::time::sleep(REST).await;
    ensure!(user.wait_for_names("web", 2).await? == names, "both entries are still recorded");
    controller.stop().await
}

async fn foreign_claim(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    user.create_template().await?;
    user.create_pod(&pod("web", 2)).await?;
    let names = user.wait_for_names("web", 2).await?;
    controller.stop().await?;
    // As upstream, a foreign claim alone does not start a pass: the other claim is missing, too.
    for name in &names {
        user.claims.delete(name, &DeleteParams::default()).await?;
    }
    let name = names[0].clone();
    let foreign = user.create_claim(&json!({"name": name})).await?;
    let controller = world.run_claim_controller();
    user.wait("another claim is recorded", async || {
        Ok(user.recorded("web").await?.iter().all(|(_, claim)| *claim != name))
    })
    .await?;
    user.finish("web").await?;
    user.wait_for_claims(&[&name]).await?;
    let kept = user.claims.get(&name).await?;
    ensure!(kept.metadata.resource_version == foreign.metadata.resource_version, "it is untouched");
    controller.stop().await
}

async fn recreated_pod(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    user.create_template().await?;
    user.create_pod(&pod("web", 1)).await?;
    let first = user.wait_for_names("web", 1).await?;
    user.kill("web").await?;
    user.create_pod(&pod("web", 1)).await?;
    let second = user.wait_for_names("web", 1).await?;
    ensure!(first != second, "each pod has a claim of its own: {first:?}");
    user.wait_for_claims(&[&second[0]]).await?;
    controller.stop().await
}

async fn failed_pod(world: &mut World) -> anyhow::Result<()> {
    let _scheduler = ClaimScheduler::start(world.user().clone());
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    user.create_template().await?;
    user.create_pod(&pod("web", 2)).await?;
    for name in user.wait_for_names("web", 2).await? {
        user.wait_for_consumers(&name, &["web"]).await?;
    }
    user.patch_pod_status("web", &json!({"phase": "Failed"})).await?;
    user.wait_for_claims(&[]).await?;
    ensure!(user.pods.get_opt("web").await?.is_some(), "the pod is still there");
    controller.stop().await
}

async fn never_scheduled(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    user.create_template().await?;
    let mut held = pod("web", 1);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    user.create_pod(&held).await?;
    let name = user.wait_for_names("web", 1).await?.remove(0);
    user.allocate(&name).await?;
    user.kill("web").await?;
    let allocated = async || {
        let claim = user.claims.get_opt(&name).await?;
        Ok(claim.is_none())
    };
    // It has no consumer and is not deallocated by a release: its deletion does that.
    user.wait("the claim of the held pod is gone", allocated).await?;
    ensure!(user.pods.get_opt("web").await?.is_some(), "the pod is still there");
    controller.stop().await
}

async fn extended_resources(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    let mut web = on_node(pod_with("web", &[]));
    let amounts = json!({"example.com/gpu": "1"});
    web["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    let created = user.create_pod(&web).await?;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web",
                       "uid": created.metadata.uid, "controller": true});
    let annotations = json!({"resource.kubernetes.io/extended-resource-claim": "true"});
    let metadata =
        json!({"name": "extended", "annotations": annotations, "ownerReferences": [owner]});
    user.create_claim(&metadata).await?;
    user.allocate("extended").await?;
    let consumer = json!({"resource": "pods", "name": "web", "uid": created.metadata.uid});
    user.patch_claim_status("extended", &json!({"reservedFor": [consumer]})).await?;
    let mapping =
        json!({"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"});
    let status = json!({"resourceClaimName": "extended", "requestMappings": [mapping]});
    user.patch_pod_status("web", &json!({"extendedResourceClaimStatus": status})).await?;
    tokio::time::sleep(REST).await;
    user.wait_for_consumers("extended", &["web"]).await?;
    user.finish("web").await?;
    user.wait_for_claims(&[]).await?;
    controller.stop().await
}

async fn two_claims(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    user.create_template().await?;
    let created = user.create_pod(&pod("web", 1)).await?;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web",
                       "uid": created.metadata.uid, "controller": true});
    // Both are of the same second, or `b` is older: either way one of them is taken, and no third
    // one is created.
    for name in ["b", "c"] {
        let metadata = json!({"name": name, "annotations": {POD_CLAIM_NAME: "e0"},
                              "ownerReferences": [owner]});
        user.create_claim(&metadata).await?;
    }
    let controller = world.run_claim_controller();
    ensure!(user.wait_for_names("web", 1).await? == ["b"], "the older one is taken");
    tokio::time::sleep(REST).await;
    user.wait_for_claims(&["b", "c"]).await?;
    // The other one has no use, and ends with the pod, too.
    user.finish("web").await?;
    user.wait_for_claims(&[]).await?;
    controller.stop().await
}
