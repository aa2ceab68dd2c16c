//! [`Health`]: the successes and failures of a reflector, for logs, metrics, status pages and the
//! error handler.
//!
//! The lock is held for reads and updates of fields only: the error handler and the drop of an old
//! error, which may hold the author's source error, run without it.
//!
//! One series of failures produces one warning and, when it ends, one line with the duration; see
//! [`Outage`]. Failures that belong to normal operation are logged at debug level.

use std::fmt;
use std::sync::Arc;

use homeostat_core::metrics::record;
use homeostat_core::user_code;
use metrics::Counter;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::outage::Outage;
use crate::list_watch::WatchError;
use crate::object::ResourceVersion;
use crate::status::{ReflectorError, ReflectorPhase, ReflectorStatus};

/// The author's function that receives each error, in order.
pub(crate) type ErrorHandler = Box<dyn Fn(&ReflectorError) + Send + Sync>;

/// The successes and failures of one reflector.
pub(crate) struct Health {
    /// The informer's name, for logs.
    name: Arc<str>,
    state: Mutex<HealthState>,
    /// Counts each failure.
    errors: Counter,
    /// Called without the lock, once per failure, by the reflector's task.
    handler: Option<ErrorHandler>,
}

/// The state that the lock protects.
struct HealthState {
    /// The status without the received version, which the queue holds.
    status: ReflectorStatus,
    outage: Outage,
}

// === impl Health ===

impl Health {
    /// Starts idle, without failures.
    pub(crate) fn new(name: Arc<str>, errors: Counter, handler: Option<ErrorHandler>) -> Self {
        let status = ReflectorStatus {
            phase: ReflectorPhase::Idle,
            resource_version: None,
            last_full_sync: None,
            full_syncs: 0,
            failures: 0,
            last_error: None,
            skipped_nameless: 0,
        };
        let state = HealthState { status, outage: Outage::default() };
        Self { name, state: Mutex::new(state), errors, handler }
    }

    /// Returns the informer's name.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the status of a reflector that has received everything up to `received`.
    pub(crate) fn status(&self, received: Option<ResourceVersion>) -> ReflectorStatus {
        ReflectorStatus { resource_version: received, ..self.state.lock().status.clone() }
    }

    /// Returns the error of the current series of failures; `None` after a success.
    pub(crate) fn last_error(&self) -> Option<Arc<ReflectorError>> {
        self.state.lock().status.last_error.clone()
    }

    /// Returns the number of objects without a name since the informer started.
    pub(crate) fn skipped_nameless(&self) -> u64 {
        self.state.lock().status.skipped_nameless
    }

    /// Records the phase that begins now.
    pub(super) fn enter(&self, phase: ReflectorPhase) {
        self.state.lock().status.phase = phase;
    }

    /// Counts a full sync that is in the queue.
    pub(super) fn full_sync(&self, version: &ResourceVersion) {
        let status = &mut self.state.lock().status;
        status.full_syncs += 1;
        status.last_full_sync = Some(version.clone());
    }

    /// Counts skipped objects and logs a warning, if there are any.
    pub(super) fn skip_nameless(&self, objects: usize) {
        if objects > 0 {
            let informer = &*self.name;
            tracing::warn!(informer, objects, "objects without a name are skipped");
            self.state.lock().status.skipped_nameless += objects as u64;
        }
    }

    /// Stores, counts and logs the error, and calls the author's error handler.
    ///
    /// The order is fixed: store, count, log, metric, handler. The handler sees the status with its
    /// own error in it.
    pub(super) fn failed(&self, error: ReflectorError) {
        let (now, informer) = (Instant::now(), &*self.name);
        let error = Arc::new(error);
        let mut state = self.state.lock();
        state.status.failures += 1;
        let failures = state.status.failures;
        let previous = state.status.last_error.replace(Arc::clone(&error));
        let warns = state.outage.failed(now, is_normal(&error));
        drop(state);
        drop(previous);
        if warns {
            tracing::warn!(
                informer, %error, failures,
                "cannot follow the server, the cache may be old; retrying"
            );
        } else {
            tracing::debug!(informer, %error, failures, "request failed, retrying");
        }
        record(|| self.errors.increment(1));
        let Some(handler) = &self.handler else { return };
        // A panic of the handler must not end the informer.
        if user_code("error handler", || handler(&error)).is_err() {
            tracing::error!(informer, %error, "error handler panicked; the informer continues");
        }
    }

    /// Ends a series of failures: a watch was opened or a full state was queued.
    ///
    /// The end of an outage is logged with its duration and the number of failures. Without an
    /// outage nothing is logged.
    pub(super) fn succeeded(&self) {
        let mut state = self.state.lock();
        let failures = std::mem::take(&mut state.status.failures);
        let previous = state.status.last_error.take();
        let outage = state.outage.succeeded(Instant::now);
        drop(state);
        if let (Some(outage), Some(error)) = (outage, &previous) {
            let informer = &*self.name;
            tracing::info!(
                informer, ?outage, failures, %error, "following the server again after an outage"
            );
        }
        drop(previous);
    }
}

/// Returns true for a failure that the next request repairs in most cases: a watch that broke off,
/// or a version that expired.
fn is_normal(error: &ReflectorError) -> bool {
    match error {
        ReflectorError::Watch(error) => {
            error.is_expired() || matches!(error, WatchError::Torn { .. })
        }
        ReflectorError::List(error) => error.is_expired(),
        ReflectorError::Panicked { .. } => false,
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").field(&self.last_error()).finish()
    }
}
