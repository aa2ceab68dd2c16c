//! The mark of a thread that polls an informer's task: a wait for another such task could deadlock
//! there.
//!
//! Handlers and index functions are called by such tasks, and are not async. If one of them blocked
//! its thread until an informer has stopped or a handler is gone, it could wait for itself, for a
//! task that waits for it, or for a task that only this thread would run. So `stop` and `remove` do
//! not wait when they are called from there.
//!
//! The mark is per thread and per poll, not per task: an informer's task may move to another thread
//! between two polls, and code that it spawns runs without the mark. The mark counts, because a
//! handler may poll another informer's future by hand, so that one marked poll runs inside another.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;

thread_local! {
    /// The number of informer tasks that this thread is polling, one inside the other.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Marks this thread while it lives.
///
/// The unit field is private, so that only [`enter`](Self::enter) can create it. The guard holds no
/// thread's data, but it must be dropped on the thread that created it: never keep it across an
/// await.
pub(crate) struct CallbackGuard(());

/// Returns true if it is called from an informer's task.
pub(crate) fn in_callback() -> bool {
    DEPTH.get() > 0
}

/// Runs `task`; the thread is marked while it is polled.
///
/// The mark is set for each poll and removed after it, also if the poll panics.
///
/// # Cancel safety
/// Cancel safe if `task` is: this adds no state of its own.
pub(crate) async fn mark<T>(task: impl Future<Output = T>) -> T {
    let mut task = pin!(task);
    poll_fn(|context| {
        let _guard = CallbackGuard::enter();
        task.as_mut().poll(context)
    })
    .await
}

// === impl CallbackGuard ===

impl CallbackGuard {
    /// Marks the current thread until the guard is dropped.
    pub(crate) fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for CallbackGuard {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
