//! [`HandlerOptions`]: the name of a handler, its filters, resync period, coalescing and threshold
//! of slow calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::object::Object;

/// Per-handler name, filter, resync period, coalescing and threshold of slow calls. A name alone is
/// enough.
///
/// # Examples
///
/// ```
/// # use homeostat_informer::{Event, HandlerOptions, SharedIndexInformer};
/// # use homeostat_informer::testing::ScriptedListWatch;
/// # use k8s_openapi::api::core::v1::Pod;
/// # use std::time::Duration;
/// # let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
/// let all = pods.add_handler("all", |event: Event<Pod>| println!("{event:?}"));
///
/// let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
/// let running = HandlerOptions::new("running")
///     .filter(move |pod: &Pod| phase(pod).as_deref() == Some("Running"))
///     .resync(Duration::from_secs(600))
///     .coalesce();
/// let running = pods.add_handler(running, |event: Event<Pod>| println!("{event:?}"));
/// ```
#[doc(alias = "FilteringResourceEventHandler")]
#[must_use = "pass the options to `add_handler`"]
pub struct HandlerOptions<K: Object> {
    pub(super) name: Arc<str>,
    /// `None` accepts every object.
    pub(super) filter: Option<Accepts<K>>,
    /// `None` delivers every update.
    pub(super) updates: Option<Matters<K>>,
    /// At least [`MINIMUM_RESYNC`]; `None` for no resync.
    pub(super) resync: Option<Duration>,
    pub(super) coalesce: bool,
    /// A call that takes longer is slow.
    pub(super) slow_after: Duration,
}

/// The author's filter function.
pub(super) type Accepts<K> = Box<dyn Fn(&K) -> bool + Send>;

/// The author's predicate on the old and the new state of an update.
pub(super) type Matters<K> = Box<dyn Fn(&K, &K) -> bool + Send>;

/// The shortest resync period, client-go's `minimumResyncPeriod`.
const MINIMUM_RESYNC: Duration = Duration::from_secs(1);

/// The default threshold of a slow call. A handler that only queues keys takes microseconds.
pub(super) const SLOW: Duration = Duration::from_millis(100);

// === impl HandlerOptions ===

impl<K: Object> HandlerOptions<K> {
    /// Returns the options of a handler that receives every change once.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            filter: None,
            updates: None,
            resync: None,
            coalesce: false,
            slow_after: SLOW,
        }
    }

    /// Delivers only events of objects that `accepts` accepts.
    ///
    /// An object that is no longer accepted is reported as deleted, with its last accepted state.
    /// An object that becomes accepted is reported as added.
    ///
    /// The function cannot decide about an object that does not fit its Rust type: such an object
    /// is reported, also if its last state that fitted was rejected. The handler's task keeps the
    /// keys of the objects that it has reported. A panic of the function costs the event, as a
    /// panic of the handler does.
    ///
    /// Use a filter to keep the events of other objects out of the handler's state. Use a
    /// [`Scope`](crate::Scope) instead if no handler needs those objects: then they are not cached
    /// either.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::{Event, HandlerOptions, SharedIndexInformer};
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let is_placed = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    /// let placed = HandlerOptions::new("placed").filter(is_placed);
    /// let subscription = pods.add_handler(placed, |event: Event<Pod>| println!("{event:?}"));
    /// # drop(subscription);
    /// ```
    pub fn filter(mut self, accepts: impl Fn(&K) -> bool + Send + 'static) -> Self {
        self.filter = Some(Box::new(accepts));
        self
    }

    /// Delivers an update only if `matters(old, new)` returns true. Other events are not affected.
    ///
    /// The [predicates](crate::predicate) cover the usual cases. Several calls are joined: each
    /// predicate must return true. A resync is delivered without a call. A panic of the function
    /// costs the event, as a panic of the handler does.
    ///
    /// The `old` of the next delivered update is the state before it in the cache, which the
    /// handler may not have received.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use homeostat_informer::{Event, HandlerOptions, SharedIndexInformer, predicate};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let options = HandlerOptions::new("spec").updates(predicate::generation_changed);
    /// pods.add_handler(options, |event: Event<Pod>| println!("{event:?}")).detach();
    ///
    /// let ip = |pod: &Pod| pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    /// let options = HandlerOptions::new("address").updates(move |old, new| ip(old) != ip(new));
    /// pods.add_handler(options, |event: Event<Pod>| println!("{event:?}")).detach();
    /// ```
    #[doc(alias = "UpdateFunc")]
    pub fn updates(mut self, matters: impl Fn(&K, &K) -> bool + Send + 'static) -> Self {
        self.updates = Some(match self.updates.take() {
            Some(first) => Box::new(move |old, new| first(old, new) && matters(old, new)),
            None => Box::new(matters),
        });
        self
    }

    /// Delivers each object again every `period`, as an update with nothing changed. The shortest
    /// period is 1 s.
    ///
    /// A resync does not start before the handler has finished the previous one. No event is ever
    /// lost, so a resync is only for handlers that look at something else than the object. A
    /// controller should queue a single key with a delay instead.
    ///
    /// The first resync starts one period after the handler's task has started, and never before
    /// the handler has processed the initial list. By default there is none.
    #[doc(alias = "AddEventHandlerWithResyncPeriod")]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(MINIMUM_RESYNC));
        self
    }

    /// Skips states that have been replaced before the handler gets to them. The queue of a slow
    /// handler then grows with the number of changed objects, not with the number of changes.
    ///
    /// `Added` and `Deleted` are never merged: each deletion and each creation of one object is
    /// delivered. Events of one object stay in order. Events of different objects are delivered in
    /// the order of the first waiting event of each object.
    ///
    /// It costs one hash map entry for each object with a waiting event. Without it the queue is a
    /// list of batches, and each push takes constant time.
    pub fn coalesce(mut self) -> Self {
        self.coalesce = true;
        self
    }

    /// Sets the time from which a call of the handler counts as slow, its filter included. The
    /// default is 100 ms.
    ///
    /// A slow call is counted ([`Subscription::slow_calls`](crate::Subscription::slow_calls)) and
    /// logged as a warning with the handler's name and the object's key, at most once in 10 s for
    /// each handler. With metrics, `informer_handler_duration_seconds` has the durations of all
    /// calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use homeostat_informer::{Event, HandlerOptions, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let options = HandlerOptions::new("print").slow_after(Duration::from_millis(5));
    /// let subscription = pods.add_handler(options, |event: Event<Pod>| println!("{event:?}"));
    /// assert_eq!(subscription.slow_calls(), 0);
    /// ```
    pub fn slow_after(mut self, threshold: Duration) -> Self {
        self.slow_after = threshold;
        self
    }
}

impl<K: Object> From<&str> for HandlerOptions<K> {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl<K: Object> From<String> for HandlerOptions<K> {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

impl<K: Object> From<Arc<str>> for HandlerOptions<K> {
    fn from(name: Arc<str>) -> Self {
        Self::new(name)
    }
}

impl<K: Object> fmt::Debug for HandlerOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerOptions")
            .field("name", &self.name)
            .field("filter", &self.filter.is_some())
            .field("updates", &self.updates.is_some())
            .field("resync", &self.resync)
            .field("coalesce", &self.coalesce)
            .field("slow_after", &self.slow_after)
            .finish()
    }
}
