//! The sample controller without a cluster: an API server, everything below a Deployment, a garbage
//! collector and the controller, all in this process.
//!
//! ```text
//! cargo run --example foo                       # on the embedded API server
//! cargo run --example foo -- --control-plane    # on a real etcd and kube-apiserver
//! cargo run --example foo -- --kubeconfig F     # on your cluster (kind, k3d, …)
//! ```
//!
//! It plays a scene and ends by itself; the exit code is not zero if a step does not converge.

mod place;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use homeostat::crd;
use homeostat_sample::{Foo, Options};
use homeostat_scenarios::foos::{Below, garbage_collector, scene};
use homeostat_scenarios::scene::Step;
use kube::CustomResourceExt as _;
use tokio::sync::oneshot;

use self::place::{Place, print};

/// Plays the life of a Foo, and prints the actions of the controller.
#[derive(Debug, Parser)]
struct Arguments {
    /// Play on the cluster that this kubeconfig names. The scene installs the definition of Foo,
    /// and works in the namespace `default`.
    #[arg(long, value_name = "FILE", conflicts_with = "control_plane")]
    kubeconfig: Option<PathBuf>,
    /// Play on a real etcd and kube-apiserver, started for the scene.
    #[arg(long)]
    control_plane: bool,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    // A step of the scene fails on purpose, and the scene prints its event.
    let filter = "error,kube_client=off,homeostat::worker=off";
    place::run(filter, Box::pin(run(Arguments::parse()))).await
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    if arguments.control_plane {
        print("Starting etcd and kube-apiserver …");
    }
    let place = Place::open(arguments.kubeconfig, arguments.control_plane).await?;
    print(&format!("The scene runs on {}.\n", place.describe()));
    let user = place.client().await?;
    crd::install(&user, &Foo::crd(), Duration::from_secs(60)).await?;
    print("Installed the definition of Foo.\n");

    // A cluster's helpers, as ordinary clients: your own cluster has them already.
    let helpers = place.is_ours().then(|| (Below::start(&user), garbage_collector(&user)));

    // The controller, with a client of its own. It runs until `stop` is dropped, and then drains.
    let (stop, stopped) = oneshot::channel::<()>();
    let (client, options) = (place.client().await?, Options::default());
    let controller = homeostat_sample::run(client, &options, async {
        // A dropped sender means the same: the scene has ended.
        let _ = stopped.await;
    });
    let play = async {
        let outcome = scene::play(&user, |step| print(&describe(&step))).await;
        drop(stop);
        outcome
    };
    let (ran, played) = tokio::join!(Box::pin(controller), Box::pin(play));
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
