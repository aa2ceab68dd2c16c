//! Replicas of a program that elects a leader: each in a process of its own, so that it can be
//! stopped and killed.
//!
//! The leader counts in a `ConfigMap`. The history of the lease and of the `ConfigMap`, in the
//! order of the server's revisions, shows each write of a process that did not hold the lease.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use anyhow::{Context as _, bail, ensure};
use futures::TryStreamExt as _;
use homeostat::kube_client::api::{
    ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use homeostat::kube_client::{Api, Client, Resource, ResourceExt as _};
use homeostat::{LeaderElector, client, shutdown_signal};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "default";
const LEASE: &str = "elected";
const COUNTER: &str = "counter";

/// Short periods: the scenario waits for several takeovers.
const LEASE_DURATION: Duration = Duration::from_secs(3);
const RENEW_DEADLINE: Duration = Duration::from_secs(2);
const RETRY_PERIOD: Duration = Duration::from_millis(500);

/// A takeover after a leader has gone silent: the lease, two retries with their jitter, and time
/// for a busy machine.
pub const TAKEOVER: Duration = Duration::from_secs(30);

/// Period of the checks on processes and watches.
const POLL: Duration = Duration::from_millis(20);

/// The environment variables that make this program a replica.
const KUBECONFIG: &str = "HOMEOSTAT_ELECTION_KUBECONFIG";
const IDENTITY: &str = "HOMEOSTAT_ELECTION_IDENTITY";

/// A process that is a candidate. Dropping it kills the process.
#[derive(Debug)]
pub struct Replica {
    /// Its identity in the lease.
    pub identity: String,
    process: Child,
}

/// A signal for a replica.
#[derive(Debug, Clone, Copy)]
pub enum Signal {
    /// SIGSTOP: the process stands still.
    Pause,
    /// SIGCONT: the process goes on.
    Resume,
    /// SIGTERM: the process ends in order.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// One change of the lease or of the counter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// The lease names this holder; empty if it was released.
    Holder(String),
    /// This replica counted.
    Count(String),
}

/// Follows the lease and the counter.
#[derive(Debug)]
pub struct History {
    changes: Arc<Mutex<Vec<(u64, Change)>>>,
    _watches: JoinSet<anyhow::Result<()>>,
}

/// Runs a replica if this process was started as one. Call it first in `main`.
///
/// # Errors
///
/// Fails if the replica lost its leadership or could not start.
///
/// # Panics
///
/// Panics if no runtime can be built.
pub fn run_if_replica() -> Option<anyhow::Result<()>> {
    let (kubeconfig, identity) = (std::env::var_os(KUBECONFIG)?, std::env::var(IDENTITY).ok()?);
    let replica = count_while_leading(kubeconfig.into(), identity.clone());
    Some(homeostat_testing::in_real_time(replica).context(identity))
}

async fn count_while_leading(kubeconfig: PathBuf, identity: String) -> anyhow::Result<()> {
    let builder = client::builder().qps(0.0).kubeconfig(kubeconfig).await?;
    let elector = LeaderElector::builder(builder.clone().build(), NAMESPACE, LEASE)
        .identity(&identity)
        .lease_duration(LEASE_DURATION)
        .renew_deadline(RENEW_DEADLINE)
        .retry_period(RETRY_PERIOD)
        .build()?;
    let counters = Api::<ConfigMap>::namespaced(builder.layer(&elector.fence()).build(), NAMESPACE);
    elector
        .run(shutdown_signal(), |cancelled| count(counters, identity, cancelled))
        .await?
        .unwrap_or(Ok(()))
}

/// Writes as fast as the server answers: the more writes, the more chances for a late one.
async fn count(
    counters: Api<ConfigMap>,
    identity: String,
    cancelled: CancellationToken,
) -> anyhow::Result<()> {
    let mut count = 0_u64;
    while !cancelled.is_cancelled() {
        count += 1;
        let patch = json!({"data": {"by": identity, "count": count.to_string()}});
        counters.patch(COUNTER, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

// === impl Replica ===

impl Replica {
    /// Starts this very program as a replica.
    ///
    /// # Errors
    ///
    /// Fails if no process can be started.
    pub fn start(kubeconfig: &Path, identity: &str) -> io::Result<Self> {
        let process = Command::new(std::env::current_exe()?)
            .env(KUBECONFIG, kubeconfig)
            .env(IDENTITY, identity)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { identity: identity.to_owned(), process })
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// Fails if the process has ended.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let name = match signal {
            Signal::Pause => "-STOP",
            Signal::Resume => "-CONT",
            Signal::Terminate => "-TERM",
            Signal::Kill => "-KILL",
        };
        let status = Command::new("kill").arg(name).arg(self.process.id().to_string()).status()?;
        ensure!(status.success(), "kill {name} {}: {status}", self.identity);
        Ok(())
    }

    /// Waits until the process has ended.
    ///
    /// # Errors
    ///
    /// Fails if it does not end within [`TAKEOVER`].
    pub async fn ended(&mut self) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + TAKEOVER;
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < deadline, "{} runs on after {TAKEOVER:?}", self.identity);
            tokio::time::sleep(POLL).await;
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // An error means that it has ended.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

// === impl History ===

impl History {
    /// Creates the counter and follows it and the lease.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses.
    pub async fn follow(client: &Client) -> anyhow::Result<Self> {
        let counters = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE);
        let leases = Api::<Lease>::namespaced(client.clone(), NAMESPACE);
        let patch = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": COUNTER}});
        counters.create(&PostParams::default(), &serde_json::from_value(patch)?).await?;
        let from = counters.list(&ListParams::default()).await?;
        let from = from.metadata.resource_version.unwrap_or_default();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let mut watches = JoinSet::new();
        let (noted, start) = (changes.clone(), from.clone());
        watches.spawn(async move {
            note(leases, start, noted, |lease: &Lease| {
                let holder = lease.spec.as_ref()?.holder_identity.clone();
                Some(Change::Holder(holder.unwrap_or_default()))
            })
            .await
        });
        let noted = changes.clone();
        watches.spawn(async move {
            note(counters, from, noted, |counter: &ConfigMap| {
                Some(Change::Count(counter.data.as_ref()?.get("by")?.clone()))
            })
            .await
        });
        Ok(Self { changes, _watches: watches })
    }

    /// Waits until `identity` has counted after the moment of the call.
    ///
    /// # Errors
    ///
    /// Fails if it does not within [`TAKEOVER`].
    pub async fn counts(&self, identity: &str) -> anyhow::Result<()> {
        let (before, deadline) = (self.changes.lock().len(), Instant::now() + TAKEOVER);
        let wanted = Change::Count(identity.to_owned());
        let counted = |(_, change): &(u64, Change)| *change == wanted;
        while !self.changes.lock()[before..].iter().any(counted) {
            ensure!(Instant::now() < deadline, "{identity} does not lead after {TAKEOVER:?}");
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Returns the number of writes, after checking that each came from the holder of the lease at
    /// that revision.
    ///
    /// # Errors
    ///
    /// Names the first write of another process.
    pub fn check(&self) -> anyhow::Result<usize> {
        let mut changes = self.changes.lock().clone();
        changes.sort_by_key(|(revision, _)| *revision);
        let (mut holder, mut counts) = (String::new(), 0);
        for (revision, change) in changes {
            match change {
                Change::Holder(now) => holder = now,
                Change::Count(by) if by == holder => counts += 1,
                Change::Count(by) => {
                    bail!("revision {revision}: {by} wrote, and {holder:?} held the lease")
                }
            }
        }
        Ok(counts)
    }
}

/// Notes every change of the objects of `api` until the watch ends.
async fn note<K>(
    api: Api<K>,
    from: String,
    changes: Arc<Mutex<Vec<(u64, Change)>>>,
    change: impl Fn(&K) -> Option<Change>,
) -> anyhow::Result<()>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    let params = WatchParams { timeout: Some(280), ..WatchParams::default() };
    let mut events = pin!(api.watch(&params, &from).await?);
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
            && let Some(change) = change(&object)
        {
            let revision = object.resource_version().unwrap_or_default().parse()?;
            changes.lock().push((revision, change));
        }
    }
    Ok(())
}
