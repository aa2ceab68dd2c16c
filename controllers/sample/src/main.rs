//! The command line of the sample controller.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use homeostat::cli::{Flags, Program, at_least_one, parse_duration};
use homeostat::crd;
use homeostat_sample::{Foo, Options, manager};
use kube::CustomResourceExt as _;

/// The time that the server has to serve the definition.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Kubernetes' sample-controller: a Deployment of nginx for each Foo.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,

    /// Install the definition of Foo first. Without it, apply deploy/crd.yaml.
    #[arg(long)]
    install_crd: bool,

    /// Number of Foos reconciled concurrently.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = at_least_one)]
    #[arg(allow_negative_numbers = true)]
    workers: usize,

    /// Period after which each Foo is reconciled again without a change.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    resync: Duration,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let namespace = arguments.flags.at_most_one_namespace().unwrap_or_else(|error| error.exit());
    let program = Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    program.run(&arguments.flags, async |client| {
        if arguments.install_crd {
            crd::install(&client, &Foo::crd(), INSTALL_TIMEOUT).await?;
        }
        Ok(manager(client, &arguments.options(namespace)))
    })
}

// === impl Arguments ===

impl Arguments {
    fn options(&self, namespace: Option<String>) -> Options {
        Options { workers: self.workers, resync: self.resync, namespace, ..Options::default() }
    }
}
