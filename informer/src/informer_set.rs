//! [`InformerSet`]: follows a list of resources that changes while the process runs.
//!
//! Each resource has one task, which owns the resource's informers one after the other. The task
//! reads the wanted version from a channel and ends when the channel closes, so that removing the
//! resource from the map is all that [`InformerSet::follow`] does to stop it.

mod member;
mod view;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use homeostat_core::GroupResource;
use kube_core::GroupVersionResource;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::member::{Member, State};
use crate::callback::in_callback;
use crate::event::Event;
use crate::object::Object;
use crate::shared::{SharedIndexInformer, Unsynced};

/// Keeps one informer for each resource of a list, and follows the list when it changes.
///
/// Use it for resources that are known only at run time: those that discovery returns, or those
/// that some object names. Use a [`SharedInformerFactory`](crate::SharedInformerFactory) instead
/// for kinds that are known when the program is written.
///
/// * A resource that joins the list gets an informer. One that leaves it is stopped: its handler is
///   removed, its tasks are joined, its cache is dropped.
/// * A resource whose version changes keeps its present cache until the informer of the new version
///   has synced. The handler gets only the differences between the two, so the sequence of events
///   for an object stays valid ([`Event`] has the grammar).
/// * One handler receives the events of all resources, each with the resource.
/// * An informer that does not sync delays no other one. [`unsynced`](Self::unsynced) returns it
///   with the reason.
/// * An informer that stops or fails is replaced by another one after 10 s. Its cache stays
///   readable until then.
///
/// The function `build` makes the informer of a resource, and a value that belongs to it: the
/// handles of its indices, or `()`. The set starts the informer.
///
/// It costs one task per resource, and for each object an entry of the version that the handler
/// has seen.
///
/// A clone is another handle on the same set. When the last handle is dropped, every task ends.
///
/// # Examples
///
/// ```no_run
/// use homeostat_core::GroupResource;
/// use homeostat_informer::list_watch::KubeListWatch;
/// use homeostat_informer::{
///     Dynamic, GroupVersionResource, InformerSet, Metadata, SetEvent, SharedIndexInformer,
/// };
///
/// # async fn doc(client: kube_client::Client) {
/// let build = move |resource: &GroupVersionResource| {
///     let list_watch = KubeListWatch::of_resource(client.clone(), resource, None);
///     (SharedIndexInformer::<Metadata<Dynamic>>::builder(list_watch).build(), ())
/// };
/// let set = InformerSet::new(build, |resource, event| match event {
///     SetEvent::Synced => println!("{} is synced", resource.resource),
///     SetEvent::Object(event) => println!("{}: {:?}", resource.resource, event.key()),
/// });
/// set.follow([GroupVersionResource::gvr("batch", "v1", "jobs")]);
/// // After the synced event:
/// if let Some(jobs) = set.get(&GroupResource::new("batch", "jobs")) {
///     println!("{} jobs", jobs.informer().lister().len());
/// }
/// set.stop().await;
/// # }
/// ```
pub struct InformerSet<K: Object, V: Send + Sync + 'static = ()> {
    shared: Arc<Shared<K, V>>,
}

/// A notification of an [`InformerSet`], for one resource.
pub enum SetEvent<K: Object> {
    /// An object changed. Objects that existed when the resource joined the list are
    /// [`Added`](Event::Added) with `initial`.
    Object(Event<K>),
    /// The cache of the resource is complete, and the handler has received all of it.
    ///
    /// It comes once after the resource joined the list, and once after each change of its version
    /// and each replacement of an informer that has stopped.
    Synced,
}

/// A resource of an [`InformerSet`] whose cache is complete.
pub struct Followed<K: Object, V = ()> {
    resource: GroupVersionResource,
    informer: SharedIndexInformer<K>,
    value: V,
}

/// A resource of an [`InformerSet`] that has not synced at the version that is wanted.
///
/// Its text is one line: the name of the informer, and the last failure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnsyncedResource {
    /// The resource at the wanted version.
    pub resource: GroupVersionResource,
    /// True if the cache of the former version is used meanwhile.
    pub has_former_cache: bool,
    /// The time since which the version is wanted.
    pub since: Instant,
    /// The informer and its last failure.
    pub unsynced: Unsynced,
}

/// The author's function that builds the informer of a resource. It does not start it.
type Build<K, V> =
    dyn Fn(&GroupVersionResource) -> (SharedIndexInformer<K>, V) + Send + Sync + 'static;

/// The author's handler.
type Handler<K> = dyn Fn(&GroupVersionResource, SetEvent<K>) + Send + Sync + 'static;

struct Shared<K: Object, V: Send + Sync + 'static> {
    build: Arc<Build<K, V>>,
    handler: Arc<Handler<K>>,
    slots: Mutex<Slots<K, V>>,
    /// The task of each resource, those that are ending included.
    tasks: TaskTracker,
}

struct Slots<K: Object, V: Send + Sync + 'static> {
    current: BTreeMap<GroupResource, Slot<K, V>>,
    /// The resources whose last task may not have ended: a new task waits for it, so that the calls
    /// of the handler for one resource do not overlap.
    ending: BTreeMap<GroupResource, CancellationToken>,
    /// True after `stop`: nothing is followed any more.
    is_stopped: bool,
}

/// A resource of the list. Dropping it ends the resource's task.
struct Slot<K: Object, V: Send + Sync + 'static> {
    wanted: watch::Sender<GroupVersionResource>,
    state: Arc<Mutex<State<K, V>>>,
    /// Cancelled by the task when it has ended.
    ended: CancellationToken,
}

// === impl InformerSet ===

impl<K: Object, V: Send + Sync + 'static> InformerSet<K, V> {
    /// Returns a set that follows nothing yet.
    ///
    /// `handler` is called from the tasks of the informers. For one resource the calls come one
    /// after the other; those of two resources may overlap. A panic is logged and costs the event.
    /// The handler must not block its thread.
    pub fn new<B, H>(build: B, handler: H) -> Self
    where
        B: Fn(&GroupVersionResource) -> (SharedIndexInformer<K>, V) + Send + Sync + 'static,
        H: Fn(&GroupVersionResource, SetEvent<K>) + Send + Sync + 'static,
    {
        let slots = Slots { current: BTreeMap::new(), ending: BTreeMap::new(), is_stopped: false };
        Self {
            shared: Arc::new(Shared {
                build: Arc::new(build),
                handler: Arc::new(handler),
                slots: Mutex::new(slots),
                tasks: TaskTracker::new(),
            }),
        }
    }

    /// Follows exactly the resources of `list`: starts those that are new, stops those that are
    /// missing, and changes the version of the others.
    ///
    /// It returns at once. Of two versions of one resource the first counts. After
    /// [`stop`](Self::stop) it does nothing.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn follow(&self, list: impl IntoIterator<Item = GroupVersionResource>) {
        // The iterator is the author's code, which may read this set: not under the lock.
        let list: Vec<_> = list.into_iter().collect();
        let mut slots = self.shared.slots.lock();
        if slots.is_stopped {
            return;
        }
        let mut kept = BTreeSet::new();
        for wanted in list {
            let resource = group_resource(&wanted);
            if !kept.insert(resource.clone()) {
                continue;
            }
            if let Some(slot) = slots.current.get(&resource) {
                slot.want(wanted);
            } else {
                let slot = self.start(&resource, wanted, &mut slots.ending);
                slots.current.insert(resource, slot);
            }
        }
        let (current, gone) =
            std::mem::take(&mut slots.current).into_iter().partition(|(it, _)| kept.contains(it));
        slots.current = current;
        slots.end(gone);
    }

    /// Starts the task of a resource.
    fn start(
        &self,
        resource: &GroupResource,
        wanted: GroupVersionResource,
        ending: &mut BTreeMap<GroupResource, CancellationToken>,
    ) -> Slot<K, V> {
        let ended = CancellationToken::new();
        let state = Arc::new(Mutex::new(State::new(wanted.clone())));
        let (sender, receiver) = watch::channel(wanted);
        let member = Member {
            build: Arc::clone(&self.shared.build),
            handler: Arc::clone(&self.shared.handler),
            wanted: receiver,
            state: Arc::clone(&state),
        };
        let (predecessor, end) = (ending.remove(resource), ended.clone().drop_guard());
        self.shared.tasks.spawn(async move {
            if let Some(predecessor) = predecessor {
                predecessor.cancelled().await;
            }
            Box::pin(member.run()).await;
            drop(end);
        });
        Slot { wanted: sender, state, ended }
    }

    /// Returns the present cache of a resource, or `None` if it has not synced or is not followed.
    ///
    /// While the version changes this is the cache of the former one. A caller that keeps the
    /// result keeps a cache that may be out of date after the next change.
    pub fn get(&self, resource: &GroupResource) -> Option<Arc<Followed<K, V>>> {
        let state = Arc::clone(&self.shared.slots.lock().current.get(resource)?.state);
        state.lock().present.clone()
    }

    /// Returns the resources that are followed, each at the version that is wanted.
    pub fn resources(&self) -> Vec<GroupVersionResource> {
        let slots = self.shared.slots.lock();
        slots.current.values().map(|slot| slot.wanted.borrow().clone()).collect()
    }

    /// Returns the resources that have not synced at the version that is wanted, with the reasons.
    pub fn unsynced(&self) -> Vec<UnsyncedResource> {
        let slots = self.shared.slots.lock();
        slots.current.values().filter_map(|slot| slot.state.lock().unsynced()).collect()
    }

    /// Stops every informer, and waits for all tasks. Nothing is followed afterwards.
    ///
    /// Called from the handler it does not wait, because it could wait for itself.
    ///
    /// # Cancel safety
    ///
    /// The informers stop once this future was polled. If the future is dropped then, only the
    /// wait ends.
    pub async fn stop(&self) {
        {
            let mut slots = self.shared.slots.lock();
            slots.is_stopped = true;
            let gone = std::mem::take(&mut slots.current);
            slots.end(gone);
        }
        self.shared.tasks.close();
        if !in_callback() {
            self.shared.tasks.wait().await;
        }
    }
}

impl<K: Object, V: Send + Sync + 'static> Clone for InformerSet<K, V> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Object, V: Send + Sync + 'static> fmt::Debug for InformerSet<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerSet").field("resources", &self.resources()).finish_non_exhaustive()
    }
}

// === impl Followed ===

impl<K: Object, V> Followed<K, V> {
    /// Returns the resource, at the version of the cache.
    pub fn resource(&self) -> &GroupVersionResource {
        &self.resource
    }

    /// Returns the informer. The set starts and stops it.
    pub fn informer(&self) -> &SharedIndexInformer<K> {
        &self.informer
    }

    /// Returns the value that was built with the informer.
    pub fn value(&self) -> &V {
        &self.value
    }
}

impl<K: Object, V> fmt::Debug for Followed<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("informer", &self.informer).finish_non_exhaustive()
    }
}

// === impl SetEvent ===

impl<K: Object> fmt::Debug for SetEvent<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(event) => f.debug_tuple("Object").field(event).finish(),
            Self::Synced => f.write_str("Synced"),
        }
    }
}

// === impl UnsyncedResource ===

impl fmt::Display for UnsyncedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.unsynced.fmt(f)
    }
}

// === impl Slots ===

impl<K: Object, V: Send + Sync + 'static> Slots<K, V> {
    /// Drops the slots, which ends their tasks, and notes the tasks as ending.
    fn end(&mut self, gone: BTreeMap<GroupResource, Slot<K, V>>) {
        self.ending.retain(|_, ended| !ended.is_cancelled());
        self.ending.extend(gone.into_iter().map(|(resource, slot)| (resource, slot.ended)));
    }
}

// === impl Slot ===

impl<K: Object, V: Send + Sync + 'static> Slot<K, V> {
    fn want(&self, wanted: GroupVersionResource) {
        self.wanted.send_if_modified(|present| {
            let differs = *present != wanted;
            if differs {
                *present = wanted;
            }
            differs
        });
    }
}

/// Returns the resource without its version.
fn group_resource(resource: &GroupVersionResource) -> GroupResource {
    GroupResource::new(resource.group.clone(), resource.resource.clone())
}
