//! The command line of the API server.

mod kubeconfig;

use std::io::{IsTerminal as _, stderr};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use homeostat_apiserver::ApiServer;
use homeostat_apiserver::cluster::{GarbageCollector, Kubelet, NamespaceController};
use jiff::Timestamp;
use kube_client::Client;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::kubeconfig::Kubeconfig;

/// How often a node says that it lives: as real ones do.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// What is logged unless `RUST_LOG` says otherwise.
const LOG: &str = "warn";

/// A Kubernetes API server that starts at once and forgets everything when it ends.
///
/// It prints how to point kubectl at it. Everybody who reaches its address may do everything.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen. Port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))]
    listen: SocketAddr,

    /// Where to write the kubeconfig. It is removed at the end.
    #[arg(long, value_name = "FILE", default_value = "homeostat.kubeconfig")]
    kubeconfig: PathBuf,

    /// What else to start, separated by commas: without it nothing runs, and nothing is cleaned up.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    with: Vec<Helper>,

    /// How many nodes the kubelet has.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    nodes: usize,

    /// How many seconds a pod runs until it is ready.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    ready_after: f64,

    /// Where uids and generated names come from: the same seed gives the same. Times are real ones all the same.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

/// The other half of a cluster, a part each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Helper {
    /// Nodes, on which pods run, become ready, fail or finish as their annotations say, and go when they are deleted.
    Kubelet,
    /// Dependents go with their owners.
    Gc,
    /// Namespaces that are deleted are emptied, and go.
    Namespaces,
}

/// What runs beside the server, as long as this is there.
#[derive(Debug, Default)]
struct Helpers {
    kubelet: Option<Kubelet>,
    garbage_collector: Option<GarbageCollector>,
    namespaces: Option<NamespaceController>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
    let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(colours).init();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start threads")?;
    runtime.block_on(serve(arguments))?;
    // Open watches are not waited for: nothing is kept that they could lose.
    runtime.shutdown_background();
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the address is what the program has to say")]
async fn serve(arguments: &Arguments) -> anyhow::Result<()> {
    // First, so that a signal that comes early is not lost.
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;

    // A seed would agree on a time, too: whoever uses a program looks at a real clock.
    let server = ApiServer::builder().seed(arguments.seed).epoch(Timestamp::now()).build();
    let listener = server
        .listen(arguments.listen)
        .await
        .with_context(|| format!("cannot listen at {}", arguments.listen))?;
    let kubeconfig = Kubeconfig::write(&arguments.kubeconfig, &listener.kubeconfig())?;
    let helpers = Helpers::start(&server.client_as("homeostat-helpers"), arguments).await?;

    println!("The API server is at {}", listener.url());
    println!("export KUBECONFIG={}", kubeconfig.path().display());
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    // Before their server.
    helpers.stop().await;
    Ok(())
}

// === impl Helpers ===

impl Helpers {
    async fn start(client: &Client, arguments: &Arguments) -> anyhow::Result<Self> {
        let mut helpers = Self::default();
        for helper in &arguments.with {
            match helper {
                Helper::Kubelet => {
                    let kubelet = Kubelet::builder(client.clone())
                        .nodes(arguments.nodes)
                        .heartbeat(HEARTBEAT)
                        .ready_delay(Duration::from_secs_f64(arguments.ready_after));
                    helpers.kubelet = Some(kubelet.start());
                }
                Helper::Gc => {
                    let collector = GarbageCollector::builder(client.clone()).every_kind().await?;
                    helpers.garbage_collector = Some(collector.start());
                }
                Helper::Namespaces => {
                    helpers.namespaces = Some(NamespaceController::start(client.clone()));
                }
            }
        }
        Ok(helpers)
    }

    async fn stop(self) {
        if let Some(kubelet) = self.kubelet {
            kubelet.stop().await;
        }
        if let Some(collector) = self.garbage_collector {
            collector.stop().await;
        }
        if let Some(namespaces) = self.namespaces {
            namespaces.stop().await;
        }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(n) => Ok(n),
        Err(error) => Err(format!("{error}")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(_) => Ok(seconds),
        Err(error) => Err(format!("{error}")),
    }
}
