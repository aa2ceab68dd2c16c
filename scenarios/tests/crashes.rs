//! The controller of `ReplicaSet`s or `ReplicationController`s crashes before and after each of its
//! requests. Its successor brings
//! the cluster to the same final state.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, ListParams};
use homeostat_faults::{Crash, CrashPoint};
use homeostat_scenarios::{Census, PodOwner, ReplicaSets, Running};
use homeostat_testing::{Simulation, in_virtual_time};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_secs(120);

/// The result of one run.
#[derive(Debug, PartialEq)]
struct End {
    state: Value,
    /// Mutating calls of the controllers.
    calls: u64,
    most_alive: usize,
}

#[test]
fn successor_of_controller_crashed_at_any_request_reaches_same_state() {
    sweep(PodOwner::ReplicaSet);
}

#[test]
fn successor_of_crashed_controller_of_replication_controllers_reaches_same_state() {
    sweep(PodOwner::ReplicationController);
}

fn sweep(kind: PodOwner) {
    let reference = in_virtual_time(run(kind, None)).unwrap();
    assert!(reference.calls >= 15, "{reference:#?}");
    for point in CrashPoint::all(reference.calls) {
        let end = in_virtual_time(run(kind, Some(point)));
        let end = end.unwrap_or_else(|why| panic!("{point}: {why:?}"));
        assert_eq!(end.state, reference.state, "{point}");
        // At most one pod too many: the create whose response was lost.
        assert!(end.most_alive <= reference.most_alive + 1, "{point}: {end:#?}");
    }
}

/// Runs the workload with a controller that crashes at `point`, and its successor.
async fn run(kind: PodOwner, point: Option<CrashPoint>) -> anyhow::Result<End> {
    let simulation = Simulation::start(11);
    let faults = simulation.faults();
    let census = Census::start(simulation.user().clone(), "default").await?;
    let crash = point.map(|point| faults.crash_at("controller", point));
    let web = ReplicaSets::of_kind(kind, simulation.user(), "web");
    let outcome = tokio::select! {
        biased;
        outcome = workload(&web) => outcome,
        () = controllers(kind, &simulation, crash.as_ref()) => Ok(()),
    };
    outcome.map_err(|error| error.context(format!("faults:\n{}", faults.trace())))?;
    anyhow::ensure!(crash.is_none_or(|crash| crash.is_reached()), "it never came to that call");
    let state = state(kind, simulation.user()).await?;
    Ok(End { state, calls: faults.mutations("controller"), most_alive: census.most_alive() })
}

/// Runs the controller until it crashes, then its successor, which never ends.
async fn controllers(kind: PodOwner, simulation: &Simulation, crash: Option<&Crash>) {
    let mut running = Running::of_kind_in_simulation(kind, simulation);
    if let Some(crash) = crash {
        crash.reached().await;
        drop(running);
        running = Running::of_kind_in_simulation(kind, simulation);
    }
    std::future::pending::<()>().await;
    drop(running);
}

/// The users' operations: pods are created, deleted, adopted and released.
async fn workload(web: &ReplicaSets) -> anyhow::Result<()> {
    web.create(3).await?;
    web.wait_for_replicas(3, DEADLINE).await?;
    web.scale(5).await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    web.create_stray("stray", DEADLINE).await?;
    web.label("stray").await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    let released = web.pods().await?.remove(0).metadata.name.unwrap();
    web.relabel(&released).await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    web.wait_for_release(&released, DEADLINE).await?;
    web.kill(&released).await?;
    web.scale(2).await?;
    web.wait_for_replicas(2, DEADLINE).await?;
    // Every unknown outcome is resolved by now.
    tokio::time::sleep(Duration::from_secs(60)).await;
    web.wait_for_replicas(2, DEADLINE).await
}

/// Returns the final state without names, uids and times.
async fn state(kind: PodOwner, user: &Client) -> anyhow::Result<Value> {
    let set = match kind {
        PodOwner::ReplicaSet => {
            let sets = Api::<ReplicaSet>::default_namespaced(user.clone());
            serde_json::to_value(sets.get("web").await?)?
        }
        PodOwner::ReplicationController => {
            let controllers = Api::<ReplicationController>::default_namespaced(user.clone());
            serde_json::to_value(controllers.get("web").await?)?
        }
    };
    let pods = Api::<Pod>::default_namespaced(user.clone()).list(&ListParams::default()).await?;
    let pod = |pod: &Pod| {
        let owners = pod.metadata.owner_references.iter().flatten();
        json!({
            "labels": pod.metadata.labels,
            "owners": owners.map(|owner| (&owner.name, owner.controller)).collect::<Vec<_>>(),
            "deleted": pod.metadata.deletion_timestamp.is_some(),
            "phase": pod.status.as_ref().and_then(|status| status.phase.clone()),
            "spec": pod.spec,
        })
    };
    let pods: Vec<Value> = pods.items.iter().map(pod).collect();
    Ok(json!({ "spec": set["spec"], "status": set["status"], "pods": pods }))
}
