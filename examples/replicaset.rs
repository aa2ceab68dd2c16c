//! A `ReplicaSet` controller without a cluster: an API server, a kubelet, a garbage collector and
//! the controller, all in this process.
//!
//! ```text
//! cargo run --example replicaset                       # on the embedded API server
//! cargo run --example replicaset -- --control-plane    # on a real etcd and kube-apiserver
//! cargo run --example replicaset -- --kubeconfig F     # on your cluster (kwok, kind, …)
//! ```
//!
//! It plays a scene and ends by itself; the exit code is not zero if a step does not converge.

mod place;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use homeostat_apiserver::cluster::{GarbageCollector, Kubelet};
use homeostat_replicaset::Options;
use homeostat_scenarios::scene::{self, Step};
use tokio::sync::oneshot;

use self::place::{Place, print};

/// Plays the life of a `ReplicaSet`, and prints the actions of the controller.
#[derive(Debug, Parser)]
struct Arguments {
    /// Play on the cluster that this kubeconfig names; its own `ReplicaSet` controller must be off.
    #[arg(long, value_name = "FILE", conflicts_with = "control_plane")]
    kubeconfig: Option<PathBuf>,
    /// Play on a real etcd and kube-apiserver, started for the scene.
    #[arg(long)]
    control_plane: bool,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    place::run("error", Box::pin(run(Arguments::parse()))).await
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    if arguments.control_plane {
        print("Starting etcd and kube-apiserver …");
    }
    let place = Place::open(arguments.kubeconfig, arguments.control_plane).await?;
    print(&format!("The scene runs on {}.\n", place.describe()));
    let user = place.client().await?;

    // A cluster's helpers, as ordinary clients: your own cluster has them already.
    let helpers = place
        .is_ours()
        .then(|| (Kubelet::start(user.clone()), GarbageCollector::start(user.clone())));

    // The controller, with a client of its own. It runs until `stop` is dropped, and then drains.
    let (stop, stopped) = oneshot::channel::<()>();
    let client = place.client().await?;
    let controller = homeostat_replicaset::run(client, Options::default(), async {
        // A dropped sender means the same: the scene has ended.
        let _ = stopped.await;
    });
    let play = async {
        let outcome = scene::play(&user, |step| print(&describe(&step))).await;
        drop(stop);
        outcome
    };
    let (ran, played) = tokio::join!(controller, play);
    drop(helpers);
    played?;
    ran.context("the controller")?;
    print("\nEvery step converged.");
    Ok(())
}

fn describe(step: &Step) -> String {
    let Step { request: asked, done, took } = step;
    format!("you:         {asked}\ncontroller:  {done}\nconverged:   in {} ms\n", took.as_millis())
}
