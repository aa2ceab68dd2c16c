//! The same cache, fed by the same server, kept by our informer, by client-go's and by kube-runtime's reflector, in
//! turn. Run it through `benches/peers/informer.sh`.
//!
//! The allocator is mimalloc.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use homeostat::kube_client::{Client, Config};
use homeostat_benches::informer::{Consumer, Report, Updates, projection::PodState};
use homeostat_informer::{KubeListWatch, Object, SharedIndexInformer};
use k8s_openapi::api::core::v1::Pod;
use mimalloc::MiMalloc;
use serde::de::DeserializeOwned;

mod compare;
mod figures;
mod load;

use self::compare::Comparison;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
enum Arguments {
    /// Runs all peers in turn and prints medians and ratios.
    Compare(Compare),
    /// Keeps the server's pods with our informer and prints what that took.
    Consume {
        /// The load server.
        #[arg(long)]
        server: String,
        /// How many pods it has.
        #[arg(long, default_value_t = 100_000)]
        pods: u32,
        /// What is kept of each.
        #[arg(long)]
        weight: Weight,
        /// Updates to ask for, one after another.
        #[arg(long, value_delimiter = ' ')]
        phases: Vec<Updates>,
    },
}

/// What to compare.
#[derive(Debug, clap::Args)]
struct Compare {
    /// The Go program, built from `benches/peers/informer`.
    #[arg(long)]
    go: PathBuf,
    /// The program with kube-runtime, built from `benches/peers/kube-runtime`.
    #[arg(long)]
    kube_runtime: PathBuf,
    /// How often each peer runs.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many pods there are.
    #[arg(long, default_value_t = 100_000)]
    pods: u32,
    /// Consumers get one core of their own instead of all cores.
    #[arg(long)]
    one_core: bool,
    /// Only consumers whose names begin like this; client-go's default always runs.
    #[arg(long)]
    only: Vec<String>,
    /// Where to keep what every run took.
    #[arg(long, default_value = "target/peers/informer.jsonl")]
    raw: PathBuf,
}

/// What our informer keeps of each pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Weight {
    /// All of it, as `k8s_openapi` has it.
    Typed,
    /// The fields that a controller reads.
    Projection,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse() {
        Arguments::Compare(arguments) => {
            let rounds = arguments.rounds;
            let mut comparison = Comparison::new(arguments)?;
            for round in 0..rounds {
                comparison.round(round)?;
            }
            print(&comparison.tables());
            Ok(())
        }
        Arguments::Consume { server, pods, weight, phases } => {
            let report = consume(&server, pods, weight, &phases)?;
            print(&serde_json::to_string(&report)?);
            Ok(())
        }
    }
}

#[tokio::main]
async fn consume(
    server: &str,
    pods: u32,
    weight: Weight,
    phases: &[Updates],
) -> anyhow::Result<Report> {
    let client = homeostat::client::builder().config(Config::new(server.parse()?))?.build();
    match weight {
        Weight::Typed => follow::<Pod>(client, pods, phases).await,
        Weight::Projection => follow::<PodState>(client, pods, phases).await,
    }
}

async fn follow<K>(client: Client, pods: u32, phases: &[Updates]) -> anyhow::Result<Report>
where
    K: Object<Kind = Pod> + DeserializeOwned,
{
    let list_watch = KubeListWatch::<K>::new(client.clone(), None);
    let informer = SharedIndexInformer::builder(list_watch).build();
    Consumer::new(client).run(&informer, pods, phases).await
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "a bench that takes minutes says how far it is")]
fn say(text: &str) {
    eprintln!("{text}");
}
