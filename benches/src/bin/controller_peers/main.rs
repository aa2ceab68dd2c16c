//! Compares a controller of Kubernetes with ours that replaces it. `benches/peers/replicaset.sh`,
//! `sample.sh`, `resourcequota.sh` and `resourceclaim.sh` run it.

mod replicaset;
mod resourceclaim;
mod resourcequota;
mod sample;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use homeostat_benches::controllers::{Leg, Peer, report};

#[derive(Debug, Parser)]
struct Arguments {
    /// The controller.
    controller: Controller,
    /// Our program.
    #[arg(long)]
    ours: PathBuf,
    /// The program of Kubernetes: kube-controller-manager, or the sample-controller.
    #[arg(long)]
    theirs: PathBuf,
    /// Number of rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Share of the full load in percent.
    #[arg(long, default_value_t = 100)]
    percent: usize,
    /// Measures the memory at rest beside 100,000 pods, of which 1 % have claims. Only for
    /// resourceclaim.
    #[arg(long)]
    at_rest: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Controller {
    Replicaset,
    Sample,
    Resourcequota,
    Resourceclaim,
}

#[tokio::main(worker_threads = 1)]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let peers = arguments.peers();
    if arguments.at_rest {
        let count = arguments.share(100_000);
        return resourceclaim::at_rest(&peers, arguments.rounds, count).await;
    }
    let mut legs = [Vec::new(), Vec::new()];
    for turn in 0..2 * arguments.rounds {
        // Theirs is first in the rounds 0, 2 and so on.
        let at = (turn + turn / 2) % 2;
        legs[at].push(arguments.measure(&peers[at]).await?);
    }
    let [theirs, ours] = legs;
    report(&theirs, &ours);
    Ok(())
}

// === impl Arguments ===

impl Arguments {
    /// Returns theirs and ours.
    fn peers(&self) -> [Peer; 2] {
        let Self { theirs, ours, .. } = self;
        match self.controller {
            Controller::Replicaset => [
                Peer::controller_manager(theirs, "replicaset-controller", &[]),
                Peer::ours("homeostat-replicaset", ours, &[]),
            ],
            Controller::Sample => {
                // The sample-controller has no flag for its request rate: it is built with it.
                let name = "sample-controller";
                let theirs = Peer { name, program: theirs.clone(), flags: Vec::new() };
                [theirs, Peer::ours("homeostat-sample", ours, &[])]
            }
            Controller::Resourcequota => {
                let period = &["--resource-quota-sync-period=0s"];
                [
                    Peer::controller_manager(theirs, "resourcequota-controller", period),
                    Peer::ours("homeostat-resourcequota", ours, period),
                ]
            }
            Controller::Resourceclaim => [
                Peer::controller_manager(theirs, "resourceclaim-controller", &[]),
                Peer::ours("homeostat-resourceclaim", ours, &[]),
            ],
        }
    }

    async fn measure(&self, peer: &Peer) -> anyhow::Result<Vec<(&'static str, Leg)>> {
        match self.controller {
            Controller::Replicaset => replicaset::measure(peer, self.share(1000)).await,
            Controller::Sample => sample::measure(peer, self.share(1000)).await,
            Controller::Resourcequota => resourcequota::measure(peer, self.share(100)).await,
            Controller::Resourceclaim => resourceclaim::measure(peer, self.share(1000)).await,
        }
    }

    /// Returns the share of the full load `count`.
    fn share(&self, count: usize) -> usize {
        (count * self.percent / 100).max(1)
    }
}
