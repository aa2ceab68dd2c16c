//! The command line of the controllers of `ReplicaSet`s and `ReplicationController`s.

use std::process::ExitCode;

use clap::Parser;
use homeostat::cli::{Flags, Program, at_least_one};
use homeostat_replicaset::{Controllers, FeatureGates, GateError, HISTOGRAMS, Options, manager};
use mimalloc::MiMalloc;

/// With it the program takes 8 % fewer instructions than with the system's allocator. Its feature
/// `no_thp` asks for no huge pages, which take 18 MB more (of 26) beside 3,000 pods.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Kubernetes' controllers of ReplicaSets and ReplicationControllers. They replace those in
/// kube-controller-manager: start that with --controllers=*,-replicaset-controller.
#[derive(Debug, Parser)]
#[expect(clippy::doc_markdown, reason = "these comments are the text of --help")]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,

    /// Controllers that run, separated by commas: replicaset, replicationcontroller, or * for both.
    /// -NAME leaves one out. kube-controller-manager must not run the same ones.
    #[arg(long, value_name = "LIST", default_value = "replicaset", allow_hyphen_values = true)]
    controllers: Controllers,

    /// Number of ReplicaSets reconciled concurrently.
    #[arg(long, visible_alias = "concurrent-replicaset-syncs", value_name = "N")]
    #[arg(default_value_t = 5, value_parser = at_least_one, allow_negative_numbers = true)]
    workers: usize,

    /// Number of ReplicationControllers reconciled concurrently.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    #[arg(allow_negative_numbers = true)]
    concurrent_rc_syncs: usize,

    /// Maximum number of pods that one pass creates or deletes.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = at_least_one)]
    #[arg(allow_negative_numbers = true)]
    burst_replicas: usize,

    /// Feature gates as Name=true or Name=false, separated by commas. PodDeletionCost,
    /// DeploymentReplicaSetTerminatingReplicas, StaleControllerConsistencyReplicaSet and AllBeta
    /// have an effect. The flag may be repeated.
    #[arg(long, value_name = "LIST", value_parser = list_of_gates)]
    feature_gates: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let program = Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let program =
        HISTOGRAMS.iter().fold(program, |it, (name, buckets)| it.histogram(name, buckets));
    program.run(&arguments.flags, async |client| Ok(manager(client, &arguments.options()?)))
}

// === impl Arguments ===

impl Arguments {
    fn options(&self) -> Result<Options, GateError> {
        Ok(Options {
            controllers: self.controllers,
            workers: self.workers,
            rc_workers: self.concurrent_rc_syncs,
            burst_replicas: self.burst_replicas,
            namespaces: self.flags.sorted_namespaces(),
            gates: self.feature_gates.join(",").parse()?,
            ..Options::default()
        })
    }
}

fn list_of_gates(list: &str) -> Result<String, GateError> {
    list.parse::<FeatureGates>().map(|_| list.to_owned())
}
