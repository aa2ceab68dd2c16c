//! A `ResourceClaim` controller without a cluster: an API server, a scheduler for pods with claims,
//! a kubelet, a garbage collector and the controller, all in this process.
//!
//! ```text
//! cargo run --example resourceclaim                       # on the embedded API server
//! cargo run --example resourceclaim -- --control-plane    # on a real etcd and kube-apiserver
//! cargo run --example resourceclaim -- --kubeconfig F     # on your cluster
//! ```
//!
//! It plays a scene and ends by itself; the exit code is not zero if a step does not converge. The
//! reply to the first create of a claim is lost.

mod place;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Parser;
use homeostat_apiserver::cluster::{ClaimScheduler, GarbageCollector, Kubelet};
use homeostat_faults::{Calls, Faults};
use homeostat_resourceclaim::Options;
use homeostat_scenarios::resource_claims::{ResourceClaims, on_node, pod, pod_using};
use serde_json::json;
use tokio::sync::oneshot;

use self::place::{Place, print};

/// Plays the life of claims, and prints the actions of the controller.
#[derive(Debug, Parser)]
struct Arguments {
    /// Play on the cluster that this kubeconfig names; its own `ResourceClaim` controller must be
    /// off.
    #[arg(long, value_name = "FILE", conflicts_with = "control_plane")]
    kubeconfig: Option<PathBuf>,
    /// Play on a real etcd and kube-apiserver, started for the scene.
    #[arg(long)]
    control_plane: bool,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    place::run("off", Box::pin(run(Arguments::parse()))).await
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let place = Place::open(arguments.kubeconfig, arguments.control_plane).await?;
    print(&format!("The scene runs on {}.\n", place.describe()));
    let user = place.client().await?;
    // A cluster's helpers, as ordinary clients: your own cluster has them already.
    let helpers = place.is_ours().then(|| {
        let scheduler = ClaimScheduler::start(user.clone());
        (scheduler, Kubelet::start(user.clone()), GarbageCollector::start(user.clone()))
    });
    let faults = Faults::new();
    let lost = faults.lose_reply(Calls::create("resourceclaims"));
    let client = faults.client(place.client().await?);
    let (stop, stopped) = oneshot::channel::<()>();
    let controller = homeostat_resourceclaim::run(client, Options::default(), async {
        // A dropped sender means the same: the scene has ended.
        let _ = stopped.await;
    });
    let play = async {
        let outcome = play(&ResourceClaims::new(&user)).await;
        drop(stop);
        outcome
    };
    let (ran, played) = tokio::join!(controller, play);
    drop(helpers);
    played?;
    ran.context("the controller")?;
    ensure!(lost.hits() == 1, "no reply was lost");
    print("\nEvery step converged. The reply to one create was lost, and made no second claim.");
    Ok(())
}

async fn play(user: &ResourceClaims) -> anyhow::Result<()> {
    print("you:         create a template, and a pod `web` with two entries of it");
    user.create_template().await?;
    user.create_pod(&pod("web", 2)).await?;
    let names = user.wait_for_names("web", 2).await?;
    print(&format!("controller:  created and recorded {}\n", names.join(", ")));
    for name in &names {
        user.wait_for_consumers(name, &["web"]).await?;
    }
    ensure!(user.names().await?.len() == 2, "there is one claim per entry");
    print("scheduler:   allocated both, reserved them for `web`, and bound it\n");

    print("you:         finish `web`");
    user.finish("web").await?;
    user.wait_for_claims(&[]).await?;
    print("controller:  removed reservations, allocations and finalizers, deleted both claims\n");

    print(
        "you:         create a claim `shared`, allocated, and two pods that are on a node already",
    );
    user.create_claim(&json!({"name": "shared"})).await?;
    user.allocate("shared").await?;
    for name in ["a", "b"] {
        user.create_pod(&on_node(pod_using(name, "shared"))).await?;
    }
    user.wait_for_consumers("shared", &["a", "b"]).await?;
    print("controller:  reserved `shared` for both\n");

    print("you:         delete `a`, then `b`");
    user.kill("a").await?;
    user.wait_for_consumers("shared", &["b"]).await?;
    user.kill("b").await?;
    user.wait_for_deallocation("shared").await?;
    print("controller:  removed each reservation; after the last one, the allocation");
    Ok(())
}
