//! What a queue holds, for a page that shows it.

use tokio::time::Instant;

use crate::request::Reason;
use crate::state::Place;

use super::core::Core;

/// What a queue held at one moment; made by [`Queue::inspect`](super::Queue::inspect).
///
/// An item that is delayed may be queued or held as well.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot<T> {
    /// What waits for a worker; the one that was asked for first comes first.
    pub queued: Vec<Queued<T>>,
    /// What is queued later; the one that is due first comes first.
    pub delayed: Vec<Delayed<T>>,
    /// What workers have; the one that was taken first comes first.
    pub held: Vec<Held<T>>,
}

/// An item that waits for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queued<T> {
    /// The item.
    pub item: T,
    /// What brought it here.
    pub reason: Reason,
    /// When it was asked for.
    pub since: Instant,
    /// Its priority; 0 in a queue without.
    pub priority: i32,
    /// How often it has failed, as the rate limiter counts.
    pub failures: u32,
}

/// An item that is queued later.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delayed<T> {
    /// The item.
    pub item: T,
    /// What will bring it to the queue.
    pub reason: Reason,
    /// When it is queued.
    pub until: Instant,
    /// The priority it will have; 0 in a queue without.
    pub priority: i32,
    /// How often it has failed, as the rate limiter counts.
    pub failures: u32,
}

/// An item that a worker has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held<T> {
    /// The item.
    pub item: T,
    /// What had brought it to the queue.
    pub reason: Reason,
    /// When the worker took it.
    pub since: Instant,
    /// Whether it is queued again when the worker is done.
    pub again: bool,
    /// The priority at which it was queued; 0 in a queue without.
    pub priority: i32,
    /// How often it has failed, as the rate limiter counts.
    pub failures: u32,
}

// === impl Snapshot ===

impl<T> Snapshot<T> {
    pub(super) fn set_failures(&mut self, failures: impl Fn(&T) -> u32) {
        for queued in &mut self.queued {
            queued.failures = failures(&queued.item);
        }
        for delayed in &mut self.delayed {
            delayed.failures = failures(&delayed.item);
        }
        for held in &mut self.held {
            held.failures = failures(&held.item);
        }
    }
}

// === impl Core ===

impl<T: Clone> Core<T> {
    /// All but the failures, in no order; `None` if it is not observed.
    pub(super) fn inspect(&self) -> Option<Snapshot<T>> {
        let observer = self.observer.as_deref()?;
        let (mut queued, mut held) = (Vec::new(), Vec::new());
        for (slot, place, item) in self.state.items() {
            let Some(seen) = observer.seen(slot) else { continue };
            let (item, priority) = (item.clone(), self.state.priority(slot));
            let (since, reason) = seen.asked;
            if let Place::Held { again } = place {
                let since = seen.taken;
                held.push(Held { item, reason, since, again, priority, failures: 0 });
            } else {
                queued.push(Queued { item, reason, since, priority, failures: 0 });
            }
        }
        let delayed = self.delays.items().map(|(item, request, until)| Delayed {
            item: item.clone(),
            reason: request.reason,
            until,
            priority: request.rank.priority,
            failures: 0,
        });
        Some(Snapshot { queued, delayed: delayed.collect(), held })
    }
}
