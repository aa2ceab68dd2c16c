//! Ends leadership at its deadline, whatever the renewing task does.
//!
//! Why a thread: a task ends leadership only if a thread of the runtime polls it. Work that blocks
//! all of them (a long computation, a blocking call) is exactly the case in which the lease is not
//! renewed. The thread needs no runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::fence::Fence;

/// The longest sleep. A thread's sleep does not count the time in which a machine is suspended: the
/// watchdog reads the deadline again at most this long after the machine resumes.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// A thread that waits for the deadline. The runtime's threads may all be blocked by work at that
/// time.
///
/// Dropping it ends the thread.
///
/// It costs a thread that wakes twice per second.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// Set by `drop`, read by the thread before each sleep. It is never reset.
    stopped: Arc<AtomicBool>,
    /// `None` only while `drop` runs.
    thread: Option<JoinHandle<()>>,
}

// === impl Watchdog ===

impl Watchdog {
    /// Calls `at_deadline` once the fence has closed.
    ///
    /// The callback runs on the thread, at most once, and must not block.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub(super) fn start(
        fence: Fence,
        at_deadline: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stopped);
        let watch = move || {
            while !seen.load(Ordering::SeqCst) {
                match fence.time_left() {
                    Some(left) => thread::park_timeout(left.min(LONGEST_SLEEP)),
                    None => return at_deadline(),
                }
            }
        };
        let thread = thread::Builder::new().name("leader-watchdog".to_owned()).spawn(watch)?;
        Ok(Self { stopped, thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let Some(thread) = self.thread.take() else { return };
        // The thread itself drops this when its callback owns the last reference to it.
        if thread.thread().id() != thread::current().id() {
            Thread::unpark(thread.thread());
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::clock::LeaseClock;
    use super::*;

    #[test]
    fn deadline_is_noticed_without_a_runtime() {
        let clock = LeaseClock::system();
        let fence = Fence::new(clock);
        fence.set(Some(clock.now() + Duration::from_millis(20)));
        let (sender, receiver) = mpsc::channel();
        let _watchdog = Watchdog::start(fence.clone(), move || sender.send(()).unwrap()).unwrap();
        receiver.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(!fence.is_open());
    }

    #[test]
    fn watchdog_that_is_dropped_calls_nothing() {
        let clock = LeaseClock::system();
        let fence = Fence::new(clock);
        fence.set(Some(clock.now() + Duration::from_secs(3_600)));
        let (sender, receiver) = mpsc::channel::<()>();
        drop(Watchdog::start(fence, move || sender.send(()).unwrap()).unwrap());
        assert_eq!(receiver.recv(), Err(mpsc::RecvError), "joined, and its callback dropped");
    }
}
