//! [`Subscription`]: the owner's end of a handler. It removes the handler, waits for it, and reads
//! its counts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handler::{Handler, Phase};
use crate::callback::in_callback;

/// A registered handler. Dropping it removes the handler without waiting.
///
/// Keep it as long as the handler is needed, for example in the controller, or
/// [`detach`](Self::detach) it if the handler lives as long as its informer. Use
/// [`remove`](Self::remove) instead of a drop where state that the handler uses must not be touched
/// afterwards.
///
/// Dropping it and [`remove`](Self::remove) have no effect on other handlers and on the cache.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use homeostat_informer::testing::ScriptedListWatch;
/// use homeostat_informer::{Event, SharedIndexInformer};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
/// let subscription = pods.add_handler("print", |event: Event<Pod>| println!("{event:?}"));
/// assert_eq!((subscription.queued(), subscription.panics()), (0, 0));
/// subscription.remove().await;
/// # }
/// ```
#[doc(alias = "ResourceEventHandlerRegistration")]
#[must_use = "dropping a subscription removes its handler: keep it, or call `detach`"]
pub struct Subscription {
    handler: Arc<Handler>,
    /// True if the drop must not remove the handler.
    is_detached: bool,
}

// === impl Subscription ===

impl Subscription {
    pub(super) fn new(handler: Arc<Handler>) -> Self {
        Self { handler, is_detached: false }
    }

    /// Removes the handler, and waits until its running call has returned. Queued events are
    /// dropped.
    ///
    /// Called from a handler, or from other code that an informer calls, it does not wait, because
    /// it could wait for itself. A call of the handler that is running then is its last.
    ///
    /// The handler of an informer that was not started is dropped when another one is added, or
    /// when the informer starts or stops.
    ///
    /// # Cancel safety
    ///
    /// The handler is removed even if this future is dropped; only the wait ends.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use std::sync::Arc;
    ///
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use homeostat_informer::{Event, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let server = ScriptedListWatch::<Pod>::new();
    /// let pods = SharedIndexInformer::builder(server.clone()).build();
    /// let state = Arc::new(());
    /// let used = Arc::clone(&state);
    /// let subscription = pods.add_handler("count", move |_: Event<Pod>| drop(Arc::clone(&used)));
    /// pods.start();
    /// let _watch = server.expect_watch().await.serve([], "1");
    /// assert!(subscription.wait_for_sync().await);
    /// subscription.remove().await;
    /// assert_eq!(Arc::strong_count(&state), 1, "the handler is dropped");
    /// # }
    /// ```
    #[doc(alias = "RemoveEventHandler")]
    pub async fn remove(self) {
        self.handler.removed.cancel();
        let is_running = *self.handler.phase.lock() == Phase::Running;
        if is_running && !in_callback() {
            self.handler.finished.cancelled().await;
        }
    }

    /// Keeps the handler until its informer stops.
    ///
    /// Use it in a program whose handlers live as long as it runs. The handler cannot be removed
    /// any more.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use homeostat_informer::{Event, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// pods.add_handler("print", |event: Event<Pod>| println!("{event:?}")).detach();
    /// ```
    pub fn detach(mut self) {
        self.is_detached = true;
    }

    /// Waits until the handler has processed the initial list. Returns false if its informer stops
    /// before that.
    ///
    /// The informer syncs first, then each handler works through the objects. Wait for this before
    /// workers start if the handler fills state that they read.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync(&self) -> bool {
        let mut synced = self.handler.synced.subscribe();
        tokio::select! {
            biased;
            result = synced.wait_for(|synced| *synced) => result.is_ok(),
            () = self.handler.finished.cancelled() => *self.handler.synced.borrow(),
        }
    }

    /// Returns true once the handler has processed the initial list.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        self.handler.has_synced()
    }

    /// Returns the number of events in the handler's queue.
    ///
    /// An object of a snapshot counts from the moment at which the handler was added. The number
    /// falls to 0 when the handler is gone.
    pub fn queued(&self) -> usize {
        self.handler.queued.load(Ordering::Relaxed)
    }

    /// Returns the number of calls that took longer than the threshold. See
    /// [`HandlerOptions::slow_after`](crate::HandlerOptions::slow_after).
    pub fn slow_calls(&self) -> u64 {
        self.handler.slow_calls.load(Ordering::Relaxed)
    }

    /// Returns the number of panics of the handler and its filter. Each has cost one event.
    pub fn panics(&self) -> u64 {
        self.handler.panics.load(Ordering::Relaxed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !self.is_detached {
            self.handler.removed.cancel();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("name", &self.handler.name)
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}
