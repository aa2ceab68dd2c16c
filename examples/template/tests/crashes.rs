//! Crashes the controller before and after each of its writes. No cluster is needed, and the clock
//! is virtual.

use std::time::Duration;

use greeting_controller::{Greeting, GreetingSpec, Options, manager};
use homeostat::crd;
use homeostat::kube_client::api::{ApiResource, Patch, PatchParams, PostParams};
use homeostat::kube_client::{Api, Client};
use homeostat_testing::{Outcome, Simulation, crash_at_every_call, oracle};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResourceExt as _;
use serde_json::json;

/// The controller. After a crash it is called again, without any state.
async fn controller(client: Client) {
    let options = Options { seed: Some(1), ..Options::default() };
    let ended = manager(client, &options).run_until(std::future::pending()).await;
    ended.expect("the controller runs until it is dropped");
}

/// The user: creates a Greeting and changes it. Returns the state to compare.
async fn world(simulation: &Simulation) -> Outcome {
    let user = simulation.user().clone();
    crd::install(&user, &Greeting::crd(), Duration::from_secs(60)).await?;
    let greetings = Api::<Greeting>::default_namespaced(user);
    let spec = GreetingSpec { text: "hello".to_owned() };
    greetings.create(&PostParams::default(), &Greeting::new("web", spec)).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let change = Patch::Merge(json!({ "spec": { "text": "good day" } }));
    greetings.patch("web", &PatchParams::default(), &change).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let kinds = [ApiResource::erase::<Greeting>(&()), ApiResource::erase::<ConfigMap>(&())];
    Ok(oracle::end_state(simulation, &kinds).await?)
}

#[test]
fn controller_crashed_at_any_write_reaches_the_same_state() {
    let sweep = crash_at_every_call(7, world, controller).unwrap();
    // The end state holds its distance from the generation: zero means that no change is left.
    assert_eq!(sweep.state["greetings.example.com"][0]["status"]["observedGeneration"], 0);
    let maps = sweep.state["configmaps."].as_array().unwrap();
    let map = maps.iter().find(|map| map["metadata"]["name"] == "web").unwrap();
    assert_eq!(map["data"]["text"], "good day");
}
