//! The sample controller crashes at each of its writes, loses each reply, and meets every kind of
//! refusal and staleness. The end state is the same, and then the requests end.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use homeostat::crd;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::ApiResource;
use homeostat_apiserver::cluster::DeploymentController;
use homeostat_faults::{ApiError, Calls, Chaos, Faults, Verb};
use homeostat_sample::{Foo, Options};
use homeostat_scenarios::foos::{Foos, garbage_collector};
use homeostat_testing::{
    CONTROLLER, Outcome, Simulation, crash_at_every_call, in_virtual_time, oracle,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

const DEADLINE: Duration = Duration::from_secs(600);

/// Plays the user: two Foos with one name, a foreign Deployment, a deleted Deployment, a deleted
/// Foo. Returns the end state.
async fn world(simulation: &Simulation) -> Outcome {
    story(simulation).await.map_err(|error| format!("{error:#}"))?;
    Ok(oracle::end_state(
        simulation,
        &[ApiResource::erase::<Foo>(&()), ApiResource::erase::<Deployment>(&())],
    )
    .await?)
}

async fn story(simulation: &Simulation) -> anyhow::Result<()> {
    let definitions = simulation.user();
    crd::install(definitions, &Foo::crd(), DEADLINE).await?;
    let _collector = garbage_collector(&simulation.client_as("foo-collector"));
    let below = simulation.client_as("below");
    let _deployments = DeploymentController::start(below.clone());
    let options = homeostat_replicaset::Options {
        epoch: Some(simulation.server().now()),
        seed: Some(simulation.seed()),
        ..homeostat_replicaset::Options::default()
    };
    let sets = homeostat_replicaset::run(below, options, std::future::pending());
    let user = Foos::new(simulation.user());
    tokio::select! {
        biased;
        ended = Box::pin(act(&user)) => ended,
        ended = Box::pin(sets) => Ok(ended?),
    }
}

async fn act(user: &Foos) -> anyhow::Result<()> {
    user.create_deployment("theirs").await?;
    user.create("web", "nginx", 2).await?;
    user.wait_for("web", 2, DEADLINE).await?;
    user.create("waits", "theirs", 1).await?;
    user.scale("web", 4).await?;
    user.wait_for("web", 4, DEADLINE).await?;
    user.delete_deployment("nginx").await?;
    user.wait_for("web", 4, DEADLINE).await?;
    user.create("late", "nginx", 1).await?;
    tokio::time::sleep(Duration::from_secs(30)).await;
    user.delete("web").await?;
    user.wait_for("late", 1, DEADLINE).await?;
    // Every unknown outcome is resolved by now.
    tokio::time::sleep(Duration::from_secs(60)).await;
    user.wait_for("late", 1, DEADLINE).await
}

async fn controller(client: Client) {
    let options = Options { seed: Some(5), ..Options::default() };
    homeostat_sample::run(client, &options, std::future::pending()).await.unwrap();
}

/// Runs the story once under the faults that `prepare` sets. Returns the end state, after the
/// requests of the controller have ended.
fn run<T>(prepare: impl Fn(&Faults) -> T) -> Value {
    in_virtual_time(async {
        let simulation = Simulation::start(7);
        // A layer of its own, which knows custom resources.
        let faults = Faults::seeded(7);
        let _rule = prepare(&faults);
        let client = faults.client_as(CONTROLLER, simulation.client_as(CONTROLLER));
        let played = async {
            let state = world(&simulation).await?;
            let quiet = Duration::from_secs(300);
            oracle::requests_fall_to_zero(&simulation, CONTROLLER, quiet, quiet).await?;
            let deployments = ApiResource::erase::<Deployment>(&());
            oracle::no_duplicate_children(&simulation, &deployments, 1).await?;
            Outcome::Ok(state)
        };
        let outcome = tokio::select! {
            biased;
            outcome = Box::pin(played) => outcome,
            () = Box::pin(controller(client)) => unreachable!(),
        };
        outcome.unwrap_or_else(|why| panic!("{why}\nfaults:\n{}", faults.trace()))
    })
}

#[test]
fn successor_of_sample_controller_crashed_at_any_call_reaches_same_state() {
    let sweep = crash_at_every_call(7, world, controller).unwrap();
    assert!(sweep.calls >= 10, "{} calls", sweep.calls);
    let deployments = sweep.state["deployments.apps"].as_array().unwrap();
    let owners = deployments.iter().map(|it| &it["metadata"]["ownerReferences"][0]["name"]);
    assert_eq!(owners.collect::<Vec<_>>(), [&json!("late"), &Value::Null], "{deployments:#?}");
}

#[test]
fn every_refusal_ends_in_the_same_state() {
    let reference = run(|_| ());
    let refusals = [
        ApiError::conflict(),
        ApiError::forbidden(),
        ApiError::not_found(),
        ApiError::internal_error(),
        ApiError::unavailable(),
        ApiError::timeout(),
        ApiError::too_many_requests(Duration::from_secs(1)),
    ];
    for refusal in refusals {
        for (verb, resource) in
            [(Verb::Create, "deployments"), (Verb::Patch, "deployments"), (Verb::Patch, "foos")]
        {
            let calls = Calls::to(verb, resource).by(CONTROLLER).nth(1);
            let state = run(|faults| faults.refuse(calls.clone(), refusal.clone()));
            assert_eq!(state, reference, "{refusal:?} of {verb} {resource}");
        }
    }
}

#[test]
fn stale_caches_and_random_faults_end_in_the_same_state() {
    let reference = run(|_| ());
    for resource in ["foos", "deployments"] {
        let late = Duration::from_secs(20);
        let watches = Calls::watch(resource).by(CONTROLLER);
        let state = run(|faults| faults.delay_events(watches.clone(), late));
        assert_eq!(state, reference, "{resource} are 20 s late");
    }
    // Half of the requests of the first minutes meet a fault.
    let state = run(|faults| faults.chaos(Calls::any().by(CONTROLLER).times(60), Chaos::of(0.5)));
    assert_eq!(state, reference, "random faults");
}
