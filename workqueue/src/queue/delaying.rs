//! The steps that delay items: delays, and items that are given back.
//!
//! Their order is that of the steps of [`Shared`] that queue items. These are apart from them,
//! because they start the timer, which queues items.

use std::hash::{BuildHasher as _, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::cause::Panics;
use crate::delays::{Delayed, Kind, Waiting, deadline_after};
use crate::request::Terms;
use crate::state::Held;

use super::core::Change;
use super::shared::Shared;
use super::task::OwnedTask;
use super::timer;

// === impl Shared ===

impl<T, C> Shared<T, C>
where
    T: Eq + Hash + Send + Sync + 'static,
    C: Send + 'static,
{
    /// Delays the item until `due`. Starts the timer unless it runs.
    ///
    /// The timer is woken only if the new deadline is the earliest of all. Its sleep ends early
    /// enough for all others.
    ///
    /// # Panics
    ///
    /// If the timer does not run and the caller is outside of a tokio runtime, or if the item's
    /// `Hash` or `Eq` panics. The queue is unchanged then.
    #[track_caller]
    pub(super) fn delay(shared: &Arc<Self>, item: T, due: Instant, kind: Kind, terms: Terms<C>) {
        let hash = shared.hasher.hash_one(&item);
        let request = shared.request(&item, terms);
        let mut guard = shared.core.lock();
        let core = &mut *guard;
        if core.shutting_down {
            return;
        }
        // First, because this panics outside of a runtime. The timer ends with its runtime; a later
        // call starts it on another one.
        if !core.timer.as_ref().is_some_and(OwnedTask::is_running) {
            let Some(timer) = timer::start(shared) else {
                panic!("a delay starts the queue's timer, which needs a tokio runtime")
            };
            core.timer = Some(timer);
        }
        let waiting = Waiting { item, hash, kind, request };
        let delayed = core.delays.insert(waiting, due, &mut core.merge);
        let panics = core.merge.take_panics();
        drop(guard);
        shared.finish_delay(&delayed, panics);
        if let Some(metrics) = &shared.metrics {
            metrics.retried();
        }
    }

    /// Returns an unfinished item: it is queued again, with the worker's cause.
    ///
    /// The first time since it was last done it is queued at once. The second consecutive time it
    /// is delayed by 5 ms, and each further time by twice as long, so that an item whose worker
    /// panics each time does not keep the workers busy.
    pub(super) fn give_back(shared: &Arc<Self>, held: Held, cause: C) {
        let rest = shared.core.lock().state.given_back(held).and_then(rest_after);
        match rest {
            Some(rest) => Self::rest(shared, held, cause, rest),
            None => shared.requeue(held, cause),
        }
    }

    /// Delays an unfinished item. If it was added meanwhile, if the queue is shut down or if the
    /// timer cannot run, queues it at once.
    ///
    /// The lock was free since the caller read the item's count, so that this checks again if the
    /// item was added or returned by a drain.
    ///
    /// This runs in the `Drop` of a guard, possibly while a panic unwinds: nothing here panics.
    fn rest(shared: &Arc<Self>, held: Held, cause: C, rest: Duration) {
        let now = Instant::now();
        let mut guard = shared.core.lock();
        let core = &mut *guard;
        if !core.timer.as_ref().is_some_and(OwnedTask::is_running) {
            core.timer = timer::start(shared);
        }
        let runs = core.timer.as_ref().is_some_and(OwnedTask::is_running);
        if !runs || core.shutting_down || core.state.given_back(held).is_none() {
            drop(guard);
            return shared.requeue(held, cause);
        }
        // Before any change, and caught: this may run in an unwinding, where a panic that leaves
        // a `Drop` ends the process.
        let find =
            || core.state.item(held).map(|(hash, item)| core.delays.find(hash, item, Kind::Rest));
        let Ok(Some(found)) = catch_unwind(AssertUnwindSafe(find)) else {
            drop(guard);
            return shared.requeue(held, cause);
        };
        let worked = core.observe_released(held, shared.observed.then_some(now));
        let Some((hash, item, request)) = core.state.rest(held, cause) else { return };
        let waiting = Waiting { item, hash, kind: Kind::Rest, request };
        let due = deadline_after(now, rest);
        let delayed = core.delays.insert_found(found, waiting, due, &mut core.merge);
        let panics = core.merge.take_panics();
        drop(guard);
        shared.finish_delay(&delayed, panics);
        if let Some(metrics) = &shared.metrics {
            metrics.released(worked, Change::None);
        }
    }
}

impl<T, C> Shared<T, C> {
    /// Wakes the timer if the item is due before all others, and reports a panic of the merge
    /// function. The caller must not hold the lock, and drops the merged item last.
    fn finish_delay(&self, delayed: &Delayed<T>, panics: Panics) {
        if let Delayed::Next(_) = delayed {
            self.timer_wake.notify_one();
        }
        panics.report(&self.name);
    }

    /// Queues an unfinished item again at once.
    ///
    /// It needs no bound on `T` and no runtime. It is the fallback of each case in which the item
    /// cannot wait.
    fn requeue(&self, held: Held, cause: C) {
        self.release(held, |core| core.state.give_back(held, cause, &mut core.merge));
    }
}

/// The delay of an item that is given back for the second time.
const FIRST_REST: Duration = Duration::from_millis(5);

/// The longest delay of an item that is given back: 1,000 s, as in the default rate limiter.
const LONGEST_REST: Duration = Duration::from_secs(1000);

/// Returns the delay of an item that was given back `before` times since it was last done; `None`
/// if it is queued at once.
///
/// The delay is `FIRST_REST · 2^(before - 1)`, at most [`LONGEST_REST`]. A power that overflows
/// counts as the largest `u32`, which exceeds the maximum.
fn rest_after(before: u32) -> Option<Duration> {
    let factor = 2_u32.checked_pow(before.checked_sub(1)?).unwrap_or(u32::MAX);
    Some(FIRST_REST.saturating_mul(factor).min(LONGEST_REST))
}
