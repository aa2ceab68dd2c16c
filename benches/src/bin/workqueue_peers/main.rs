//! Compares our queue with client-go's and controller-runtime's: each in turn does the same work.
//! `benches/peers/workqueue.sh` runs it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::{Parser, ValueEnum};
use homeostat_benches::workqueue::{Key, Keys, Work, Workload};
use homeostat_informer::ObjectKey;
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

mod compare;

use self::compare::Comparison;

/// Number of passes that warm up; their results are checked.
const WARM_UP: usize = 2;
/// Fewest measured passes, however long they take.
const MIN_PASSES: usize = 3;

#[derive(Debug, Parser)]
enum Arguments {
    /// Runs all peers in turn and prints medians and ratios.
    Compare {
        /// The Go program, built from `benches/peers/workqueue`.
        #[arg(long)]
        go: PathBuf,
        /// Number of rounds.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Number of keys in a pass.
        #[arg(long, default_value_t = 100_000)]
        keys: usize,
        /// Only these workloads.
        #[arg(long)]
        only: Vec<Workload>,
        /// File for the figures of every pass.
        #[arg(long, default_value = "target/peers/workqueue.jsonl")]
        raw: PathBuf,
    },
    /// Does one workload on our queue, and prints the time.
    Work(Ours),
}

#[derive(Debug, clap::Args)]
struct Ours {
    #[arg(long)]
    workload: Workload,
    #[arg(long)]
    kind: KeyKind,
    /// Number of keys in a pass.
    #[arg(long, default_value_t = 100_000)]
    keys: usize,
    /// Duration of the measured passes in milliseconds.
    #[arg(long, default_value_t = 300)]
    budget: u64,
}

/// The type of our keys. They are made before the clock starts or while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum KeyKind {
    /// `String`s made before the clock starts, as in Go. The queue frees them while it runs.
    String,
    /// `String`s that are cloned (and so allocated) while the clock runs.
    StringCloned,
    /// `ObjectKey`s cloned while the clock runs, as Go copies the header of a string.
    ObjectKey,
}

/// Report of a program about one workload.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    wall_ns: Vec<u64>,
    cpu_ns: Vec<u64>,
    handed_out: Vec<usize>,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse() {
        Arguments::Compare { go, rounds, keys, only, raw } => {
            let mut comparison = Comparison::new(go, keys, only);
            for round in 0..rounds {
                comparison.round(round)?;
            }
            comparison.save(&raw)?;
            print(&comparison.table()?);
            print(&format!("what every pass took: {}", raw.display()));
            Ok(())
        }
        Arguments::Work(ours) => match ours.kind {
            KeyKind::String => work(&ours, &Keys::<String>::new(ours.keys, false)),
            KeyKind::StringCloned => work(&ours, &Keys::<String>::new(ours.keys, true)),
            KeyKind::ObjectKey => work(&ours, &Keys::<ObjectKey<Pod>>::new(ours.keys, true)),
        },
    }
}

/// Does one workload on our queue, as `benches/peers/workqueue/main.go` does on the others.
#[tokio::main(worker_threads = 2)]
async fn work<K: Key + Ord>(ours: &Ours, keys: &Keys<K>) -> anyhow::Result<()> {
    let mut work = Work::new(ours.workload, keys.clone());
    let mut expected = keys.as_slice().to_vec();
    expected.sort();
    for _ in 0..WARM_UP {
        let mut seen = work.pass(true).await.seen;
        seen.sort();
        ensure!(seen.is_empty() || seen == expected, "not every key was handed out once");
    }
    let mut report = Report { wall_ns: Vec::new(), cpu_ns: Vec::new(), handed_out: Vec::new() };
    let budget = Duration::from_millis(ours.budget);
    let start = Instant::now();
    while report.wall_ns.len() < MIN_PASSES || start.elapsed() < budget {
        let pass = work.pass(false).await;
        report.wall_ns.push(u64::try_from(pass.took.wall.as_nanos())?);
        report.cpu_ns.push(u64::try_from(pass.took.cpu.as_nanos())?);
        report.handed_out.push(pass.handed_out);
    }
    print(&serde_json::to_string(&report)?);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn print(text: &str) {
    println!("{text}");
}
