//! Our `ReplicaSet` controller beside upstream's controllers on a real server: rollouts of the
//! Deployment controller, the garbage collector and the namespace controller, driven by kubectl.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::client;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, ListParams};
use homeostat_apiserver::cluster::Kubelet;
use homeostat_replicaset::Options;
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use homeostat_testing::in_real_time;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use libtest_mimic::{Arguments, Trial};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The controllers of kube-controller-manager that run: all that a Deployment needs but ours.
const CONTROLLERS: &str = "--controllers=deployment-controller,garbage-collector-controller,\
                           namespace-controller,serviceaccount-controller";

/// The timeout of a step on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

const REPLICA_SET: &str = "
apiVersion: apps/v1
kind: ReplicaSet
metadata: { name: orphans }
spec:
  replicas: 3
  selector: { matchLabels: { app: orphans } }
  template:
    metadata: { labels: { app: orphans } }
    spec: { containers: [{ name: main, image: registry.k8s.io/pause:3.10 }] }
";

fn main() -> ExitCode {
    let programs = Programs::find();
    let name = "upstream's controllers work on ours (real kube-apiserver)";
    let is_missing = programs.is_none();
    let trial = Trial::test(name, move || {
        let programs = programs.context("kube-controller-manager is missing")?;
        Ok(in_real_time(play(&programs))?)
    });
    let trials = vec![trial.with_ignored_flag(is_missing)];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The programs that are built beside kube-apiserver.
struct Programs {
    controller_manager: PathBuf,
    kubectl: PathBuf,
}

/// A process that is killed with its test.
struct Running(Child);

/// kubectl for one server.
struct Kubectl<'a> {
    program: &'a Path,
    kubeconfig: &'a Path,
}

// === impl Programs ===

impl Programs {
    fn find() -> Option<Self> {
        if Binaries::missing_for_tests().is_some() {
            return None;
        }
        let beside = Binaries::find().ok()?.kube_apiserver;
        let controller_manager = beside.with_file_name("kube-controller-manager");
        let kubectl = beside.with_file_name("kubectl");
        let all = controller_manager.is_file() && kubectl.is_file();
        assert!(
            all || !Binaries::is_required(),
            "a program is missing beside {}",
            beside.display()
        );
        all.then_some(Self { controller_manager, kubectl })
    }
}

// === impl Running ===

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

// === impl Kubectl ===

impl Kubectl<'_> {
    /// Runs a command of words without spaces.
    async fn run(&self, line: &str) -> anyhow::Result<()> {
        self.run_with(line, "").await
    }

    async fn run_with(&self, line: &str, input: &'static str) -> anyhow::Result<()> {
        let mut command = Command::new(self.program);
        command.arg("--kubeconfig").arg(self.kubeconfig).args(line.split(' '));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // Our controller and the kubelet run on this thread.
        let ended = tokio::task::spawn_blocking(move || {
            let mut child = command.spawn()?;
            if let Some(mut stdin) = child.stdin.take() {
                std::io::Write::write_all(&mut stdin, input.as_bytes())?;
            }
            child.wait_with_output()
        });
        let output = ended.await??;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {line}: {said}");
        Ok(())
    }
}

async fn play(programs: &Programs) -> anyhow::Result<()> {
    let plane = ControlPlane::start().await?;
    let mut command = Command::new(&programs.controller_manager);
    command.arg("--kubeconfig").arg(plane.kubeconfig()).arg(CONTROLLERS);
    command.args(["--leader-elect=false", "--secure-port=0"]);
    let _upstream = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let user = client::builder().qps(0.0).config(plane.config())?.build();
    let _kubelet = Kubelet::start(user.clone());
    let mut ours = JoinSet::new();
    let client = client::builder().qps(100.0).burst(200).config(plane.config())?.build();
    ours.spawn(homeostat_replicaset::run(client, Options::default(), std::future::pending()));

    let kubectl = Kubectl { program: &programs.kubectl, kubeconfig: plane.kubeconfig() };
    tokio::select! {
        ended = ours.join_next() => anyhow::bail!("our controller ended: {ended:?}"),
        played = scenes(&kubectl, &user) => played,
    }
}

async fn scenes(kubectl: &Kubectl<'_>, user: &Client) -> anyhow::Result<()> {
    rollouts(kubectl, user).await.context("rollouts")?;
    orphans(kubectl, user).await.context("orphans")?;
    namespace(kubectl, user).await.context("namespace")
}

/// `kubectl scale`, `rollout restart` and `rollout undo`, then a deletion in the foreground.
async fn rollouts(kubectl: &Kubectl<'_>, user: &Client) -> anyhow::Result<()> {
    kubectl.run("create deployment web --image=registry.k8s.io/pause:3.10 --replicas=4").await?;
    let finished = || kubectl.run("rollout status deployment/web --timeout=120s");
    finished().await?;
    kubectl.run("scale deployment/web --replicas=7").await?;
    finished().await?;
    ensure!(pods(user, "default", "web").await?.len() == 7, "scaled to 7");
    for command in ["rollout restart deployment/web", "rollout undo deployment/web"] {
        let before = pods(user, "default", "web").await?;
        kubectl.run(command).await?;
        finished().await?;
        let is_replaced = |now: &BTreeSet<String>| now.len() == 7 && now.is_disjoint(&before);
        wait_for_pods(user, "default", "web", is_replaced).await.context(command)?;
    }
    kubectl.run("delete deployment web --cascade=foreground --timeout=120s").await?;
    wait_for_pods(user, "default", "web", BTreeSet::is_empty).await?;
    let sets = Api::<ReplicaSet>::namespaced(user.clone(), "default");
    ensure!(sets.list(&ListParams::default()).await?.items.is_empty(), "ReplicaSets are left");
    Ok(())
}

/// Upstream's garbage collector leaves the pods of a set that is deleted with `orphan`.
async fn orphans(kubectl: &Kubectl<'_>, user: &Client) -> anyhow::Result<()> {
    kubectl.run_with("create -f -", REPLICA_SET).await?;
    let three = |now: &BTreeSet<String>| now.len() == 3;
    wait_for_pods(user, "default", "orphans", three).await?;
    let before = pods(user, "default", "orphans").await?;
    kubectl.run("delete replicaset orphans --cascade=orphan --timeout=120s").await?;
    kubectl.run_with("create -f -", REPLICA_SET).await?;
    kubectl
        .run("wait replicaset/orphans --for=jsonpath={.status.readyReplicas}=3 --timeout=120s")
        .await?;
    let after = pods(user, "default", "orphans").await?;
    ensure!(before == after, "orphans are adopted: {before:?}, {after:?}");
    kubectl.run("delete replicaset orphans --cascade=background --timeout=120s").await?;
    wait_for_pods(user, "default", "orphans", BTreeSet::is_empty).await
}

async fn namespace(kubectl: &Kubectl<'_>, user: &Client) -> anyhow::Result<()> {
    kubectl.run("create namespace shop").await?;
    // The server admits pods once the namespace has its service account.
    let image = "--image=registry.k8s.io/pause:3.10";
    kubectl.run(&format!("-n shop create deployment web {image} --replicas=5")).await?;
    kubectl.run("-n shop rollout status deployment/web --timeout=120s").await?;
    kubectl.run("delete namespace shop --timeout=120s").await?;
    wait_for_pods(user, "shop", "web", BTreeSet::is_empty).await
}

/// Returns the UIDs of the pods of an application that are not being deleted.
async fn pods(user: &Client, namespace: &str, app: &str) -> anyhow::Result<BTreeSet<String>> {
    let pods = Api::<Pod>::namespaced(user.clone(), namespace);
    let listed = pods.list(&ListParams::default().labels(&format!("app={app}"))).await?;
    let alive = listed.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(alive.filter_map(|pod| pod.metadata.uid).collect())
}

async fn wait_for_pods(
    user: &Client,
    namespace: &str,
    app: &str,
    is: impl Fn(&BTreeSet<String>) -> bool,
) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let now = pods(user, namespace, app).await?;
        if is(&now) {
            return Ok(());
        }
        ensure!(started.elapsed() < DEADLINE, "{} pods of {app}: {now:?}", now.len());
        sleep(Duration::from_millis(100)).await;
    }
}
