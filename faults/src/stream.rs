//! Injects faults into the events of one watch.

mod aside;
mod body;
mod framing;
mod line_buffer;

use std::time::Duration;

use tokio::time::Instant;

pub(crate) use self::body::{open, reset};

/// The longest delay, 100 years: far below the point at which adding to an [`Instant`] panics.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Returns the time at which a delay ends.
fn after(start: Instant, delay: Duration) -> Instant {
    start + delay.min(CENTURY)
}
