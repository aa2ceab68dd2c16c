//! Prints the definition of Foo for `kubectl apply -f -`, or installs it.
//!
//! ```text
//! cargo run --example foo_crd | kubectl apply -f -
//! cargo run --example foo_crd -- --install --kubeconfig F
//! ```

use std::time::Duration;

use clap::Parser;
use homeostat::cli::Flags;
use homeostat::{client, crd};
use homeostat_sample::Foo;
use kube::CustomResourceExt as _;

/// Prints the definition of Foo as JSON, or installs it.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// Install the definition in the cluster of the flags, and wait until it is served.
    #[arg(long)]
    install: bool,
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "the output of the example")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.install {
        let client = arguments.flags.client(client::builder()).await?.build();
        crd::install(&client, &Foo::crd(), Duration::from_secs(60)).await?;
    } else {
        println!("{}", serde_json::to_string_pretty(&Foo::crd())?);
    }
    Ok(())
}
