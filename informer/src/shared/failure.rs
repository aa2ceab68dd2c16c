//! [`Failure`]: the boundary around the tasks of an informer, and the first panic that crossed it.
//!
//! Calls of the author's code have boundaries of their own, so a panic that arrives here is that of
//! a destructor, of a subscriber of `tracing`, or of this crate. The task cannot continue: its
//! state may be half changed. The informer stops, so that every wait ends and a supervisor learns
//! of it.

use std::sync::Arc;

use homeostat_core::{Panicked, user_code, user_future};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::status::{InformerFailure, InformerTask};

/// The first panic that ended a task of an informer.
///
/// Shared by the handles and the tasks. It is set at most once, and before `stop` is cancelled: a
/// wait that ends because of `stop` finds the cause here.
pub(super) struct Failure {
    informer: Arc<str>,
    first: watch::Sender<Option<InformerFailure>>,
    /// Ends all tasks of the informer.
    stop: CancellationToken,
    /// Its labels are free again after a failure, without a call of `stop`.
    metrics: Arc<Metrics>,
}

impl Failure {
    /// Returns the boundary of an informer that `stop` ends.
    pub(super) fn new(informer: Arc<str>, stop: CancellationToken, metrics: Arc<Metrics>) -> Self {
        Self { informer, first: watch::Sender::new(None), stop, metrics }
    }

    /// Returns the failure, or `None` if no task has panicked.
    pub(super) fn get(&self) -> Option<InformerFailure> {
        self.first.borrow().clone()
    }

    /// Runs `work` to its end. A panic of it, or of its destructor, stops the informer.
    ///
    /// # Cancel safety
    /// Cancel safe if `work` is: this adds no state of its own.
    pub(super) async fn contain(&self, task: InformerTask, work: impl Future<Output = ()>) {
        let mut work = Box::pin(work);
        if let Err(panic) = user_future("informer task", work.as_mut()).await {
            self.fail(task.clone(), panic);
        }
        if let Err(panic) = user_code("informer task", || drop(work)) {
            self.fail(task, panic);
        }
    }

    /// Keeps the first failure, frees the labels of the metrics, and then stops the informer.
    fn fail(&self, task: InformerTask, panic: Panicked) {
        let failure = InformerFailure { informer: Arc::clone(&self.informer), task, panic };
        self.first.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert_with(|| failure.clone());
            is_first
        });
        self.metrics.release();
        self.stop.cancel();
        tracing::error!(informer = %failure.informer, %failure, "informer stops after a panic");
    }
}
