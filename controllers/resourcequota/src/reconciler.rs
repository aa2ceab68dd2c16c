//! The pass over one quota.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat::kube_client::{Client, Error};
use homeostat::{Action, Lister, Reconciler, Request};
use homeostat_core::WallClock;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::monitor::Monitor;
use crate::plan::{NewStatus, plan};
use crate::quota::{CachedQuota, QuotaKey};
use crate::requested::Requested;
use crate::status_update::status_update;
use crate::sync_error::SyncError;

/// The shortest time between two writes of one quota. A burst of deletions is written once in this
/// period, and the first of them at once.
const WRITE_PERIOD: Duration = Duration::from_millis(100);

/// The pass over one quota.
pub(crate) struct QuotaController {
    pub(crate) client: Client,
    pub(crate) quotas: Lister<CachedQuota>,
    pub(crate) requested: Requested<QuotaKey>,
    pub(crate) monitor: Arc<Monitor>,
    pub(crate) clock: WallClock,
    /// The time for which a status is withheld while a cache that it needs is not complete.
    pub(crate) patience: Duration,
    pub(crate) started: Instant,
    pub(crate) memory: Mutex<HashMap<QuotaKey, Memory>>,
}

/// The times that the passes of one quota share.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// The end of the time for which the first status is withheld.
    hold_until: Option<Instant>,
    written: Option<Instant>,
    /// The number of writes that have failed since the status was right.
    failures: u32,
}

// === impl QuotaController ===

impl Reconciler<CachedQuota> for QuotaController {
    type Error = SyncError;

    async fn reconcile(&self, request: &Request<CachedQuota>) -> Result<Action, SyncError> {
        let key = request.key();
        if let Some(wait) = self.wait_between_writes(key) {
            return Ok(Action::Postpone(wait));
        }
        let now = self.clock.now();
        // Before the quota is read: a request that comes later may be for a new quota of the name.
        let Some(begun) = self.requested.begin(key, now) else {
            let release = self.requested.release(key);
            return Ok(release.map_or(Action::AwaitChange, |release| requeue(release, now)));
        };
        let Some(quota) = self.quotas.get(key) else {
            tracing::info!("Resource quota has been deleted");
            self.memory.lock().remove(key);
            begun.done();
            self.requested.set_release(key, None);
            return Ok(Action::AwaitChange);
        };
        let counted = self.monitor.count(&quota, now);
        if let Some(hold) = self.hold(key, &quota, counted.is_incomplete) {
            return Ok(Action::Postpone(hold));
        }
        let used = &counted.usage.used;
        if let Some(new) = plan(&quota.spec, &quota.status, used, begun.recount()) {
            self.write(key, &quota, &new).await?;
        }
        self.reset_failures(key);
        if !counted.usage.errors.is_empty() {
            return Err(SyncError::Count(counted.usage.errors));
        }
        begun.done();
        self.requested.set_release(key, counted.usage.next_release);
        let next_release = counted.usage.next_release;
        Ok(next_release.map_or(Action::AwaitChange, |release| requeue(release, now)))
    }
}

impl QuotaController {
    /// Returns the rest of the period after the last write.
    fn wait_between_writes(&self, key: &QuotaKey) -> Option<Duration> {
        let written = self.memory.lock().get(key)?.written?;
        WRITE_PERIOD.checked_sub(written.elapsed()).filter(|wait| !wait.is_zero())
    }

    /// Returns the time for which the status is withheld, or `None` to write what is known.
    ///
    /// A name that is in `hard` and not in `used` makes admission refuse each create, so the first
    /// status waits for the caches that it needs. So does each status after the start.
    fn hold(&self, key: &QuotaKey, quota: &CachedQuota, is_incomplete: bool) -> Option<Duration> {
        let mut memory = self.memory.lock();
        if !is_incomplete {
            if let Some(memory) = memory.get_mut(key) {
                memory.hold_until = None;
            }
            return None;
        }
        let deadline = if quota.has_complete_status() {
            self.started + self.patience
        } else {
            let entry = memory.entry(key.clone()).or_default();
            *entry.hold_until.get_or_insert_with(|| Instant::now() + self.patience)
        };
        let hold = deadline.saturating_duration_since(Instant::now());
        Some(hold).filter(|hold| !hold.is_zero())
    }

    /// Writes the status. The server refuses it if the quota has changed since.
    async fn write(
        &self,
        key: &QuotaKey,
        quota: &CachedQuota,
        new: &NewStatus,
    ) -> Result<(), SyncError> {
        let failed = |error| self.failed(key, error);
        let request = status_update(quota, new).map_err(failed)?;
        self.memory.lock().entry(key.clone()).or_default().written = Some(Instant::now());
        self.client.request_text(request).await.map_err(failed)?;
        Ok(())
    }

    /// Notes that the status is right: it is written, or another write has made it right.
    fn reset_failures(&self, key: &QuotaKey) {
        if let Some(memory) = self.memory.lock().get_mut(key) {
            memory.failures = 0;
        }
    }

    /// Counts a failed write.
    fn failed(&self, key: &QuotaKey, error: Error) -> SyncError {
        let mut memory = self.memory.lock();
        let entry = memory.entry(key.clone()).or_default();
        entry.failures = entry.failures.saturating_add(1);
        let failures = entry.failures;
        let failing = memory.values().filter(|entry| entry.failures > 0).count();
        SyncError::of_write(error, failures, failing)
    }
}

/// Returns the action that repeats the pass just after `release`.
fn requeue(release: Timestamp, now: Timestamp) -> Action {
    let until = Duration::try_from(release.duration_since(now)).unwrap_or_default();
    Action::RequeueAfter(until.saturating_add(Duration::from_millis(1)))
}

#[cfg(test)]
mod tests {
    use homeostat::informer::testing::Store;
    use homeostat::{Discovery, KeySource};
    use homeostat_apiserver::ApiServer;
    use homeostat_quota::Gates;
    use serde_json::json;
    use tracing::span::{Attributes, Id, Record};

    use super::*;
    use crate::caches::CacheOptions;
    use crate::change::Changes;
    use crate::monitor::{Quotas, Timing};
    use crate::plan::Recount;

    /// Returns a controller over a cache that the test fills. Its monitor does not run.
    fn controller(quotas: &Store<CachedQuota>) -> QuotaController {
        let client = ApiServer::builder().build().client();
        let clock = WallClock::new(Some("2026-06-01T12:00:00Z".parse().unwrap()));
        let requested = Requested::new();
        let priority = KeySource::of_second_queue("quota monitor");
        let gates = Gates::default();
        let monitor = Monitor::new(
            Discovery::new(client.clone()),
            &CacheOptions { client: client.clone(), gates, clock, seed: None },
            Quotas { lister: quotas.lister(), requested: requested.clone(), priority },
            Changes::new(),
            Timing { discovery: Duration::from_secs(30), linger: Duration::from_secs(600) },
        );
        QuotaController {
            client,
            quotas: quotas.lister(),
            requested,
            monitor,
            clock,
            patience: Duration::from_secs(30),
            started: Instant::now(),
            memory: Mutex::default(),
        }
    }

    fn quota() -> CachedQuota {
        let metadata = json!({"namespace": "shop", "name": "q", "resourceVersion": "1"});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn key() -> QuotaKey {
        QuotaKey::namespaced("shop", "q")
    }

    #[tokio::test(start_paused = true)]
    async fn pass_that_comes_too_early_waits_for_the_end_of_a_charge() {
        let quotas = Store::new();
        quotas.apply(quota());
        let controller = controller(&quotas);
        // The machine's clock was set back after the key had been delayed.
        let release = controller.clock.now() + Duration::from_secs(30);
        controller.requested.set_release(&key(), Some(release));
        let action = controller.reconcile(&Request::new(key())).await.unwrap();
        assert_eq!(action, Action::RequeueAfter(Duration::from_millis(30_001)));
    }

    /// Calls a function at each log line.
    struct AtLogLine<F>(F);

    impl<F: Fn() + 'static> tracing::Subscriber for AtLogLine<F> {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &tracing::Event<'_>) {
            (self.0)();
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[tokio::test(start_paused = true)]
    async fn quota_that_is_created_again_during_the_pass_over_the_old_one_is_counted() {
        let quotas = Arc::new(Store::new());
        let controller = controller(&quotas);
        controller.requested.request(&key(), Recount::Full);
        // The pass logs the deletion after it has read the cache.
        let (store, requested) = (Arc::clone(&quotas), controller.requested.clone());
        let subscriber = AtLogLine(move || {
            store.apply(quota());
            requested.request(&key(), Recount::Full);
        });
        let guard = tracing::subscriber::set_default(subscriber);
        let action = controller.reconcile(&Request::new(key())).await.unwrap();
        drop(guard);
        assert_eq!(action, Action::AwaitChange);
        assert!(quotas.lister().contains(("shop", "q")));
        assert!(controller.requested.begin(&key(), controller.clock.now()).is_some());
    }
}
