//! Counterparts of upstream's integration tests of v1.37.1, `test/integration/replicaset` and
//! `test/integration/replicationcontroller`. Each scenario names its test.
//!
//! `TestRSSelectorImmutability` is about the API server alone, and the conformance suite of
//! `homeostat-apiserver` has it.

mod cluster;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::kube_client::api::{DeleteParams, Patch, PatchParams};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use self::cluster::{Cluster, controller_uid};
use crate::{Scenario, World};

/// The tests that upstream has for both kinds.
pub const UPSTREAM: &[Scenario] = &[
    Scenario {
        name: "orphans_are_adopted_and_pods_of_another_controller_are_not",
        play: |world| Box::pin(adoption(world)),
    },
    Scenario {
        name: "changed_replicas_and_generation_are_observed",
        play: |world| Box::pin(spec_replicas_change(world)),
    },
    Scenario {
        name: "youngest_pod_by_magnitude_of_age_is_deleted",
        play: |world| Box::pin(logarithmic_scale_down(world)),
    },
    Scenario {
        name: "deleting_and_failed_pods_are_replaced_and_kept",
        play: |world| Box::pin(deleting_and_failed_pods(world)),
    },
    Scenario {
        name: "owners_with_equal_selectors_keep_their_own_pods",
        play: |world| Box::pin(overlapping_selectors(world)),
    },
    Scenario {
        name: "relabelled_pod_is_released_and_adopted_back",
        play: |world| Box::pin(labels_change(world)),
    },
    Scenario {
        name: "reference_that_does_not_control_is_completed",
        play: |world| Box::pin(general_pod_adoption(world)),
    },
    Scenario {
        name: "ready_and_available_pods_are_counted",
        play: |world| Box::pin(ready_and_available_replicas(world)),
    },
    Scenario {
        name: "scale_subresource_changes_the_pods",
        play: |world| Box::pin(scale_subresource(world)),
    },
    Scenario {
        name: "surplus_orphan_is_adopted_then_deleted",
        play: |world| Box::pin(extra_pods(world)),
    },
    Scenario {
        name: "fully_labelled_pods_are_counted",
        play: |world| Box::pin(fully_labeled_replicas(world)),
    },
];

/// The tests that upstream has for `ReplicaSet`s only.
pub const UPSTREAM_REPLICA_SETS: &[Scenario] = &[
    Scenario {
        name: "deletion_cost_decides_if_its_gate_is_on",
        play: |world| Box::pin(pod_deletion_cost(world)),
    },
    Scenario {
        name: "deletion_without_a_policy_adds_no_finalizer",
        play: |world| Box::pin(default_deletion_policy(world)),
    },
    Scenario {
        name: "terminating_pods_are_counted_if_the_gate_is_on",
        play: |world| Box::pin(terminating_replicas(world)),
    },
];

/// `TestAdoption`: four cases.
async fn adoption(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let uid = cluster.create(cluster.owner("owner", 1)).await?;
    let (api_version, kind) = cluster.api_version_and_kind();
    let reference = |uid: &str, controller: Option<bool>, blocks: Option<bool>| OwnerReference {
        api_version: api_version.clone(),
        kind: kind.clone(),
        name: "owner".to_owned(),
        uid: uid.to_owned(),
        controller,
        block_owner_deletion: blocks,
    };
    let complete = reference(&uid, Some(true), Some(true));
    let plain = reference(&uid, None, None);
    let controls = reference(&uid, Some(true), None);
    let foreign = reference("1", Some(true), None);
    let cases = [
        ("owned", vec![plain.clone()], vec![complete.clone()]),
        ("orphan", vec![], vec![complete]),
        ("controlled", vec![controls.clone()], vec![controls]),
        ("foreign", vec![foreign.clone(), plain.clone()], vec![foreign, plain]),
    ];
    // Enough replicas, so that no adopted pod is deleted.
    cluster.scale("owner", 3).await?;
    for (name, existing, _) in &cases {
        cluster.create_pod(name, existing.clone()).await?;
    }
    let controller = world.run_controller();
    cluster.wait_until_stable("owner", 3).await?;
    for (name, _, expected) in cases {
        let has_them = |pod: &Pod| pod.metadata.owner_references.as_ref() == Some(&expected);
        cluster.wait_for_pod(name, has_them).await?;
    }
    controller.stop().await
}

/// `TestSpecReplicasChange`.
async fn spec_replicas_change(world: &mut World) -> anyhow::Result<()> {
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

/// `TestLogarithmicScaleDown`.
async fn logarithmic_scale_down(world: &mut World) -> anyhow::Result<()> {
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

/// `TestDeletingAndFailedPods`.
async fn deleting_and_failed_pods(world: &mut World) -> anyhow::Result<()> {
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

/// `TestOverlappingRCs` and `TestOverlappingRSs`.
async fn overlapping_selectors(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    for (name, replicas) in [("owner-1", 1), ("owner-2", 2)] {
        cluster.create(cluster.owner(name, replicas)).await?;
        cluster.wait_until_stable(name, replicas).await?;
    }
    cluster.wait_for_pods(3).await?;
    for (name, replicas) in [("owner-1", 1), ("owner-2", 2)] {
        ensure!(cluster.status(name).await?.replicas == replicas, "{name} has other pods");
    }
    controller.stop().await
}

/// `TestPodOrphaningAndAdoptionWhenLabelsChange`.
async fn labels_change(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    let uid = cluster.create(cluster.owner("owner", 1)).await?;
    let pods = cluster.wait_for_pods(1).await?;
    let relabel = |labels: Value| json!({ "metadata": { "labels": labels } });
    cluster.patch_pod(&pods[0], relabel(json!({ "foo": null, "new-foo": "new-bar" }))).await?;
    cluster.wait_for_pod(&pods[0], |pod| controller_uid(pod).is_none()).await?;
    cluster.wait_for_pods(1).await?;
    // Two pods are wanted, so that the released one is not deleted after its return.
    cluster.scale("owner", 2).await?;
    cluster.wait_for_pods(2).await?;
    cluster.scale("owner", 3).await?;
    cluster.patch_pod(&pods[0], relabel(json!({ "foo": "bar", "new-foo": null }))).await?;
    cluster.wait_for_pods_of(&uid, 3).await?;
    controller.stop().await
}

/// `TestGeneralPodAdoption`.
async fn general_pod_adoption(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    let controller = world.run_controller();
    let uid = cluster.create(cluster.owner("owner", 1)).await?;
    cluster.wait_until_stable("owner", 1).await?;
    let pods = cluster.wait_for_pods(1).await?;
    let (api_version, kind) = cluster.api_version_and_kind();
    let foreign = json!({ "apiVersion": "apps/v1beta1", "kind": "StatefulSet", "name": "owner",
                          "uid": "e7a1", "controller": false });
    let own = json!({ "apiVersion": api_version, "kind": kind, "name": "owner", "uid": uid,
                      "controller": false });
    for (reference, references) in [(foreign, 2), (own, 1)] {
        let patch = json!({ "metadata": { "ownerReferences": [reference] } });
        cluster.patch_pod(&pods[0], patch).await?;
        let is_completed = |pod: &Pod| {
            let all = pod.metadata.owner_references.iter().flatten();
            controller_uid(pod) == Some(&uid) && all.count() == references
        };
        cluster.wait_for_pod(&pods[0], is_completed).await?;
    }
    controller.stop().await
}

/// `TestReadyAndAvailableReplicas`.
async fn ready_and_available_replicas(world: &mut World) -> anyhow::Result<()> {
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

/// `TestRCScaleSubresource` and `TestRSScaleSubresource`.
async fn scale_subresource(world: &mut World) -> anyhow::Result<()> {
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

/// `TestExtraPodsAdoptionAndDeletion`.
async fn extra_pods(world: &mut World) -> anyhow::Result<()> {
    let cluster = Cluster::of(world);
    for name in ["pod-1", "pod-2", "pod-3"] {
        cluster.create_pod(name, Vec::new()).await?;
    }
    let uid = cluster.create(cluster.owner("owner", 2)).await?;
    let controller = world.run_controller();
    cluster.wait_until_stable("owner", 2).await?;
    cluster.wait_for_pods(2).await?;
    for pod in cluster.selected_pods().await? {
        ensure!(controller_uid(&pod) == Some(&uid), "{:?} is not adopted", pod.metadata);
    }
    controller.stop().await
}

/// `TestFullyLabeledReplicas`.
async fn fully_labeled_replicas(world: &mut World) -> anyhow::Result<()> {
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

/// `TestPodDeletionCost`: its four cases.
async fn pod_deletion_cost(world: &mut World) -> anyhow::Result<()> {
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

/// `TestReplicaSetsAppsV1DefaultGCPolicy`.
async fn default_deletion_policy(world: &mut World) -> anyhow::Result<()> {
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

/// `TestTerminatingReplicas`. A gate cannot change while the program runs, so it is restarted.
async fn terminating_replicas(world: &mut World) -> anyhow::Result<()> {
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
