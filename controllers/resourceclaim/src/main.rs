//! The command line of the `ResourceClaim` controller.

use std::process::ExitCode;

use clap::Parser;
use homeostat::cli::{Flags, Program, at_least_one};
use homeostat_resourceclaim::{FeatureGates, GateError, MetricNames, Options, manager};

/// Kubernetes' ResourceClaim controller. It replaces the one in kube-controller-manager: start that
/// with --controllers=*,-resourceclaim-controller.
#[derive(Debug, Parser)]
#[expect(clippy::doc_markdown, reason = "these comments are the text of --help")]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,

    /// Number of pods and claims reconciled concurrently.
    #[arg(long, visible_alias = "concurrent-resourceclaim-syncs", value_name = "N")]
    #[arg(default_value_t = 50, value_parser = at_least_one, allow_negative_numbers = true)]
    workers: usize,

    /// Feature gates as Name=true or Name=false, separated by commas. DRAAdminAccess and
    /// DRAPrioritizedList have an effect; both are on by default. The flag may be repeated.
    #[arg(long, value_name = "LIST", value_parser = list_of_gates)]
    feature_gates: Vec<String>,

    /// Also serve the metrics under the names of Kubernetes 1.36, with the prefix
    /// resourceclaim_controller.
    #[arg(long)]
    metrics_of_1_36: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let namespace = arguments.flags.at_most_one_namespace().unwrap_or_else(|error| error.exit());
    let program = Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    program.run(&arguments.flags, async |client| {
        let options = Options { namespace, ..arguments.options()? };
        Ok(manager(client, options))
    })
}

// === impl Arguments ===

impl Arguments {
    fn options(&self) -> Result<Options, GateError> {
        Ok(Options {
            workers: self.workers,
            gates: self.feature_gates.join(",").parse()?,
            metric_names: MetricNames { also_1_36: self.metrics_of_1_36 },
            ..Options::default()
        })
    }
}

fn list_of_gates(list: &str) -> Result<String, GateError> {
    list.parse::<FeatureGates>().map(|_| list.to_owned())
}
