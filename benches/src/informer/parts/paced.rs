//! [`writer_p99`]: the time of an update while another thread reads in a loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// Number of updates per second.
const WRITES: u32 = 5000;

/// Returns the 99th percentile of the time of `write`, which gets one of `states` at a steady pace.
/// Another thread repeats `read` until it returns false.
pub(super) fn writer_p99<T>(
    read: impl Fn() -> bool + Sync,
    states: impl Iterator<Item = T>,
    write: impl Fn(T),
    during: Duration,
) -> Duration {
    let stop = AtomicBool::new(false);
    let read = || {
        while !stop.load(Ordering::Relaxed) && read() {
            std::hint::spin_loop();
        }
    };
    let mut took = thread::scope(|scope| {
        scope.spawn(read);
        let took = times(states, write, during);
        stop.store(true, Ordering::Relaxed);
        took
    });
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

/// Returns the time of each write.
#[expect(clippy::disallowed_methods, reason = "there is no runtime: these are threads")]
fn times<T>(states: impl Iterator<Item = T>, write: impl Fn(T), during: Duration) -> Vec<Duration> {
    let (begin, apart) = (Instant::now(), Duration::from_secs(1) / WRITES);
    let (mut took, mut due) = (Vec::new(), Duration::ZERO);
    for state in states.take_while(|_| begin.elapsed() < during) {
        thread::sleep(due.saturating_sub(begin.elapsed()));
        due += apart;
        let start = Instant::now();
        write(state);
        took.push(start.elapsed());
    }
    took
}
