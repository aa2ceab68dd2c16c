//! The `ReplicaSet` controller crashes at every call that it makes: just before it, and just after it was carried out.
//! Whoever takes its place brings the cluster to the same end.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, ListParams};
use homeostat_apiserver::faults::{Crash, CrashPoint};
use homeostat_scenarios::{Census, ReplicaSets, Simulation, in_virtual_time};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_secs(120);

/// How one run ended.
#[derive(Debug, PartialEq)]
struct End {
    state: Value,
    /// Mutating calls of the controllers.
    calls: u64,
    most_alive: usize,
}

#[test]
fn whoever_follows_a_crash_at_any_call_comes_to_the_same_end() {
    let reference = in_virtual_time(run(None)).unwrap();
    assert!(reference.calls >= 15, "{reference:#?}");
    for point in CrashPoint::all(reference.calls) {
        let end =
            in_virtual_time(run(Some(point))).unwrap_or_else(|why| panic!("{point}: {why:?}"));
        assert_eq!(end.state, reference.state, "{point}");
        // Never more than one pod too many: the create whose reply nobody got.
        assert!(end.most_alive <= reference.most_alive + 1, "{point}: {end:#?}");
    }
}

/// Plays the story with a controller that crashes at `point`, and its successor.
async fn run(point: Option<CrashPoint>) -> anyhow::Result<End> {
    let simulation = Simulation::start(11);
    let faults = simulation.faults();
    let census = Census::start(simulation.user().clone(), "default").await?;
    let crash = point.map(|point| faults.crash_at("controller", point));
    let told = tokio::select! {
        biased;
        told = story(simulation.user()) => told,
        () = controllers(&simulation, crash.as_ref()) => Ok(()),
    };
    told.map_err(|error| error.context(format!("faults:\n{}", faults.trace())))?;
    anyhow::ensure!(crash.is_none_or(|crash| crash.is_reached()), "it never came to that call");
    let state = state(simulation.user()).await?;
    Ok(End { state, calls: faults.mutations("controller"), most_alive: census.most_alive() })
}

/// Runs the controller until it crashes, and then another one, which does not end.
async fn controllers(simulation: &Simulation, crash: Option<&Crash>) {
    let mut running = simulation.run_controller();
    if let Some(crash) = crash {
        crash.reached().await;
        drop(running);
        running = simulation.run_controller();
    }
    std::future::pending::<()>().await;
    drop(running);
}

/// What the users do: pods are created, deleted, adopted and released.
async fn story(user: &Client) -> anyhow::Result<()> {
    let web = ReplicaSets::named(user, "web");
    web.create(3).await?;
    web.converged(3, DEADLINE).await?;
    web.scale(5).await?;
    web.converged(5, DEADLINE).await?;
    web.create_stray("stray", DEADLINE).await?;
    web.label("stray").await?;
    web.converged(5, DEADLINE).await?;
    let released = web.pods().await?.remove(0).metadata.name.unwrap();
    web.relabel(&released).await?;
    web.converged(5, DEADLINE).await?;
    web.released(&released, DEADLINE).await?;
    web.kill(&released).await?;
    web.scale(2).await?;
    web.converged(2, DEADLINE).await?;
    // Whatever was left uncertain is settled by now.
    tokio::time::sleep(Duration::from_secs(60)).await;
    web.converged(2, DEADLINE).await
}

/// What there is in the end, without names, uids and times.
async fn state(user: &Client) -> anyhow::Result<Value> {
    let set = Api::<ReplicaSet>::default_namespaced(user.clone()).get("web").await?;
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
    Ok(json!({ "spec": set.spec, "status": set.status, "pods": pods }))
}
