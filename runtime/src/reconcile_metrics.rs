//! The metrics of a controller's reconciles, with controller-runtime's names, labels and buckets.

use std::sync::Arc;

use homeostat_core::metrics::{is_recorded, record};
use metrics::{Counter, Gauge, Histogram};
use tokio::time::Instant;

/// The metrics of one controller. Clones share them.
///
/// Without a recorder at construction they record nothing.
#[derive(Clone)]
pub(crate) struct ReconcileMetrics(Option<Arc<Recorded>>);

/// The result of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reconciled {
    /// The key is forgotten until something changes.
    Success,
    /// The key is requeued after a time of the reconciler's choice.
    RequeueAfter,
    /// The key is retried.
    Error,
    /// The key is not retried until something changes.
    TerminalError,
    /// The reconciler panicked. The key is retried.
    Panic,
}

/// A reconcile that runs. Dropping it ends it without a result: the worker was aborted.
pub(crate) struct RunningReconcile {
    recorded: Option<(Arc<Recorded>, Instant)>,
}

struct Recorded {
    success: Counter,
    requeue_after: Counter,
    error: Counter,
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    active_workers: Gauge,
    time: Histogram,
}

// === impl ReconcileMetrics ===

impl ReconcileMetrics {
    /// Returns the metrics of the controller with this name and number of workers, including those
    /// of a second queue.
    pub(crate) fn new(controller: &str, workers: usize) -> Self {
        if !is_recorded() {
            return Self(None);
        }
        let mut metrics = None;
        record(|| metrics = Some(Arc::new(Recorded::new(controller, workers))));
        Self(metrics)
    }

    /// Records the start of a reconcile.
    pub(crate) fn started(&self) -> RunningReconcile {
        let recorded = self.0.as_ref().map(|recorded| {
            record(|| recorded.active_workers.increment(1.0));
            (Arc::clone(recorded), Instant::now())
        });
        RunningReconcile { recorded }
    }
}

// === impl RunningReconcile ===

impl RunningReconcile {
    /// Records the result and the duration.
    pub(crate) fn ended(self, reconciled: Reconciled) {
        let Some((recorded, started)) = &self.recorded else { return };
        record(|| {
            recorded.time.record(started.elapsed().as_secs_f64());
            recorded.count(reconciled);
        });
    }
}

impl Drop for RunningReconcile {
    fn drop(&mut self) {
        if let Some((recorded, _)) = &self.recorded {
            record(|| recorded.active_workers.decrement(1.0));
        }
    }
}

// === impl Recorded ===

impl Recorded {
    #[expect(clippy::cast_precision_loss, reason = "no controller has 2^52 workers")]
    fn new(controller: &str, workers: usize) -> Self {
        let of = || ("controller", controller.to_owned());
        let total = |result: &'static str| {
            metrics::counter!(
                "controller_runtime_reconcile_total",
                &[of(), ("result", result.to_owned())]
            )
        };
        metrics::gauge!("controller_runtime_max_concurrent_reconciles", &[of()])
            .set(workers as f64);
        Self {
            success: total("success"),
            requeue_after: total("requeue_after"),
            error: total("error"),
            errors: metrics::counter!("controller_runtime_reconcile_errors_total", &[of()]),
            terminal_errors: metrics::counter!(
                "controller_runtime_terminal_reconcile_errors_total",
                &[of()]
            ),
            panics: metrics::counter!("controller_runtime_reconcile_panics_total", &[of()]),
            active_workers: metrics::gauge!("controller_runtime_active_workers", &[of()]),
            time: metrics::histogram!("controller_runtime_reconcile_time_seconds", &[of()]),
        }
    }

    fn count(&self, reconciled: Reconciled) {
        match reconciled {
            Reconciled::Success => self.success.increment(1),
            Reconciled::RequeueAfter => self.requeue_after.increment(1),
            Reconciled::Error | Reconciled::TerminalError | Reconciled::Panic => {
                self.error.increment(1);
                self.errors.increment(1);
            }
        }
        match reconciled {
            Reconciled::TerminalError => self.terminal_errors.increment(1),
            Reconciled::Panic => self.panics.increment(1),
            _ => {}
        }
    }
}
