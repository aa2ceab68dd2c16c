//! [`Member`]: the task of one resource, which owns the resource's informers.
//!
//! A resource can move to another version, for example when a CRD changes its storage version. The
//! task then starts an informer of the new version beside the present one, waits until it has
//! synced, and only then moves the handler and stops the former one. Readers always see a complete
//! cache.
//!
//! ```text
//!  wanted = v1 ─▶ build ─▶ sync ─▶ present (v1)
//!  wanted = v2 ───────────────────▶ build ─▶ sync ─▶ switch ─▶ present (v2), stop v1
//! ```

use std::sync::Arc;
use std::time::Duration;

use homeostat_core::user_code;
use kube_core::GroupVersionResource;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::view::View;
use super::{Build, Followed, Handler, SetEvent, UnsyncedResource};
use crate::callback;
use crate::object::Object;
use crate::processor::Subscription;
use crate::shared::SharedIndexInformer;

/// The pause before an informer that has failed, or could not be built, is built again.
const REBUILD_AFTER: Duration = Duration::from_secs(10);

/// The state of a resource that callers read.
///
/// The lock is held for reads and moves of fields only. A former value is dropped after its
/// release, because the drop of an informer's last handle runs the author's code.
pub(super) struct State<K: Object, V> {
    /// The cache that callers read. It is complete.
    pub(super) present: Option<Arc<Followed<K, V>>>,
    wanted: GroupVersionResource,
    /// The time since which `wanted` is wanted.
    since: Instant,
    /// The informer of `wanted`, until it is the present one.
    starting: Option<SharedIndexInformer<K>>,
}

/// The task of one resource.
pub(super) struct Member<K: Object, V> {
    pub(super) build: Arc<Build<K, V>>,
    pub(super) handler: Arc<Handler<K>>,
    /// The version that is wanted. It closes when the resource is no longer followed.
    pub(super) wanted: watch::Receiver<GroupVersionResource>,
    pub(super) state: Arc<Mutex<State<K, V>>>,
}

/// The present informer of a resource, with the handler's subscription.
///
/// Dropping it removes the handler and, with the last handle, ends the informer.
struct Running<K: Object, V> {
    followed: Arc<Followed<K, V>>,
    subscription: Subscription,
    /// False until the handler has received the complete list.
    is_delivered: bool,
}

/// The reason why a wait of the task ended.
enum Turn {
    /// The event that the task waited for has occurred.
    Ready,
    /// Another version is wanted.
    Changed,
    /// The resource is no longer followed.
    Removed,
}

// === impl State ===

impl<K: Object, V> State<K, V> {
    /// Starts without a cache, since now.
    pub(super) fn new(wanted: GroupVersionResource) -> Self {
        Self { present: None, wanted, since: Instant::now(), starting: None }
    }

    /// Returns the resource if its wanted version has not synced.
    ///
    /// A resource with a former cache is listed too, with `has_former_cache`: its readers see the
    /// old version meanwhile.
    pub(super) fn unsynced(&self) -> Option<UnsyncedResource> {
        let is_present = |followed: &Arc<Followed<K, V>>| {
            *followed.resource() == self.wanted && !followed.informer().is_stopped()
        };
        if self.present.as_ref().is_some_and(is_present) {
            return None;
        }
        let unsynced = self.starting.as_ref().and_then(SharedIndexInformer::unsynced);
        let unsynced = unsynced.unwrap_or_else(|| crate::shared::Unsynced {
            name: self.wanted.resource.as_str().into(),
            error: None,
        });
        Some(UnsyncedResource {
            resource: self.wanted.clone(),
            has_former_cache: self.present.is_some(),
            since: self.since,
            unsynced,
        })
    }
}

// === impl Member ===

impl<K: Object, V: Send + Sync + 'static> Member<K, V> {
    /// Follows the resource until it is removed from the list, then stops its informer and joins
    /// its tasks.
    ///
    /// # Cancel safety
    ///
    /// If the task is aborted, the informers end with their last handles, and no call waits for
    /// their tasks.
    pub(super) async fn run(mut self) {
        let view = Arc::new(Mutex::new(View::new()));
        let mut running: Option<Running<K, V>> = None;
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            let is_present = |it: &&mut Running<K, V>| {
                *it.followed.resource() == wanted && !it.followed.informer().is_stopped()
            };
            let turn = if let Some(present) = running.as_mut().filter(is_present) {
                self.note_wanted(&wanted, None);
                self.deliver(present, &view).await
            } else {
                self.replace(wanted, &mut running, &view).await
            };
            if matches!(turn, Turn::Removed) {
                break;
            }
        }
        let present = self.state.lock().present.take();
        discard(present);
        if let Some(Running { followed, subscription, .. }) = running {
            subscription.remove().await;
            followed.informer().stop().await;
            discard(followed);
        }
    }

    /// Starts the informer of `wanted`, and makes it the present one when it has synced. The former
    /// one is stopped after that.
    ///
    /// Returns the reason for which the last wait ended. `Changed` leads back to the loop of `run`,
    /// which reads the wanted version again; the informer that was starting is stopped then.
    ///
    /// A panic of the author's builder is logged, and the informer is built again after 10 s.
    async fn replace(
        &mut self,
        wanted: GroupVersionResource,
        running: &mut Option<Running<K, V>>,
        view: &Arc<Mutex<View<K>>>,
    ) -> Turn {
        let builder = Arc::clone(&self.build);
        let (informer, value) = match user_code("informer set", || builder(&wanted)) {
            Ok(member) => member,
            Err(error) => {
                tracing::error!(resource = %wanted.resource, %error, "failed to build an informer");
                self.note_wanted(&wanted, None);
                return self.wait(tokio::time::sleep(REBUILD_AFTER)).await;
            }
        };
        self.note_wanted(&wanted, Some(informer.clone()));
        informer.start();
        let mut has_synced = false;
        let mut turn = self.wait(async { has_synced = informer.wait_for_sync().await }).await;
        if !has_synced {
            if matches!(turn, Turn::Ready) {
                turn = self.stopped(&informer).await;
            }
            self.state.lock().starting = None;
            informer.stop().await;
            discard((informer, value));
            return turn;
        }
        let followed = Arc::new(Followed { resource: wanted, informer, value });
        self.switch(followed, running, view).await
    }

    /// Makes `followed` the present cache, and moves the handler to it.
    ///
    /// The order matters: the former subscription is removed before the new cache is presented, so
    /// that the handler never reads a cache that is behind its events.
    async fn switch(
        &mut self,
        followed: Arc<Followed<K, V>>,
        running: &mut Option<Running<K, V>>,
        view: &Arc<Mutex<View<K>>>,
    ) -> Turn {
        if let Some(Running { followed: former, subscription, .. }) = running.take() {
            subscription.remove().await;
            self.present(&followed);
            view.lock().begin_handover();
            former.informer().stop().await;
            discard(former);
        } else {
            self.present(&followed);
        }
        let (deliver, seen) = (self.delivery(followed.resource()), Arc::clone(view));
        let subscription = followed.informer().add_handler("informer set", move |event| {
            // The lock is this resource's own: it orders the calls of the handler.
            let mut view = seen.lock();
            view.apply(event, &deliver);
        });
        let present = running.insert(Running { followed, subscription, is_delivered: false });
        self.deliver(present, view).await
    }

    /// Waits until the handler has received the list of the present cache, and then for another
    /// wanted version, or for the end of the informer.
    ///
    /// The handover ends after the list, with deletions for the objects that it does not have. If
    /// another version is wanted before that and then this one again, the handover continues here.
    async fn deliver(&mut self, present: &mut Running<K, V>, view: &Arc<Mutex<View<K>>>) -> Turn {
        if !present.is_delivered {
            let mut has_synced = false;
            let synced = async { has_synced = present.subscription.wait_for_sync().await };
            let turn = self.wait(synced).await;
            if !matches!(turn, Turn::Ready) {
                return turn;
            }
            present.is_delivered = has_synced;
            if has_synced {
                self.end_handover(present, view).await;
            }
        }
        let informer = present.followed.informer().clone();
        let ended = async {
            let _logged_below: Result<(), _> = informer.wait_for_stop().await;
        };
        match self.wait(ended).await {
            Turn::Ready => self.stopped(&informer).await,
            turn => turn,
        }
    }

    /// Reports the objects that the present cache does not have as deleted, and then `Synced`.
    async fn end_handover(&self, present: &Running<K, V>, view: &Arc<Mutex<View<K>>>) {
        let deliver = self.delivery(present.followed.resource());
        // Marked as the informer's own code: `stop` called by the handler does not wait.
        callback::mark(async {
            let mut view = view.lock();
            view.end_handover(&deliver);
            deliver(SetEvent::Synced);
        })
        .await;
    }

    /// Logs that an informer has stopped, and waits before the loop of `run` replaces it.
    async fn stopped(&mut self, informer: &SharedIndexInformer<K>) -> Turn {
        let failure = informer.failure().map(|failure| failure.to_string());
        tracing::error!(informer = %informer.name(), ?failure, "informer stopped, replacing it");
        self.wait(tokio::time::sleep(REBUILD_AFTER)).await
    }

    /// Readers see the new cache from here on. The former one is dropped without the lock.
    fn present(&self, followed: &Arc<Followed<K, V>>) {
        let mut state = self.state.lock();
        state.starting = None;
        let former = state.present.replace(Arc::clone(followed));
        drop(state);
        discard(former);
    }

    /// Returns the function that passes an event to the author's handler. A panic costs the event.
    fn delivery(&self, resource: &GroupVersionResource) -> impl Fn(SetEvent<K>) + Send + use<K, V> {
        let (handler, resource) = (Arc::clone(&self.handler), resource.clone());
        move |event| {
            if let Err(error) = user_code("informer set", || handler(&resource, event)) {
                tracing::error!(resource = %resource.resource, %error, "handler panicked");
            }
        }
    }

    /// `since` starts again only if the version is another one.
    fn note_wanted(&self, wanted: &GroupVersionResource, starting: Option<SharedIndexInformer<K>>) {
        let mut state = self.state.lock();
        if state.wanted != *wanted {
            state.wanted = wanted.clone();
            state.since = Instant::now();
        }
        let former = std::mem::replace(&mut state.starting, starting);
        drop(state);
        discard(former);
    }

    /// Waits for `ready`, another wanted version, or the removal of the resource.
    ///
    /// A change of the wanted version has precedence over `ready`.
    async fn wait(&mut self, ready: impl Future<Output = ()>) -> Turn {
        tokio::select! {
            biased;
            changed = self.wanted.changed() => {
                if changed.is_ok() { Turn::Changed } else { Turn::Removed }
            }
            () = ready => Turn::Ready,
        }
    }
}

/// Drops what may be the last handle on an informer or on the author's value. Both drops are the
/// author's code, a panic of which must not end the task of the resource.
fn discard<T>(former: T) {
    if let Err(error) = user_code("drop", || drop(former)) {
        tracing::error!(%error, "the drop of a former informer panicked; its memory is lost");
    }
}
