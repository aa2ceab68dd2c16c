//! [`HandlerOptions`]: how a handler is told.

use std::{fmt, sync::Arc, time::Duration};

use crate::object::Object;

/// How a handler is told: its name, and what is not the same for all. A name alone is enough:
///
/// ```
/// # use homeostat_informer::{Event, HandlerOptions, SharedIndexInformer, testing::ScriptedListWatch};
/// # use k8s_openapi::api::core::v1::Pod;
/// # use std::time::Duration;
/// # let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
/// let all = pods.add_handler("all", |event: Event<Pod>| println!("{event:?}"));
///
/// let running = HandlerOptions::new("running")
///     .filter(|pod: &Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running")))
///     .resync(Duration::from_secs(600))
///     .coalesce();
/// let running = pods.add_handler(running, |event: Event<Pod>| println!("{event:?}"));
/// ```
#[must_use = "no handler is added before it is passed to `add_handler`"]
pub struct HandlerOptions<K: Object> {
    pub(super) name: Arc<str>,
    pub(super) filter: Option<Accepts<K>>,
    pub(super) resync: Option<Duration>,
    pub(super) coalesce: bool,
}

/// The author's function of a filter.
pub(super) type Accepts<K> = Box<dyn Fn(&K) -> bool + Send>;

/// No handler is told everything more often than this, as in client-go.
const MINIMUM_RESYNC: Duration = Duration::from_secs(1);

// === impl HandlerOptions ===

impl<K: Object> HandlerOptions<K> {
    /// A handler of this name, which is told every change, once.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), filter: None, resync: None, coalesce: false }
    }

    /// Tells only of objects that `accepts` accepts. One that is accepted no longer is told as deleted, with its last
    /// accepted state; one that is accepted from now on as added.
    ///
    /// An object that does not fit its Rust type cannot be asked about: it is told, unless the handler knows better.
    /// The keys of the objects that the handler has been told of are remembered. A panic costs the event, as one of
    /// the handler does.
    pub fn filter(mut self, accepts: impl Fn(&K) -> bool + Send + 'static) -> Self {
        self.filter = Some(Box::new(accepts));
        self
    }

    /// Tells of each object once more every `period`, at least a second, as updated with nothing changed. While the
    /// handler has not come to the end of it, it does not begin again.
    ///
    /// No event is ever lost, so this is for handlers that want to look again for reasons of their own. A controller
    /// asks for a single key later instead.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(MINIMUM_RESYNC));
        self
    }

    /// Leaves out states that are over before the handler gets to them, so that a slow handler's queue is no longer
    /// than the number of objects that changed.
    ///
    /// Each object's life is told from added to deleted all the same, also when it is over. Changes of one object stay
    /// in order; those of different objects are told in the order of the first that waits.
    pub fn coalesce(mut self) -> Self {
        self.coalesce = true;
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
            .field("resync", &self.resync)
            .field("coalesce", &self.coalesce)
            .finish()
    }
}
