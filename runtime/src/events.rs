//! Kubernetes Events: short messages about an object, for people.
//!
//! `kubectl describe` shows them. An event is worth less than the work of a controller, so the
//! recorder puts it into a bounded queue and returns, and a separate task sends it. If the queue is
//! full, the event is dropped and counted.
//!
//! The rules are those of client-go's `EventCorrelator`, because users and dashboards know them:
//!
//! - 10 events of one object and reason with different messages within 10 minutes are *combined*
//!   into one event;
//! - an equal event raises the count of the first one;
//! - one object may cause 25 requests at once, and one more every 5 minutes.
//!
//! 1,000 pods created for one owner cause 25 requests.
//!
//! These are the rules of `core/v1`, to which Kubernetes' own controllers write. A recorder with
//! [`EventsApi::Series`] writes to `events.k8s.io/v1` instead: equal events form a series, whose
//! count the server gets with the second event, each 30 minutes, and 6 minutes after the last one.
//!
//! An event has the time at which it was recorded, however long it waits. Each request ends after
//! 10 s. [`EventRecorder::counts`] and the metric `homeostat_events_total` count what became of the
//! events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use homeostat_core::WallClock;
use homeostat_informer::Object;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube_client::{Client, Resource};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod builder;
mod correlator;
mod counts;
mod keys;
mod lru;
mod new_event;
mod post;
mod sender;
mod series;
mod spam;
mod task;

pub use self::builder::EventRecorderBuilder;
use self::counts::Counts;
pub use self::counts::EventCounts;
pub use self::new_event::{Borrowed, EventObject, NewEvent, Shared as SharedObject};

/// The time that [`EventRecorder::shut_down`] gives the events that are not sent yet.
const FLUSH: Duration = Duration::from_secs(5);

/// Records events about objects. It never blocks and never fails. Clones share one queue and one
/// task.
///
/// Events are for people. Write a status for what a program should read.
///
/// A call copies the object's reference and takes a slot in the queue of 1,000 events. Give the
/// recorder a client of its own, or its requests share the rate limit of the controller's writes.
///
/// Call [`shut_down`](Self::shut_down) at the end of the program, after the manager has ended:
/// dropping the last clone aborts the task, and the events that wait are lost.
///
/// # Examples
///
/// ```no_run
/// use homeostat::EventRecorder;
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn doc(client: homeostat::kube_client::Client, pod: Pod) {
/// let events = EventRecorder::new(client, "my-controller");
/// events.normal(&pod, "Greeted", "hello");
/// events.shut_down().await;
/// # }
/// ```
#[doc(alias = "EventBroadcaster")]
#[doc(alias = "NewRecorder")]
#[derive(Clone)]
pub struct EventRecorder {
    shared: Arc<Shared>,
}

/// The API to which a recorder writes its events. `kubectl get events` shows both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EventsApi {
    /// `core/v1`, by the rules of client-go's `tools/record` (the default). kube-controller-manager
    /// and sample-controller use it.
    #[default]
    Core,
    /// `events.k8s.io/v1`, by the rules of client-go's `tools/events`. kube-scheduler uses it. It
    /// needs the verbs `create` and `patch` on `events` of the group `events.k8s.io`.
    ///
    /// Events with equal type, reason, action and objects are one series, whatever their messages
    /// are: the note is that of the first one. Give events of different steps different reasons or
    /// actions.
    Series,
}

/// The type of an event (`v1.EventTypeNormal`, `v1.EventTypeWarning`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Information about a regular step.
    Normal,
    /// A failure that a user may have to fix.
    Warning,
}

/// The parts that all clones of a recorder share.
struct Shared {
    /// Bounded to [`QUEUE`] events. A recorder never waits for room.
    queue: mpsc::Sender<Occurrence>,
    counts: Arc<Counts>,
    /// Read when an event is recorded.
    clock: WallClock,
    /// Cancelled by `shut_down`: the task then takes no new events and no longer pauses before a
    /// retry.
    closing: CancellationToken,
    /// The task that sends the events. The set is empty after the task was joined. Dropping the set
    /// aborts the task. Locked while a call waits for the task.
    task: Mutex<JoinSet<()>>,
}

/// One call of the recorder.
///
/// It holds no object, so that an event that waits keeps none in memory.
#[derive(Debug, Clone)]
struct Occurrence {
    involved: ObjectReference,
    event_type: EventType,
    reason: String,
    message: String,
    /// The object that the event is also about.
    related: Option<ObjectReference>,
    /// The step that the component took, such as `Scaling`.
    action: Option<String>,
    annotations: BTreeMap<String, String>,
    /// The time of the call, for the rules.
    recorded: Instant,
    /// The same time, for people.
    at: Timestamp,
}

/// Returns the reference to `object` that its events carry: kind, namespace, name and UID.
///
/// Use it with [`EventRecorder::record`] to name an object that is gone when the event is recorded,
/// or to add a `fieldPath`.
///
/// # Examples
///
/// ```
/// use homeostat::events::reference;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("web-1".into());
/// let mut container = reference(&pod);
/// container.field_path = Some("spec.containers{app}".into());
/// assert_eq!(container.kind.as_deref(), Some("Pod"));
/// assert_eq!(container.name.as_deref(), Some("web-1"));
/// ```
pub fn reference<K: Object>(object: &K) -> ObjectReference
where
    K::Kind: Resource<DynamicType = ()>,
{
    let meta = object.metadata();
    ObjectReference {
        api_version: Some(K::Kind::api_version(&()).into_owned()),
        kind: Some(K::Kind::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}

// === impl EventRecorder ===

impl EventRecorder {
    /// Returns a recorder whose events have the source `component`, such as
    /// `replicaset-controller`.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn new(client: Client, component: impl Into<String>) -> Self {
        Self::builder(client, component).build()
    }

    /// Returns a builder for a recorder with options.
    pub fn builder(client: Client, component: impl Into<String>) -> EventRecorderBuilder {
        EventRecorderBuilder::new(client, component.into())
    }

    /// Records a regular step: an event of type `Normal`.
    ///
    /// `reason` is one word in upper camel case, such as `SuccessfulCreate`: users filter by it.
    /// `message` is a sentence. Keep numbers that change each time out of it, or equal events are
    /// not counted as one.
    ///
    /// `object` is a reference to an object of the API, to a projection, or to an `Arc` of one. The
    /// call returns at once: a full queue drops the event and counts it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use k8s_openapi::api::apps::v1::ReplicaSet;
    /// # fn doc(events: &homeostat::EventRecorder, set: &ReplicaSet, pod: &str) {
    /// events.normal(set, "SuccessfulCreate", format!("Created pod: {pod}"));
    /// # }
    /// ```
    #[doc(alias = "Event")]
    #[doc(alias = "Eventf")]
    pub fn normal<M>(
        &self,
        object: &impl EventObject<M>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.publish(NewEvent::normal(object.event_reference(), reason, message));
    }

    /// Records a failure: an event of type `Warning`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn doc(events: &homeostat::EventRecorder, pod: std::sync::Arc<Pod>) {
    /// events.warning(&pod, "FailedMount", "volume \"data\" does not exist");
    /// # }
    /// ```
    pub fn warning<M>(
        &self,
        object: &impl EventObject<M>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.publish(NewEvent::warning(object.event_reference(), reason, message));
    }

    /// Records an event about the object that `involved` names.
    ///
    /// Use it for an object that exists only as a reference, such as the `involvedObject` of
    /// another event.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use homeostat::events::EventType;
    /// use k8s_openapi::api::core::v1::ObjectReference;
    ///
    /// fn doc(events: &homeostat::EventRecorder, node: &str) {
    ///     let involved = ObjectReference {
    ///         kind: Some("Node".into()),
    ///         name: Some(node.into()),
    ///         ..ObjectReference::default()
    ///     };
    ///     events.record(involved, EventType::Warning, "Unreachable", "no heartbeat for 40 s");
    /// }
    /// ```
    pub fn record(
        &self,
        involved: ObjectReference,
        event_type: EventType,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.publish(NewEvent::new(involved, event_type, reason, message));
    }

    /// Records an event with a related object, an action or annotations.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use homeostat::events::{NewEvent, reference};
    /// # use k8s_openapi::api::core::v1::{Pod, ConfigMap};
    /// # fn doc(events: &homeostat::EventRecorder, pod: &Pod, settings: &ConfigMap) {
    /// let event = NewEvent::normal(reference(pod), "Reloaded", "settings changed")
    ///     .action("Reloading")
    ///     .related(reference(settings))
    ///     .annotation("shop.example/revision", "7");
    /// events.publish(event);
    /// # }
    /// ```
    #[doc(alias = "AnnotatedEventf")]
    pub fn publish(&self, event: NewEvent) {
        if self.shared.closing.is_cancelled() {
            return;
        }
        let occurrence = event.occurrence(Instant::now(), self.shared.clock.now());
        self.shared.counts.recorded();
        if self.shared.queue.try_send(occurrence).is_err() {
            let dropped = self.shared.counts.dropped();
            if dropped.is_power_of_two() {
                tracing::warn!(dropped, "too many queued events, dropping events");
            }
        }
    }

    /// Returns the number of events that were dropped because the queue was full.
    ///
    /// A number that grows shows that the server takes events more slowly than the program records
    /// them.
    pub fn dropped(&self) -> u64 {
        self.counts().dropped
    }

    /// Returns what became of the events that were recorded so far.
    pub fn counts(&self) -> EventCounts {
        self.shared.counts.get()
    }

    /// Returns true if `other` is a clone of this recorder.
    pub(crate) fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Stops the recorder and all its clones: sends the waiting events for at most 5 s, then ends
    /// the task. Later events are ignored.
    ///
    /// Call it after the last reconcile; a [`Manager`](crate::Manager::recorder) does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait only: the task goes on, and another call waits for it.
    pub async fn shut_down(&self) {
        self.shared.closing.cancel();
        let mut task = self.shared.task.lock().await;
        if tokio::time::timeout(FLUSH, task.join_next()).await.is_err() {
            let timeout = FLUSH;
            tracing::warn!(?timeout, "event recorder did not end in time, dropping its events");
        }
        task.shutdown().await;
    }
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

// === impl EventType ===

impl EventType {
    /// Returns the value of the event's `type`.
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

#[cfg(test)]
mod tests;
