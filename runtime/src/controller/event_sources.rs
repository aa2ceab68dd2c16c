//! Subscriptions that turn events of informers into keys of a controller's queue.
//!
//! Every subscription clones the queue into its handler. The handlers of one controller share
//! nothing else that they change, except the expectations, which have their own lock.
//!
//! | Source | Trigger | Enqueued keys |
//! |---|---|---|
//! | primary | `Primary` | the object itself |
//! | owned kind | `Related` | the controller owner |
//! | related kind | `Related` | what the mapper adds |
//! | versions of a cache | `CaughtUp` | the keys that waited for the version |
//!
//! A handler runs in the informer's task for this handler. It must not block, and a panic costs the
//! event.

use std::sync::Arc;

use homeostat_expectations::{ConsistencyStore, UidTrackingExpectations};
use homeostat_informer::{Event, Object, ResourceVersion, SharedIndexInformer, Subscription, Uid};
use kube_client::Resource;

use crate::any_informer::AnyInformer;
use crate::enqueue::{Enqueue, Queues};
use crate::owned::{OwnedEvents, OwnedHandler};
use crate::read_your_writes::ReadYourWrites;
use crate::request::{ChangeKind, Trigger};
use crate::target::Target;
use crate::watch::Watch;

use super::group_resource;

/// The store with the versions that the author's reconciler has written.
pub(super) type Consistency<T> = ConsistencyStore<<T as Target>::Key, Uid>;
/// The expectations that the author's reconciler raises.
pub(super) type Expectations<T> = UidTrackingExpectations<<T as Target>::Key, Uid>;

/// An informer, and the controller's subscription to it.
pub(super) type Subscribed = (Arc<dyn AnyInformer>, Subscription);

/// The parts that the handlers of one controller share.
///
/// It lives during [`ControllerBuilder::build`](super::ControllerBuilder::build) only.
pub(super) struct EventSources<T: Target> {
    controller: Arc<str>,
    queues: Queues<T>,
    /// Lowered by the events of owned objects.
    pub(super) expectations: Option<Expectations<T>>,
    /// Distinguishes the controller from all others.
    identity: Arc<()>,
}

// === impl EventSources ===

impl<T: Target> EventSources<T> {
    pub(super) fn new(
        controller: &Arc<str>,
        queues: &Queues<T>,
        expectations: Option<Expectations<T>>,
    ) -> Self {
        let (controller, queues) = (Arc::clone(controller), queues.clone());
        Self { controller, queues, expectations, identity: Arc::default() }
    }

    /// Calls `mapper` for the events of an informer that is not the primary.
    pub(super) fn related<P: Object>(
        &self,
        watch: Watch<P>,
        mapper: impl FnMut(&Event<P>, &Enqueue<T>) + Send + 'static,
    ) -> Subscribed {
        let trigger = related_trigger(&watch.informer);
        self.events(watch, trigger, mapper)
    }

    /// Calls `mapper` for the events of `watch`.
    ///
    /// The trigger is a function of the kind of change, so that one mapper serves additions,
    /// updates and deletions.
    pub(super) fn events<P: Object>(
        &self,
        watch: Watch<P>,
        trigger: impl Fn(ChangeKind) -> Trigger + Send + 'static,
        mut mapper: impl FnMut(&Event<P>, &Enqueue<T>) + Send + 'static,
    ) -> Subscribed {
        self.subscribe(watch, trigger, move |event, enqueue| mapper(&event, enqueue))
    }

    /// Enqueues the keys that waited for the version that the informer's cache has reached.
    ///
    /// The keys of one version are added as one batch, under one lock of the queue per 128 keys.
    ///
    /// # Panics
    ///
    /// Panics if another controller has the store.
    pub(super) fn versions<P: Object>(
        &self,
        store: Consistency<T>,
        informer: &SharedIndexInformer<P>,
    ) -> Subscribed
    where
        P::Kind: Resource<DynamicType = ()>,
    {
        let is_own = store.reserve_for(&self.identity);
        assert!(is_own, "another controller has this ConsistencyStore already: make one for each");
        let trigger = Trigger::CaughtUp { informer: Arc::clone(informer.name()) };
        let queue = self.queues.first.clone();
        let resource = group_resource::<P::Kind>();
        let handler = move |version: &ResourceVersion| {
            let keys = store.reached(&resource, version.as_str());
            queue.because(trigger.clone()).add_batch(keys);
        };
        let subscription = informer.add_version_handler(Arc::clone(&self.controller), handler);
        (Arc::new(informer.clone()), subscription)
    }

    /// Enqueues the keys whose own writes the caches show.
    pub(super) fn own_writes(&self, writes: &ReadYourWrites<T>) -> Vec<Subscribed> {
        let queue = self.queues.first.clone();
        let wake = move |informer: &Arc<dyn AnyInformer>, keys| {
            let trigger = Trigger::CaughtUp { informer: Arc::clone(informer.name()) };
            queue.because(trigger).add_batch(keys);
        };
        writes.subscribe(&self.controller, wake)
    }

    /// Adds a handler that gets each event with the handle to enqueue keys for it.
    ///
    /// The predicates of the watch run first, in order; the first that rejects the event ends it.
    fn subscribe<P: Object>(
        &self,
        watch: Watch<P>,
        trigger: impl Fn(ChangeKind) -> Trigger + Send + 'static,
        mut handle: impl FnMut(Event<P>, &Enqueue<T>) + Send + 'static,
    ) -> Subscribed {
        let queues = self.queues.clone();
        let informer = watch.informer.clone();
        let (options, mut predicates) = watch.into_options(Arc::clone(&self.controller));
        let handler = move |event: Event<P>| {
            if predicates.iter_mut().all(|passes| passes(&event)) {
                let enqueue = Enqueue::for_event(&queues, &event, &trigger);
                handle(event, &enqueue);
            }
        };
        let subscription = informer.add_handler(options, handler);
        (Arc::new(informer), subscription)
    }
}

impl<K: Object> EventSources<K> {
    /// Enqueues the owners of the informer's objects.
    ///
    /// The expectations are lowered before the owner is enqueued, so that the reconcile that
    /// follows finds them fulfilled.
    pub(super) fn owned<P: Object>(
        &self,
        watch: Watch<P>,
        mut handler: OwnedHandler<K, impl OwnedEvents<K, P>>,
    ) -> Subscribed {
        let trigger = related_trigger(&watch.informer);
        self.subscribe(watch, trigger, move |event, enqueue| handler.handle(event, enqueue))
    }
}

/// Returns the trigger of the events of `informer`, which is not the primary.
fn related_trigger<P: Object>(
    informer: &SharedIndexInformer<P>,
) -> impl Fn(ChangeKind) -> Trigger + Send + 'static {
    let informer = Arc::clone(informer.name());
    move |change| Trigger::Related { informer: Arc::clone(&informer), change }
}
