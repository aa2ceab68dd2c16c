//! A work queue that never hands one item to two workers, and never loses one.
//!
//! Many watchers say "look at this key again"; a few workers look. The queue in between keeps three
//! promises, whatever the workers do:
//!
//! * **One key, one worker.** A key that is held is not handed out again before it is given back.
//! * **No request is lost.** A key that is added while a worker holds it is handed out once more
//!   afterwards. A worker that panics, is cancelled or forgets its key gives it back, and it is
//!   queued again.
//! * **Many requests are one.** However often a key is added before a worker takes it, it is handed
//!   out once.
//!
//! ```text
//!  add ───────────────▶ ┌────────┐  get   ┌────────────┐  done
//!  add_after ─▶ delays ▶│ queued │ ─────▶ │ Processing │ ──────▶ forgotten
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
//! | client-go | here |
//! | --- | --- |
//! | `Get` and `Done(item)`; a missing `Done` blocks the key for ever | [`Processing`]; dropped without [`done`](Processing::done), the key is queued again |
//! | `Add` leaves a pending `AddAfter` of the item in place | [`Queue::add`] removes it |
//! | items that were delayed at shut-down are lost | [`Queue::drain`] hands them back |
//! | `ShutDownWithDrain` waits for what is held, not for what is queued, and without an end | [`Queue::drain`] waits for both, up to a deadline |
//! | three queue types and an interface for each | one [`Queue`]; delays and back-off are methods, the limiter an option of its [`Builder`] |
//! | no priorities (controller-runtime's let low ones starve) | [`Priorities`] with ageing, and [turns](Builder::fair_by) |

mod delays;
mod order;
mod queue;
mod rate_limiter;
mod request;
mod state;
mod sync;
#[cfg(test)]
mod testing;

pub use crate::queue::{
    AtPriority, Builder, DURATION_BUCKETS, Delayed, Held, LOW_PRIORITY, Priorities, Processing,
    Queue, Queued, Snapshot, Undone,
};
pub use crate::rate_limiter::{
    BucketRateLimiter, ExponentialFailureRateLimiter, FastSlowRateLimiter, MaxOfRateLimiter,
    MaxWaitRateLimiter, RateLimiter, default_controller_rate_limiter, default_item_rate_limiter,
};
pub use crate::request::Reason;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the examples of the book's pages.
#[cfg(doctest)]
#[doc = include_str!("../../docs/workqueue.md")]
#[doc = include_str!("../../docs/rate-limiters.md")]
struct Book;
