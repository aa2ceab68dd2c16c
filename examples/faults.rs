//! A `ReplicaSet` converges under every kind of fault.
//!
//! ```text
//! cargo run --example faults              # seed 1
//! cargo run --example faults -- --seed 7  # another run; the same each time
//! ```
//!
//! An API server, a kubelet, a garbage collector and the controller run in this process, in virtual
//! time: minutes take milliseconds. The example tears watches, expires history, loses replies,
//! restarts the server and kills the controller in the middle of its work. It prints each step,
//! then the trace of every fault. The exit code is not zero if the `ReplicaSet` does not converge.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::Parser;
use homeostat_faults::{ApiError, Calls, Chaos, CrashPoint, Lost};
use homeostat_scenarios::{Census, ReplicaSets, Running};
use homeostat_testing::{Simulation, in_virtual_time};
use tokio::time::Instant;

/// Injects faults between a `ReplicaSet` controller and its API server.
#[derive(Debug, Parser)]
struct Arguments {
    /// Seed of the run: the same seed gives the same run.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The cluster, and the `ReplicaSet` in it.
struct Play {
    simulation: Simulation,
    web: ReplicaSets,
    began: Instant,
}

/// Timeout of each step: longer than the longest back-off.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Longest time from the end of the partition to convergence: a request that was sent just before
/// its end takes 10 s to time out.
const RECOVERY: Duration = Duration::from_secs(12);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    in_virtual_time(async {
        let play = Play::new(arguments.seed);
        let outcome = play.run().await;
        print(&format!("\nThe trace of every fault:\n\n{}", play.simulation.faults().trace()));
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                print(&format!("failed: {error:#}"));
                ExitCode::FAILURE
            }
        }
    })
}

/// Prints to standard output.
#[expect(clippy::print_stdout, reason = "the output of the example")]
fn print(line: &str) {
    println!("{line}");
}

// === impl Play ===

impl Play {
    fn new(seed: u64) -> Self {
        let simulation = Simulation::start(seed);
        let web = ReplicaSets::named(simulation.user(), "web");
        Self { simulation, web, began: Instant::now() }
    }

    async fn run(&self) -> anyhow::Result<()> {
        let census = Census::start(self.simulation.user().clone(), "default").await?;
        let controller = Running::in_simulation(&self.simulation);
        self.lose_replies().await?;
        self.tear_watches().await?;
        self.expire_and_restart().await?;
        self.cut_off().await?;
        let controller = self.crash(controller).await?;
        self.chaos().await?;
        controller.stop().await?;
        let (ever, most) = (census.ever(), census.most_alive());
        print(&format!("\ncreated {ever} pods; at most {most} existed at the same time"));
        ensure!(most <= 14, "{most} pods at once are too many");
        Ok(())
    }

    async fn lose_replies(&self) -> anyhow::Result<()> {
        let faults = self.simulation.faults();
        faults.lose_reply(Calls::create("pods").by("controller").nth(2));
        faults.replace_reply(Calls::create("pods").by("controller").nth(4), ApiError::timeout());
        faults.lose_request(Calls::create("pods").by("controller").nth(5));
        let user = self.simulation.user().clone();
        faults.write_first(Calls::update("replicasets").subresource("status"), user);
        self.step(
            "5 replicas; two replies to creates and one create are lost, a status write conflicts",
        );
        self.web.create(5).await?;
        self.converged(5).await
    }

    async fn tear_watches(&self) -> anyhow::Result<()> {
        let faults = self.simulation.faults();
        self.step("12 replicas, while every watch of pods is torn, then ends with 410");
        self.web.scale(12).await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        faults.tear_watches(Calls::watch("pods").by("controller"));
        self.converged(12).await?;
        faults.expire_watches(Calls::watches().by("controller"));
        self.kill_one().await?;
        self.converged(12).await
    }

    async fn expire_and_restart(&self) -> anyhow::Result<()> {
        let server = self.simulation.server();
        self.step("a pod is killed while no event is delivered and history expires");
        let held = self.simulation.faults().hold_watches(Calls::watches().by("controller"));
        self.kill_one().await?;
        server.expire_history();
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(held);
        self.converged(12).await?;
        self.step("2 replicas; the server restarts, and its watch cache takes 3 s to fill");
        self.web.scale(2).await?;
        server.restart_slowly(Duration::from_secs(3));
        self.converged(2).await
    }

    async fn cut_off(&self) -> anyhow::Result<()> {
        self.step("8 replicas, while no reply reaches the controller for 20 s");
        let partition = self.simulation.faults().partition("controller", Lost::Replies);
        self.web.scale(8).await?;
        tokio::time::sleep(Duration::from_secs(20)).await;
        drop(partition);
        let healed = Instant::now();
        self.converged(8).await?;
        ensure!(healed.elapsed() <= RECOVERY, "{:?} after the partition", healed.elapsed());
        Ok(())
    }

    /// Crashes the controller, and returns its successor.
    async fn crash(&self, controller: Running) -> anyhow::Result<Running> {
        let faults = self.simulation.faults();
        let point = CrashPoint::After(faults.mutations("controller") + 3);
        self.step(&format!("0 replicas; the controller crashes {point}, a successor starts"));
        let crash = faults.crash_at("controller", point);
        self.web.scale(0).await?;
        tokio::time::timeout(TIMEOUT, crash.reached()).await?;
        drop(controller);
        let successor = Running::in_simulation(&self.simulation);
        self.converged(0).await?;
        Ok(successor)
    }

    async fn chaos(&self) -> anyhow::Result<()> {
        let faults = self.simulation.faults();
        self.step("10 replicas, while each request and each watch fails with probability 0.2");
        faults.chaos(Calls::any().by("controller"), Chaos::of(0.2));
        self.web.scale(10).await?;
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            self.kill_one().await?;
        }
        faults.heal();
        self.converged(10).await
    }

    async fn kill_one(&self) -> anyhow::Result<()> {
        let pods = self.web.pods().await?;
        match pods.first().and_then(|pod| pod.metadata.name.as_deref()) {
            Some(name) => self.web.kill(name).await,
            None => Ok(()),
        }
    }

    fn step(&self, what: &str) {
        print(&format!("{:>10.3} s  {what}", self.began.elapsed().as_secs_f64()));
    }

    async fn converged(&self, replicas: usize) -> anyhow::Result<()> {
        self.web.wait_for_replicas(replicas, TIMEOUT).await?;
        let now = self.began.elapsed().as_secs_f64();
        print(&format!("{now:>10.3} s      … and there are {replicas}, all ready"));
        Ok(())
    }
}
