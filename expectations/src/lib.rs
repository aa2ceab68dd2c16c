//! What a controller has written and its cache has yet to show.
//!
//! A controller decides from a cache, and the cache is late: right after three pods were created it
//! still shows none of them, and a controller that looked again would create three more. So it notes
//! what it is about to write, and does nothing for that key until the cache has shown it.
//!
//! ```text
//!  reconcile ── satisfied? ──▶ no: wait, the event that lowers the entry asks again
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
//! [`UidTrackingExpectations`] and [`ControllerExpectations`] count what is to be seen.
//! [`ConsistencyStore`] compares versions: it says whether a cache is as new as what was written, and wakes who
//! waits for that.
//!
//! What differs from Kubernetes' own is listed in the book's page about expectations.

mod consistency;
mod counting;
mod entries;
mod guard;
mod pending;
mod sync;
mod uid_tracking;

pub use crate::consistency::{ConsistencyStore, GroupResource, Missing, Readiness};
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
