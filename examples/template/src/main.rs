//! The command line of the controller.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use greeting_controller::{Greeting, Options, manager};
use homeostat::cli::{Flags, Program, at_least_one};
use homeostat::crd;
use kube::CustomResourceExt as _;

/// The time that the server has to serve the definition.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Publishes each Greeting as a ConfigMap.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,

    /// Install the definition of Greeting first.
    #[arg(long)]
    install_crd: bool,

    /// Number of Greetings reconciled concurrently.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = at_least_one)]
    #[arg(allow_negative_numbers = true)]
    workers: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let program = Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    program.run(&arguments.flags, async |client| {
        if arguments.install_crd {
            crd::install(&client, &Greeting::crd(), INSTALL_TIMEOUT).await?;
        }
        let options = Options { workers: arguments.workers, ..Options::default() };
        Ok(manager(client, &options))
    })
}
