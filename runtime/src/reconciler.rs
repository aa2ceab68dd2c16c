//! What an author writes: [`Reconciler`]; and what it is told: [`Request`].

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::{Event, Object, ObjectKey};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// Brings the world one step closer to what one object asks for.
///
/// `reconcile` is called with a key whenever something about that object may have changed, never with what changed: several changes
/// may have become one call, and the object may be gone. So it reads the caches, compares what is with what should be, and
/// acts on the difference. One key is never reconciled twice at the same time.
///
/// It runs under a timeout, and it may be dropped at any `await` when that has passed or the process ends: keep what
/// must not be forgotten in guards. A panic costs its key one retry.
///
/// # Examples
///
/// ```
/// use homeostat::{Action, Reconciler, Request};
/// # use homeostat::informer::Lister;
/// # use k8s_openapi::api::core::v1::ConfigMap;
///
/// struct Printer {
///     config_maps: Lister<ConfigMap>,
/// }
///
/// impl Reconciler<ConfigMap> for Printer {
///     type Error = std::convert::Infallible;
///
///     async fn reconcile(&self, request: &Request<ConfigMap>) -> Result<Action, Self::Error> {
///         match self.config_maps.get(request.key()) {
///             Some(map) => println!("{}: {:?}", request.key(), map.data),
///             None => println!("{} is gone", request.key()),
///         }
///         Ok(Action::AwaitChange)
///     }
/// }
/// ```
pub trait Reconciler<K: Object>: Send + Sync + 'static {
    /// Why it did not succeed. The key is tried again after a back-off.
    type Error: Into<BoxError>;

    /// Reconciles the object that `request` names. Written as `async fn`.
    fn reconcile(
        &self,
        request: &Request<K>,
    ) -> impl Future<Output = Result<Action, Self::Error>> + Send;
}

/// What a successful reconcile wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the action says when to look again"]
pub enum Action {
    /// Nothing, until something changes.
    AwaitChange,
    /// Another look after this time, or at the next change if that is earlier.
    RequeueAfter(Duration),
}

/// Which object to reconcile, and why.
pub struct Request<K: Object> {
    key: ObjectKey<K::Kind>,
    attempt: u32,
    why: Why,
    cancellation: CancellationToken,
}

/// What asked for a reconcile first. Others may have asked since.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The object itself.
    Itself(Change),
    /// Another object that concerns it: one that it owns, or one that a mapper watches.
    Related {
        /// The name of the informer that told.
        informer: Arc<str>,
        /// What happened to the other object.
        change: Change,
    },
    /// The cache shows what was written for the object, which was waited for.
    CaughtUp {
        /// The name of the informer that told.
        informer: Arc<str>,
    },
    /// The last reconcile failed.
    Retry,
    /// The last reconcile asked for another look.
    RequeueAfter,
    /// Nobody said. Two of them asked at the same time, or a test did.
    Unknown,
}

/// What happened to an object, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It was there when the informer began.
    Listed,
    /// It is new.
    Added,
    /// It changed.
    Updated,
    /// It is gone.
    Deleted,
    /// It is there, but no longer fits its Rust type.
    Opaque,
}

// === impl Request ===

impl<K: Object> Request<K> {
    /// A first request for `key`, as a test of a reconciler makes it.
    pub fn new(key: ObjectKey<K::Kind>) -> Self {
        Self { key, attempt: 1, why: Why::Unknown, cancellation: CancellationToken::new() }
    }

    pub(crate) fn with_attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    pub(crate) fn with_why(mut self, why: Why) -> Self {
        self.why = why;
        self
    }

    pub(crate) fn with_cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = cancellation;
        self
    }

    /// The object's namespace and name.
    pub fn key(&self) -> &ObjectKey<K::Kind> {
        &self.key
    }

    /// 1, and one more for each failure since the last success.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// What asked for this.
    pub fn why(&self) -> &Why {
        &self.why
    }

    /// Cancelled when the process is about to end without waiting any longer. The reconcile is dropped soon after.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

impl<K: Object> Clone for Request<K> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            attempt: self.attempt,
            why: self.why.clone(),
            cancellation: self.cancellation.clone(),
        }
    }
}

impl<K: Object> fmt::Debug for Request<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("key", &self.key)
            .field("attempt", &self.attempt)
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

// === impl Why ===

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Itself(change) => change.fmt(f),
            Self::Related { informer, change } => write!(f, "{informer} {change}"),
            Self::CaughtUp { informer } => write!(f, "{informer} caught up"),
            Self::Retry => f.write_str("retry"),
            Self::RequeueAfter => f.write_str("requeue after"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

// === impl Change ===

impl Change {
    /// What `event` tells.
    pub fn of<K: Object>(event: &Event<K>) -> Self {
        match event {
            Event::Added { initial: true, .. } => Self::Listed,
            Event::Added { .. } => Self::Added,
            Event::Deleted { .. } | Event::OpaqueDeleted { .. } => Self::Deleted,
            Event::Opaque { .. } => Self::Opaque,
            Event::Updated { .. } => Self::Updated,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listed => "listed",
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Opaque => "opaque",
        })
    }
}
