//! The command line of the `ResourceQuota` controller.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use homeostat::cli::{Flags, Program, at_least_one, parse_duration};
use homeostat_resourcequota::{FeatureGates, GateError, Options, manager};

/// Kubernetes' ResourceQuota controller. It replaces the one in kube-controller-manager: start that
/// with --controllers=*,-resourcequota-controller.
#[derive(Debug, Parser)]
#[expect(clippy::doc_markdown, reason = "these comments are the text of --help")]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,

    /// Period of the recount of all quotas. 0s or less disables it.
    #[arg(long, value_name = "DURATION", default_value = "5m0s", value_parser = period)]
    #[arg(allow_hyphen_values = true)]
    resource_quota_sync_period: Period,

    /// Number of quotas recounted concurrently, for each of the two queues.
    #[arg(long, visible_alias = "workers", value_name = "N", default_value_t = 5)]
    #[arg(value_parser = at_least_one, allow_negative_numbers = true)]
    concurrent_resource_quota_syncs: usize,

    /// Feature gates as Name=true or Name=false, separated by commas. PodLevelResources,
    /// PodLevelResourcesFixKubeletQOSClass and AllBeta have an effect. The flag may be repeated.
    #[arg(long, value_name = "LIST", value_parser = list_of_gates)]
    feature_gates: Vec<String>,
}

/// A period; `None` for 0 and less.
#[derive(Debug, Clone, Copy)]
struct Period(Option<Duration>);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(error) = arguments.flags.all_namespaces() {
        error.exit();
    }
    let program = Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    program.run(&arguments.flags, async |client| Ok(manager(client, arguments.options()?)))
}

// === impl Arguments ===

impl Arguments {
    fn options(&self) -> Result<Options, GateError> {
        Ok(Options {
            workers: self.concurrent_resource_quota_syncs,
            sync_period: self.resource_quota_sync_period.0,
            gates: self.feature_gates.join(",").parse()?,
            ..Options::default()
        })
    }
}

fn period(text: &str) -> Result<Period, String> {
    let (is_negative, size) = match text.strip_prefix('-') {
        Some(size) => (true, size),
        None => (false, text),
    };
    let period = parse_duration(size).map_err(|error| error.to_string())?;
    Ok(Period(Some(period).filter(|period| !is_negative && !period.is_zero())))
}

fn list_of_gates(list: &str) -> Result<String, GateError> {
    list.parse::<FeatureGates>().map(|_| list.to_owned())
}
