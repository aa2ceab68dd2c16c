//! Leadership while it lasts.
//!
//! Leadership ends in one of three ways: the owner releases it, the owner drops it, or it is lost.
//! In each of them the fence closes before any task is aborted, so that no write passes after the
//! abort.
//!
//! Three parties watch the deadline, so that none of them is a single point of failure: the
//! renewing task ends leadership when the lease is lost, the fence rejects requests by the clock
//! alone, and the watchdog's thread ends leadership even if the runtime is stuck.

mod shared;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::shared::Shared;
use super::LeaderElector;
use super::clock::LeaseClock;
use super::watchdog::Watchdog;

/// The time in which work that was aborted must reach an `await`. The caller learns of the loss
/// after it, and should exit: others may lead soon.
const AFTER_ABORT: Duration = Duration::from_secs(1);

/// The time in which this process leads. It renews the lease until it is released, dropped or lost.
///
/// Dropping it stops renewing and aborts the tasks that were registered. The lease expires then;
/// [`release`](Self::release) gives it to the next candidate at once.
///
/// Use [`LeaderElector::run`] instead if the work is one future: it registers the task, waits for
/// it and releases the lease. The example of [`LeaderElector::acquire`] shows the use of this type.
///
/// It costs one task and, outside of tests, one thread.
#[derive(Debug)]
#[must_use = "leadership ends when this is dropped"]
pub struct Leadership {
    shared: Arc<Shared>,
    /// The task that renews; it returns the elector after `stop`.
    renewal: JoinSet<Option<LeaderElector>>,
    /// Cancelled to stop renewing.
    stop: CancellationToken,
    _watchdog: Option<Watchdog>,
}

/// The reason why a leader no longer leads.
///
/// The process should exit: its caches and its tasks belong to a leader that it no longer is. The
/// supervisor starts it again as a candidate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeadershipLost {
    /// The lease could not be renewed before the deadline.
    #[error("leader election lost: the lease was not renewed before its deadline")]
    DeadlinePassed,
    /// The lease names another holder.
    #[error("leader election lost: {}", taken_by(.holder))]
    #[non_exhaustive]
    TakenBy {
        /// Identity of the other holder; empty if another party removed this one.
        holder: String,
    },
    /// Another process uses the same identity.
    #[error("leader election lost: another process uses the same identity")]
    SharedIdentity,
}

/// Returns the end of the error text.
fn taken_by(holder: &str) -> String {
    match holder {
        "" => "another party removed the holder of the lease".to_owned(),
        holder => format!("the lease is held by {holder}"),
    }
}

// === impl Leadership ===

impl Leadership {
    /// Starts the renewal and the watchdog. The elector leads already.
    pub(super) fn new(mut elector: LeaderElector) -> Self {
        let shared = Arc::new(Shared {
            fence: elector.fence(),
            metrics: elector.metrics.clone(),
            view: elector.view(),
            lost: CancellationToken::new(),
            end: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let mut renewal = JoinSet::new();
        let watchdog = watch(&shared, elector.clock, &mut renewal);
        let (renewed, stopped) = (Arc::clone(&shared), stop.clone());
        renewal.spawn(async move {
            let lost = tokio::select! {
                biased;
                () = stopped.cancelled() => return Some(elector),
                lost = elector.renew() => lost,
            };
            renewed.lose(lost);
            None
        });
        Self { shared, renewal, stop, _watchdog: watchdog }
    }

    /// Waits until leadership is lost. Never ready after [`release`](Self::release).
    ///
    /// Several tasks may wait. A call after the loss returns at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn lost(&self) -> LeadershipLost {
        self.shared.lost.cancelled().await;
        self.shared.end.lock().reason.clone().unwrap_or(LeadershipLost::DeadlinePassed)
    }

    /// Aborts `task` when leadership is lost or dropped; at once if it is lost already.
    ///
    /// The thread that watches the deadline does it, so that no other task of the runtime needs to
    /// run for it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn doc(leadership: &homeostat::leader_election::Leadership) {
    /// let work = tokio::spawn(async { /* requests through the fenced client */ });
    /// leadership.abort_on_loss(work.abort_handle());
    /// # }
    /// ```
    pub fn abort_on_loss(&self, task: AbortHandle) {
        let mut end = self.shared.end.lock();
        if end.reason.is_some() {
            task.abort();
        } else {
            // Tasks that have ended are dropped before the list grows.
            if end.aborts.len() == end.aborts.capacity() {
                end.aborts.retain(|task| !task.is_finished());
            }
            end.aborts.push(task);
        }
    }

    /// Stops renewing and gives the lease to the next candidate. Call it after the work has ended.
    ///
    /// The fence closes first. A lease that cannot be released within the renew deadline expires by
    /// itself. It does nothing if leadership is lost already.
    ///
    /// Releasing before the work has ended admits two workers at once: the next candidate may lead
    /// as soon as the server has stored the release. A registered task that still runs is aborted
    /// only after that.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the lease to expire.
    #[doc(alias = "ReleaseOnCancel")]
    pub async fn release(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.renewal.join_next().await {
            if let Ok(Some(elector)) = ended {
                self.shared.end.lock().is_given_up = true;
                elector.release().await;
                break;
            }
        }
    }

    /// Runs `work` in a task until it ends, leadership is lost, or `shutdown` is ready and `work`
    /// has ended.
    ///
    /// # Panics
    ///
    /// If `work` panics: the lease is released first, and the panic then continues.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts `work` and stops renewing. The lease expires by itself.
    pub(super) async fn run<F: Future<Output: Send + 'static> + Send + 'static>(
        self,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Option<F::Output>, LeadershipLost> {
        let cancelled = CancellationToken::new();
        let mut tasks = JoinSet::new();
        // The closure may panic before its future exists.
        let work = match catch_unwind(AssertUnwindSafe(|| work(cancelled.clone()))) {
            Ok(work) => work,
            Err(panic) => {
                self.release().await;
                resume_unwind(panic)
            }
        };
        self.abort_on_loss(tasks.spawn(work));
        let mut shutting_down = false;
        let ended = loop {
            tokio::select! {
                biased;
                lost = self.lost() => {
                    tasks.abort_all();
                    // Work that blocks its thread does not reach the `await` that ends it.
                    drop(timeout(AFTER_ABORT, tasks.shutdown()).await);
                    return Err(lost);
                }
                Some(ended) = tasks.join_next() => break ended,
                () = shutdown.as_mut(), if !shutting_down => {
                    shutting_down = true;
                    cancelled.cancel();
                }
            }
        };
        self.finish(ended).await
    }

    /// Releases the lease after the end of the work. Resumes its panic, if it has panicked.
    async fn finish<T>(self, ended: Result<T, JoinError>) -> Result<Option<T>, LeadershipLost> {
        match ended {
            Ok(output) => {
                self.release().await;
                Ok(Some(output))
            }
            // Aborted by the watchdog, before `run` saw that.
            Err(error) if error.is_cancelled() => Err(self.lost().await),
            Err(error) => {
                self.release().await;
                resume_unwind(error.into_panic())
            }
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.shared.end.lock().is_given_up = true;
        self.shared.close();
        self.shared.end();
    }
}

/// Ends leadership at the deadline: by a thread, or in virtual time by a task.
///
/// Without a thread (in virtual time, or if the system refuses one) a task of the runtime waits for
/// the fence to close.
fn watch(
    shared: &Arc<Shared>,
    clock: LeaseClock,
    tasks: &mut JoinSet<Option<LeaderElector>>,
) -> Option<Watchdog> {
    let watched = Arc::clone(shared);
    if let LeaseClock::System { .. } = clock {
        let fence = shared.fence.clone();
        match Watchdog::start(fence, move || watched.lose(LeadershipLost::DeadlinePassed)) {
            Ok(watchdog) => return Some(watchdog),
            Err(error) => {
                tracing::warn!(%error, "no thread for the leader's watchdog; a task does its work");
            }
        }
    }
    let watched = Arc::clone(shared);
    tasks.spawn(async move {
        watched.fence.closed().await;
        watched.lose(LeadershipLost::DeadlinePassed);
        None
    });
    None
}

#[cfg(test)]
mod tests;
