//! Starts a real etcd and kube-apiserver, prints the kubeconfig, and stops with Ctrl-C.
//!
//! ```text
//! cargo run --example control_plane
//! ```

use clap::Parser;
use homeostat_apiserver::cluster::{GarbageCollector, Kubelet};
use homeostat_testing::control_plane::ControlPlane;

/// Starts a real etcd and kube-apiserver, and prints the kubeconfig.
#[derive(Debug, Parser)]
struct Arguments {
    /// Start a kubelet and a garbage collector too: pods run, and dependents are deleted with
    /// their owners.
    #[arg(long)]
    nodes: bool,
}

#[expect(clippy::print_stdout, reason = "the output of the example")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let plane = ControlPlane::start().await?;
    let client = plane.client()?;
    let helpers = arguments
        .nodes
        .then(|| (Kubelet::start(client.clone()), GarbageCollector::start(client.clone())));
    println!("export KUBECONFIG={}\n# Ctrl-C stops the servers.", plane.kubeconfig().display());
    tokio::signal::ctrl_c().await?;
    // The helpers stop before their server.
    if let Some((kubelet, garbage_collector)) = helpers {
        kubelet.stop().await;
        garbage_collector.stop().await;
    }
    Ok(())
}
