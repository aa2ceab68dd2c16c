//! Our controller program and the one of Kubernetes that it replaces, each beside a fresh control
//! plane of its own: their CPU time, memory and requests for the same work.

mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use homeostat::kube_client::api::{Api, WatchEvent, WatchParams};
use homeostat::kube_client::{Client, Resource};
use homeostat_testing::control_plane::ControlPlane;
use serde::de::DeserializeOwned;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use self::report::println;
pub use self::report::{Leg, report, report_memory};
use crate::audit;
use crate::process::Usage;

/// The timeout of a step, much longer than any program takes: one that hangs must not hang the
/// bench.
const STEP_TIMEOUT: Duration = Duration::from_secs(600);

/// The time after a step in which a program writes events and last statuses. It counts for the
/// step.
const SETTLE_TIME: Duration = Duration::from_secs(3);

/// The number of requests that the bench itself has in flight.
const CONCURRENCY: usize = 16;

/// One program of the comparison.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The name at the start of its user agent.
    pub name: &'static str,
    /// The program.
    pub program: PathBuf,
    /// Its flags, without `--kubeconfig`.
    pub flags: Vec<String>,
}

/// A control plane with one program beside it.
pub struct Bench {
    /// A client of the user, whose requests count for neither program.
    pub client: Client,
    name: &'static str,
    pid: u32,
    child: Child,
    legs: Vec<(&'static str, Leg)>,
    /// The program ends before it.
    cluster: Cluster,
}

/// A control plane that logs the requests.
struct Cluster {
    plane: ControlPlane,
    audit_log: PathBuf,
    folder: tempfile::TempDir,
}

// === impl Peer ===

impl Peer {
    /// Returns kube-controller-manager with one controller alone and a request rate that is not the
    /// bottleneck.
    pub fn controller_manager(program: &Path, controller: &str, flags: &[&str]) -> Self {
        let controller = format!("--controllers={controller}");
        let own = ["--leader-elect=false", "--secure-port=0"];
        let credentials = ["--use-service-account-credentials=false"];
        let flags = own.iter().chain(&credentials).chain(&RATE).chain(flags);
        Self {
            name: "kube-controller-manager",
            program: program.to_owned(),
            flags: flags.map(|flag| (*flag).to_owned()).chain([controller]).collect(),
        }
    }

    /// Returns our program with the same request rate.
    pub fn ours(name: &'static str, program: &Path, flags: &[&str]) -> Self {
        let flags = RATE.iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
        Self { name, program: program.to_owned(), flags }
    }

    /// Returns the program with another value of a flag.
    #[must_use]
    pub fn with_flag(mut self, flag: &str, value: &str) -> Self {
        let prefix = format!("{flag}=");
        self.flags.retain(|flag| !flag.starts_with(&prefix));
        self.flags.push(prefix + value);
        self
    }
}

const RATE: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

// === impl Bench ===

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Bench {
    /// Starts a control plane.
    ///
    /// `prepare` creates what both programs find; the program starts after it.
    ///
    /// # Errors
    ///
    /// Returns an error if the control plane or the program does not start, or if `prepare` fails.
    pub async fn start(
        peer: &Peer,
        prepare: impl AsyncFnOnce(&Client) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let cluster = Cluster::start().await?;
        prepare(&cluster.plane.client()?).await?;
        Self::beside(cluster, peer)
    }

    /// Starts a program beside a control plane.
    fn beside(cluster: Cluster, peer: &Peer) -> anyhow::Result<Self> {
        let client = cluster.plane.client()?;
        let log = std::fs::File::create(cluster.folder.path().join("peer.log"))?;
        let child = Command::new(&peer.program)
            .arg(format!("--kubeconfig={}", cluster.plane.kubeconfig().display()))
            .args(&peer.flags)
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {}", peer.program.display()))?;
        let pid = child.id().context("the program ended at once")?;
        Ok(Self { client, name: peer.name, pid, child, legs: Vec::new(), cluster })
    }

    /// Returns the usage of the program.
    ///
    /// # Errors
    ///
    /// Returns an error if the program has ended.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        Usage::of(self.pid)
    }

    /// Ends the program, and starts another one beside the same control plane. Steps that were
    /// measured stay.
    ///
    /// # Errors
    ///
    /// Returns an error if the program has ended already, or if the other one does not start.
    pub async fn replace(mut self, peer: &Peer) -> anyhow::Result<Self> {
        self.end().await?;
        Ok(Self { legs: self.legs, ..Self::beside(self.cluster, peer)? })
    }

    /// Measures a step: until `work` has seen its result, and for 3 s more.
    ///
    /// # Errors
    ///
    /// Returns the error of `work`, or an error if it takes longer than ten minutes.
    pub async fn leg(
        &mut self,
        name: &'static str,
        work: impl AsyncFnOnce(&Client) -> anyhow::Result<()>,
    ) -> anyhow::Result<&mut Leg> {
        let (before, sent) = (Usage::of(self.pid)?, self.requests()?);
        let started = Instant::now();
        let done = timeout(STEP_TIMEOUT, work(&self.client)).await;
        done.with_context(|| format!("{name} of {} took too long", self.name))??;
        let wall = started.elapsed().as_secs_f64();
        sleep(SETTLE_TIME).await;
        let after = Usage::of(self.pid)?;
        let mut requests = self.requests()?;
        for (what, count) in sent {
            requests.entry(what).and_modify(|all| *all -= count);
        }
        requests.retain(|_, count| *count > 0);
        let cpu = after.cpu() - before.cpu();
        let leg = Leg { wall, cpu, peak_rss: after.peak_rss, requests, ..Leg::default() };
        println(&format!("{:<24} {name:<12} {leg}", self.name));
        self.legs.push((name, leg));
        Ok(&mut self.legs.last_mut().context("a leg")?.1)
    }

    /// Ends the program. Its control plane runs on.
    ///
    /// # Errors
    ///
    /// Returns an error if the program has ended already.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        self.child.start_kill()?;
        self.child.wait().await?;
        Ok(())
    }

    /// Returns the figures of all steps.
    pub fn into_legs(self) -> Vec<(&'static str, Leg)> {
        self.legs
    }

    /// Ends the program, and returns the figures of all steps.
    ///
    /// # Errors
    ///
    /// Returns an error if the program has ended already.
    pub async fn finish(mut self) -> anyhow::Result<Vec<(&'static str, Leg)>> {
        self.end().await?;
        Ok(self.into_legs())
    }

    fn requests(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        audit::requests(&self.cluster.audit_log, self.name)
    }
}

// === impl Cluster ===

impl Cluster {
    async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (policy, audit_log) =
            (folder.path().join("policy.yaml"), folder.path().join("audit.log"));
        std::fs::write(&policy, audit::POLICY)?;
        let plane = ControlPlane::builder()
            .api_server_arg(format!("--audit-policy-file={}", policy.display()))
            .api_server_arg(format!("--audit-log-path={}", audit_log.display()))
            .start()
            .await?;
        Ok(Self { plane, audit_log, folder })
    }
}

/// Sends requests of the bench, 16 at a time.
///
/// # Errors
///
/// Returns the first error.
pub async fn all<F>(requests: impl IntoIterator<Item = F>) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    futures::stream::iter(requests).buffer_unordered(CONCURRENCY).try_collect().await
}

/// Watches from the present state on, until `done` returns true for an event.
///
/// A server that is short of CPU time ends the watch of a slow client. It goes on from the last
/// event.
///
/// # Errors
///
/// Returns an error if a watch fails, or if its version has expired.
pub async fn watch_until<K>(
    api: &Api<K>,
    mut done: impl FnMut(&WatchEvent<K>) -> bool,
) -> anyhow::Result<()>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    let mut version = "0".to_owned();
    loop {
        let mut stream = std::pin::pin!(api.watch(&WatchParams::default(), &version).await?);
        while let Some(event) = stream.try_next().await? {
            if let WatchEvent::Error(status) = &event {
                anyhow::bail!("a watch failed: {status:?}");
            }
            if let WatchEvent::Added(it) | WatchEvent::Modified(it) | WatchEvent::Deleted(it) =
                &event
                && let Some(reached) = &it.meta().resource_version
            {
                version.clone_from(reached);
            }
            if done(&event) {
                return Ok(());
            }
        }
    }
}
