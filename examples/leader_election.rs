//! Two replicas compete for a lease; the leader is paused, and continues too late.
//!
//! ```text
//! cargo run --example leader_election                      # on the embedded API server
//! cargo run --example leader_election -- --control-plane   # on a real kube-apiserver
//! ```
//!
//! Each replica is a process of its own that counts in a `ConfigMap` while it leads. The example
//! stops the leader with SIGSTOP, waits until the other one counts, and resumes it. It ends with an
//! error if a replica wrote without the lease.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use homeostat::kube_client::Client;
use homeostat_apiserver::ApiServer;
use homeostat_scenarios::election::{History, Replica, Signal, run_if_replica};
use homeostat_testing::control_plane::ControlPlane;
use homeostat_testing::in_real_time;

/// Shows two replicas and one lease.
#[derive(Debug, Parser)]
struct Arguments {
    /// Use a real etcd and kube-apiserver instead of the embedded API server.
    #[arg(long)]
    control_plane: bool,
}

#[expect(clippy::print_stderr, reason = "the error of a replica is part of the example")]
fn main() -> anyhow::Result<ExitCode> {
    if let Some(outcome) = run_if_replica() {
        let Err(error) = outcome else { return Ok(ExitCode::SUCCESS) };
        eprintln!("{error:#}");
        return Ok(ExitCode::FAILURE);
    }
    let arguments = Arguments::parse();
    in_real_time(async {
        if arguments.control_plane {
            let plane = ControlPlane::start().await?;
            show(&plane.client()?, plane.kubeconfig()).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let server = ApiServer::new();
        let listener = server.listen(([127, 0, 0, 1], 0).into()).await?;
        let mut kubeconfig = tempfile::NamedTempFile::new()?;
        kubeconfig.write_all(listener.kubeconfig().as_bytes())?;
        show(&server.client(), kubeconfig.path()).await?;
        Ok(ExitCode::SUCCESS)
    })
}

#[expect(clippy::print_stdout, reason = "what the example shows is its output")]
async fn show(user: &Client, kubeconfig: &Path) -> anyhow::Result<()> {
    let history = History::follow(user).await?;
    let mut blue = Replica::start(kubeconfig, "blue")?;
    history.counts("blue").await?;
    println!("blue leads");
    let mut green = Replica::start(kubeconfig, "green")?;

    blue.signal(Signal::Pause)?;
    println!("blue is paused (SIGSTOP), in the middle of its work");
    history.counts("green").await?;
    println!("green leads: blue's lease has expired");

    blue.signal(Signal::Resume)?;
    let status = blue.ended().await?;
    println!("blue is resumed: its writes are refused, and it ends ({status})");

    green.signal(Signal::Terminate)?;
    green.ended().await?;
    println!("green ends in order and releases the lease");
    let writes = history.check()?;
    println!("{writes} writes, each by the holder of the lease at that revision");
    Ok(())
}
