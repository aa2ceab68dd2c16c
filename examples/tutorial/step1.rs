//! Step 1: installs the definition of Foo.

use std::time::Duration;

use clap::Parser;
use homeostat::cli::Flags;
use homeostat::{client, crd};
use homeostat_sample::Foo;
use kube::CustomResourceExt as _;

/// Installs the definition of Foo.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = Arguments::parse().flags.client(client::builder()).await?.build();
    crd::install(&client, &Foo::crd(), Duration::from_secs(60)).await?;
    Ok(())
}
