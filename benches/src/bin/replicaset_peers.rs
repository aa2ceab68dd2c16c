//! The work of a `ReplicaSet` controller at 1,000 replicas, done by kube-controller-manager and by
//! `homeostat-replicaset` in turn. Run it through `benches/peers/replicaset.sh`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Parser;
use futures::TryStreamExt as _;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{
    Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use homeostat_apiserver::control_plane::ControlPlane;
use homeostat_benches::audit;
use homeostat_benches::process::Usage;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Longer than either takes by far; a peer that hangs must not hang the bench.
const DEADLINE: Duration = Duration::from_secs(180);

#[derive(Debug, Parser)]
struct Arguments {
    /// The program `homeostat-replicaset`.
    #[arg(long)]
    homeostat: PathBuf,
    /// The program `kube-controller-manager`.
    #[arg(long)]
    controller_manager: PathBuf,
    /// How often each of them runs.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many replicas.
    #[arg(long, default_value_t = 1000)]
    replicas: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    ControllerManager,
    Homeostat,
}

/// One way, up or down.
#[derive(Clone, Debug, Default)]
struct Leg {
    wall: f64,
    cpu: f64,
    peak_rss: f64,
    requests: BTreeMap<String, u64>,
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#[tokio::main(worker_threads = 1)]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut legs: BTreeMap<&str, Vec<[Leg; 2]>> = BTreeMap::new();
    for round in 0..arguments.rounds {
        let mut peers = [Peer::ControllerManager, Peer::Homeostat];
        if round % 2 == 1 {
            peers.reverse();
        }
        for peer in peers {
            let [up, down] = measure(peer, &arguments).await?;
            println!("round {round} {:<24} up   {}", peer.name(), line(&up));
            println!("round {round} {:<24} down {}", peer.name(), line(&down));
            legs.entry(peer.name()).or_default().push([up, down]);
        }
    }
    for (way, name) in ["up", "down"].into_iter().enumerate() {
        let of = |peer: Peer| median(legs[peer.name()].iter().map(|legs| &legs[way]));
        let (theirs, ours) = (of(Peer::ControllerManager), of(Peer::Homeostat));
        println!("\n{name}: medians of {} rounds", arguments.rounds);
        println!("  {:<24} {}", Peer::ControllerManager.name(), line(&theirs));
        println!("  {:<24} {}", Peer::Homeostat.name(), line(&ours));
        println!(
            "  ours / theirs            wall {:.2}  CPU {:.2}  peak RSS {:.2}  requests {:.2}",
            ours.wall / theirs.wall,
            ours.cpu / theirs.cpu,
            ours.peak_rss / theirs.peak_rss,
            total(&ours) / total(&theirs),
        );
    }
    Ok(())
}

/// Starts a control plane and a peer, asks for the replicas, and for none.
async fn measure(peer: Peer, arguments: &Arguments) -> anyhow::Result<[Leg; 2]> {
    let folder = tempfile::tempdir()?;
    let (policy, log) = (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
    std::fs::write(&policy, audit::POLICY)?;
    let plane = ControlPlane::builder()
        .api_server_arg(format!("--audit-policy-file={}", policy.display()))
        .api_server_arg(format!("--audit-log-path={}", log.display()))
        .start()
        .await?;
    let client = plane.client()?;
    let mut child = peer.start(arguments, plane.kubeconfig(), folder.path())?;
    let pid = child.id().context("the peer ended at once")?;
    let bench = Bench { client, pid, peer, log };

    // It works: everything that it does once (lists, watches, connections) has been done.
    bench.create("warm", 1).await?;
    bench.reaches("warm", 1).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let up =
        bench.leg(async || bench.create("bench", arguments.replicas).await, arguments.replicas);
    let up = up.await?;
    let down = bench.leg(async || bench.scale("bench", 0).await, 0).await?;
    child.start_kill()?;
    child.wait().await?;
    Ok([up, down])
}

struct Bench {
    client: Client,
    pid: u32,
    peer: Peer,
    log: PathBuf,
}

// === impl Bench ===

impl Bench {
    /// Measures from the request until the status shows its outcome and the pods are that many.
    async fn leg(
        &self,
        ask: impl AsyncFnOnce() -> anyhow::Result<()>,
        replicas: usize,
    ) -> anyhow::Result<Leg> {
        let (before, asked) = (Usage::of(self.pid)?, self.requests()?);
        let started = Instant::now();
        ask().await?;
        self.reaches("bench", replicas).await?;
        let wall = started.elapsed().as_secs_f64();
        let pods = Api::<Pod>::namespaced(self.client.clone(), "default");
        let found = pods.list_metadata(&ListParams::default().labels("app=bench")).await?;
        ensure!(found.items.len() == replicas, "{} pods, not {replicas}", found.items.len());
        // Events and the last status are written behind: they belong to the leg.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = Usage::of(self.pid)?;
        let mut requests = self.requests()?;
        for (what, count) in asked {
            requests.entry(what).and_modify(|all| *all -= count);
        }
        requests.retain(|_, count| *count > 0);
        Ok(Leg { wall, cpu: after.cpu() - before.cpu(), peak_rss: after.peak_rss, requests })
    }

    fn requests(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        audit::requests(&self.log, self.peer.name())
    }

    async fn create(&self, name: &str, replicas: usize) -> anyhow::Result<()> {
        let labels = json!({ "app": name });
        let set: ReplicaSet = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "main", "image": "pause" }] },
                },
            },
        }))?;
        self.sets().create(&PostParams::default(), &set).await?;
        Ok(())
    }

    async fn scale(&self, name: &str, replicas: usize) -> anyhow::Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.sets().patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits, by a watch of this one object, until its status says so.
    async fn reaches(&self, name: &str, replicas: usize) -> anyhow::Result<()> {
        let done = |set: &ReplicaSet| {
            let status = set.status.clone().unwrap_or_default();
            status.observed_generation == set.metadata.generation
                && usize::try_from(status.replicas) == Ok(replicas)
        };
        let late = || format!("{name} did not reach {replicas} in {DEADLINE:?}");
        let reached = tokio::time::timeout(DEADLINE, self.watch_until(name, done));
        reached.await.with_context(late)?
    }

    async fn watch_until(
        &self,
        name: &str,
        done: impl Fn(&ReplicaSet) -> bool,
    ) -> anyhow::Result<()> {
        let set = self.sets().get(name).await?;
        if done(&set) {
            return Ok(());
        }
        let version = set.metadata.resource_version.unwrap_or_default();
        let only = WatchParams::default().fields(&format!("metadata.name={name}"));
        let stream = self.sets().watch(&only, &version).await?;
        let mut stream = std::pin::pin!(stream);
        while let Some(event) = stream.try_next().await? {
            if matches!(&event, WatchEvent::Modified(set) if done(set)) {
                return Ok(());
            }
        }
        anyhow::bail!("the watch of {name} ended")
    }

    fn sets(&self) -> Api<ReplicaSet> {
        Api::namespaced(self.client.clone(), "default")
    }
}

// === impl Peer ===

impl Peer {
    /// The program's name, with which its user agent begins, too.
    fn name(self) -> &'static str {
        match self {
            Self::ControllerManager => "kube-controller-manager",
            Self::Homeostat => "homeostat-replicaset",
        }
    }

    /// Both get the budget of requests that lets the machinery show.
    fn start(self, arguments: &Arguments, kubeconfig: &Path, logs: &Path) -> anyhow::Result<Child> {
        let program = match self {
            Self::ControllerManager => &arguments.controller_manager,
            Self::Homeostat => &arguments.homeostat,
        };
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(kubeconfig);
        command.args(["--kube-api-qps=1000", "--kube-api-burst=2000"]);
        if self == Self::ControllerManager {
            command.args([
                "--controllers=replicaset-controller",
                "--leader-elect=false",
                "--secure-port=0",
                "--use-service-account-credentials=false",
            ]);
        }
        let log = std::fs::File::create(logs.join("peer.log"))?;
        command.stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        command.spawn().with_context(|| format!("starting {}", program.display()))
    }
}

fn median<'a>(legs: impl Iterator<Item = &'a Leg>) -> Leg {
    let legs: Vec<_> = legs.collect();
    let middle = |value: fn(&Leg) -> f64| {
        let mut values: Vec<_> = legs.iter().map(|leg| value(leg)).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Leg {
        wall: middle(|leg| leg.wall),
        cpu: middle(|leg| leg.cpu),
        peak_rss: middle(|leg| leg.peak_rss),
        requests: legs.last().map(|leg| leg.requests.clone()).unwrap_or_default(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand requests are exact in an f64")]
fn total(leg: &Leg) -> f64 {
    leg.requests.values().sum::<u64>() as f64
}

fn line(leg: &Leg) -> String {
    let Leg { wall, cpu, peak_rss, requests } = leg;
    let requests: Vec<_> = requests.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let requests = requests.join(", ");
    format!("wall {wall:.2} s  CPU {cpu:.2} s  peak RSS {peak_rss:.0} MB  requests: {requests}")
}
