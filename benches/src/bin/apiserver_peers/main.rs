//! The embedded API server and a real one under the same load, in turn; and what the embedded one does alone, in
//! process. Run it through `benches/peers/apiserver.sh`.

#![expect(clippy::print_stdout, reason = "the figures are what the program is for")]

use std::path::PathBuf;

use clap::Parser;

mod alone;
mod compare;

#[derive(Debug, Parser)]
enum Arguments {
    /// Asks both servers the same over TCP, in turn, and prints rates and ratios.
    Compare(Compare),
    /// Prints what the embedded server does in process, on one core.
    Alone,
    /// Stores pods of 12 kB until there are so many, and prints the memory that took.
    Memory {
        #[arg(long, default_value_t = 100_000)]
        pods: u64,
    },
}

/// What to compare.
#[derive(Debug, clap::Args)]
struct Compare {
    /// The program `homeostat-apiserver`.
    #[arg(long)]
    ours: PathBuf,
    /// How often each server runs.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Requests of each kind; a hundredth of it are lists.
    #[arg(long, default_value_t = 2_000)]
    requests: u32,
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse() {
        Arguments::Compare(arguments) => compare::run(&arguments),
        Arguments::Alone => alone::run(),
        Arguments::Memory { pods } => alone::memory(pods),
    }
}
