//! Tracks the writes of a controller that its cache does not show yet (Kubernetes'
//! `ControllerExpectations`).
//!
//! A controller decides from a cache, and the cache is late: right after the controller has created
//! three pods, the cache still shows none of them, and a second reconcile would create three more.
//! So the controller records the writes that it is about to send, and skips the key until the cache
//! shows them.
//!
//! ```text
//!  reconcile ── satisfied? ──▶ no: wait, the event that lowers the entry queues the key
//!      │ yes
//!      ▼
//!  expect_creations(3) ──▶ guard ── start ─▶ token ──▶ POST ─┬─ sent: the cache will show it
//!                            │                               ├─ refused: it never will; lowered
//!      never started: lowered when the guard is dropped      └─ dropped: unknown; still expected
//!
//!  informer ── Added ──▶ creation_observed ──▶ lowered ──▶ key is queued ──▶ reconcile
//! ```
//!
//! # Examples
//!
//! ```
//! use homeostat_expectations::UidTrackingExpectations;
//!
//! let expectations = UidTrackingExpectations::<&str, &str>::default();
//! let (key, owner) = ("default/web", "uid-1");
//! assert!(expectations.satisfied(&key, &owner));
//!
//! // Two pods are missing. The first request is sent, the second one refused.
//! let expected = expectations.expect_creations(&key, &owner, 2);
//! expected.start().sent();
//! expected.start().refused();
//! drop(expected);
//! assert!(!expectations.satisfied(&key, &owner), "the first pod is not in the cache yet");
//!
//! expectations.creation_observed(&key, &owner);
//! assert!(expectations.satisfied(&key, &owner));
//! ```
//!
//! [`UidTrackingExpectations`] and [`ControllerExpectations`] count the creations and deletions
//! that the cache has yet to show. [`ConsistencyStore`] compares versions: it reports if a cache is
//! as new as the writes, and returns the keys that waited for the cache.
//!
//! The book's page about expectations lists the differences from Kubernetes.
//!
//! # Choosing a type
//!
//! * Use [`UidTrackingExpectations`] when the informer may report one deletion twice: a pod's
//!   `deletionTimestamp` first, its removal later. Kubernetes' `ReplicaSet` controller uses it.
//! * Use [`ControllerExpectations`] when one reconcile both creates and deletes, as Kubernetes'
//!   `DaemonSet` controller does.
//! * Use [`ConsistencyStore`] when every write returns a `resourceVersion` and the caches report
//!   theirs. It also covers updates, which the other two do not count.
//!
//! # Limits
//!
//! * The two counting types expire an entry after 5 minutes, as upstream, however late the informer
//!   is: a controller whose cache is later than that may repeat a write.
//! * [`ConsistencyStore`] ignores writes to a resource before the first
//!   [`reached`](ConsistencyStore::reached) of that resource. Wait for the initial sync of the
//!   informers before the first reconcile, as the runtime does.
//!
//! # Cost
//!
//! Each type has one lock for all its keys. No call waits for anything but that lock, and no call
//! needs a runtime. The lock is never held while a key or a uid is dropped, a metric is recorded or
//! a line is logged.

mod consistency;
mod counting;
mod entries;
mod guard;
mod pending;
mod sync;
mod uid_tracking;

pub use homeostat_core::GroupResource;

pub use crate::consistency::{ConsistencyStore, Missing, Readiness};
pub use crate::counting::ControllerExpectations;
pub use crate::guard::{
    CreationToken, DeletionToken, Expected, ExpectedCreations, ExpectedDeletions,
};
pub use crate::pending::Outstanding;
pub use crate::uid_tracking::UidTrackingExpectations;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
