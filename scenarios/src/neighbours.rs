//! Owners of pods among their neighbours: many of them, churn, each kind of deletion, a quota, a
//! namespace that goes, a controller that changes labels, and Deployments.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::kube_client::Api;
use homeostat::kube_client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use homeostat_apiserver::cluster::{DeploymentController, NamespaceController};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, ServiceAccount};
use serde_json::{Value, json};

use crate::replica_sets::poll_until;
use crate::{Census, Scenario, World};

/// The scenarios of both kinds.
pub const NEIGHBOURS: &[Scenario] = &[
    Scenario {
        name: "many_owners_converge_without_a_surplus",
        play: |world| Box::pin(many_owners(world)),
    },
    Scenario {
        name: "owner_is_scaled_from_zero_to_many_and_back",
        play: |world| Box::pin(zero_to_many(world)),
    },
    Scenario { name: "churn_ends_in_the_asked_state", play: |world| Box::pin(churn(world)) },
    Scenario {
        name: "foreground_deletion_replaces_no_pod",
        play: |world| Box::pin(foreground_deletion(world)),
    },
    Scenario {
        name: "orphaned_pods_are_adopted_by_the_next_owner",
        play: |world| Box::pin(orphaned_pods(world)),
    },
    Scenario {
        name: "quota_that_refuses_is_reported_until_it_is_raised",
        play: |world| Box::pin(refusing_quota(world)),
    },
    Scenario {
        name: "namespace_of_an_owner_can_be_deleted",
        play: |world| Box::pin(deleted_namespace(world)),
    },
    Scenario {
        name: "relabelled_pods_are_replaced_and_left_alone",
        play: |world| Box::pin(relabelling_controller(world)),
    },
];

/// The scenarios of `ReplicaSet`s alone.
pub const NEIGHBOURS_REPLICA_SETS: &[Scenario] = &[Scenario {
    name: "deployment_is_scaled_and_restarted",
    play: |world| Box::pin(deployment(world)),
}];

/// The timeout of a step.
const DEADLINE: Duration = Duration::from_secs(120);

/// Returns the number of owners of [`many_owners`], and a fifth of the pods of [`zero_to_many`]:
/// `HOMEOSTAT_OWNERS`, by default 30. CI takes 300 and 200.
fn size() -> usize {
    let set = std::env::var("HOMEOSTAT_OWNERS").ok();
    set.and_then(|owners| owners.parse().ok()).unwrap_or(30)
}

/// Every owner gets its three pods, and none of them a fourth one.
async fn many_owners(world: &mut World) -> anyhow::Result<()> {
    let owners = size();
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let workloads: Vec<_> = (0..owners).map(|n| world.workload(&format!("many-{n}"))).collect();
    for owner in &workloads {
        owner.create(3).await?;
    }
    for owner in &workloads {
        owner.wait_for_replicas(3, DEADLINE).await?;
    }
    // No later pass creates another one.
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(census.ever() == 3 * owners, "{} pods for {owners} owners of 3", census.ever());
    controller.stop().await
}

async fn zero_to_many(world: &mut World) -> anyhow::Result<()> {
    let many = 5 * size().min(200);
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = world.workload("large");
    web.create(0).await?;
    for replicas in [0, many, 0] {
        web.scale(replicas).await?;
        web.wait_for_replicas(replicas, DEADLINE).await?;
    }
    ensure!(census.ever() == many, "{} pods were created, not {many}", census.ever());
    controller.stop().await
}

/// Owners are scaled, deleted and created, and pods are killed and relabelled, without a wait.
async fn churn(world: &mut World) -> anyhow::Result<()> {
    const OWNERS: usize = 5;
    let controller = world.run_controller();
    let workloads: Vec<_> = (0..OWNERS).map(|n| world.workload(&format!("churn-{n}"))).collect();
    for owner in &workloads {
        owner.create(2).await?;
    }
    // A fixed sequence, so that a failure repeats: the low bits of a linear congruence are short.
    let mut state = 7_u64;
    let mut next = |bound: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or_default() % bound
    };
    for _ in 0..60 {
        let (owner, step) = (&workloads[next(OWNERS)], next(4));
        match step {
            0 => owner.scale(next(6)).await?,
            1 => {
                owner.delete().await?;
                owner.wait_for_deletion(DEADLINE).await?;
                owner.create(next(4)).await?;
            }
            _ => {
                let pods = owner.pods().await?;
                let Some(pod) = pods.first().and_then(|pod| pod.metadata.name.as_deref()) else {
                    continue;
                };
                // The controller may delete the pod meanwhile.
                let done = if step == 2 { owner.kill(pod).await } else { owner.relabel(pod).await };
                drop(done);
            }
        }
    }
    for (n, owner) in workloads.iter().enumerate() {
        owner.scale(n).await?;
    }
    for (n, owner) in workloads.iter().enumerate() {
        owner.wait_for_replicas(n, DEADLINE).await?;
    }
    controller.stop().await
}

/// The owner stays until its pods are gone; it creates none meanwhile.
async fn foreground_deletion(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = world.workload("foreground");
    web.create(4).await?;
    web.wait_for_replicas(4, DEADLINE).await?;
    web.delete_with(&DeleteParams::foreground()).await?;
    web.wait_for_deletion(DEADLINE).await?;
    ensure!(census.ever() == 4, "{} pods were created", census.ever());
    controller.stop().await
}

async fn orphaned_pods(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = world.workload("orphaned");
    web.create(4).await?;
    web.wait_for_replicas(4, DEADLINE).await?;
    web.delete_with(&DeleteParams::orphan()).await?;
    web.wait_until_absent(DEADLINE).await?;
    ensure!(web.pods().await?.len() == 4, "orphans are left alone");
    web.create(4).await?;
    web.wait_for_replicas(4, DEADLINE).await?;
    ensure!(census.ever() == 4, "{} pods were created", census.ever());
    controller.stop().await
}

/// Three of five pods fit into the quota. The refusal is in the status until the quota is raised.
async fn refusing_quota(world: &mut World) -> anyhow::Result<()> {
    let options = homeostat_resourcequota::Options::default();
    let counter = world.run_quota_controller(options);
    let quotas = Api::<ResourceQuota>::namespaced(world.user().clone(), "default");
    let quota = json!({"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "3"}}});
    quotas.create(&PostParams::default(), &serde_json::from_value(quota)?).await?;
    let has_status =
        |quota: &ResourceQuota| quota.status.as_ref().is_some_and(|status| status.used.is_some());
    let read = async || Ok(quotas.get("pods").await?);
    poll_until(DEADLINE, read, has_status, |_| "the quota has no status".to_owned()).await?;

    let controller = world.run_controller();
    let web = world.workload("refused");
    web.create(5).await?;
    let read = async || web.failure().await;
    let is_refused = |failure: &Option<String>| {
        failure.as_deref().is_some_and(|text| text.contains("exceeded quota: pods"))
    };
    poll_until(DEADLINE, read, is_refused, |seen| format!("the failure is {seen:?}")).await?;
    ensure!(web.pods().await?.len() == 3, "three pods fit into the quota");
    let patch = json!({"spec": {"hard": {"pods": "10"}}});
    quotas.patch("pods", &PatchParams::default(), &Patch::Merge(patch)).await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    poll_until(DEADLINE, read, Option::is_none, |seen| format!("still {seen:?}")).await?;
    controller.stop().await?;
    counter.stop().await
}

/// The controller does not keep the namespace from going, and works in the next one of the name.
async fn deleted_namespace(world: &mut World) -> anyhow::Result<()> {
    let _namespaces = NamespaceController::start(world.user().clone());
    let controller = world.run_controller();
    let namespaces = Api::<Namespace>::all(world.user().clone());
    let web = world.workload("web").in_namespace("short-lived");
    for _ in 0..2 {
        create_namespace(world, "short-lived").await?;
        web.create(5).await?;
        web.wait_for_replicas(5, DEADLINE).await?;
        namespaces.delete("short-lived", &DeleteParams::default()).await?;
        let read = async || Ok(namespaces.get_opt("short-lived").await?);
        let late = |_: &Option<Namespace>| "the namespace is still there".to_owned();
        poll_until(DEADLINE, read, Option::is_none, late).await?;
    }
    controller.stop().await
}

async fn create_namespace(world: &World, name: &str) -> anyhow::Result<()> {
    let object = |name: &str| json!({"metadata": {"name": name}});
    let namespaces = Api::<Namespace>::all(world.user().clone());
    let namespace = serde_json::from_value(object(name))?;
    namespaces.create(&PostParams::default(), &namespace).await?;
    // A real server admits no pod without it.
    let accounts = Api::<ServiceAccount>::namespaced(world.user().clone(), name);
    let account = serde_json::from_value(object("default"))?;
    accounts.create(&PostParams::default(), &account).await?;
    Ok(())
}

/// Another controller takes the label from every pod for a while. The owner releases and replaces
/// each of them, once, and deletes none.
async fn relabelling_controller(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = world.workload("contested");
    web.create(3).await?;
    let mut taken = Vec::new();
    for _ in 0..10 {
        web.wait_for_replicas(3, DEADLINE).await?;
        for pod in web.pods().await? {
            let name = pod.metadata.name.unwrap_or_default();
            web.relabel(&name).await?;
            taken.push(name);
        }
    }
    web.wait_for_replicas(3, DEADLINE).await?;
    for pod in &taken {
        web.wait_for_release(pod, DEADLINE).await?;
    }
    ensure!(census.ever() == taken.len() + 3, "{} pods, {} taken", census.ever(), taken.len());
    ensure!(census.alive() == census.ever(), "{} of them are alive", census.alive());
    controller.stop().await
}

/// A Deployment gets the requests of `kubectl scale` and `kubectl rollout restart`.
async fn deployment(world: &mut World) -> anyhow::Result<()> {
    let _deployments = DeploymentController::start(world.user().clone());
    let controller = world.run_controller();
    let deployments = Api::<Deployment>::namespaced(world.user().clone(), "default");
    let manifest = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}}},
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(manifest)?).await?;
    wait_for_available(&deployments, 3).await?;
    let scale = Patch::Merge(json!({"spec": {"replicas": 5}}));
    deployments.patch_scale("web", &PatchParams::default(), &scale).await?;
    wait_for_available(&deployments, 5).await?;
    let restart = json!({"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"});
    let restart = json!({"spec": {"template": {"metadata": {"annotations": restart}}}});
    deployments.patch("web", &PatchParams::default(), &Patch::Merge(restart)).await?;
    let sets = Api::<ReplicaSet>::namespaced(world.user().clone(), "default");
    let read = async || {
        let items = sets.list(&ListParams::default()).await?.items;
        let count = |set: &ReplicaSet| {
            let status = set.status.as_ref();
            (
                set.spec.replicas,
                status.map(|it| it.replicas),
                status.and_then(|it| it.ready_replicas),
            )
        };
        let mut counts: Vec<_> = items.iter().map(count).collect();
        counts.sort_unstable();
        Ok(counts)
    };
    let replaced = [(Some(0), Some(0), None), (Some(5), Some(5), Some(5))];
    let is_replaced = |counts: &Vec<_>| counts[..] == replaced;
    poll_until(DEADLINE, read, is_replaced, |counts| format!("{counts:?}")).await?;
    controller.stop().await
}

async fn wait_for_available(deployments: &Api<Deployment>, pods: i32) -> anyhow::Result<()> {
    let read = async || {
        let deployment = deployments.get("web").await?;
        let status = deployment.status.context("the Deployment has no status")?;
        anyhow::Ok(serde_json::to_value(status)?)
    };
    // The status comes after the first pass.
    let read = async || Ok(read().await.unwrap_or_default());
    let is = |status: &Value| status["availableReplicas"] == pods;
    poll_until(DEADLINE, read, is, |status| format!("expected {pods} pods: {status}")).await
}
