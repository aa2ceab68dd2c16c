//! Compares the embedded API server with a real one under the same load, in turn, and measures the
//! embedded one alone, in process. `benches/peers/apiserver.sh` runs it.

#![expect(clippy::print_stdout, reason = "the figures are what the program is for")]

use std::path::PathBuf;

use clap::Parser;
use homeostat_benches::apiserver::Verb;

mod alone;
mod compare;
mod program;

#[derive(Debug, Parser)]
enum Arguments {
    /// Sends both servers the same requests over TCP, in turn, and prints rates and ratios.
    Compare(Compare),
    /// Prints the rates of the embedded server in process, on one core.
    Alone,
    /// Sends the embedded server requests of one kind, in process, for a profiler.
    Requests {
        verb: Verb,
        #[arg(default_value_t = 10_000)]
        count: u64,
    },
    /// Stores this number of pods of 12 kB, and prints the memory that they take.
    Memory {
        #[arg(long, default_value_t = 100_000)]
        pods: u64,
    },
}

/// Options of the comparison.
#[derive(Debug, clap::Args)]
struct Compare {
    /// The program `homeostat-apiserver`.
    #[arg(long)]
    ours: PathBuf,
    /// Number of rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Number of requests of each kind; of lists a hundredth of it.
    #[arg(long, default_value_t = 2_000)]
    requests: u32,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse() {
        Arguments::Compare(arguments) => compare::run(&arguments),
        Arguments::Alone => alone::run(),
        Arguments::Requests { verb, count } => alone::requests(verb, count),
        Arguments::Memory { pods } => alone::memory(pods),
    }
}
