//! Tells people what a controller did, without ever holding it up.
//!
//! An event is a note beside an object (`kubectl describe` shows it). It is worth less than the work: the recorder takes it
//! into a bounded queue and returns; a task of its own sends it. When the queue is full the event is dropped, and counted.
//!
//! What is sent is client-go's, rule by rule, because users and dashboards know it: ten similar events within ten minutes become one
//! that is *combined*; the same event again raises a count; and one object may cause 25 requests, then one in five minutes.
//! 1,000 pods created for one owner are 25 requests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube_client::{Client, Resource};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod correlator;
mod lru;
mod sender;

use self::correlator::Correlator;
use self::sender::Sender;

/// client-go's number: a burst of a few reconciles fits, a flood does not fill the memory.
const QUEUE: usize = 1000;

/// How long the end of a process waits for events that are not sent yet.
const FLUSH: Duration = Duration::from_secs(5);

/// Records events about objects: never blocks, never fails, never keeps a reconcile waiting. Clones share one queue and one task.
///
/// Use it for what a person should see. For what a program should see, write a status.
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
#[derive(Clone)]
pub struct EventRecorder {
    shared: Arc<Shared>,
}

/// Makes an [`EventRecorder`].
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    client: Client,
    component: String,
    epoch: Timestamp,
    seed: u64,
}

/// Whether an event is worth worrying about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It went as it should.
    Normal,
    /// Somebody may want to look.
    Warning,
}

struct Shared {
    queue: mpsc::Sender<Occurrence>,
    /// Events that the queue had no room for. Only grows.
    dropped: AtomicU64,
    /// Cancelled once: the task takes nothing new, and pauses no longer before trying again.
    closing: CancellationToken,
    /// The one task that sends. Empty once it is joined; dropped, it is aborted.
    task: Mutex<JoinSet<()>>,
}

/// Something happened to an object.
#[derive(Debug, Clone)]
struct Occurrence {
    involved: ObjectReference,
    event_type: EventType,
    reason: String,
    message: String,
}

/// What an event says about `object`: its kind, name and UID.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: None,
    }
}

// === impl EventRecorder ===

impl EventRecorder {
    /// A recorder whose events come from `component`, a name as in `replicaset-controller`.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn new(client: Client, component: impl Into<String>) -> Self {
        Self::builder(client, component).build()
    }

    /// A recorder with options.
    pub fn builder(client: Client, component: impl Into<String>) -> Builder {
        let epoch = Timestamp::now();
        let seed = u64::try_from(epoch.as_nanosecond()).unwrap_or_default();
        Builder { client, component: component.into(), epoch, seed }
    }

    /// Notes that something went as it should.
    pub fn normal<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.record(reference(object), EventType::Normal, reason, message);
    }

    /// Notes that something went wrong.
    pub fn warning<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.record(reference(object), EventType::Warning, reason, message);
    }

    /// Notes something about an object of which only a reference is at hand.
    pub fn record(
        &self,
        involved: ObjectReference,
        event_type: EventType,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        let (reason, message) = (reason.into(), message.into());
        if self.shared.closing.is_cancelled() {
            return;
        }
        let occurrence = Occurrence { involved, event_type, reason, message };
        if self.shared.queue.try_send(occurrence).is_err() {
            let dropped = self.shared.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if dropped.is_power_of_two() {
                tracing::warn!(
                    dropped,
                    "too many events are waiting to be sent: this one is dropped"
                );
            }
        }
    }

    /// How many events were dropped because too many were waiting.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Takes no more events, sends those that wait, for at most 5 s, and ends the task. Every clone is shut down.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the task is aborted at once.
    pub async fn shut_down(&self) {
        self.shared.closing.cancel();
        let mut task = std::mem::take(&mut *self.shared.task.lock());
        if tokio::time::timeout(FLUSH, task.join_next()).await.is_err() {
            tracing::warn!("events that were not sent within {FLUSH:?} are lost");
        }
        task.shutdown().await;
    }
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

// === impl Builder ===

impl Builder {
    /// What the wall clock shows now; from then on time is tokio's. Unless told: the system's.
    pub fn epoch(mut self, epoch: Timestamp) -> Self {
        self.epoch = epoch;
        self
    }

    /// Where the first pause after a lost connection comes from. Unless told: the system's clock.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The recorder, with its task running.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn build(self) -> EventRecorder {
        let (queue, occurrences) = mpsc::channel(QUEUE);
        let closing = CancellationToken::new();
        let correlator = Correlator::new(self.component);
        let clock = Clock { epoch: self.epoch, start: Instant::now() };
        let sender = Sender::new(self.client, self.seed, closing.clone());
        let mut task = JoinSet::new();
        task.spawn(send_all(occurrences, correlator, clock, sender));
        EventRecorder {
            shared: Arc::new(Shared {
                queue,
                dropped: AtomicU64::new(0),
                closing,
                task: Mutex::new(task),
            }),
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("component", &self.component).finish_non_exhaustive()
    }
}

// === impl EventType ===

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The wall clock, as far as it is known: the epoch, and the time that has passed on tokio's clock.
#[derive(Debug, Clone, Copy)]
struct Clock {
    epoch: Timestamp,
    start: Instant,
}

impl Clock {
    fn wall(&self) -> Timestamp {
        self.epoch.saturating_add(self.start.elapsed()).unwrap_or(Timestamp::MAX)
    }
}

async fn send_all(
    mut occurrences: mpsc::Receiver<Occurrence>,
    mut correlator: Correlator,
    clock: Clock,
    mut sender: Sender,
) {
    loop {
        let occurrence = tokio::select! {
            biased;
            occurrence = occurrences.recv() => occurrence,
            () = sender.closing(), if !occurrences.is_closed() => {
                occurrences.close(); // What is in it is still handed out.
                continue;
            }
        };
        let Some(occurrence) = occurrence else { return };
        if let Some(post) = correlator.correlate(occurrence, Instant::now(), clock.wall()) {
            sender.send(post).await;
        }
    }
}

#[cfg(test)]
mod tests;
