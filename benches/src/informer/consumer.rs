//! Our informer as a consumer of the load server: what `peers/informer/consume.go` does with client-go's.

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

/// Holds when the server sent this state of a pod, in nanoseconds since 1970.
const SENT: &str = "bench.homeostat.dev/sent";

/// Follows the server's pods and measures what that takes.
#[expect(missing_debug_implementations, reason = "a client has none")]
pub struct Consumer {
    client: homeostat::kube_client::Client,
    counted: Arc<Counted>,
}

/// What the handler has counted.
#[derive(Debug, Default)]
struct Counted {
    events: AtomicU64,
    /// Tell when there were that many.
    target: AtomicU64,
    reached: Notify,
    /// Whether to keep latencies.
    keep: AtomicBool,
    nanos: Mutex<Vec<u64>>,
}

// === impl Consumer ===

impl Consumer {
    /// A consumer that asks for updates with `client`.
    pub fn new(client: homeostat::kube_client::Client) -> Self {
        Self { client, counted: Arc::default() }
    }

    /// Waits until the informer and its handler have all `pods` pods, then asks for each trial, and reports
    /// what all of this took.
    ///
    /// # Errors
    ///
    /// If there are more or fewer pods, and if the server cannot be asked.
    pub async fn run<K: Object>(
        &self,
        informer: &SharedIndexInformer<K>,
        pods: u32,
        trials: &[Trial],
    ) -> anyhow::Result<Report> {
        let lister = informer.lister();
        // client-go's factory keeps an index by namespace, too.
        drop(lister.list_in(""));
        let counted = Arc::clone(&self.counted);
        let (before, start) = (Usage::of(std::process::id())?, Instant::now());
        let handler = informer.add_handler("count", move |event: Event<K>| {
            if let Event::Updated { new, .. } = event {
                counted.see(&*new);
            }
        });
        informer.start();
        ensure!(handler.synced().await, "the informer stopped");
        let mut report = Report::new();
        report.insert("sync".into(), Phase::since(&before, start, pods)?);
        ensure!(lister.len() == pods as usize, "{} pods, not {pods}", lister.len());
        for trial in trials {
            // What is left to do of the phase before is not part of this one.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let phase = match *trial {
                Trial::Updates { count, rate } => self.updates(count, rate).await?,
                Trial::Relist => self.relist(pods).await?,
            };
            report.insert(trial.to_string(), phase);
        }
        Ok(report)
    }

    async fn updates(&self, count: u32, rate: u32) -> anyhow::Result<Phase> {
        let counted = &self.counted;
        *counted.nanos.lock() = Vec::with_capacity(count as usize);
        counted.keep.store(rate > 0, Ordering::Relaxed);
        let target = counted.events.load(Ordering::Relaxed) + u64::from(count);
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

    /// Lets the watch expire, and waits until everything was sent again and there is nothing left to do.
    async fn relist(&self, pods: u32) -> anyhow::Result<Phase> {
        let before = self.lists_sent().await?;
        let (usage, start) = (Usage::of(std::process::id())?, Instant::now());
        self.ask(Request::post("/bench/expire")).await?;
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

    /// How many watches have been sent all pods.
    async fn lists_sent(&self) -> anyhow::Result<u64> {
        let status = self.ask(Request::get("/bench/status")).await?;
        let status: serde_json::Value = serde_json::from_str(&status)?;
        status["pods"]["whole"].as_u64().context("the server's status")
    }

    async fn ask(&self, request: http::request::Builder) -> anyhow::Result<String> {
        Ok(self.client.request_text(request.body(Vec::new())?).await?)
    }
}

/// The latency that so many in a hundred do not exceed.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of less than a day")]
fn micros(sorted: &[u64], percent: usize) -> anyhow::Result<f64> {
    let last = sorted.len().checked_sub(1).context("nothing was stamped")?;
    Ok(sorted[last * percent / 100] as f64 / 1000.0)
}

// === impl Counted ===

impl Counted {
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
            ..Self::default()
        })
    }
}
