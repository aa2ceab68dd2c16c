//! Parts for unit tests of a controller, without a server and without informers.
//!
//! Fill caches with [`informer::testing::Store`](crate::informer::testing::Store), and call a
//! reconciler with [`Request::new`](crate::Request::new).
//!
//! A test under tokio's paused clock (`start_paused = true`) takes no real time: delays, back-offs
//! and timeouts pass at once.

use std::fmt;
use std::time::Duration;

use homeostat_expectations::UidTrackingExpectations;
use homeostat_informer::{Event, Lister, Object, ObjectKey, Uid};
use homeostat_workqueue::Queue;
use kube_client::Resource;
use tokio::time::Instant;

use crate::enqueue::{Enqueue, Queues};
use crate::owned::{OwnedEvents, OwnedHandler};
use crate::owner::OwnerKind;
use crate::request::{RequestQueue, Trigger};

/// A test of an [`OwnedEvents`]: runs the handler that
/// [`owns_with`](crate::ControllerBuilder::owns_with) installs, with events that the test makes.
///
/// The example of [`OwnedEvents`] uses it.
pub struct OwnedEventsTest<K: Object, H> {
    /// The handler that a controller would install; it keeps its state between events.
    handler: OwnedHandler<K, H>,
}

// === impl OwnedEventsTest ===

impl<K: Object, H> OwnedEventsTest<K, H>
where
    K::Kind: Resource<DynamicType = ()>,
{
    /// Returns a test whose owners are those of `owners`, for a controller that is built with
    /// `expectations` if there are any.
    pub fn new(
        owners: Lister<K>,
        expectations: Option<&UidTrackingExpectations<ObjectKey<K::Kind>, Uid>>,
        events: H,
    ) -> Self {
        let kind = OwnerKind::of::<K::Kind>();
        Self { handler: OwnedHandler::new(owners, kind, expectations.cloned(), events) }
    }

    /// Handles `event` and returns the keys that it enqueues, in order: first those that are
    /// enqueued at once (with a delay of zero), then the delayed ones. A key that is enqueued twice
    /// at once is returned once, as in the controller's queue.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime if the event enqueues a key with a delay. Delays are exact
    /// under tokio's paused clock.
    pub fn deliver<P: Object>(&mut self, event: Event<P>) -> Vec<(ObjectKey<K::Kind>, Duration)>
    where
        H: OwnedEvents<K, P>,
    {
        let queue: RequestQueue<K> = Queue::builder().causes(Trigger::merge).inspect().build();
        let queues = Queues::one(queue.clone());
        let enqueue = Enqueue::for_event(&queues, &event, Trigger::Primary);
        let start = Instant::now();
        self.handler.handle(event, &enqueue);
        let snapshot = queue.inspect().expect("the queue was built to be inspected");
        let now = snapshot.queued.into_iter().map(|queued| (queued.item, Duration::ZERO));
        let delay = |until: Instant| until.saturating_duration_since(start);
        let later = snapshot.delayed.into_iter().map(|key| (key.item, delay(key.until)));
        now.chain(later).collect()
    }
}

impl<K: Object, H> fmt::Debug for OwnedEventsTest<K, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedEventsTest").finish_non_exhaustive()
    }
}
