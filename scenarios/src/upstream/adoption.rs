//! Pods that an owner adopts, releases or leaves alone.

use anyhow::ensure;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};

use super::cluster::{Cluster, controller_uid};
use crate::World;

/// `TestAdoption`: four cases.
pub(super) async fn orphans(world: &mut World) -> anyhow::Result<()> {
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

/// `TestOverlappingRCs` and `TestOverlappingRSs`.
pub(super) async fn overlapping_selectors(world: &mut World) -> anyhow::Result<()> {
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
pub(super) async fn labels_change(world: &mut World) -> anyhow::Result<()> {
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
pub(super) async fn general_pod_adoption(world: &mut World) -> anyhow::Result<()> {
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

/// `TestExtraPodsAdoptionAndDeletion`.
pub(super) async fn extra_pods(world: &mut World) -> anyhow::Result<()> {
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
