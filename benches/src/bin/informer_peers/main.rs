//! Compares our informer, client-go's informer and kube-runtime's reflector: each in turn keeps the
//! cache of the same server. `benches/peers/informer.sh` runs it.
//!
//! The allocator is mimalloc.

use std::path::PathBuf;

use clap::Parser;
use homeostat_benches::informer::{Burst, Consume};
use mimalloc::MiMalloc;

mod compare;
mod controllers;
mod figures;
mod load;
mod parts;

use self::compare::Comparison;
use self::controllers::Controllers;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
enum Arguments {
    /// Runs all peers in turn and prints medians and ratios.
    Compare(Compare),
    /// Runs a `ReplicaSet` controller with all pods in its cache: ours, and
    /// kube-controller-manager's.
    Controllers(Controllers),
    /// Compares each part of an informer separately.
    CompareParts(parts::Compare),
    /// Measures our parts.
    Parts(parts::Ours),
    /// Measures the updates of a cache of 100,000 objects beside a thread that reads all of them.
    Readers,
    /// Keeps the server's pods with our informer, and prints the cost.
    Consume(Consume),
    /// Measures the memory of an informer before, during and after a burst of objects.
    Burst(Burst),
}

/// Options of the comparison.
#[derive(Debug, clap::Args)]
struct Compare {
    /// The Go program, built from `benches/peers/informer`.
    #[arg(long)]
    go: PathBuf,
    /// The program with kube-runtime, built from `benches/peers/kube-runtime`.
    #[arg(long)]
    kube_runtime: PathBuf,
    /// Number of rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Number of pods.
    #[arg(long, default_value_t = 100_000)]
    pods: u32,
    /// Consumers get one core of their own instead of all cores.
    #[arg(long)]
    one_core: bool,
    /// Only consumers whose names start with one of these; client-go's default always runs.
    #[arg(long)]
    only: Vec<String>,
    /// File for the figures of every run.
    #[arg(long, default_value = "target/peers/informer.jsonl")]
    raw: PathBuf,
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
        Arguments::Parts(arguments) => parts::ours(&arguments),
        Arguments::Readers => {
            parts::beside_readers();
            Ok(())
        }
        Arguments::Burst(arguments) => {
            print("| Pods | RSS MB | list µs |\n| ---: | ---: | ---: |");
            for moment in arguments.run()? {
                let list = moment.list.as_secs_f64() * 1e6;
                print(&format!("| {} | {:.0} | {list:.1} |", moment.pods, moment.rss));
            }
            Ok(())
        }
        Arguments::Consume(arguments) => {
            print(&serde_json::to_string(&arguments.run()?)?);
            Ok(())
        }
    }
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "a bench that takes minutes says how far it is")]
fn say(text: &str) {
    eprintln!("{text}");
}
