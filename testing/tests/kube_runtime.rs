//! A controller of kube-runtime, each seed twice: its runs differ in times and order, and end in
//! the same state.
//!
//! `HOMEOSTAT_SEEDS` sets the number of seeds: one for each 250.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use homeostat_faults::{Calls, Chaos};
use homeostat_testing::{CONTROLLER, Outcome, Simulation, in_virtual_time, oracle};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::api::{ApiResource, Patch, PatchParams};
use kube_client::{Api, Client, ResourceExt as _};
use kube_core::Resource as _;
use kube_runtime::Controller;
use kube_runtime::controller::Action;
use kube_runtime::watcher::Config;
use serde_json::{Value, json};

#[test]
fn controller_of_kube_runtime_ends_in_one_state_for_each_seed() {
    let seeds = std::env::var("HOMEOSTAT_SEEDS").ok().and_then(|seeds| seeds.parse::<u64>().ok());
    let seeds = seeds.map_or(20, |seeds| (seeds / 250).clamp(1, 200));
    let mut faults = 0;
    for seed in 0..seeds {
        let (first, count) = in_virtual_time(run(seed));
        let (second, _) = in_virtual_time(run(seed));
        assert_eq!(first, second, "seed {seed}");
        let secrets = first["secrets."].as_array().expect("a list").iter();
        let texts = secrets.map(|secret| secret["data"]["text"].as_str());
        // Base64 of the last text of each map: 3, 4 and 5.
        let expected = BTreeSet::from([Some("Mw=="), Some("NA=="), Some("NQ==")]);
        assert_eq!(texts.collect::<BTreeSet<_>>(), expected, "seed {seed}");
        faults += count;
    }
    assert!(faults >= 2 * seeds, "{faults} faults in {seeds} runs");
}

/// Returns the end state, and the number of faults.
async fn run(seed: u64) -> (Value, u64) {
    let simulation = Simulation::start(seed);
    let client = simulation.client_as(CONTROLLER);
    simulation.faults().chaos(Calls::any().by(CONTROLLER), Chaos::of(0.3));
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    let controller = Controller::new(maps, Config::default()).owns(secrets, Config::default()).run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_secs(1)),
        Arc::new(client),
    );
    let outcome = tokio::select! {
        biased;
        outcome = Box::pin(world(&simulation)) => outcome,
        () = Box::pin(controller.for_each(|_| std::future::ready(()))) => unreachable!(),
    };
    let trace = simulation.faults().trace();
    let state = outcome.unwrap_or_else(|why| panic!("seed {seed}: {why}\nfaults:\n{trace}"));
    (state, trace.faults() as u64)
}

/// Plays the user: config maps come and change during random faults.
async fn world(simulation: &Simulation) -> Outcome {
    let maps = Api::<ConfigMap>::default_namespaced(simulation.user().clone());
    for (name, text) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "5")] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"text": text}});
        maps.patch(name, &PatchParams::apply("user"), &Patch::Apply(map)).await?;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    simulation.faults().heal();
    // A watch that stalled ends after its timeout, at most 295 s later.
    tokio::time::sleep(Duration::from_secs(900)).await;
    let kinds = [ApiResource::erase::<ConfigMap>(&()), ApiResource::erase::<Secret>(&())];
    Ok(oracle::end_state(simulation, &kinds).await?)
}

/// Applies a secret with the text of the map, which owns it.
async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> kube_client::Result<Action> {
    let secrets = Api::<Secret>::default_namespaced(Client::clone(&client));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": map.name_any(), "ownerReferences": [map.controller_owner_ref(&())]},
        "stringData": map.data,
    });
    let params = PatchParams::apply("copier").force();
    secrets.patch(&map.name_any(), &params, &Patch::Apply(secret)).await?;
    Ok(Action::await_change())
}
