//! The state of a process at one moment.
//!
//! A report is a copy: it takes the locks of informers and queues one after the other, for a short
//! time each, so that its parts are from slightly different moments.

mod queue;

use std::time::Duration;

use homeostat_informer::status::InformerStatus;
use serde::{Serialize, Serializer};

pub use self::queue::{FailingKey, Key, QueueReport, ReconcileReport};

/// The state of a process at one moment, made by
/// [`Diagnostics::report`](super::Diagnostics::report). In JSON, durations are seconds.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The time since the diagnostics were created.
    #[serde(serialize_with = "seconds")]
    pub uptime: Duration,
    /// The parts that are not ready.
    pub unready: Vec<Unready>,
    /// The leader elections; at most one for most programs.
    pub elections: Vec<LeaderReport>,
    /// The informers, in the order in which they were added.
    pub informers: Vec<Informer>,
    /// The queues, in the order in which they were added.
    pub queues: Vec<QueueReport>,
}

/// A part that is not ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unready {
    /// The name of the part.
    pub name: String,
    /// The reason.
    pub reason: String,
    /// The time since a request first saw it so.
    #[serde(serialize_with = "seconds")]
    pub since: Duration,
}

/// A leader election, as this process last saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeaderReport {
    /// Namespace and name of the Lease.
    pub lease: String,
    /// The name of this candidate.
    pub identity: String,
    /// True while this process leads.
    pub is_leader: bool,
    /// The name in the lease. `None` before the first answer, and after a release.
    pub holder: Option<String>,
    /// The time at which the holder acquired the lease, on its own clock.
    pub since: Option<String>,
    /// The time since this process first saw the last renewal.
    #[serde(serialize_with = "optional_seconds")]
    pub renewed: Option<Duration>,
    /// The number of times that the holder changed.
    pub transitions: i32,
    /// The rest of this process's leadership, unless it renews the lease.
    #[serde(serialize_with = "optional_seconds")]
    pub left: Option<Duration>,
    /// Consecutive attempts to acquire or renew that failed.
    pub failures: u64,
    /// The error of the last attempt, unless it succeeded.
    pub last_error: Option<String>,
}

/// An informer.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Informer {
    /// The informer's name.
    pub name: String,
    /// The step of its life cycle.
    pub phase: String,
    /// The request that is running.
    pub request: String,
    /// The server's version that the cache has reached.
    pub resource_version: Option<String>,
    /// Cached objects.
    pub objects: usize,
    /// Cached objects that do not fit their Rust type.
    pub opaque: usize,
    /// Consecutive failures.
    pub failures: u64,
    /// The last failure, unless a request has succeeded since.
    pub last_error: Option<String>,
    /// Name and queued events of each handler.
    pub handlers: Vec<(String, usize)>,
}

// === impl Informer ===

impl Informer {
    pub(super) fn new(status: &InformerStatus) -> Self {
        let reflector = &status.reflector;
        let handlers = status.handlers.iter();
        Self {
            name: status.name.to_string(),
            phase: format!("{:?}", status.phase),
            request: reflector.phase.to_string(),
            resource_version: status.resource_version.as_ref().map(ToString::to_string),
            objects: status.objects,
            opaque: status.opaque,
            failures: reflector.failures,
            last_error: reflector.last_error.as_ref().map(ToString::to_string),
            handlers: handlers.map(|handler| (handler.name.to_string(), handler.queued)).collect(),
        }
    }
}

/// Serializes a duration as seconds with a fraction.
fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// Serializes a duration as seconds with a fraction, or `null`.
#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn optional_seconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}
