//! Health, readiness, metrics and a debug page of a process, for its operator.
//!
//! [`Diagnostics`] collects the parts: informers, queues, checks, metrics. [`serve`] shows them
//! over plain HTTP on one address:
//!
//! | Path | Answer |
//! | --- | --- |
//! | `/healthz`, `/livez` | 200 `ok`, or 500 with the failed liveness checks |
//! | `/readyz` | 200 `ok`, or 500 with what is not ready, the reason, and since when |
//! | `/metrics` | Prometheus' text format |
//! | `/debug` | a page for people: leader, informers, queues, failing keys, last reconciles |
//! | `/debug.json` | the same as JSON, a [`Report`] |
//!
//! Nothing here contains an object's data, only names. There is no authentication: bind to
//! 127.0.0.1, or let a network policy admit the kubelet and the scraper alone.
//!
//! # Examples
//!
//! ```no_run
//! # use homeostat::{SharedIndexInformer, SharedInformerFactory};
//! # use k8s_openapi::api::core::v1::Pod;
//! use homeostat::observe::{Diagnostics, serve};
//!
//! # async fn doc(factory: &SharedInformerFactory) -> Result<(), Box<dyn std::error::Error>> {
//! let pods = factory.informer::<Pod>();
//! let diagnostics = Diagnostics::new();
//! diagnostics.informer(&pods);
//! diagnostics.readiness("license", || Err("expired on Monday".to_owned()));
//! let server = serve(([127, 0, 0, 1], 8080).into(), &diagnostics).await?;
//! # drop(server);
//! # Ok(())
//! # }
//! ```

mod page;
mod report;
mod server;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use homeostat_core::user_code;
use homeostat_informer::status::{InformerPhase, InformerStatus};
use homeostat_informer::{Object, SharedIndexInformer};
use homeostat_workqueue::Queue;
use parking_lot::Mutex;
use tokio::time::Instant;

pub use self::report::{
    FailingKey, Informer, Key, LeaderReport, QueueReport, ReconcileReport, Report, Unready,
};
pub use self::server::{ObserveServer, ServeError, serve};

/// The number of consecutive failures from which on an informer is not ready, because its cache is
/// old, and a candidate of an election, because it cannot lead.
const STALE_AFTER: u64 = 3;

/// The parts of a process that an operator can look at. Clones share them.
///
/// Register each part when it is built. A report reads each part when it is requested; nothing runs
/// between requests.
///
/// A check is the author's code. It runs on the task of the request, without a lock. A check that
/// panics has failed: its reason is the message of the panic.
#[derive(Clone)]
pub struct Diagnostics {
    parts: Arc<Mutex<Parts>>,
    started: Instant,
}

/// It must not block: the probes of the kubelet have a timeout of 1 s by default.
type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Reports the state of some parts.
type Source<T> = Arc<dyn Fn() -> Vec<T> + Send + Sync>;

/// The lock is held to copy the list of parts, never while a part is read: a part may be slow, or
/// register another one.
#[derive(Default)]
struct Parts {
    informers: Vec<Source<InformerStatus>>,
    queues: Vec<Source<QueueReport>>,
    elections: Vec<Source<LeaderReport>>,
    liveness: Vec<(String, Check)>,
    readiness: Vec<(String, Check)>,
    metrics: Option<Arc<dyn Fn() -> String + Send + Sync>>,
    /// The time at which each part that is not ready was first seen so.
    unready_since: BTreeMap<String, Instant>,
}

// === impl Diagnostics ===

impl Diagnostics {
    /// Returns diagnostics without parts: ready, and with an empty page.
    pub fn new() -> Self {
        Self { parts: Arc::default(), started: Instant::now() }
    }

    /// Adds an informer. The process is not ready until the informer has its initial list, and
    /// while 3 or more consecutive requests of it have failed.
    pub fn informer<K: Object>(&self, informer: &SharedIndexInformer<K>) {
        let informer = informer.clone();
        self.informers(move || vec![informer.status()]);
    }

    /// Adds a queue under `name`. Its keys are shown only if it was built with
    /// [`inspect`](homeostat_workqueue::QueueBuilder::inspect) or has metrics.
    pub fn queue<T, Cause>(&self, name: impl Into<String>, queue: &Queue<T, Cause>)
    where
        T: Clone + Eq + std::hash::Hash + fmt::Display + Send + Sync + 'static,
        Cause: Send + Sync + 'static,
    {
        let (name, queue) = (name.into(), queue.clone());
        self.queues(move || vec![QueueReport::of(&name, &queue)]);
    }

    /// Adds informers whose number may change.
    pub(crate) fn informers(
        &self,
        statuses: impl Fn() -> Vec<InformerStatus> + Send + Sync + 'static,
    ) {
        self.parts.lock().informers.push(Arc::new(statuses));
    }

    /// Adds queues whose number may change.
    pub(crate) fn queues(&self, reports: impl Fn() -> Vec<QueueReport> + Send + Sync + 'static) {
        self.parts.lock().queues.push(Arc::new(reports));
    }

    /// Adds leader elections.
    pub(crate) fn elections(
        &self,
        reports: impl Fn() -> Vec<LeaderReport> + Send + Sync + 'static,
    ) {
        self.parts.lock().elections.push(Arc::new(reports));
    }

    /// Adds a check of readiness. `check` returns the reason for which the process is not ready.
    /// It runs at each request, and must not wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// use homeostat::observe::Diagnostics;
    ///
    /// let is_open = Arc::new(AtomicBool::new(false));
    /// let seen = Arc::clone(&is_open);
    /// let diagnostics = Diagnostics::new();
    /// diagnostics.readiness("shop", move || {
    ///     if seen.load(Ordering::Relaxed) { Ok(()) } else { Err("closed".to_owned()) }
    /// });
    /// assert_eq!(diagnostics.unready()[0].reason, "closed");
    /// is_open.store(true, Ordering::Relaxed);
    /// assert!(diagnostics.unready().is_empty());
    /// ```
    pub fn readiness(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.parts.lock().readiness.push((name.into(), Arc::new(check)));
    }

    /// Adds a check of liveness. A process that fails it is restarted by the kubelet, so it should
    /// fail only if a restart helps.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::observe::Diagnostics;
    ///
    /// let diagnostics = Diagnostics::new();
    /// diagnostics.liveness("worker", || Err("stuck for 10 min".to_owned()));
    /// let failed = diagnostics.failed_liveness();
    /// assert_eq!(failed, [("worker".to_owned(), "stuck for 10 min".to_owned())]);
    /// ```
    pub fn liveness(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.parts.lock().liveness.push((name.into(), Arc::new(check)));
    }

    /// Sets the text of `/metrics`, for example
    /// `PrometheusRecorder::render` of the feature `prometheus`.
    ///
    /// The last call counts. Without it `/metrics` answers 404.
    pub fn metrics(&self, render: impl Fn() -> String + Send + Sync + 'static) {
        self.parts.lock().metrics = Some(Arc::new(render));
    }

    /// Returns the state of all parts at this moment.
    ///
    /// It reads one part after the other, so that the parts are from slightly different moments.
    pub fn report(&self) -> Report {
        let (informers, queues, elections) = {
            let parts = self.parts.lock();
            (parts.informers.clone(), parts.queues.clone(), parts.elections.clone())
        };
        let statuses: Vec<_> = informers.iter().flat_map(|statuses| statuses()).collect();
        let elections: Vec<_> = elections.iter().flat_map(|reports| reports()).collect();
        let unready = self.unready_of(&statuses, &elections);
        Report {
            uptime: self.started.elapsed(),
            unready,
            elections,
            informers: statuses.iter().map(Informer::new).collect(),
            queues: queues.iter().flat_map(|reports| reports()).collect(),
        }
    }

    /// Returns the parts that are not ready.
    ///
    /// The time of each entry starts with the first call that sees it, so that it is as exact as
    /// the period of the probe.
    pub fn unready(&self) -> Vec<Unready> {
        let (informers, elections) = {
            let parts = self.parts.lock();
            (parts.informers.clone(), parts.elections.clone())
        };
        let statuses: Vec<_> = informers.iter().flat_map(|statuses| statuses()).collect();
        let elections: Vec<_> = elections.iter().flat_map(|reports| reports()).collect();
        self.unready_of(&statuses, &elections)
    }

    /// Returns the failed liveness checks with their reasons.
    pub fn failed_liveness(&self) -> Vec<(String, String)> {
        let checks = self.parts.lock().liveness.clone();
        failures(&checks)
    }

    /// Returns the text of `/metrics`; `None` if no text was set.
    fn rendered_metrics(&self) -> Option<String> {
        let render = self.parts.lock().metrics.clone()?;
        Some(render())
    }

    /// A part that is ready again loses its time: the next failure starts a new one.
    fn unready_of(&self, statuses: &[InformerStatus], elections: &[LeaderReport]) -> Vec<Unready> {
        let checks = self.parts.lock().readiness.clone();
        let informers = statuses
            .iter()
            .filter_map(|status| Some((format!("informer {}", status.name), not_ready(status)?)));
        let elections = elections.iter().filter_map(|election| {
            Some((format!("lease {}", election.lease), no_lease(election)?))
        });
        let failed: Vec<_> = informers.chain(elections).chain(failures(&checks)).collect();
        let since = &mut self.parts.lock().unready_since;
        since.retain(|name, _| failed.iter().any(|(failed, _)| failed == name));
        let now = Instant::now();
        let unready = failed.into_iter().map(|(name, reason)| {
            let first = *since.entry(name.clone()).or_insert(now);
            Unready { name, reason, since: now.saturating_duration_since(first) }
        });
        unready.collect()
    }
}

impl Default for Diagnostics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnostics").finish_non_exhaustive()
    }
}

/// Returns the reason for which an informer is not ready.
///
/// An informer with fewer than 3 consecutive failures counts as ready: a watch that breaks off once
/// is normal.
fn not_ready(status: &InformerStatus) -> Option<String> {
    let reflector = &status.reflector;
    let error = || match &reflector.last_error {
        Some(error) => format!(": {error} ({} consecutive failures)", reflector.failures),
        None => String::new(),
    };
    match status.phase {
        InformerPhase::Following if reflector.failures < STALE_AFTER => None,
        InformerPhase::Following => Some(format!("the cache is old{}", error())),
        InformerPhase::New => Some("not started".to_owned()),
        InformerPhase::Stopped => Some("stopped".to_owned()),
        _ => Some(format!("waiting for the initial list{}", error())),
    }
}

/// Returns the reason for which a candidate is not ready. One that waits for another leader is.
fn no_lease(election: &LeaderReport) -> Option<String> {
    let error = election.last_error.as_ref().filter(|_| election.failures >= STALE_AFTER)?;
    Some(format!("no leader election: {error} ({} consecutive failures)", election.failures))
}

/// Runs the checks, and returns those that failed with their reasons. One that panics has failed:
/// the page must show it.
fn failures(checks: &[(String, Check)]) -> Vec<(String, String)> {
    let run = |check: &Check| {
        let checked = user_code("check", || check());
        checked.unwrap_or_else(|panicked| Err(panicked.to_string()))
    };
    let failed = checks.iter().filter_map(|(name, check)| Some((name.clone(), run(check).err()?)));
    failed.collect()
}

/// Returns a duration for people: `340 ms`, `3.2 s`, `17 min`, `5 h`.
fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..=59 => format!("{:.1} s", duration.as_secs_f64()),
        60..=3599 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// Returns the end of a sentence about a part that is not ready: `, for 3.2 s`. The first request
/// that sees it so does not know for how long.
fn lasting(since: Duration) -> String {
    if since.is_zero() { String::new() } else { format!(", for {}", in_words(since)) }
}

#[cfg(test)]
mod tests;
