//! The same cache, fed by the same server, kept by our informer, by client-go's and by kube-runtime's reflector, in
//! turn. Run it through `benches/peers/informer.sh`.
//!
//! The allocator is mimalloc.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use homeostat::kube_client::{Client, Config};
use homeostat_benches::informer::{Consumer, Report, Trial, projection::PodState};
use homeostat_informer::{KubeListWatch, Lazy, ListWatch, Metadata, Object, SharedIndexInformer};
use k8s_openapi::api::core::v1::Pod;
use mimalloc::MiMalloc;

mod compare;
mod controllers;
mod figures;
mod load;
mod parts;

use self::{compare::Comparison, controllers::Controllers};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
enum Arguments {
    /// Runs all peers in turn and prints medians and ratios.
    Compare(Compare),
    /// Runs a `ReplicaSet` controller with all pods in its cache: ours, and kube-controller-manager's.
    Controllers(Controllers),
    /// Compares the parts of an informer, each by itself.
    CompareParts(parts::Compare),
    /// Measures ours.
    Parts,
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
        /// What it is put through, one after another.
        #[arg(long, value_delimiter = ' ')]
        phases: Vec<Trial>,
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
    /// The same, with no spare capacity.
    Compact,
    /// The metadata, and the text of the rest.
    Lazy,
    /// The fields that a controller reads.
    Projection,
    /// The metadata; the server leaves out the rest.
    Metadata,
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
        Arguments::Controllers(arguments) => controllers::compare(&arguments),
        Arguments::CompareParts(arguments) => parts::compare(&arguments),
        Arguments::Parts => parts::ours(),
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
    phases: &[Trial],
) -> anyhow::Result<Report> {
    let client = homeostat::client::builder().config(Config::new(server.parse()?))?.build();
    let pods_of = client.clone();
    match weight {
        Weight::Typed => {
            follow(client, KubeListWatch::<Pod>::new(pods_of, None), pods, phases).await
        }
        Weight::Compact => {
            follow(client, KubeListWatch::<Pod>::new(pods_of, None).compact(), pods, phases).await
        }
        Weight::Lazy => {
            follow(client, KubeListWatch::<Lazy<Pod>>::new(pods_of, None), pods, phases).await
        }
        Weight::Projection => {
            follow(client, KubeListWatch::<PodState>::new(pods_of, None), pods, phases).await
        }
        Weight::Metadata => {
            follow(client, KubeListWatch::<Metadata<Pod>>::new(pods_of, None), pods, phases).await
        }
    }
}

async fn follow<K: Object>(
    client: Client,
    list_watch: impl ListWatch<K>,
    pods: u32,
    phases: &[Trial],
) -> anyhow::Result<Report> {
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
