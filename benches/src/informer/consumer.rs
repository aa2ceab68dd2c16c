//! Our informer as a consumer of the load server, as `peers/informer/consume.go` is for client-go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, ensure};
use homeostat_informer::{Event, Object, SharedIndexInformer};
use http::Request;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Phase, Report, Trial};
use crate::process::Usage;

/// The annotation with the time at which the server sent the pod, in nanoseconds since 1970.
const SENT: &str = "bench.homeostat.dev/sent";

/// Keeps a cache of the server's pods, and measures the cost.
#[expect(missing_debug_implementations, reason = "a client has none")]
pub struct Consumer {
    client: homeostat::kube_client::Client,
    counted: Arc<Counted>,
    /// Number of handlers. Each counts.
    handlers: u32,
}

/// Counts of the handler.
#[derive(Debug, Default)]
struct Counted {
    events: AtomicU64,
    /// Notifies the waiter when the count reaches this number.
    target: AtomicU64,
    reached: Notify,
    /// True while latencies are kept.
    keep: AtomicBool,
    nanos: Mutex<Vec<u64>>,
}

// === impl Consumer ===

impl Consumer {
    /// Returns a consumer with this number of handlers, at least one, that requests updates with
    /// `client`.
    pub fn new(client: homeostat::kube_client::Client, handlers: u32) -> Self {
        Self { client, counted: Arc::default(), handlers: handlers.max(1) }
    }

    /// Waits until the informer and its handlers have all `pods` pods, then runs each trial, and
    /// reports the costs.
    ///
    /// # Errors
    ///
    /// Returns an error if there are more or fewer pods, or if the server does not answer.
    pub async fn run<K: Object>(
        &self,
        informer: &SharedIndexInformer<K>,
        pods: u32,
        trials: &[Trial],
    ) -> anyhow::Result<Report> {
        let lister = informer.lister();
        // client-go's factory keeps an index by namespace, too.
        drop(lister.list_in(""));
        let (before, start) = (Usage::of(std::process::id())?, Instant::now());
        let add_handler = |number| {
            let counted = Arc::clone(&self.counted);
            let count = move |event: Event<K>| counted.count(&event);
            informer.add_handler(format!("count-{number}"), count)
        };
        let handlers: Vec<_> = (0..self.handlers).map(add_handler).collect();
        informer.start();
        for handler in &handlers {
            ensure!(handler.wait_for_sync().await, "the informer stopped");
        }
        let mut report = Report::new();
        report.insert("sync".into(), Phase::since(&before, start, pods)?);
        ensure!(lister.len() == pods as usize, "{} pods, not {pods}", lister.len());
        for trial in trials {
            // Unfinished work of the previous phase does not count for this phase.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let phase = match *trial {
                Trial::Updates { count, rate } => self.updates(count, rate).await?,
                Trial::Relist { changed } => self.relist(pods, changed).await?,
            };
            report.insert(trial.to_string(), phase);
        }
        Ok(report)
    }

    async fn updates(&self, count: u32, rate: u32) -> anyhow::Result<Phase> {
        let counted = &self.counted;
        *counted.nanos.lock() = Vec::with_capacity(count as usize);
        counted.keep.store(rate > 0, Ordering::Relaxed);
        let calls = u64::from(count) * u64::from(self.handlers);
        let target = counted.events.load(Ordering::Relaxed) + calls;
        counted.target.store(target, Ordering::Relaxed);
        let (before, start) = (Usage::of(std::process::id())?, Instant::now());
        self.ask(Request::post(format!("/bench/updates?count={count}&rate={rate}"))).await?;
        counted.reached.notified().await;
        let mut phase = Phase::since(&before, start, count)?;
        if rate > 0 {
            let mut nanos = std::mem::take(&mut *counted.nanos.lock());
            nanos.sort_unstable();
            phase.p50_us = micros(&nanos, 50)?;
            phase.p99_us = micros(&nanos, 99)?;
        }
        Ok(phase)
    }

    /// Changes a part of the pods, in percent, expires the watch, and waits until the consumer has
    /// relisted and is idle.
    async fn relist(&self, pods: u32, changed: u32) -> anyhow::Result<Phase> {
        let before = self.lists_sent().await?;
        let (usage, start) = (Usage::of(std::process::id())?, Instant::now());
        self.ask(Request::post(format!("/bench/expire?changed={changed}"))).await?;
        while self.lists_sent().await? == before {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut last = f64::NEG_INFINITY;
        loop {
            let phase = Phase::since(&usage, start, pods)?;
            let cpu = phase.user + phase.system;
            if cpu - last <= 0.01 {
                return Ok(phase);
            }
            last = cpu;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Returns the number of watches that have sent all pods.
    async fn lists_sent(&self) -> anyhow::Result<u64> {
        let status = self.ask(Request::get("/bench/status")).await?;
        let status: serde_json::Value = serde_json::from_str(&status)?;
        status["pods"]["whole"].as_u64().context("the server's status")
    }

    async fn ask(&self, request: http::request::Builder) -> anyhow::Result<String> {
        Ok(self.client.request_text(request.body(Vec::new())?).await?)
    }
}

/// Returns a percentile of the latencies.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of less than a day")]
fn micros(sorted: &[u64], percent: usize) -> anyhow::Result<f64> {
    let last = sorted.len().checked_sub(1).context("nothing was stamped")?;
    Ok(sorted[last * percent / 100] as f64 / 1000.0)
}

// === impl Counted ===

impl Counted {
    fn count<K: Object>(&self, event: &Event<K>) {
        if let Event::Updated { new, .. } = event {
            self.see(&**new);
        }
    }

    fn see<K: Object>(&self, object: &K) {
        if self.keep.load(Ordering::Relaxed) {
            let annotations = object.metadata().annotations.as_ref();
            let sent = annotations.and_then(|all| all.get(SENT)?.parse::<u64>().ok());
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            if let (Some(sent), Ok(now)) = (sent, u64::try_from(now)) {
                self.nanos.lock().push(now.saturating_sub(sent));
            }
        }
        let events = self.events.fetch_add(1, Ordering::Relaxed) + 1;
        if events == self.target.load(Ordering::Relaxed) {
            self.reached.notify_one();
        }
    }
}

// === impl Phase ===

impl Phase {
    fn since(before: &Usage, start: Instant, count: u32) -> anyhow::Result<Self> {
        let (wall, now) = (start.elapsed().as_secs_f64(), Usage::of(std::process::id())?);
        Ok(Self {
            count,
            wall,
            user: now.user - before.user,
            system: now.system - before.system,
            peak_rss: now.peak_rss * 1e6,
            rss: now.rss * 1e6,
            ..Self::default()
        })
    }
}
