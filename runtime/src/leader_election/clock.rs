//! The clock of an election.
//!
//! Deadlines of an election count a clock that includes the time of a suspend. A laptop or a
//! virtual machine that sleeps for a minute wakes up without leadership: another candidate could
//! lead since.

use std::time::Duration;

use tokio::time::Instant;

use super::state::Moment;

/// A clock that never goes back, and that a suspended machine does not stop.
///
/// A value is a copy of a few bytes. The variant is chosen once, when the elector is built.
#[derive(Debug, Clone, Copy)]
pub(super) enum LeaseClock {
    /// `CLOCK_BOOTTIME` where the system has it. tokio's clock stands still while the machine is
    /// suspended; leases expire meanwhile.
    System { origin: Duration },
    /// tokio's clock, which a test can pause.
    Tokio { origin: Instant },
}

// === impl LeaseClock ===

impl LeaseClock {
    /// Returns the machine's clock, at zero now.
    pub(super) fn system() -> Self {
        Self::System { origin: system_time() }
    }

    /// Returns tokio's clock, at zero now.
    pub(super) fn tokio() -> Self {
        Self::Tokio { origin: Instant::now() }
    }

    /// Returns the time since the clock was made. It never goes back.
    pub(super) fn now(self) -> Moment {
        match self {
            Self::System { origin } => system_time().saturating_sub(origin),
            Self::Tokio { origin } => origin.elapsed(),
        }
    }
}

/// Returns the time since an arbitrary start, which differs between systems.
fn system_time() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = rustix::time::ClockId::Boottime;
    // On macOS the monotonic clock goes on during sleep.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_advances() {
        let clock = LeaseClock::system();
        let before = clock.now();
        while clock.now() == before {
            std::hint::spin_loop();
        }
        assert!(clock.now() > before);
    }

    #[tokio::test(start_paused = true)]
    async fn tokio_clock_follows_the_paused_clock() {
        let clock = LeaseClock::tokio();
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(clock.now(), Duration::from_secs(3));
    }
}
