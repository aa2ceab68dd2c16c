//! The counts in the status of an owner.

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use serde_json::json;

use super::cluster::Cluster;
use crate::World;

/// `TestReadyAndAvailableReplicas`.
pub(super) async fn ready_and_available_replicas(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    let mut owner = cluster.owner("owner", 3);
    owner["spec"]["minReadySeconds"] = json!(3600);
    cluster.create(owner).await?;
    cluster.wait_until_stable("owner", 3).await?;
    let pods = cluster.wait_for_pods(3).await?;
    let created = cluster.pods.get(&pods[0]).await?.metadata.creation_timestamp;
    let now = created.context("the server stamps pods")?.0;
    let long_ago = now.checked_sub(jiff::SignedDuration::from_hours(2))?;
    let ready = |status: &str, since: Timestamp| {
        let condition = json!({ "type": "Ready", "status": status,
                                "lastTransitionTime": since.to_string() });
        json!({ "phase": "Running", "conditions": [condition] })
    };
    cluster.patch_pod_status(&pods[0], ready("False", now)).await?;
    cluster.patch_pod_status(&pods[1], ready("True", now)).await?;
    cluster.patch_pod_status(&pods[2], ready("True", long_ago)).await?;
    let is_counted = |status: &_| counts(status) == (3, Some(2), Some(1));
    cluster.wait_for_status("owner", is_counted).await?;
    controller.stop().await
}

/// `TestFullyLabeledReplicas`.
pub(super) async fn fully_labeled_replicas(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    cluster.create(cluster.owner("owner", 2)).await?;
    cluster.wait_until_stable("owner", 2).await?;
    let pods = cluster.wait_for_pods(2).await?;
    let labels = json!({ "metadata": { "labels": { "extraKey": "extraValue" } } });
    cluster.patch("owner", json!({ "spec": { "template": labels } })).await?;
    cluster.patch_pod(&pods[0], labels).await?;
    let is_counted = |status: &ReplicaSetStatus| {
        status.replicas == 2 && status.fully_labeled_replicas == Some(1)
    };
    cluster.wait_for_status("owner", is_counted).await?;
    controller.stop().await
}

/// `TestTerminatingReplicas`. A gate cannot change while the program runs, so it is restarted.
pub(super) async fn terminating_replicas(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let with_gate = |is_enabled: bool| {
        world.run_controller_with(|options| options.gates.terminating_replicas = is_enabled)
    };
    let terminating = async |count: Option<i32>| {
        let is = |status: &ReplicaSetStatus| {
            status.replicas == 5 && status.terminating_replicas == count
        };
        cluster.wait_for_status("owner", is).await
    };
    let mut owner = cluster.owner("owner", 5);
    owner["spec"]["template"]["spec"]["nodeName"] = json!("fake-node");
    owner["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(300);
    let controller = with_gate(false);
    cluster.create(owner).await?;
    let pods = cluster.wait_for_pods(5).await?;
    cluster.delete_pod(&pods[0], 300).await?;
    cluster.wait_for_pods(6).await?;
    terminating(None).await?;
    controller.stop().await?;

    let controller = with_gate(true);
    cluster.delete_pod(&pods[1], 300).await?;
    terminating(Some(2)).await?;
    cluster.delete_pod(&pods[0], 0).await?;
    terminating(Some(1)).await?;
    controller.stop().await?;

    let controller = with_gate(false);
    cluster.delete_pod(&pods[2], 300).await?;
    terminating(None).await?;
    cluster.wait_for_pods(7).await?;
    controller.stop().await
}

/// Returns the counts of pods, ready pods and available pods.
fn counts(status: &ReplicaSetStatus) -> (i32, Option<i32>, Option<i32>) {
    (status.replicas, status.ready_replicas, status.available_replicas)
}
