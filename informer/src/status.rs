//! The state of an informer at one moment, for debug pages and logs: [`InformerStatus`] and its
//! parts.
//!
//! A status is a copy: it holds no lock and does not change. Taking one locks each part of the
//! informer after the other, so its numbers may be a few events apart. For values over time use
//! [`metrics`](crate::metrics).

mod reflector;

use std::fmt;
use std::sync::Arc;

use homeostat_core::Panicked;

pub use self::reflector::{ReflectorError, ReflectorPhase, ReflectorStatus};
use crate::object::ResourceVersion;

/// The state of an informer at one moment. Its text has a line for the informer, one for the
/// reflector and one for each handler, and contains nothing of an object.
///
/// Made by [`SharedIndexInformer::status`](crate::SharedIndexInformer::status). Use it for a debug
/// page or a log line of a controller that waits; use [`metrics`](crate::metrics) for alerts.
/// client-go has no counterpart.
///
/// # Examples
///
/// ```
/// use homeostat_informer::SharedIndexInformer;
/// use homeostat_informer::status::InformerPhase;
/// use homeostat_informer::testing::ScriptedListWatch;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).name("pods").build();
/// let status = pods.status();
/// assert_eq!(status.phase, InformerPhase::New);
/// assert!(status.to_string().starts_with("pods: New, version none, 0 objects"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// The informer's name.
    pub name: Arc<str>,
    /// The step of its life cycle.
    pub phase: InformerPhase,
    /// The server's version that the cache has reached.
    ///
    /// `None` before the initial list.
    pub resource_version: Option<ResourceVersion>,
    /// Cached objects that fit their Rust type.
    pub objects: usize,
    /// Cached objects that do not fit their Rust type.
    pub opaque: usize,
    /// Indices over the cache.
    pub indices: usize,
    /// Panics of index functions since the informer was built.
    ///
    /// Each panic cost one object its entry in one index, until the object changes.
    pub index_panics: u64,
    /// Deltas in the queue, received and not yet in the cache.
    ///
    /// Grows only if the store is slower than the server, for example because of a slow index
    /// function.
    pub queued: usize,
    /// The handlers of events, in the order in which they were added.
    pub handlers: Vec<HandlerStatus>,
    /// The state of the connection to the server.
    pub reflector: ReflectorStatus,
}

/// The life cycle of an informer.
///
/// The order of the phases is `New`, `Syncing`, `Following`, and `Stopped` or `Failed`. An informer
/// never goes back, also not while it relists.
///
/// # Examples
///
/// A readiness check of one informer:
///
/// ```
/// use homeostat_informer::status::{InformerPhase, InformerStatus};
///
/// fn is_ready(status: &InformerStatus) -> bool {
///     status.phase == InformerPhase::Following && status.reflector.failures < 3
/// }
/// # use homeostat_informer::{SharedIndexInformer, testing::ScriptedListWatch};
/// # use k8s_openapi::api::core::v1::Pod;
/// # let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
/// assert!(!is_ready(&pods.status()), "it was not started");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformerPhase {
    /// Not started. → `Syncing` when it is started, `Stopped` when it is stopped.
    New,
    /// Started, without the complete initial list. → `Following` when the list is in the cache,
    /// `Stopped`, `Failed`.
    Syncing,
    /// Synced once. The cache may be old while [`last_error`](ReflectorStatus::last_error) is set.
    /// → `Stopped`, `Failed`.
    Following,
    /// Stopped for good.
    Stopped,
    /// A task of the informer panicked, and the informer has stopped for good.
    Failed(InformerFailure),
}

/// The panic of a task that ended an informer.
///
/// A panic of a handler, an index function, a transform or a list-watch does not lead here: it
/// costs one event or one request. This is for panics that leave a task in an unknown state: those
/// of a destructor, of [`Object::metadata`](crate::Object::metadata), or of this crate.
///
/// The cache stays readable as it was. Build another informer, or exit and let the supervisor of
/// the process restart it; `homeostat`'s manager does the latter.
///
/// # Examples
///
/// ```no_run
/// # use homeostat_informer::{Object, SharedIndexInformer};
/// # async fn doc<K: Object>(pods: SharedIndexInformer<K>) {
/// if let Err(failure) = pods.wait_for_stop().await {
///     eprintln!("{failure}"); // informer pods has failed: …
///     std::process::exit(1);
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("informer {informer} has failed: {task} {panic}")]
#[non_exhaustive]
pub struct InformerFailure {
    /// The informer's name.
    pub informer: Arc<str>,
    /// The task that panicked.
    pub task: InformerTask,
    /// The panic's message.
    pub panic: Panicked,
}

/// A task of an informer.
///
/// An informer has one reflector task and one apply task, and a task for each handler.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformerTask {
    /// The task that lists and watches.
    Reflector,
    /// The task that writes the store.
    Apply,
    /// The task of a handler.
    Handler {
        /// The handler's name.
        name: Arc<str>,
    },
}

/// The state of a handler at one moment.
///
/// The same numbers as those of the handler's [`Subscription`](crate::Subscription), for code that
/// does not hold it. A count of `queued` that grows steadily means that the handler is slower than
/// the changes: see [`HandlerOptions::coalesce`](crate::HandlerOptions::coalesce).
///
/// # Examples
///
/// ```
/// use homeostat_informer::status::HandlerStatus;
///
/// /// Returns the handlers that are behind by more than 1,000 events.
/// fn slow(handlers: &[HandlerStatus]) -> Vec<&str> {
///     handlers.iter().filter(|it| it.queued > 1000).map(|it| &*it.name).collect()
/// }
/// assert!(slow(&[]).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// The handler's name.
    pub name: Arc<str>,
    /// Events in its queue.
    pub queued: usize,
    /// Panics of the handler or its filter. Each has cost one event.
    pub panics: u64,
    /// Calls that took longer than the handler's threshold.
    pub slow_calls: u64,
    /// True once the handler has processed the initial list.
    pub synced: bool,
}

// === impl InformerStatus ===

impl fmt::Display for InformerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.resource_version.as_ref().map_or("none", ResourceVersion::as_str);
        write!(
            f,
            "{}: {}, version {version}, {} objects, {} opaque, {} queued, {} indices ({} panics)",
            self.name,
            self.phase,
            self.objects,
            self.opaque,
            self.queued,
            self.indices,
            self.index_panics,
        )?;
        write!(f, "\n  {}", self.reflector)?;
        for HandlerStatus { name, queued, panics, slow_calls, synced } in &self.handlers {
            let synced = if *synced { "synced" } else { "not synced" };
            write!(f, "\n  handler {name}: {synced}, {queued} queued, {panics} panics")?;
            if *slow_calls > 0 {
                write!(f, ", {slow_calls} slow calls")?;
            }
        }
        Ok(())
    }
}

// === impl InformerPhase ===

impl fmt::Display for InformerPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("New"),
            Self::Syncing => f.write_str("Syncing"),
            Self::Following => f.write_str("Following"),
            Self::Stopped => f.write_str("Stopped"),
            Self::Failed(failure) => write!(f, "Failed ({} {})", failure.task, failure.panic),
        }
    }
}

// === impl InformerTask ===

impl fmt::Display for InformerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reflector => f.write_str("reflector"),
            Self::Apply => f.write_str("apply task"),
            Self::Handler { name } => write!(f, "handler {name}"),
        }
    }
}
