//! The merging of two causes of one item. Pure.
//!
//! An item has at most one cause at each place: queued, delayed, or added while held. A second
//! cause for the same place is merged at once, so that the memory of a queue does not grow with the
//! number of requests.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use homeostat_core::user_code;

/// Merges two causes of one item with the author's function.
///
/// The function runs under the queue's lock, so that an `add` takes the lock once. A panic of the
/// function is kept here until the lock is released, because reporting it calls the metrics
/// recorder and the log.
pub(crate) struct Merge<C> {
    /// Called only under the queue's lock, so that it never runs twice at the same time.
    function: Function<C>,
    /// Empty whenever the lock is free: each step under the lock takes it before the release.
    panicked: Panics,
}

/// The author's function: merges the later cause into the earlier one.
type Function<C> = Box<dyn Fn(&mut C, C) + Send>;

/// The last unreported panic of the merge function, if any.
#[derive(Default)]
#[must_use = "report the panic after releasing the lock"]
pub(crate) struct Panics(Option<Box<dyn Any + Send>>);

// === impl Merge ===

impl<C> Merge<C> {
    pub(crate) fn new(function: impl Fn(&mut C, C) + Send + 'static) -> Self {
        Self { function: Box::new(function), panicked: Panics::default() }
    }

    /// Merges the later cause `new` into the earlier cause `old`.
    ///
    /// If the function panics, `old` keeps the value that it has at the panic.
    #[inline]
    pub(crate) fn merge(&mut self, old: &mut C, new: C) {
        // Decided at compile time: a queue without causes makes no call here.
        if size_of::<C>() > 0 {
            self.call(old, new);
        }
    }

    /// Runs the author's function and keeps its panic. A later panic under the same lock replaces
    /// it.
    fn call(&mut self, old: &mut C, new: C) {
        let function = &self.function;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| function(old, new))) {
            self.panicked = Panics(Some(panic));
        }
    }

    /// Takes the panic since the last call, for the caller to [report](Panics::report).
    #[inline]
    pub(crate) fn take_panics(&mut self) -> Panics {
        if size_of::<C>() > 0 { std::mem::take(&mut self.panicked) } else { Panics(None) }
    }
}

// === impl Panics ===

impl Panics {
    /// Counts and logs the panic. The caller must not hold a lock.
    #[inline]
    pub(crate) fn report(self, queue: &str) {
        let Some(panic) = self.0 else { return };
        // `user_code` counts all panics of authors' code. `resume_unwind` does not run the panic
        // hook a second time.
        let Err(error) = user_code("cause merge", || resume_unwind(panic));
        tracing::error!(queue, %error, "failed to merge two causes, keeping the earlier one");
    }
}
