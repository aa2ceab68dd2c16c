//! Replicas that are added, replaced and deleted, and the order of deletion.

use std::time::Duration;

use anyhow::ensure;
use homeostat::kube_client::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::cluster::Cluster;
use crate::World;

/// `TestSpecReplicasChange`.
pub(super) async fn spec_replicas_change(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    cluster.create(cluster.owner("owner", 2)).await?;
    for replicas in [2, 3, 0, 2] {
        cluster.scale("owner", replicas).await?;
        cluster.wait_until_stable("owner", replicas).await?;
    }
    let before = cluster.owners.get("owner").await?.metadata.generation;
    let annotations = json!({ "test": "should-not-change-the-pods" });
    let template = json!({ "metadata": { "annotations": annotations } });
    cluster.patch("owner", json!({ "spec": { "template": template } })).await?;
    let after = cluster.owners.get("owner").await?.metadata.generation;
    ensure!(after > before, "{before:?} is followed by {after:?}");
    cluster.wait_for_status("owner", |status| status.observed_generation >= after).await?;
    controller.stop().await
}

/// `TestRCScaleSubresource` and `TestRSScaleSubresource`.
pub(super) async fn scale_subresource(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    cluster.create(cluster.owner("owner", 1)).await?;
    cluster.wait_until_stable("owner", 1).await?;
    for replicas in [3, 0] {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        cluster.owners.patch_scale("owner", &PatchParams::default(), &patch).await?;
        let scale = cluster.owners.get_scale("owner").await?;
        // The API omits zeros.
        let read = scale.spec.and_then(|spec| spec.replicas).unwrap_or(0);
        ensure!(usize::try_from(read)? == replicas, "the scale has {read}");
        cluster.wait_until_stable("owner", replicas).await?;
        cluster.wait_for_pods(replicas).await?;
    }
    controller.stop().await
}

/// `TestLogarithmicScaleDown`.
pub(super) async fn logarithmic_scale_down(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    cluster.create(cluster.owner("owner", 2)).await?;
    cluster.wait_until_stable("owner", 2).await?;
    let old = cluster.wait_for_pods(2).await?;
    // Ten seconds and two seconds differ in magnitude, also on a slow machine.
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.scale("owner", 3).await?;
    cluster.wait_for_pods(3).await?;
    cluster.scale("owner", 2).await?;
    let left = cluster.wait_for_pods(2).await?;
    ensure!(left == old, "of {old:?}, {left:?} are left");
    controller.stop().await
}

/// `TestPodDeletionCost`: its four cases.
pub(super) async fn pod_deletion_cost(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let cases = [
        (Some(["1000", "100"]), true, 0),
        (Some(["100", "100"]), true, 1),
        (None, true, 1),
        (Some(["1000", "100"]), false, 1),
    ];
    for (costs, is_enabled, remaining) in cases {
        let controller =
            world.run_controller_with(|options| options.gates.pod_deletion_cost = is_enabled);
        cluster.create(cluster.owner("owner", 2)).await?;
        cluster.wait_until_stable("owner", 2).await?;
        let pods = cluster.wait_for_pods(2).await?;
        for (index, (pod, restarts)) in pods.iter().zip([5, 0]).enumerate() {
            if let Some(costs) = costs {
                let cost = json!({ "controller.kubernetes.io/pod-deletion-cost": costs[index] });
                cluster.patch_pod(pod, json!({ "metadata": { "annotations": cost } })).await?;
            }
            let status = json!({ "name": "fake-name", "image": "fakeimage", "imageID": "",
                                 "ready": false, "restartCount": restarts });
            cluster.patch_pod_status(pod, json!({ "containerStatuses": [status] })).await?;
        }
        // The controller's cache has the last of these patches.
        tokio::time::sleep(Duration::from_millis(500)).await;
        cluster.scale("owner", 1).await?;
        let left = cluster.wait_for_pods(1).await?;
        ensure!(left[0] == pods[remaining], "{costs:?}, {is_enabled}: {left:?} of {pods:?}");
        controller.stop().await?;
        cluster.owners.delete("owner", &DeleteParams::background()).await?;
        cluster.delete_pod(&left[0], 0).await.ok();
        cluster.wait_for_pods(0).await?;
    }
    Ok(())
}

/// `TestDeletingAndFailedPods`.
pub(super) async fn deleting_and_failed_pods(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    cluster.create(cluster.owner("owner", 2)).await?;
    let pods = cluster.wait_for_pods(2).await?;
    let finalizers = json!({ "metadata": { "finalizers": ["fake.example.com/blockDeletion"] } });
    cluster.patch_pod(&pods[0], finalizers).await?;
    cluster.delete_pod(&pods[0], 0).await?;
    cluster.patch_pod_status(&pods[1], json!({ "phase": "Failed" })).await?;
    let all = cluster.wait_for_pods(4).await?;
    ensure!(pods.iter().all(|pod| all.contains(pod)), "{pods:?} are not kept: {all:?}");
    controller.stop().await
}

/// `TestReplicaSetsAppsV1DefaultGCPolicy`.
pub(super) async fn default_deletion_policy(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    let mut owner = cluster.owner("owner", 2);
    owner["metadata"]["finalizers"] = json!(["kube.io/dummy-finalizer"]);
    cluster.create(owner).await?;
    cluster.wait_until_stable("owner", 2).await?;
    cluster.wait_for_pods(2).await?;
    cluster.owners.delete("owner", &DeleteParams::default()).await?;
    let left = cluster.owners.get("owner").await?.metadata;
    ensure!(left.deletion_timestamp.is_some(), "it is not being deleted");
    ensure!(left.finalizers.unwrap_or_default() == ["kube.io/dummy-finalizer"]);
    controller.stop().await
}
