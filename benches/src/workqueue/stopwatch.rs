//! A stopwatch for wall time and CPU time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// A stopwatch that starts when it is created.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    start: Instant,
    cpu: Duration,
}

/// Measurements of a stopwatch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// Wall time.
    pub wall: Duration,
    /// CPU time of this process on all cores.
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

    /// As `read`, but the wall time counts from `start`: before that no work was done.
    pub(super) fn read_since(&self, start: Instant) -> Took {
        Took { wall: start.elapsed(), cpu: cpu().saturating_sub(self.cpu) }
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
