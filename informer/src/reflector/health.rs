//! What went wrong between an informer and its server, and who is told.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    list_watch::{ListError, WatchError},
    object::ResourceVersion,
};

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

/// How a reflector stands with its server at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReflectorStatus {
    /// What it does.
    pub phase: ReflectorPhase,
    /// Up to here everything that the server sent has been handed on. The cache gets there when its queue is empty.
    pub resource_version: Option<ResourceVersion>,
    /// The state that the last whole one showed.
    pub gathered: Option<ResourceVersion>,
    /// How many times it has got a whole state: one more than it had to do so again.
    pub gatherings: u64,
    /// How many times something went wrong since something has succeeded.
    pub failures: u64,
    /// What went wrong last, unless something has succeeded since.
    pub last_error: Option<Arc<ReflectorError>>,
    /// How many objects came without a name, and were left out.
    pub left_out: u64,
}

/// What a reflector does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReflectorPhase {
    /// It has not been started, or has been stopped.
    Idle,
    /// It reads the pages of a list.
    Listing,
    /// It reads the whole state from the begin of a watch.
    WatchListing,
    /// It follows a watch, or opens one.
    Watching,
    /// It waits before it asks again.
    Waiting {
        /// When it will ask; `None`: never.
        until: Option<Instant>,
    },
}

/// How it goes, for whoever asks.
pub(crate) struct Health {
    status: Mutex<ReflectorStatus>,
    handler: Option<ErrorHandler>,
}

// === impl Health ===

impl Health {
    pub(crate) fn new(handler: Option<ErrorHandler>) -> Self {
        let status = ReflectorStatus {
            phase: ReflectorPhase::Idle,
            resource_version: None,
            gathered: None,
            gatherings: 0,
            failures: 0,
            last_error: None,
            left_out: 0,
        };
        Self { status: Mutex::new(status), handler }
    }

    pub(crate) fn status(&self) -> ReflectorStatus {
        self.status.lock().clone()
    }

    pub(crate) fn last_error(&self) -> Option<Arc<ReflectorError>> {
        self.status.lock().last_error.clone()
    }

    pub(crate) fn left_out(&self) -> u64 {
        self.status.lock().left_out
    }

    pub(super) fn does(&self, phase: ReflectorPhase) {
        self.status.lock().phase = phase;
    }

    /// A whole state is handed on.
    pub(super) fn gathered(&self, version: &ResourceVersion) {
        let mut status = self.status.lock();
        status.gatherings += 1;
        status.gathered = Some(version.clone());
        status.resource_version = Some(version.clone());
    }

    pub(super) fn followed(&self, version: ResourceVersion) {
        self.status.lock().resource_version = Some(version);
    }

    pub(super) fn leave_out(&self, objects: usize) {
        if objects > 0 {
            tracing::warn!(objects, "objects without a name are left out");
            self.status.lock().left_out += objects as u64;
        }
    }

    /// Remembers the error and tells the author of it.
    pub(super) fn failed(&self, error: ReflectorError) {
        tracing::debug!(%error, "reflector");
        let error = Arc::new(error);
        let mut status = self.status.lock();
        status.failures += 1;
        let previous = status.last_error.replace(Arc::clone(&error));
        drop(status);
        drop(previous);
        let Some(handler) = &self.handler else { return };
        // Not a reason to end the informer.
        if catch_unwind(AssertUnwindSafe(|| handler(&error))).is_err() {
            tracing::error!(%error, "the error handler panicked");
        }
    }

    pub(super) fn succeeded(&self) {
        let mut status = self.status.lock();
        status.failures = 0;
        let previous = status.last_error.take();
        drop(status);
        drop(previous);
    }
}

impl fmt::Display for ReflectorStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |version: &Option<ResourceVersion>| {
            version.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
        };
        let (heard, gathered) = (text(&self.resource_version), text(&self.gathered));
        write!(f, "reflector: {}, heard of version {heard}, ", self.phase)?;
        write!(f, "whole states: {}, the last as of {gathered}", self.gatherings)?;
        if self.left_out > 0 {
            write!(f, ", {} nameless objects left out", self.left_out)?;
        }
        if let Some(error) = &self.last_error {
            write!(f, "\n  last error: {error} (the {}. in a row)", self.failures)?;
        }
        Ok(())
    }
}

impl fmt::Display for ReflectorPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("idle"),
            Self::Listing => f.write_str("listing"),
            Self::WatchListing => f.write_str("listing by watch"),
            Self::Watching => f.write_str("watching"),
            Self::Waiting { until: Some(until) } => {
                write!(f, "asks again in {:?}", until.saturating_duration_since(Instant::now()))
            }
            Self::Waiting { until: None } => f.write_str("never asks again"),
        }
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Health").field(&self.last_error()).finish()
    }
}
