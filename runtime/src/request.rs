//! Requests of a reconciler: the key, the trigger, the attempt.
//!
//! A request says which object to look at, not what changed. Everything else in it is for logs,
//! metrics and the end of the process.

use std::fmt;
use std::sync::Arc;

use homeostat_informer::{Event, Object};
use homeostat_workqueue::Queue;
use tokio_util::sync::CancellationToken;

use crate::target::Target;

/// A controller's queue. Each key carries the trigger that added it.
pub(crate) type RequestQueue<T> = Queue<<T as Target>::Key, Trigger>;

/// A request to reconcile one object: its key, the number of the attempt and the trigger.
///
/// The controller creates requests. [`Request::new`] creates one for a unit test of a reconciler.
///
/// A clone shares the cancellation with its original.
///
/// # Examples
///
/// ```
/// use homeostat::{ObjectKey, Request, Trigger};
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// let request = Request::<ConfigMap>::new(ObjectKey::namespaced("shop", "settings"));
/// assert_eq!(request.attempt(), 1);
/// assert_eq!(request.trigger(), &Trigger::Unknown);
/// ```
pub struct Request<T: Target> {
    /// The key that the worker took from the queue.
    key: T::Key,
    /// At least 1.
    attempt: u32,
    trigger: Trigger,
    /// A child of the controller's token: cancelling it ends no other request.
    cancellation: CancellationToken,
    next: Next<T>,
}

/// The source of the answer to [`Request::is_requested_again`].
enum Next<T: Target> {
    /// The queue that the key was taken from.
    Queue(RequestQueue<T>),
    /// A test has decided.
    Fixed(bool),
}

/// The reason for which a key was added to the queue.
///
/// If several events add a key before it is reconciled, the first trigger stays; any later one
/// replaces [`Retry`](Self::Retry) and [`RequeueAfter`](Self::RequeueAfter). The trigger is for
/// logs and metrics: a reconciler that decides on it is edge-triggered and misses changes.
///
/// # Examples
///
/// A log line shows the trigger as text:
///
/// ```
/// use homeostat::{ChangeKind, Trigger};
///
/// let trigger = Trigger::Related { informer: "pods".into(), change: ChangeKind::Deleted };
/// assert_eq!(trigger.to_string(), "pods deleted");
/// assert_eq!(Trigger::Primary(ChangeKind::Listed).to_string(), "listed");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// The object itself changed.
    Primary(ChangeKind),
    /// A related object changed: one that the object owns, or one that a mapper watches.
    Related {
        /// The name of the informer that delivered the event.
        informer: Arc<str>,
        /// The change of the related object.
        change: ChangeKind,
    },
    /// The cache shows the object's own writes, for which the object waited in a
    /// [`ConsistencyStore`](crate::ConsistencyStore).
    CaughtUp {
        /// The name of the informer whose cache shows them.
        informer: Arc<str>,
    },
    /// A [`KeySource`](crate::KeySource) added the key.
    Source {
        /// The name of the source.
        name: Arc<str>,
    },
    /// A [timer](crate::ControllerBuilder::every) of the controller added the key.
    Timer,
    /// The last reconcile failed.
    Retry,
    /// The last reconcile returned [`Action::RequeueAfter`](crate::Action::RequeueAfter) or
    /// [`Action::Postpone`](crate::Action::Postpone).
    RequeueAfter,
    /// The trigger is unknown: a test created the request.
    Unknown,
}

/// The kind of an object's change.
///
/// Use it for logs and metrics. A mapper matches on [`Event`] instead: that also carries the
/// object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The object is part of the informer's initial list.
    Listed,
    /// The object was created.
    Added,
    /// The object was updated, or a resync delivered it unchanged.
    Updated,
    /// The object was deleted.
    Deleted,
    /// The object exists and no longer decodes into its Rust type.
    Opaque,
}

// === impl Request ===

impl<T: Target> Request<T> {
    /// Returns a first request for `key`, for a unit test of a reconciler.
    pub fn new(key: T::Key) -> Self {
        let cancellation = CancellationToken::new();
        let next = Next::Fixed(false);
        Self { key, attempt: 1, trigger: Trigger::Unknown, cancellation, next }
    }

    /// Returns the request with a key that is [requested again](Self::is_requested_again), for a
    /// unit test of a reconciler.
    #[must_use]
    pub fn requested_again(mut self) -> Self {
        self.next = Next::Fixed(true);
        self
    }

    pub(crate) fn with_queue(mut self, queue: RequestQueue<T>) -> Self {
        self.next = Next::Queue(queue);
        self
    }

    pub(crate) fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    pub(crate) fn with_trigger(mut self, trigger: Trigger) -> Self {
        self.trigger = trigger;
        self
    }

    pub(crate) fn with_cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// Returns the key: the object's namespace and name, or the author's own key type.
    #[doc(alias = "NamespacedName")]
    pub fn key(&self) -> &T::Key {
        &self.key
    }

    /// Returns the number of the attempt: 1 plus the failures since the last success.
    ///
    /// Only failures that back off count: not those that an
    /// [`error_policy`](crate::ControllerBuilder::error_policy) retries after a time of its own. A
    /// failure that is not retried counts as a success.
    ///
    /// Use it to change the log level or the status of an object that keeps failing.
    #[doc(alias = "NumRequeues")]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns the reason for which the key was added to the queue.
    pub fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    /// Returns true if an event has added the key again since this reconcile began: another
    /// reconcile of it starts as soon as this one ends.
    ///
    /// Use it to leave to the next reconcile what that would do again, such as a write of the
    /// status. Do not leave it twice: a key whose events never pause would wait for it forever. Do
    /// not leave work that the next reconcile cannot find in the caches.
    ///
    /// False says little: the event may be on its way. In a controller with a
    /// [second queue](crate::ControllerBuilder::second_queue), only events that add the key to the
    /// queue of this request count.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::{ObjectKey, Request};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let request = Request::<ConfigMap>::new(ObjectKey::namespaced("shop", "settings"));
    /// assert!(!request.is_requested_again());
    /// assert!(request.requested_again().is_requested_again());
    /// ```
    pub fn is_requested_again(&self) -> bool {
        match &self.next {
            Next::Queue(queue) => queue.is_requested(&self.key),
            Next::Fixed(is_requested) => *is_requested,
        }
    }

    /// Returns a token that is cancelled when the manager's drain timeout has passed. The reconcile
    /// is dropped one second later.
    ///
    /// Use it in a reconcile that can stop early without harm: between two batches of requests, for
    /// example. A reconcile that ignores it is dropped at an `await`.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::{ObjectKey, Request};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// async fn copy_all(request: &Request<ConfigMap>, parts: u32) -> u32 {
    ///     for part in 0..parts {
    ///         if request.cancellation().is_cancelled() {
    ///             return part;
    ///         }
    ///         // Copy one part.
    ///     }
    ///     parts
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let request = Request::new(ObjectKey::namespaced("shop", "settings"));
    /// request.cancellation().cancel();
    /// assert_eq!(copy_all(&request, 10).await, 0);
    /// # }
    /// ```
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

impl<T: Target> Clone for Request<T> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            attempt: self.attempt,
            trigger: self.trigger.clone(),
            cancellation: self.cancellation.clone(),
            next: self.next.clone(),
        }
    }
}

impl<T: Target> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("key", &self.key)
            .field("attempt", &self.attempt)
            .field("trigger", &self.trigger)
            .finish_non_exhaustive()
    }
}

impl<T: Target> Clone for Next<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Queue(queue) => Self::Queue(queue.clone()),
            Self::Fixed(is_requested) => Self::Fixed(*is_requested),
        }
    }
}

// === impl Trigger ===

impl Trigger {
    /// Merges the triggers of a key that is added twice: the first stays, except that `later`
    /// replaces a retry or a requeue, because it is what brings the key forward.
    pub(crate) fn merge(earlier: &mut Self, later: Self) {
        if matches!(earlier, Self::Retry | Self::RequeueAfter) {
            *earlier = later;
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primary(change) => change.fmt(f),
            Self::Related { informer, change } => write!(f, "{informer} {change}"),
            Self::CaughtUp { informer } => write!(f, "{informer} caught up"),
            Self::Source { name } => write!(f, "source {name}"),
            Self::Timer => f.write_str("timer"),
            Self::Retry => f.write_str("retry"),
            Self::RequeueAfter => f.write_str("requeue after"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

// === impl ChangeKind ===

impl ChangeKind {
    /// Returns the kind of change that `event` reports.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::{ChangeKind, Event};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let event = Event::Added { object: ConfigMap::default().into(), initial: true };
    /// assert_eq!(ChangeKind::of(&event), ChangeKind::Listed);
    /// ```
    pub fn of<K: Object>(event: &Event<K>) -> Self {
        match event {
            Event::Added { initial: true, .. } => Self::Listed,
            Event::Added { .. } => Self::Added,
            Event::Deleted { .. } | Event::OpaqueDeleted { .. } => Self::Deleted,
            Event::Opaque { .. } => Self::Opaque,
            Event::Updated { .. } => Self::Updated,
        }
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "listed",
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Opaque => "opaque",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_replaces_a_retry_and_keeps_an_earlier_change() {
        let merged = |mut earlier: Trigger, later: Trigger| {
            Trigger::merge(&mut earlier, later);
            earlier
        };
        let added = Trigger::Primary(ChangeKind::Added);
        let updated = Trigger::Primary(ChangeKind::Updated);
        assert_eq!(merged(Trigger::Retry, updated.clone()), updated);
        assert_eq!(merged(Trigger::RequeueAfter, updated.clone()), updated);
        assert_eq!(merged(added.clone(), updated), added);
        assert_eq!(merged(added.clone(), Trigger::Retry), added);
    }
}
