//! Keeps the load server's pods with our informer and the system's allocator, and prints the cost.
//! `informer_peers compare` runs it.

use clap::Parser;
use homeostat_benches::informer::Consume;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    consume: Consume,
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
fn main() -> anyhow::Result<()> {
    let report = Arguments::parse().consume.run()?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}
