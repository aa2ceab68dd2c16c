//! Limits the requests that one object may cause. Pure.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::keys::InvolvedKey;
use super::lru::Lru;

/// The requests that one object may cause at once, and the time after which it may cause one more
/// (`defaultSpamBurst`, `defaultSpamQPS`).
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);

/// A token bucket per object and type of event.
#[derive(Debug)]
pub(super) struct SpamFilter {
    buckets: Lru<InvolvedKey, Bucket>,
}

/// A token bucket, stored as the time at which it is full again.
#[derive(Debug)]
struct Bucket {
    full_at: Instant,
}

// === impl SpamFilter ===

impl SpamFilter {
    /// Returns a filter that remembers `capacity` objects.
    pub(super) fn new(capacity: usize) -> Self {
        Self { buckets: Lru::new(capacity) }
    }

    /// Returns true if `involved` may cause one more request now, and counts it.
    pub(super) fn admits(&mut self, involved: impl Into<Arc<InvolvedKey>>, now: Instant) -> bool {
        self.buckets.get_or_insert_with(involved, || Bucket { full_at: now }).take(now)
    }
}

// === impl Bucket ===

impl Bucket {
    /// Takes one of the [`BURST`] tokens. Returns false if none is left.
    ///
    /// The bucket holds [`BURST`] tokens and gains one in [`REFILL`]. A request that is refused
    /// takes none.
    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.max(now) + REFILL;
        let fits = full_at - now <= REFILL * BURST;
        if fits {
            self.full_at = full_at;
        }
        fits
    }
}
