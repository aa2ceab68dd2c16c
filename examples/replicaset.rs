//! A `ReplicaSet` controller at work, with no cluster at hand: an API server, a kubelet, a garbage
//! collector and the controller, all in this process.
//!
//! ```text
//! cargo run --example replicaset                       # on the embedded API server
//! cargo run --example replicaset -- --control-plane    # on a real etcd and kube-apiserver
//! cargo run --example replicaset -- --kubeconfig F     # on a cluster of yours (kwok, kind, …)
//! ```
//!
//! It plays a scene and ends by itself; the exit code is not zero when a step does not converge.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use homeostat::kube_client::{Client, Config};
use homeostat_apiserver::cluster::{GarbageCollector, Kubelet};
use homeostat_apiserver::control_plane::ControlPlane;
use homeostat_apiserver::{ApiServer, Listener};
use homeostat_replicaset::Options;
use homeostat_scenarios::scene::{self, Step};
use tokio::sync::oneshot;

/// Plays the life of a `ReplicaSet`, and shows what the controller does.
#[derive(Debug, Parser)]
struct Arguments {
    /// Play on the cluster that this kubeconfig names; its own `ReplicaSet` controller must be off.
    #[arg(long, value_name = "FILE", conflicts_with = "control_plane")]
    kubeconfig: Option<PathBuf>,
    /// Play on a real etcd and kube-apiserver, started for the scene.
    #[arg(long)]
    control_plane: bool,
}

/// Where the scene plays. What was started for it ends when this is dropped.
enum Place {
    Embedded(Listener),
    ControlPlane(Box<ControlPlane>),
    Cluster(PathBuf),
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("error"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("\nfailed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let place = Place::open(arguments).await?;
    tell(&format!("The scene plays on {}.\n", place.describe()));
    let user = place.client().await?;

    // A cluster's helpers, as ordinary clients: a cluster of yours has its own.
    let helpers = place
        .is_ours()
        .then(|| (Kubelet::start(user.clone()), GarbageCollector::start(user.clone())));

    // The controller, with a client of its own. It runs until `stop` is used, and then drains.
    let (stop, stopped) = oneshot::channel::<()>();
    let client = place.client().await?;
    let controller = homeostat_replicaset::run(client, Options::default(), async {
        // A dropped sender asks for the same: the scene is over.
        let _ = stopped.await;
    });
    let play = async {
        let outcome = scene::play(&user, |step| tell(&describe(&step))).await;
        drop(stop);
        outcome
    };
    let (ran, played) = tokio::join!(controller, play);
    drop(helpers);
    played?;
    ran.context("the controller")?;
    tell("\nEvery step converged.");
    Ok(())
}

fn describe(step: &Step) -> String {
    let Step { asked, done, took } = step;
    format!("you:         {asked}\ncontroller:  {done}\nconverged:   in {} ms\n", took.as_millis())
}

/// A terminal program speaks on standard output.
#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
fn tell(line: &str) {
    println!("{line}");
}

// === impl Place ===

impl Place {
    async fn open(arguments: Arguments) -> anyhow::Result<Self> {
        if let Some(kubeconfig) = arguments.kubeconfig {
            return Ok(Self::Cluster(kubeconfig));
        }
        if arguments.control_plane {
            tell("Starting etcd and kube-apiserver …");
            return Ok(Self::ControlPlane(Box::new(ControlPlane::start().await?)));
        }
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Self::Embedded(ApiServer::new().listen(anywhere).await?))
    }

    async fn client(&self) -> anyhow::Result<Client> {
        let builder = homeostat::client::builder().qps(1000.0).burst(2000);
        let builder = match self {
            Self::Embedded(listener) => builder.config(Config::new(listener.url().parse()?))?,
            Self::ControlPlane(plane) => builder.config(plane.config())?,
            Self::Cluster(kubeconfig) => builder.kubeconfig(kubeconfig).await?,
        };
        Ok(builder.build())
    }

    fn is_ours(&self) -> bool {
        !matches!(self, Self::Cluster(_))
    }

    fn describe(&self) -> String {
        match self {
            Self::Embedded(listener) => format!("the embedded API server at {}", listener.url()),
            Self::ControlPlane(plane) => {
                format!("a real kube-apiserver at {}", plane.config().cluster_url)
            }
            Self::Cluster(kubeconfig) => format!("the cluster of {}", kubeconfig.display()),
        }
    }
}
