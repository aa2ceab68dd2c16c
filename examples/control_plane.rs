//! A real etcd and kube-apiserver to try things on: prints the kubeconfig, and ends with Ctrl-C.
//!
//! ```text
//! cargo run --example control_plane
//! ```

use std::time::Duration;

use homeostat_apiserver::cluster::{GarbageCollector, Kubelet};
use homeostat_apiserver::control_plane::ControlPlane;

#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let plane = ControlPlane::start().await?;
    // `--nodes` starts the helpers of a cluster beside it: then pods run, and dependents go with their owners.
    let with_nodes = std::env::args().any(|argument| argument == "--nodes");
    let client = plane.client()?;
    let helpers = with_nodes
        .then(|| (Kubelet::start(client.clone()), GarbageCollector::start(client.clone())));
    println!("export KUBECONFIG={}", plane.kubeconfig().display());
    tokio::signal::ctrl_c().await?;
    // Requests that are under way end before their server does.
    drop(helpers);
    tokio::time::sleep(Duration::ZERO).await;
    Ok(())
}
