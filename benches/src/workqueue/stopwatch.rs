//! Wall time and CPU time at once.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// Runs from when it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    start: Instant,
    cpu: Duration,
}

/// What a stopwatch has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// Time on the wall.
    pub wall: Duration,
    /// Time that this process has spent on any core.
    pub cpu: Duration,
}

// === impl Stopwatch ===

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self { cpu: cpu(), start: Instant::now() }
    }

    pub(super) fn read(&self) -> Took {
        self.read_since(self.start)
    }

    /// As `read`, but the wall time counts from `start`, until which nothing ran.
    pub(super) fn read_since(&self, start: Instant) -> Took {
        Took { wall: start.elapsed(), cpu: cpu().saturating_sub(self.cpu) }
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
