//! Whether the caches are as new as what was written.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Histogram};
use tokio::time::Instant;

use self::state::{Answer, Gap, Outcome, Resource, State};
use self::version::Version;
use crate::sync::Mutex;

mod state;
mod version;

/// Says for each owner whether the caches show all that was written for it, and names those who waited when they
/// do: nobody acts on a cache older than its own writes, and nobody has to ask twice.
///
/// A controller tells it each version that the server has given to something it wrote
/// ([`wrote_at`](Self::wrote_at)), asks before it looks at its caches ([`ready`](Self::ready)), and is asked
/// for again when an informer has come far enough ([`reached`](Self::reached) returns the keys).
/// A cache that does not get there within five seconds is to be compared with the server; see
/// [`Readiness::Overdue`].
///
/// It compares versions of one resource only, as decimal numbers of any length. What is no such number is not
/// waited for, and when a cache goes back to an older version (the server was restored from a backup), what was
/// written before that is not waited for any longer.
///
/// This is a handle: cheap to clone, and all clones share their records. `Key` names the owner (a `ReplicaSet`),
/// `Uid` tells it from another one that bore its name before. A record goes when all of it was shown or
/// cleared: an owner that does not write takes no memory.
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
/// assert!(store.reached(&pods, "41").is_empty()); // by the informer: it has listed
/// store.wrote_at(&key, &uid, &pods, "42"); // by the reconciler: a pod was created
///
/// let Readiness::Waiting { missing: Some(missing), .. } = store.ready(&key, &uid) else { panic!() };
/// assert_eq!(missing.written, "42");
///
/// assert_eq!(store.reached(&pods, "42"), [key], "to be queued");
/// assert_eq!(store.ready(&key, &uid), Readiness::Ready);
/// ```
pub struct ConsistencyStore<Key, Uid> {
    shared: Arc<Shared<Key, Uid>>,
}

/// What the versions of a [`ConsistencyStore`] belong to: `pods`, or `replicasets` in the group `apps`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// The API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// The resource, in the plural.
    pub resource: Cow<'static, str>,
}

/// Whether an owner may act on what the caches show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// They show all that was written for it.
    Ready,
    /// Not yet. Do nothing; look again at `until`, unless something asks for the key earlier.
    Waiting {
        /// The first of what is missing; `None` if it is something [`unseen`](ConsistencyStore::unseen).
        missing: Option<Missing>,
        /// When the caches will have had enough time.
        until: Instant,
    },
    /// Still not, although they had enough time. Ask the server what there is. If the caches show the very
    /// same, [`clear`](ConsistencyStore::clear) the record and act; if not, tell
    /// [`still_late`](ConsistencyStore::still_late).
    Overdue {
        /// The first of what is missing; `None` if it is something [`unseen`](ConsistencyStore::unseen).
        missing: Option<Missing>,
    },
}

/// A cache that has not come as far as what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// What was written.
    pub resource: GroupResource,
    /// The highest version that was written.
    pub written: String,
    /// The version that the cache has reached.
    pub read: String,
}

/// What the handles share.
struct Shared<Key, Uid> {
    state: Mutex<State<Key, Uid>>,
    /// In the order of the state's numbers.
    resources: Vec<Watched>,
}

struct Watched {
    name: GroupResource,
    /// How often an owner was told to wait.
    skips: Counter,
    /// From the answer to a write until the cache showed it.
    shown_after: Histogram,
}

// === impl ConsistencyStore ===

impl<Key, Uid> ConsistencyStore<Key, Uid>
where
    Key: Eq + Hash + Clone + Send + Sync + 'static,
    Uid: Eq + Hash + Clone + Send + Sync + 'static,
{
    /// Watches over these resources; what is written of others is not waited for.
    ///
    /// `controller` is what its metrics begin with: `<controller>_stale_sync_skips_total` counts how often an
    /// owner had to wait, `<controller>_write_observed_seconds` says how long the caches take, both by `group`
    /// and `resource`.
    pub fn new(controller: &str, resources: impl IntoIterator<Item = GroupResource>) -> Self {
        let resources: Vec<_> =
            resources.into_iter().map(|name| Watched::new(controller, name)).collect();
        let state = Mutex::new(State::new(resources.len()));
        Self { shared: Arc::new(Shared { state, resources }) }
    }

    /// The server has given `version` to an object that was written for this owner.
    ///
    /// Call it for each answer, in any order, also when the cache has shown the object already. It gives the
    /// caches another five seconds. A cache that has not told any version yet is not waited for.
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

    /// Whether the caches show every version that was written for this owner. If not, the key is among those
    /// that [`reached`](Self::reached) returns as soon as they do.
    pub fn ready(&self, key: &Key, uid: &Uid) -> Readiness {
        let mut outcome = Outcome::default();
        let now = Instant::now();
        let answer = self.shared.state.lock().ready(key, uid, now, &mut outcome);
        if let Answer::Waiting { missing: Some(gap), .. } = &answer {
            self.shared.resources[gap.resource].skips.increment(1);
        }
        self.readiness(answer)
    }

    /// Notes that this owner waits for something that has no version: a deletion, or a write whose answer was
    /// lost. Says how long to: never [`Ready`](Readiness::Ready). The time counts from the first time that this is
    /// called, whatever is written meanwhile.
    ///
    /// Call [`clear`](Self::clear) when it was seen.
    pub fn unseen(&self, key: &Key, uid: &Uid) -> Readiness {
        let mut outcome = Outcome::default();
        let (owner, now) = ((key.clone(), uid.clone()), Instant::now());
        let answer = self.shared.state.lock().unseen(owner, now, &mut outcome);
        self.readiness(answer)
    }

    /// The server was asked, and the caches do not show what it has. Returns when to ask again: in twice the
    /// time of the last wait, at most a minute.
    pub fn still_late(&self, key: &Key, uid: &Uid) -> Duration {
        let now = Instant::now();
        let (pause, missing) = self.shared.state.lock().still_late(key, uid, now);
        if let Some(resource) = missing {
            self.shared.resources[resource].skips.increment(1);
        }
        pause
    }

    /// Waits for nothing any longer: everything was seen, or the caches were compared with the server, or the owner
    /// with this uid (`None`: whatever uid it had) is gone.
    pub fn clear(&self, key: &Key, uid: Option<&Uid>) {
        let mut outcome = Outcome::default();
        self.shared.state.lock().clear(key, uid, &mut outcome);
    }

    /// The cache of `resource` shows everything up to `version`. Returns the keys that waited for that, and need
    /// not any longer: queue them.
    ///
    /// Call it in the order in which the cache changes, also for bookmarks and deletions, and after the change.
    /// A version that is lower than the one before, or no number, means that the server has another history:
    /// what was written of this resource is not waited for any longer.
    #[must_use = "these keys wait to be queued"]
    pub fn reached(&self, resource: &GroupResource, version: &str) -> Vec<Key> {
        let Some(resource) = self.number(resource) else { return Vec::new() };
        let mut outcome = Outcome::default();
        let (version, now) = (Version::parse(version), Instant::now());
        self.shared.state.lock().reached(resource, version, now, &mut outcome);
        self.shared.resources[resource].record(&outcome);
        outcome.woken
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
            Answer::Waiting { missing: gap, due } => {
                Readiness::Waiting { missing: gap.map(missing), until: due }
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

// === impl GroupResource ===

impl GroupResource {
    /// `resource` in `group`, which is empty for the core group.
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        resource: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

// === impl Missing ===

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, written, read } = self;
        write!(f, "the cache of {resource} is at {read} and has yet to reach {written}")
    }
}

// === impl Watched ===

impl Watched {
    fn new(controller: &str, name: GroupResource) -> Self {
        let labels =
            || [("group", name.group.to_string()), ("resource", name.resource.to_string())];
        let skips = metrics::counter!(format!("{controller}_stale_sync_skips_total"), &labels());
        let shown_after =
            metrics::histogram!(format!("{controller}_write_observed_seconds"), &labels());
        Self { name, skips, shown_after }
    }

    fn record<Key, Uid>(&self, outcome: &Outcome<Key, Uid>) {
        for shown_after in &outcome.shown_after {
            self.shown_after.record(shown_after.as_secs_f64());
        }
    }
}
