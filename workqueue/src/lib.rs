//! A work queue that never hands one item to two workers at the same time and never loses an item.
//!
//! Watch handlers add keys; workers take keys and reconcile the objects. The queue between them
//! keeps three promises, whatever the workers do:
//!
//! * **One key, one worker.** While a worker holds a key, the queue does not hand it out again.
//! * **No request is lost.** A key that is added while a worker holds it is handed out again when
//!   that worker is done. If a worker panics, is cancelled or drops its key without `done`, the key
//!   is queued again.
//! * **Duplicates are merged.** A key that is added several times before a worker takes it is
//!   handed out once.
//!
//! ```text
//!  add ───────────────▶ ┌────────┐  get   ┌────────────┐  done
//!  add_after ─▶ delays ▶│ queued │ ─────▶ │ Processing │ ──────▶ removed
//!  add_rate_limited ──▶ └────────┘        └────────────┘
//!                           ▲   added while held,  │
//!                           └── or dropped ────────┘
//! ```
//!
//! # Examples
//!
//! ```
//! use homeostat_workqueue::Queue;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let queue = Queue::new();
//! queue.add("default/web");
//! queue.add("default/web"); // merged with the first
//! queue.shut_down();
//!
//! let mut handled = 0;
//! while let Some(key) = queue.get().await {
//!     assert_eq!(*key, "default/web");
//!     handled += 1;
//!     key.done();
//! }
//! assert_eq!(handled, 1);
//! # }
//! ```
//!
//! # What differs from client-go
//!
//! In client-go:
//!
//! * `Get` needs a later `Done(item)`, and a missing `Done` blocks the key forever. Here a worker
//!   gets a [`Processing`]; if it is dropped without [`done`](Processing::done), the key is queued
//!   again.
//! * `Add` leaves a pending `AddAfter` of the item in place. [`Queue::add`] removes the delay.
//! * Items that are delayed at shutdown are lost. [`Queue::drain`] returns them.
//! * `ShutDownWithDrain` waits for the held items, not for the queued ones, and has no timeout.
//!   [`Queue::drain`] waits for both, up to a timeout.
//! * There are three queue types with an interface each. Here one [`Queue`] has delays and back-off
//!   as methods; the rate limiter is an option of the [`QueueBuilder`].
//! * A request carries no data. Here it can carry a [cause](Queue::because).
//! * There are no priorities, and controller-runtime's let low priorities starve. Here
//!   [`Priorities`] has ageing, and [`QueueBuilder::fair_by`] lets namespaces or tenants take
//!   turns.
//!
//! # A worker that retries failures
//!
//! Every outcome ends with [`done`](Processing::done). A failure is added with back-off before
//! that, a success resets the back-off:
//!
//! ```
//! use homeostat_workqueue::Queue;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let queue = Queue::new();
//! queue.add("default/web");
//!
//! let mut attempts = 0;
//! while let Some(key) = queue.get().await {
//!     attempts += 1;
//!     let outcome = if attempts < 3 { Err("conflict") } else { Ok(()) };
//!     match outcome {
//!         Ok(()) => queue.forget(&key),
//!         Err(_) => queue.add_rate_limited(*key), // after 5 ms, then after 10 ms
//!     }
//!     if outcome.is_ok() {
//!         queue.shut_down();
//!     }
//!     key.done();
//! }
//! assert_eq!(attempts, 3);
//! # }
//! ```
//!
//! # Cost
//!
//! A queue has one lock for its items and one for its rate limiter. An add hashes the item once,
//! outside of the lock. In a FIFO queue, an add and a hand-out take constant time on average; with
//! priorities they take `O(log p)` for `p` priorities in the queue; a delay takes `O(log d)` for
//! `d` delayed items. An item that is already queued needs no allocation. An add and a hand-out
//! read the clock only if the queue has metrics or is built with [`QueueBuilder::inspect`].

mod cause;
mod delays;
pub mod inspect;
mod order;
mod queue;
mod rate_limiter;
mod request;
mod state;
mod sync;
#[cfg(test)]
mod testing;

pub use crate::queue::{
    Adder, DURATION_BUCKETS, LOW_PRIORITY, Priorities, Processing, Queue, QueueBuilder, Unfinished,
    WorkBatch, WorkItem, Worker,
};
pub use crate::rate_limiter::{
    BucketRateLimiter, ExponentialFailureRateLimiter, FALLBACK_DELAY, FastSlowRateLimiter,
    MaxOfRateLimiter, MaxWaitRateLimiter, RateLimiter, default_controller_rate_limiter,
    default_item_rate_limiter,
};

/// Compiles the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the examples in the pages of the book.
#[cfg(doctest)]
#[doc = include_str!("../../docs/workqueue.md")]
#[doc = include_str!("../../docs/rate-limiters.md")]
struct Book;
