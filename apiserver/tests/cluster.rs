//! Kubelet, garbage collector and namespace controller on every target server.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "support/targets.rs"]
mod targets;

use std::collections::BTreeSet;
use std::pin::pin;
use std::slice;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use homeostat_apiserver::cluster::{
    GarbageCollector, Kubelet, NamespaceController, RoleAggregator, VolumeProtection,
};
use homeostat_faults::{ApiError, Calls, Faults, Verb};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, ContainerStatus, Namespace, NamespaceCondition, Node, PersistentVolumeClaim, Pod,
};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_client::Api;
use kube_client::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use serde_json::json;
use tokio::time::{Instant, timeout};

use self::targets::{TIMEOUT, World, wait_until_ok};

fn main() {
    targets::run(&[
        ("pods_are_bound_started_and_deleted", |world| pod_lifecycle(world).boxed_local()),
        ("slow_pod_runs_before_it_is_ready", |world| slow_pods(world).boxed_local()),
        ("finalizer_keeps_a_stopped_pod", |world| held_pod(world).boxed_local()),
        ("kubelet_recovers_from_faults", |world| kubelet_under_faults(world).boxed_local()),
        ("failed_pods_are_restarted", |world| failing_pods(world).boxed_local()),
        ("pods_finish", |world| finishing_pods(world).boxed_local()),
        ("nodes_are_registered_and_renewed", |world| nodes(world).boxed_local()),
        ("dependents_are_deleted_after_their_owner", |world| background(world).boxed_local()),
        ("foreground_deletion_deletes_the_owner_last", |world| foreground(world).boxed_local()),
        ("orphans_stay", |world| orphan(world).boxed_local()),
        ("dependents_of_an_absent_owner_are_deleted", |world| absent_owner(world).boxed_local()),
        ("one_existing_owner_keeps_a_dependent", |world| two_owners(world).boxed_local()),
        ("collector_recovers_from_faults", |world| collector_under_faults(world).boxed_local()),
        ("deleted_namespace_is_emptied_and_finalized", |world| namespace(world).boxed_local()),
        ("deleted_namespace_waits_for_finalizers", |world| held_namespace(world).boxed_local()),
        ("namespace_controller_recovers_from_faults", |world| {
            namespaces_under_faults(world).boxed_local()
        }),
        ("collector_follows_every_kind", |world| every_kind(world).boxed_local()),
        ("deleted_claim_stays_while_a_pod_uses_it", |world| claims(world).boxed_local()),
        ("aggregated_role_has_the_selected_rules", |world| roles(world).boxed_local()),
    ]);
}

async fn pod_lifecycle(world: World) {
    let kubelet = Kubelet::builder(world.client.clone()).nodes(2).start();
    world.create_pods(4, &[]).await;
    let pods = world.wait_for_ready(4).await;
    let nodes: BTreeSet<_> =
        pods.iter().map(|p| p.spec.as_ref().unwrap().node_name.clone()).collect();
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    let started = pods[0].status.as_ref().unwrap().start_time.as_ref().unwrap();
    let created = pods[0].metadata.creation_timestamp.as_ref().unwrap();
    assert!(started.0.duration_since(created.0).abs().as_secs() <= 60, "{started:?} {created:?}");

    // The kubelet does not wait for the default grace period of 30 s.
    let before = Instant::now();
    world.pods().delete("pod-0", &DeleteParams::default()).await.unwrap();
    world.wait_for_pods(3).await;
    assert!(before.elapsed() < Duration::from_secs(20));
    kubelet.stop().await;

    // Without a kubelet the pod is not bound.
    world.create_pod("late", &[], &[]).await;
    let late = world.pods().get("late").await.unwrap();
    assert_eq!(late.spec.unwrap().node_name, None);
}

async fn slow_pods(world: World) {
    let delay = Duration::from_secs(2);
    let kubelet = Kubelet::builder(world.client.clone()).ready_delay(delay).start();
    let none = world.pods().list(&ListParams::default()).await.unwrap();
    let version = none.metadata.resource_version.unwrap();
    let changes = world.pods().watch(&WatchParams::default(), &version).await.unwrap();
    let mut changes = pin!(changes);
    let before = Instant::now();
    world.create_pods(1, &[]).await;
    let mut running = None;
    let ready = loop {
        let event = timeout(TIMEOUT, changes.next()).await.expect("the pod becomes ready");
        let Some(Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod))) = event else {
            panic!("the watch ended with {event:?}")
        };
        if is_ready(&pod) {
            break pod;
        }
        if pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running")) {
            running = Some(pod);
        }
    };
    assert!(before.elapsed() >= delay, "{:?}", before.elapsed());
    // The start time does not change.
    let running = running.expect("a state in which it runs and is not ready");
    assert_eq!(running.status.unwrap().start_time, ready.status.unwrap().start_time);
    kubelet.stop().await;
}

async fn held_pod(world: World) {
    let kubelet = Kubelet::start(world.client.clone());
    world.create_pod("held", &[], &["example.com/hold"]).await;
    world.wait_for_ready(1).await;
    world.pods().delete("held", &DeleteParams::default()).await.unwrap();
    let grace = async || {
        let metadata = world.pods().get("held").await.unwrap().metadata;
        let grace = metadata.deletion_grace_period_seconds;
        if grace == Some(0) { Ok(()) } else { Err(format!("{grace:?}")) }
    };
    wait_until_ok(grace).await;
    world.release_pod("held").await;
    world.wait_for_pods(0).await;
    kubelet.stop().await;
}

async fn kubelet_under_faults(world: World) {
    let faults = Faults::new();
    let kubelet = Kubelet::start(faults.client(world.client.clone()));
    faults.refuse(Calls::watch("pods"), ApiError::internal_error());
    faults.lose_reply(Calls::create("pods").subresource("binding").nth(2));
    faults.refuse(Calls::patch("pods").subresource("status"), ApiError::conflict());
    faults.drop_request(Calls::delete("pods"));
    world.create_pods(3, &[]).await;
    world.wait_for_ready(3).await;

    let tear: fn(&Faults) -> usize = |faults| faults.tear_watches("pods");
    let expire: fn(&Faults) -> usize = |faults| faults.expire_watches("pods");
    for (break_watch, name) in [(tear, "torn"), (expire, "old")] {
        wait_until_ok(async || match break_watch(&faults) {
            0 => Err("no watch is open"),
            _ => Ok(()),
        })
        .await;
        world.create_pod(name, &[], &[]).await;
    }
    world.wait_for_ready(5).await;
    let lists = faults.count(Verb::List, "pods");
    assert!(lists >= 2, "no relist after an expired watch: {lists}");
    for name in ["torn", "old"] {
        world.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }
    world.wait_for_pods(3).await;
    // The effect of a call is visible before its lost reply is in the trace.
    wait_until_ok(async || {
        let trace = faults.trace();
        let is_lost = trace.messages().iter().any(|line| line.contains("reply lost"));
        if is_lost { Ok(()) } else { Err(format!("no reply is lost: {trace}")) }
    })
    .await;
    kubelet.stop().await;
}

async fn failing_pods(world: World) {
    // The first restart has no delay; the next one has an hour.
    let hour = Duration::from_secs(3600);
    let kubelet = Kubelet::builder(world.client.clone()).restart_delay(hour).start();
    world.create_scripted("recovers", "Always", "3@100ms, run").await;
    world.create_scripted("crashes", "Always", "3@100ms").await;
    let recovered = world.wait_for_pod("recovers", |pod| is_ready(pod) && restarts(pod) == 1).await;
    let status = recovered.status.unwrap();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    let container = &status.container_statuses.unwrap()[0];
    let last = container.last_state.as_ref().unwrap().terminated.as_ref().unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (3, Some("Error")));
    let waiting = |pod: &Pod| {
        let state = container_status(pod).and_then(|status| status.state.clone());
        state.and_then(|state| state.waiting).and_then(|waiting| waiting.reason)
    };
    let back_off = "CrashLoopBackOff".to_owned();
    let crashed =
        world.wait_for_pod("crashes", |pod| waiting(pod).as_ref() == Some(&back_off)).await;
    assert_eq!(restarts(&crashed), 1);
    assert!(!is_ready(&crashed));
    assert_eq!(crashed.status.unwrap().phase.as_deref(), Some("Running"));
    kubelet.stop().await;
}

async fn finishing_pods(world: World) {
    let delay = Duration::from_millis(50);
    let kubelet = Kubelet::builder(world.client.clone()).restart_delay(delay).start();
    let all = [
        ("well", "Never", "0@100ms", "Succeeded", 0),
        ("badly", "Never", "1@100ms", "Failed", 0),
        ("in-the-end", "OnFailure", "1@0s, 1@0s, 1@0s, 0@0s", "Succeeded", 3),
    ];
    for (name, policy, exits, ..) in all {
        world.create_scripted(name, policy, exits).await;
    }
    for (name, .., phase, count) in all {
        let has_phase = |pod: &Pod| pod.status.as_ref().unwrap().phase.as_deref() == Some(phase);
        let pod = world.wait_for_pod(name, has_phase).await;
        assert_eq!(restarts(&pod), count, "{name}");
        assert!(!is_ready(&pod), "{name}");
    }
    // A finished pod is deleted at once, without a kubelet.
    kubelet.stop().await;
    world.pods().delete("well", &DeleteParams::default()).await.unwrap();
    world.wait_for_pods(2).await;
}

async fn nodes(world: World) {
    let period = Duration::from_secs(1);
    let kubelet = Kubelet::builder(world.client.clone()).nodes(2).heartbeat(period).start();
    let nodes = Api::<Node>::all(world.client.clone());
    let leases = Api::<Lease>::namespaced(world.client.clone(), "kube-node-lease");
    let renewed = async || {
        let lease = leases.get_opt("node-1").await.unwrap();
        lease.ok_or("no lease").map(|lease| lease.spec.unwrap().renew_time.unwrap().0)
    };
    let first = wait_until_ok(renewed).await;
    let node = nodes.get("node-1").await.unwrap();
    let status = node.status.unwrap();
    let mut conditions = status.conditions.unwrap().into_iter();
    let ready = conditions.find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!(ready.status, "True");
    assert_eq!(node.spec.unwrap().taints, None);
    assert!(status.allocatable.unwrap().contains_key("pods"));
    let owners = leases.get("node-1").await.unwrap().metadata.owner_references.unwrap();
    assert_eq!(Some(&owners[0].uid), node.metadata.uid.as_ref());
    wait_until_ok(async || if renewed().await? > first { Ok(()) } else { Err("not renewed") })
        .await;

    // A deleted Lease is created again; existing nodes stay.
    leases.delete("node-1", &DeleteParams::default()).await.unwrap();
    wait_until_ok(renewed).await;
    kubelet.stop().await;
    let second = Kubelet::builder(world.client.clone()).nodes(2).heartbeat(period).start();
    let later = renewed().await.unwrap();
    wait_until_ok(async || if renewed().await? > later { Ok(()) } else { Err("not renewed") })
        .await;
    assert_eq!(nodes.get("node-1").await.unwrap().metadata.uid, node.metadata.uid);
    second.stop().await;
}

async fn background(world: World) {
    let kubelet = Kubelet::start(world.client.clone());
    let collector = GarbageCollector::start(world.client.clone());
    let owner = world.create_set("set").await;
    world.create_pods(20, &[owner]).await;
    world.create_pod("stranger", &[], &[]).await;
    world.wait_for_ready(21).await;
    world.sets().delete("set", &DeleteParams::background()).await.unwrap();
    let left = world.wait_for_pods(1).await;
    assert_eq!(left[0].metadata.name.as_deref(), Some("stranger"));
    collector.stop().await;
    kubelet.stop().await;
}

async fn foreground(world: World) {
    let kubelet = Kubelet::start(world.client.clone());
    let collector = GarbageCollector::start(world.client.clone());
    let owner = world.create_set("set").await;
    world.create_pods(3, slice::from_ref(&owner)).await;
    world.create_pod("held", &[owner], &["example.com/hold"]).await;
    world.wait_for_ready(4).await;
    world.sets().delete("set", &DeleteParams::foreground()).await.unwrap();
    let left = world.wait_for_pods(1).await;
    assert_eq!(left[0].metadata.name.as_deref(), Some("held"));
    assert!(world.sets().get_opt("set").await.unwrap().is_some(), "deleted before its dependents");
    world.release_pod("held").await;
    world.wait_for_sets(0).await;
    world.wait_for_pods(0).await;
    collector.stop().await;
    kubelet.stop().await;
}

async fn orphan(world: World) {
    let owner = world.create_set("set").await;
    let other = world.create_set("other").await;
    world.create_pods(3, slice::from_ref(&owner)).await;
    world.create_pod("shared", &[owner, other], &[]).await;
    let collector = GarbageCollector::start(world.client.clone());
    world.sets().delete("set", &DeleteParams::orphan()).await.unwrap();
    world.wait_for_sets(1).await;
    for pod in world.wait_for_pods(4).await {
        let owners = pod.metadata.owner_references.unwrap_or_default();
        assert!(owners.iter().all(|owner| owner.name == "other"), "{owners:?}");
        assert!(pod.metadata.deletion_timestamp.is_none());
    }
    collector.stop().await;
}

async fn absent_owner(world: World) {
    let real = world.create_set("set").await;
    let never =
        OwnerReference { name: "never".to_owned(), uid: "no-uid".to_owned(), ..real.clone() };
    let former = OwnerReference { uid: "another-uid".to_owned(), ..real.clone() };
    let unknown = OwnerReference { kind: "Unheard".to_owned(), ..never.clone() };
    world.create_pod("of-never", &[never], &[]).await;
    world.create_pod("of-former", &[former], &[]).await;
    world.create_pod("of-unknown", &[unknown], &[]).await;
    world.create_pod("of-real", &[real], &[]).await;
    let collector = GarbageCollector::start(world.client.clone());
    let left = world.wait_for_pods(2).await;
    let names: Vec<_> = left.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
    assert_eq!(names, ["of-real", "of-unknown"]);
    collector.stop().await;
}

async fn two_owners(world: World) {
    let (one, two) = (world.create_set("one").await, world.create_set("two").await);
    world.create_pod("pod", &[one, two], &[]).await;
    let collector = GarbageCollector::start(world.client.clone());
    world.sets().delete("one", &DeleteParams::background()).await.unwrap();
    let owners = async || {
        let pod = world.pods().get("pod").await.unwrap();
        let owners = pod.metadata.owner_references.unwrap_or_default();
        if owners.len() == 1 { Ok(owners) } else { Err(format!("{owners:?}")) }
    };
    assert_eq!(wait_until_ok(owners).await[0].name, "two");
    world.sets().delete("two", &DeleteParams::background()).await.unwrap();
    world.wait_for_pods(0).await;
    collector.stop().await;
}

async fn collector_under_faults(world: World) {
    let faults = Faults::new();
    let collector = GarbageCollector::start(faults.client(world.client.clone()));
    faults.refuse(Calls::list("pods"), ApiError::unavailable());
    faults.refuse(Calls::watch("replicasets"), ApiError::too_many_requests(Duration::from_secs(1)));
    faults.lose_reply(Calls::delete("pods").nth(2));
    faults.refuse(Calls::delete("pods").nth(4), ApiError::conflict());
    let owner = world.create_set("set").await;
    world.create_pods(6, &[owner]).await;
    wait_until_ok(async || match faults.open_watches("*") {
        2 => Ok(()),
        open => Err(format!("{open} watches are open")),
    })
    .await;
    // The owner is deleted while no watch delivers events.
    let held = faults.hold_watches("replicasets");
    world.sets().delete("set", &DeleteParams::background()).await.unwrap();
    faults.expire_watches("replicasets");
    drop(held);
    world.wait_for_pods(0).await;
    collector.stop().await;
}

async fn namespace(world: World) {
    let kubelet = Kubelet::start(world.client.clone());
    let namespaces = NamespaceController::start(world.client.clone());
    world.create_set("set").await;
    world.create_map("map", &[], &[]).await;
    world.create_pods(2, &[]).await;
    world.wait_for_ready(2).await;
    world.delete_namespace().await;
    world.wait_for_no_namespace().await;
    assert_eq!(world.maps().get_opt("map").await.unwrap(), None);
    assert_eq!(world.pods().get_opt("pod-0").await.unwrap(), None);
    assert_eq!(world.sets().get_opt("set").await.unwrap(), None);
    let all = Api::<Namespace>::all(world.client.clone());
    assert!(all.get_opt("default").await.unwrap().is_some(), "deleted");
    namespaces.stop().await;
    kubelet.stop().await;
}

async fn held_namespace(world: World) {
    let namespaces = NamespaceController::start(world.client.clone());
    // Without a kubelet an unbound pod is deleted at once.
    world.create_pod("held", &[], &["example.com/hold"]).await;
    world.create_map("map", &[], &[]).await;
    world.delete_namespace().await;
    wait_until_ok(async || {
        match world.pods().get("held").await.unwrap().metadata.deletion_timestamp {
            Some(_) => Ok(()),
            None => Err("the pod is not being deleted"),
        }
    })
    .await;
    assert!(world.maps().get_opt("map").await.unwrap().is_some(), "deleted before the pods");
    wait_until_ok(async || {
        let namespaces = Api::<Namespace>::all(world.client.clone());
        let namespace = namespaces.get(&world.namespace).await.unwrap();
        let conditions = namespace.status.unwrap().conditions.unwrap_or_default();
        let deleted =
            |known: &NamespaceCondition| known.reason.as_deref() == Some("ContentDeleted");
        if conditions.iter().any(deleted) { Ok(()) } else { Err("no condition") }
    })
    .await;
    world.release_pod("held").await;
    world.wait_for_no_namespace().await;
    namespaces.stop().await;
}

async fn namespaces_under_faults(world: World) {
    let faults = Faults::new();
    let namespaces = NamespaceController::start(faults.client(world.client.clone()));
    faults.refuse(Calls::to(Verb::DeleteCollection, "configmaps"), ApiError::internal_error());
    faults.lose_reply(Calls::update("namespaces").subresource("finalize"));
    world.create_map("map", &[], &[]).await;
    world.delete_namespace().await;
    world.wait_for_no_namespace().await;
    // The effect of a call is visible before its lost reply is in the trace.
    wait_until_ok(async || {
        let trace = faults.trace();
        if trace.faults() == 2 { Ok(()) } else { Err(format!("not two faults: {trace}")) }
    })
    .await;
    namespaces.stop().await;
}

async fn every_kind(world: World) {
    let builder = GarbageCollector::builder(world.client.clone());
    let collector = builder.every_kind().await.unwrap().start();
    let owner = world.create_map("owner", &[], &[]).await;
    world.create_map("dependent", &[owner], &[]).await;
    world.maps().delete("owner", &DeleteParams::background()).await.unwrap();
    wait_until_ok(async || match world.maps().get_opt("dependent").await.unwrap() {
        None => Ok(()),
        Some(_) => Err("the dependent exists"),
    })
    .await;
    collector.stop().await;
}

// === impl World ===

impl World {
    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Creates a `ConfigMap` and returns the owner reference for its dependents.
    async fn create_map(
        &self,
        name: &str,
        owners: &[OwnerReference],
        finalizers: &[&str],
    ) -> OwnerReference {
        let map: ConfigMap = serde_json::from_value(json!({
            "metadata": { "name": name, "ownerReferences": owners, "finalizers": finalizers },
        }))
        .unwrap();
        let made = self.maps().create(&PostParams::default(), &map).await.unwrap();
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: name.to_owned(),
            uid: made.metadata.uid.unwrap(),
            ..OwnerReference::default()
        }
    }

    async fn delete_namespace(&self) {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        namespaces.delete(&self.namespace, &DeleteParams::default()).await.unwrap();
    }

    async fn wait_for_no_namespace(&self) {
        let namespaces = Api::<Namespace>::all(self.client.clone());
        wait_until_ok(async || match namespaces.get_opt(&self.namespace).await.unwrap() {
            None => Ok(()),
            Some(left) => Err(format!("{:?}", left.status)),
        })
        .await;
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn sets(&self) -> Api<ReplicaSet> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn create_pods(&self, count: usize, owners: &[OwnerReference]) {
        for index in 0..count {
            self.create_pod(&format!("pod-{index}"), owners, &[]).await;
        }
    }

    /// Creates a pod with an exit script.
    async fn create_scripted(&self, name: &str, policy: &str, exits: &str) {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": name, "annotations": { "exits.homeostat.dev/c": exits } },
            "spec": { "restartPolicy": policy, "containers": [{ "name": "c", "image": "i" }] },
        }))
        .unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    /// Waits until the pod meets the condition, and returns it.
    async fn wait_for_pod(&self, name: &str, condition: impl Fn(&Pod) -> bool) -> Pod {
        wait_until_ok(async || {
            let pod = self.pods().get(name).await.unwrap();
            if condition(&pod) { Ok(pod) } else { Err(format!("{name}: {:?}", pod.status)) }
        })
        .await
    }

    async fn create_pod(&self, name: &str, owners: &[OwnerReference], finalizers: &[&str]) {
        let pod: Pod = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "ownerReferences": owners, "finalizers": finalizers },
            "spec": { "containers": [{ "name": "c", "image": "i" }] },
        }))
        .unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    /// Creates a `ReplicaSet` and returns the owner reference for its dependents.
    async fn create_set(&self, name: &str) -> OwnerReference {
        let labels = json!({ "app": name });
        let set: ReplicaSet = serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": name },
            "spec": {
                "replicas": 0,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "c", "image": "i" }] },
                },
            },
        }))
        .unwrap();
        let made = self.sets().create(&PostParams::default(), &set).await.unwrap();
        OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: name.to_owned(),
            uid: made.metadata.uid.unwrap(),
            block_owner_deletion: Some(true),
            controller: None,
        }
    }

    async fn release_pod(&self, name: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        self.pods().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn wait_for_pods(&self, count: usize) -> Vec<Pod> {
        wait_until_ok(async || {
            let pods = self.pods().list(&ListParams::default()).await.unwrap().items;
            if pods.len() == count { Ok(pods) } else { Err(format!("{} pods", pods.len())) }
        })
        .await
    }

    async fn wait_for_sets(&self, count: usize) {
        wait_until_ok(async || {
            let sets = self.sets().list(&ListParams::default()).await.unwrap().items.len();
            if sets == count { Ok(()) } else { Err(format!("{sets} sets")) }
        })
        .await;
    }

    async fn wait_for_ready(&self, count: usize) -> Vec<Pod> {
        wait_until_ok(async || {
            let pods = self.pods().list(&ListParams::default()).await.unwrap().items;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            if ready == count { Ok(pods) } else { Err(format!("{ready} ready pods")) }
        })
        .await
    }
}

fn container_status(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

fn restarts(pod: &Pod) -> i32 {
    container_status(pod).map_or(0, |status| status.restart_count)
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}

async fn claims(world: World) {
    let protection = VolumeProtection::start(world.client.clone());
    let claims = Api::<PersistentVolumeClaim>::namespaced(world.client.clone(), &world.namespace);
    let post = PostParams::default();
    for name in ["used", "free"] {
        let claim = json!({
            "metadata": { "name": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            },
        });
        claims.create(&post, &serde_json::from_value(claim).unwrap()).await.unwrap();
    }
    let pod = json!({
        "metadata": { "name": "user" },
        "spec": {
            "nodeName": "node",
            "containers": [{ "name": "c", "image": "i" }],
            "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "used" } }],
        },
    });
    world.pods().create(&post, &serde_json::from_value(pod).unwrap()).await.unwrap();
    for name in ["used", "free"] {
        claims.delete(name, &DeleteParams::default()).await.unwrap();
    }
    let is_gone = async |name: &str| match claims.get_opt(name).await.unwrap() {
        None => Ok(()),
        Some(claim) => Err(format!("{:?}", claim.metadata)),
    };
    wait_until_ok(async || is_gone("free").await).await;
    assert!(is_gone("used").await.is_err(), "a pod uses it");
    world.pods().delete("user", &DeleteParams::default().grace_period(0)).await.unwrap();
    wait_until_ok(async || is_gone("used").await).await;
    protection.stop().await;
}

async fn roles(world: World) {
    let aggregator = RoleAggregator::start(world.client.clone());
    let api = Api::<ClusterRole>::all(world.client.clone());
    let (post, label) = (PostParams::default(), world.namespace.as_str());
    let (sum, part) = (format!("{label}:sum"), format!("{label}:part"));
    let whole = json!({
        "metadata": { "name": sum },
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { label: "true" } }] },
    });
    api.create(&post, &serde_json::from_value(whole).unwrap()).await.unwrap();
    let selected = json!({
        "metadata": { "name": part, "labels": { label: "true" } },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
    });
    api.create(&post, &serde_json::from_value(selected).unwrap()).await.unwrap();
    let has_rules = async |count: usize| {
        let rules = api.get(&sum).await.unwrap().rules.unwrap_or_default();
        if rules.len() == count { Ok(()) } else { Err(format!("{rules:?}")) }
    };
    wait_until_ok(async || has_rules(1).await).await;
    api.delete(&part, &DeleteParams::default()).await.unwrap();
    wait_until_ok(async || has_rules(0).await).await;
    aggregator.stop().await;
    api.delete(&sum, &DeleteParams::default()).await.unwrap();
}
