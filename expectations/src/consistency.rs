//! Compares the versions of caches with the versions of writes.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use homeostat_core::GroupResource;
use tokio::time::Instant;

pub use self::readiness::{Missing, Readiness};
use self::state::{Answer, Gap, Outcome, Resource, State};
use self::version::Version;
use self::watched::Watched;
use crate::sync::Mutex;

mod readiness;
mod state;
mod version;
mod watched;

/// Tracks for each owner if the caches show all its writes (after the `ConsistencyStore` of
/// kube-controller-manager).
///
/// No owner acts on a cache that is older than its own writes, and no owner polls. A controller
///
/// * calls [`wrote_at`](Self::wrote_at) with the version that the API server returns for each
///   write,
/// * calls [`ready`](Self::ready) before it reads its caches,
/// * calls [`reached`](Self::reached) for each version that an informer has applied, and queues the
///   keys that it returns.
///
/// If a cache does not show a write within five seconds, the caller compares the cache with the API
/// server; see [`Readiness::Overdue`].
///
/// The store compares versions of the same resource only, as decimal numbers of any length. It
/// ignores a version that is not such a number. When a cache goes back to an older version (the API
/// server was restored from a backup), the store forgets the earlier writes of that resource.
///
/// This is a handle: cheap to clone, and all clones share their records. One store serves one
/// controller: the caches of two would report their versions out of order, as those of a restored
/// server, and the writes would be forgotten.
///
/// `Key` names the owner (a `ReplicaSet`); `Uid` distinguishes it from an earlier object of the
/// same name. The store removes a record as soon as the caches show all its writes or the caller
/// clears it, so an owner that does not write takes no memory.
///
/// Use it for a controller whose writes include updates, or whose caches are several. Use
/// [`UidTrackingExpectations`](crate::UidTrackingExpectations) when only creations and deletions
/// count and the caches do not report their versions.
///
/// # Examples
///
/// ```
/// use homeostat_expectations::{ConsistencyStore, GroupResource, Readiness};
///
/// let pods = GroupResource::new("", "pods");
/// let store = ConsistencyStore::<&str, &str>::new("replicaset_controller", [pods.clone()]);
/// let (key, uid) = ("default/web", "uid-1");
///
/// assert!(store.reached(&pods, "41").is_empty()); // the informer has listed
/// store.wrote_at(&key, &uid, &pods, "42"); // the reconciler has created a pod
///
/// let readiness = store.ready(&key, &uid);
/// assert!(matches!(readiness, Readiness::Waiting { missing: Some(m), .. } if m.written == "42"));
///
/// assert_eq!(store.reached(&pods, "42"), [key], "to be queued");
/// assert_eq!(store.ready(&key, &uid), Readiness::Ready);
/// ```
pub struct ConsistencyStore<Key, Uid> {
    shared: Arc<Shared<Key, Uid>>,
}

/// The state that all handles share.
struct Shared<Key, Uid> {
    state: Mutex<State<Key, Uid>>,
    /// Indexed by [`Resource`].
    resources: Vec<Watched>,
    /// The controller that has the store, compared by address: it is kept, so that no other one
    /// gets its address.
    controller: OnceLock<Arc<()>>,
}

// === impl ConsistencyStore ===

impl<Key, Uid> ConsistencyStore<Key, Uid>
where
    Key: Eq + Hash + Clone + Send + Sync + 'static,
    Uid: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Creates a store for these resources. It ignores writes of other resources.
    ///
    /// `controller` is the prefix of the metrics: `<controller>_stale_sync_skips_total` counts how
    /// often an owner had to wait; `<controller>_write_observed_seconds` measures how long the
    /// caches take to show a write. Both have the labels `group` and `resource`.
    pub fn new(controller: &str, resources: impl IntoIterator<Item = GroupResource>) -> Self {
        let resources: Vec<_> =
            resources.into_iter().map(|name| Watched::new(controller, name)).collect();
        let state = Mutex::new(State::new(resources.len()));
        Self { shared: Arc::new(Shared { state, resources, controller: OnceLock::new() }) }
    }

    /// Records that the API server has returned `version` for a write of this owner.
    ///
    /// Call it for each response, in any order, also when the cache already shows the object. If
    /// the cache does not show the write yet, the deadline moves to five seconds from now.
    ///
    /// It has no effect if the store does not have `resource`, if the cache of `resource` has not
    /// reported a version yet, or if `version` is no positive decimal number.
    ///
    /// # Examples
    ///
    /// A response that arrives after the informer has shown the object:
    ///
    /// ```
    /// use homeostat_expectations::{ConsistencyStore, GroupResource, Readiness};
    ///
    /// let pods = GroupResource::new("", "pods");
    /// let store = ConsistencyStore::<&str, u8>::new("my_controller", [pods.clone()]);
    /// assert!(store.reached(&pods, "42").is_empty());
    /// store.wrote_at(&"default/web", &1, &pods, "42");
    /// assert_eq!(store.ready(&"default/web", &1), Readiness::Ready);
    /// ```
    pub fn wrote_at(&self, key: &Key, uid: &Uid, resource: &GroupResource, version: &str) {
        let (Some(resource), Some(version)) = (self.number(resource), Version::parse(version))
        else {
            return;
        };
        let mut outcome = Outcome::default();
        let owner = ([key.clone(), key.clone()], uid.clone());
        let now = Instant::now();
        self.shared.state.lock().wrote(owner, (resource, version), now, &mut outcome);
        self.shared.resources[resource].record(&outcome);
    }

    /// Reports if the caches show every write of this owner that has a version.
    ///
    /// If they do not, [`reached`](Self::reached) returns the key as soon as they do.
    pub fn ready(&self, key: &Key, uid: &Uid) -> Readiness {
        let mut outcome = Outcome::default();
        let now = Instant::now();
        let answer = self.shared.state.lock().ready(key, uid, now, &mut outcome);
        if let Answer::Waiting { missing: Some(gap), .. } = &answer {
            self.shared.resources[gap.resource].count_skip();
        }
        self.readiness(answer)
    }

    /// Records that this owner waits for a write without a version: a deletion, or a write whose
    /// response was lost.
    ///
    /// Returns [`Waiting`](Readiness::Waiting) for five seconds from the first call, then
    /// [`Overdue`](Readiness::Overdue). Later writes do not move this deadline. Call
    /// [`clear`](Self::clear) when the cache shows the write.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_expectations::{ConsistencyStore, Readiness};
    ///
    /// let store = ConsistencyStore::<&str, u8>::new("my_controller", []);
    /// let waiting = store.unseen(&"default/web", &1);
    /// assert!(matches!(waiting, Readiness::Waiting { missing: None, .. }));
    /// store.clear(&"default/web", Some(&1));
    /// ```
    pub fn unseen(&self, key: &Key, uid: &Uid) -> Readiness {
        let mut outcome = Outcome::default();
        let (owner, now) = ((key.clone(), uid.clone()), Instant::now());
        let answer = self.shared.state.lock().unseen(owner, now, &mut outcome);
        self.readiness(answer)
    }

    /// Records that a cache still differs from the API server, and returns the time until the next
    /// comparison: twice the last wait, at most one minute.
    ///
    /// Without a record of this owner it returns five seconds.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat_expectations::ConsistencyStore;
    ///
    /// let store = ConsistencyStore::<&str, u8>::new("my_controller", []);
    /// let _waiting = store.unseen(&"default/web", &1);
    /// assert_eq!(store.still_late(&"default/web", &1), Duration::from_secs(10));
    /// assert_eq!(store.still_late(&"default/web", &1), Duration::from_secs(20));
    /// ```
    pub fn still_late(&self, key: &Key, uid: &Uid) -> Duration {
        let now = Instant::now();
        let (pause, missing) = self.shared.state.lock().still_late(key, uid, now);
        if let Some(resource) = missing {
            self.shared.resources[resource].count_skip();
        }
        pause
    }

    /// Removes the record of the owner with this uid, or of any owner with this key if `uid` is
    /// `None`.
    ///
    /// Call it when the cache shows every write, when the caches agree with the API server, or when
    /// the owner is deleted.
    pub fn clear(&self, key: &Key, uid: Option<&Uid>) {
        let mut outcome = Outcome::default();
        self.shared.state.lock().clear(key, uid, &mut outcome);
    }

    /// Records that the cache of `resource` shows everything up to `version`, and returns the keys
    /// that no longer have to wait: queue them.
    ///
    /// Call it after each change of the cache, in the order of the changes, also for bookmarks and
    /// deletions. A version that is lower than the last one, or not a number, means that the API
    /// server has another history (a restored backup): the store forgets the earlier writes of this
    /// resource.
    ///
    /// It returns a key only if [`ready`](Self::ready) has reported that a cache is late for that
    /// owner. The cost is `O(log n)` per write that the cache now shows, with `n` awaited writes.
    ///
    /// # Examples
    ///
    /// A restored backup, whose versions start lower:
    ///
    /// ```
    /// use homeostat_expectations::{ConsistencyStore, GroupResource, Readiness};
    ///
    /// let pods = GroupResource::new("", "pods");
    /// let store = ConsistencyStore::<&str, u8>::new("my_controller", [pods.clone()]);
    /// assert!(store.reached(&pods, "41").is_empty());
    /// store.wrote_at(&"default/web", &1, &pods, "42");
    /// assert!(matches!(store.ready(&"default/web", &1), Readiness::Waiting { .. }));
    ///
    /// assert_eq!(store.reached(&pods, "7"), ["default/web"], "42 will never come");
    /// assert_eq!(store.ready(&"default/web", &1), Readiness::Ready);
    /// ```
    #[must_use = "these keys wait to be queued"]
    pub fn reached(&self, resource: &GroupResource, version: &str) -> Vec<Key> {
        let Some(resource) = self.number(resource) else { return Vec::new() };
        let mut outcome = Outcome::default();
        let (version, now) = (Version::parse(version), Instant::now());
        self.shared.state.lock().reached(resource, version, now, &mut outcome);
        self.shared.resources[resource].record(&outcome);
        outcome.woken
    }

    /// Reserves the store for a controller. Returns false if another one has it.
    ///
    /// It is for `homeostat`, whose controllers refuse a store of another one: the caches of two
    /// would report their versions out of order, and a key that waited for one would be queued in
    /// the other.
    #[doc(hidden)]
    pub fn reserve_for(&self, controller: &Arc<()>) -> bool {
        Arc::ptr_eq(self.shared.controller.get_or_init(|| Arc::clone(controller)), controller)
    }

    fn number(&self, resource: &GroupResource) -> Option<Resource> {
        self.shared.resources.iter().position(|watched| watched.name == *resource)
    }

    fn readiness(&self, answer: Answer) -> Readiness {
        let missing = |gap: Gap| Missing {
            resource: self.shared.resources[gap.resource].name.clone(),
            written: gap.written.to_string(),
            read: gap.read.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        match answer {
            Answer::Ready => Readiness::Ready,
            Answer::Waiting { missing: gap, deadline } => {
                Readiness::Waiting { missing: gap.map(missing), until: deadline }
            }
            Answer::Overdue { missing: gap } => Readiness::Overdue { missing: gap.map(missing) },
        }
    }
}

impl<Key, Uid> Clone for ConsistencyStore<Key, Uid> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<Key: Eq + Hash, Uid: Eq> fmt::Debug for ConsistencyStore<Key, Uid> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owners = self.shared.state.lock().len();
        f.debug_struct("ConsistencyStore").field("owners", &owners).finish_non_exhaustive()
    }
}
