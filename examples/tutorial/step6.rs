//! Step 6: crashes the controller at each of its writes, and compares the end states.

use std::time::Duration;

use homeostat::crd;
use homeostat::kube_client::api::{ApiResource, Patch, PatchParams, PostParams};
use homeostat::kube_client::{Api, Client};
use homeostat_sample::{Foo, FooSpec, Options};
use homeostat_testing::{Outcome, Simulation, crash_at_every_call, oracle};
use k8s_openapi::api::apps::v1::Deployment;
use kube::CustomResourceExt as _;
use serde_json::json;

/// The controller. After a crash it is called again, without any state.
async fn controller(client: Client) {
    let options = Options { seed: Some(1), ..Options::default() };
    let ended = homeostat_sample::run(client, &options, std::future::pending()).await;
    ended.expect("the controller runs until it is dropped");
}

/// The user: creates a Foo and scales it. Returns the state to compare.
async fn world(simulation: &Simulation) -> Outcome {
    let user = simulation.user().clone();
    crd::install(&user, &Foo::crd(), Duration::from_secs(60)).await?;
    let foos = Api::<Foo>::default_namespaced(user);
    let spec = FooSpec { deployment_name: "nginx".to_owned(), replicas: Some(2) };
    foos.create(&PostParams::default(), &Foo::new("web", spec)).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let scale = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    foos.patch("web", &PatchParams::default(), &scale).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let kinds = [ApiResource::erase::<Foo>(&()), ApiResource::erase::<Deployment>(&())];
    Ok(oracle::end_state(simulation, &kinds).await?)
}

#[expect(clippy::print_stdout, reason = "the output of the program")]
fn main() -> anyhow::Result<()> {
    let sweep = crash_at_every_call(7, world, controller)?;
    let replicas = &sweep.state["deployments.apps"][0]["spec"]["replicas"];
    anyhow::ensure!(replicas == 3, "the Deployment has {replicas} replicas");
    println!("{} calls, {} runs, one end state", sweep.calls, sweep.runs);
    Ok(())
}
