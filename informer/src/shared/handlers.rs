//! The handlers of a [`SharedIndexInformer`], and their tasks.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::{Lifecycle, Shared, SharedIndexInformer};
use crate::event::Event;
use crate::object::{Object, ResourceVersion};
use crate::processor::{HandlerOptions, HandlerTask, Listener, Owner, Subscription};
use crate::status::InformerTask;
use crate::{callback, processor};

impl<K: Object> SharedIndexInformer<K> {
    /// Calls `callback` for every existing object, and then for every change, in order and without
    /// a gap.
    ///
    /// `options` is a name or a [`HandlerOptions`]. The handler has a task of its own: it may be
    /// slow without delaying other handlers, but it must not block its thread. A panic costs it one
    /// event. It can be added at any time and on any thread: its task runs in the runtime in which
    /// the informer was started. After the informer has stopped it is never called.
    ///
    /// Keep the [`Subscription`]: dropping it removes the handler. A handler that needs this
    /// informer captures a [`WeakInformer`](super::WeakInformer): with a handle it would keep the
    /// informer running for good.
    ///
    /// # Examples
    ///
    /// A handler that queues keys for workers:
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use homeostat_informer::{Event, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let (sender, keys) = mpsc::channel();
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let subscription = pods.add_handler("queue keys", move |event: Event<Pod>| {
    ///     // The receiver is gone only at shut-down.
    ///     let _ = sender.send(event.key());
    /// });
    /// assert!(keys.try_recv().is_err(), "no event before the start");
    /// # drop(subscription);
    /// ```
    #[doc(alias = "AddEventHandler")]
    #[doc(alias = "AddEventHandlerWithOptions")]
    pub fn add_handler(
        &self,
        options: impl Into<HandlerOptions<K>>,
        callback: impl FnMut(Event<K>) + Send + 'static,
    ) -> Subscription {
        let store = &self.shared.store;
        let owner = self.shared.owner();
        self.subscribe(processor::handler(options.into(), owner, store, Box::new(callback)))
    }

    /// Calls `callback` with each version of the server that the cache reaches, in order and after
    /// the cache has changed.
    ///
    /// Lists, events (deletions included) and bookmarks carry versions. The version that was
    /// reached before comes first. A version goes back only with a list: the server has another
    /// history then. The order of delivery between two handlers is not defined. For the rest see
    /// [`add_handler`](Self::add_handler).
    ///
    /// Use it to release work that waits for the cache to reach a version. To wait for one version,
    /// use [`wait_for_version`](Self::wait_for_version) instead. client-go has no counterpart.
    pub fn add_version_handler(
        &self,
        name: impl Into<Arc<str>>,
        callback: impl FnMut(&ResourceVersion) + Send + 'static,
    ) -> Subscription {
        let owner = self.shared.owner();
        self.subscribe(processor::version_handler(name.into(), owner, Box::new(callback)))
    }

    /// Adds the listener, and starts the task or keeps it for the start. The lock of the life cycle
    /// is held meanwhile, so that `start` misses no handler.
    fn subscribe(
        &self,
        (listener, task, subscription): (Listener<K>, HandlerTask<K>, Subscription),
    ) -> Subscription {
        let shared = &self.shared;
        // Declared first, so that it is dropped when the lock is released.
        let mut removed = Vec::new();
        match &mut *shared.lifecycle.lock() {
            Lifecycle::New { handlers, .. } => {
                removed.extend(handlers.extract_if(.., |task| task.is_removed()));
                shared.applier.add_listener(listener);
                handlers.push(task);
            }
            Lifecycle::Running(runtime) => {
                shared.applier.add_listener(listener);
                shared.spawn_handler(task, runtime);
            }
            Lifecycle::Stopped => {}
        }
        subscription
    }
}

// === impl Shared ===

impl<K: Object> Shared<K> {
    pub(super) fn owner(&self) -> Owner<'_> {
        Owner { stop: &self.stop, metrics: &self.metrics }
    }

    /// Spawns the task of a handler, which ends by itself when the handler is removed or the
    /// informer stops. A panic of it stops the informer.
    pub(super) fn spawn_handler(&self, handler: HandlerTask<K>, runtime: &Handle) {
        let failure = Arc::clone(&self.failure);
        let task = InformerTask::Handler { name: Arc::clone(handler.name()) };
        let work = callback::mark(async move {
            failure.contain(task, handler.run()).await;
        });
        self.tasks.spawn_on(work, runtime);
    }
}
