//! Whether this thread is running an informer's task: then it must not wait for one.
//!
//! Handlers, index functions and the like are called by such tasks, and are not async: if one of them blocks its thread
//! until an informer has stopped, or a handler is gone, then that may be a wait for itself, for who waits for it, or for
//! a task that this very thread would run. So nobody waits from in there; what was asked for happens all the same.

use std::{cell::Cell, future::poll_fn, pin::pin};

thread_local! {
    /// How many such tasks this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// That this thread is in one, as long as this lives.
pub(crate) struct Inside(());

/// Whether this is called from an informer's task.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// The same task; whatever it calls is inside.
pub(crate) async fn run<T>(task: impl Future<Output = T>) -> T {
    let mut task = pin!(task);
    poll_fn(|context| {
        let _inside = Inside::enter();
        task.as_mut().poll(context)
    })
    .await
}

// === impl Inside ===

impl Inside {
    pub(crate) fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
