//! The command line of the `ReplicaSet` controller.

use std::io::{IsTerminal as _, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use homeostat::kube_client::Client;
use homeostat::shutdown_signal;
use homeostat_replicaset::{FeatureGates, GateError, Options, RunError};
use tracing_subscriber::EnvFilter;

// The system's allocator: mimalloc kept 12 MB more (of 20) at 1,000 pods, and saved no time.

/// Requests and decoding for one controller fill no more than two cores; each further thread costs memory.
const THREADS: usize = 2;

/// What is logged unless `RUST_LOG` says otherwise. kube-client prints whole objects when it cannot decode them.
const LOG: &str = "info,kube_client=error";

/// Kubernetes' ReplicaSet controller, in place of the one in kube-controller-manager
/// (start that with --controllers=*,-replicaset-controller).
#[derive(Debug, Parser)]
#[expect(clippy::doc_markdown, reason = "these comments are the text of --help")]
#[command(version)]
struct Arguments {
    /// How to reach the cluster; unless given: $KUBECONFIG, ~/.kube/config, or the cluster around this process.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// How many ReplicaSets are looked at at the same time.
    #[arg(long, visible_alias = "concurrent-replicaset-syncs", value_name = "N", default_value_t = 5,
          value_parser = at_least_one)]
    workers: usize,

    /// How many pods one pass makes or deletes at most.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = at_least_one)]
    burst_replicas: usize,

    /// How many requests a second are sent on average.
    #[arg(long, value_name = "X", default_value_t = 20.0, allow_negative_numbers = true)]
    kube_api_qps: f32,

    /// How many requests are sent at once after a quiet time.
    #[arg(long, value_name = "N", default_value_t = 30)]
    kube_api_burst: u32,

    /// Name=true or Name=false, separated by commas; PodDeletionCost and DeploymentReplicaSetTerminatingReplicas act.
    /// Given several times, all lists count.
    #[arg(long, value_name = "LIST", value_parser = list_of_gates)]
    feature_gates: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
    let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(colours).init();
    match start(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Its text has its causes in it.
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .map_err(|error| anyhow::anyhow!("failed to start threads: {error}"))?;
    let gates: FeatureGates = arguments.feature_gates.join(",").parse()?;
    runtime.block_on(async {
        let client = connect(arguments).await?;
        tracing::info!(workers = arguments.workers, "Starting controller");
        let options = Options {
            workers: arguments.workers,
            burst_replicas: arguments.burst_replicas,
            gates,
            ..Options::default()
        };
        let ended = homeostat_replicaset::run(client, options, shutdown_signal()).await;
        tracing::info!("Shutting down controller");
        match ended {
            // What was left undone is done by whoever starts next: it lists everything anyway.
            Err(RunError::Manager(error @ homeostat::RunError::Undrained { .. })) => {
                tracing::warn!("{error}");
                Ok(())
            }
            ended => Ok(ended?),
        }
    })
}

async fn connect(arguments: &Arguments) -> anyhow::Result<Client> {
    let builder = homeostat::client::builder()
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .qps(arguments.kube_api_qps)
        .burst(arguments.kube_api_burst);
    let builder = match &arguments.kubeconfig {
        Some(path) => builder.kubeconfig(path).await?,
        None => builder.infer().await?,
    };
    Ok(builder.build())
}

fn list_of_gates(list: &str) -> Result<String, GateError> {
    list.parse::<FeatureGates>().map(|_| list.to_owned())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(n) => Ok(n),
        Err(error) => Err(format!("{error}")),
    }
}
