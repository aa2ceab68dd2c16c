//! What went wrong between an informer and its server, and who is told.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::list_watch::{ListError, WatchError};

/// What stands between an informer and its server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectorError {
    /// The list failed.
    #[error(transparent)]
    List(#[from] ListError),
    /// The watch failed.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The [`ListWatch`](crate::ListWatch) panicked.
    #[error("cannot follow {target}: its ListWatch panicked")]
    Panicked {
        /// What was listed or watched.
        target: Arc<str>,
    },
}

/// Told of each error, in order.
pub(crate) type ErrorHandler = Box<dyn Fn(&ReflectorError) + Send + Sync>;

/// The last error, until something succeeds.
pub(crate) struct Health {
    last: Mutex<Option<Arc<ReflectorError>>>,
    handler: Option<ErrorHandler>,
}

// === impl Health ===

impl Health {
    pub(crate) fn new(handler: Option<ErrorHandler>) -> Self {
        Self { last: Mutex::new(None), handler }
    }

    pub(crate) fn last_error(&self) -> Option<Arc<ReflectorError>> {
        self.last.lock().clone()
    }

    /// Remembers the error and tells the author of it.
    pub(super) fn failed(&self, error: ReflectorError) {
        tracing::debug!(%error, "reflector");
        let error = Arc::new(error);
        let previous = self.last.lock().replace(Arc::clone(&error));
        drop(previous);
        let Some(handler) = &self.handler else { return };
        // Not a reason to end the informer.
        if catch_unwind(AssertUnwindSafe(|| handler(&error))).is_err() {
            tracing::error!(%error, "the error handler panicked");
        }
    }

    pub(super) fn succeeded(&self) {
        let previous = self.last.lock().take();
        drop(previous);
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").field(&self.last_error()).finish()
    }
}
