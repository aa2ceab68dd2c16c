//! Memory of an idle `ReplicaSet` controller that has all pods in its cache: ours, and
//! kube-controller-manager's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use homeostat_benches::process::Usage;
use serde_json::json;

use super::figures::median;
use super::load::LoadServer;
use super::{print, say};

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(super) struct Controllers {
    /// The Go program, built from `benches/peers/informer`.
    #[arg(long)]
    go: PathBuf,
    /// The program `homeostat-replicaset`.
    #[arg(long)]
    homeostat: PathBuf,
    /// The program `kube-controller-manager`.
    #[arg(long)]
    controller_manager: PathBuf,
    /// Number of rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Number of pods.
    #[arg(long, default_value_t = 100_000)]
    pods: u32,
}

/// A program that is killed when the value is dropped.
struct Running(Child);

/// Target: the highest ratio of our peak memory to theirs.
const WANTED: f64 = 0.2;

/// A controller that uses at most 1 % of a core for this number of seconds is idle.
const QUIET: usize = 5;

pub(super) fn compare(arguments: &Controllers) -> anyhow::Result<()> {
    let server = LoadServer::start(&arguments.go, arguments.pods)?;
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("config.json");
    fs::write(&config, kubeconfig(&server.url))?;
    let mut usages = [Vec::new(), Vec::new()];
    let programs = [&arguments.controller_manager, &arguments.homeostat];
    for round in 0..arguments.rounds {
        for turn in 0..programs.len() {
            let which = (round + turn) % programs.len();
            let usage = measure(programs[which], which == 0, &config, &server)?;
            let (program, cpu, peak) = (programs[which].display(), usage.cpu(), usage.peak_rss);
            say(&format!("round {round} {program}: CPU {cpu:.1} s, peak RSS {peak:.0} MB"));
            usages[which].push(usage);
        }
    }
    let of = |which: usize, figure: fn(&Usage) -> f64| {
        median(usages[which].iter().map(figure).collect())
    };
    let [theirs, ours] = [0, 1].map(|which| (of(which, |it| it.peak_rss), of(which, Usage::cpu)));
    let pods = arguments.pods;
    let ratio = ours.0 / theirs.0;
    let verdict = if ratio <= WANTED { "met" } else { "missed" };
    print(&format!(
        "| A ReplicaSet controller with {pods} pods | peak RSS MB | CPU s |\n\
         | --- | ---: | ---: |\n\
         | kube-controller-manager | {:.0} | {:.1} |\n| homeostat-replicaset | {:.0} | {:.1} |\n\
         | ratio (peak RSS wanted: ≤ {WANTED}, {verdict}) | {ratio:.2} | {:.2} |",
        theirs.0,
        theirs.1,
        ours.0,
        ours.1,
        ours.1 / theirs.1,
    ));
    Ok(())
}

/// Runs a controller until it has all pods and is idle.
#[expect(clippy::disallowed_methods, reason = "there is no runtime here that it could hold up")]
fn measure(
    program: &Path,
    manager: bool,
    kubeconfig: &Path,
    server: &LoadServer,
) -> anyhow::Result<Usage> {
    let before = server.settle()?;
    let mut command = Command::new("taskset");
    command.args(["-c", "0,1"]).arg(program).arg("--kubeconfig").arg(kubeconfig);
    if manager {
        command.args([
            "--controllers=replicaset-controller",
            "--leader-elect=false",
            "--secure-port=0",
            "--use-service-account-credentials=false",
            "--kube-api-content-type=application/vnd.kubernetes.protobuf",
        ]);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(command.spawn().context("starting a controller")?);
    let pid = running.0.id();
    let mut quiet = 0;
    let mut last = f64::INFINITY;
    for _ in 0..180 {
        std::thread::sleep(Duration::from_secs(1));
        if let Some(status) = running.0.try_wait()? {
            bail!("{} ended: {status}", program.display());
        }
        let (usage, status) = (Usage::of(pid)?, server.status()?);
        let whole = status.pods.whole > before.pods.whole
            && status.replicasets.whole > before.replicasets.whole;
        quiet = if whole && usage.cpu() - last <= 0.01 { quiet + 1 } else { 0 };
        last = usage.cpu();
        if quiet == QUIET {
            return Ok(usage);
        }
    }
    bail!("{} has not become quiet: {:?}", program.display(), server.status()?)
}

fn kubeconfig(server: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "load", "cluster": { "server": server } }],
        "users": [{ "name": "load", "user": {} }],
        "contexts": [{ "name": "load", "context": { "cluster": "load", "user": "load" } }],
        "current-context": "load",
    })
    .to_string()
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
