//! Compares the cache with a model that never forgets.
//!
//! Schedules are random: writes are reported late and in any order, and the informer lags behind
//! the server.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;

use super::builder::CAPACITY;
use super::*;
use crate::index::Index;
use crate::{model, testing};

const NAMES: [&str; 3] = ["a", "b", "c"];
const VALUES: [&str; 3] = ["x", "y", "z"];

#[derive(Clone, Debug)]
enum Step {
    /// The server accepts a write: it creates or changes the object so that it has the value, or
    /// deletes it.
    Write { name: usize, value: Option<usize>, own: bool },
    /// The controller reports one of its writes to the cache.
    Report { which: usize },
    /// The informer receives up to `changes` changes.
    Follow { changes: usize },
    /// The informer lists: everything up to now, in one step.
    List,
    /// The handler receives up to `events` events.
    Observe { events: usize },
}

/// A change on the server.
#[derive(Clone)]
enum Change {
    Made(Arc<ConfigMap>),
    Gone(Arc<ConfigMap>),
}

/// A server, an informer, a controller, and the writes that the controller has reported.
struct World {
    store: testing::Store<ConfigMap>,
    by_value: Index<ConfigMap, String>,
    cache: MutationCache<ConfigMap>,
    server: BTreeMap<usize, Arc<ConfigMap>>,
    version: u64,
    history: Vec<Change>,
    /// The number of changes that the informer has received.
    followed: usize,
    /// The informer's state of each name.
    copy: BTreeMap<usize, Arc<ConfigMap>>,
    reached: u64,
    events: std::collections::VecDeque<Event<ConfigMap>>,
    unreported: Vec<Change>,
    reported: Vec<Change>,
    observing: bool,
}

fn steps() -> impl Strategy<Value = Step> {
    let value = prop_oneof![3 => (0..VALUES.len()).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        6 => (0..NAMES.len(), value, prop::bool::weighted(0.7))
            .prop_map(|(name, value, own)| Step::Write { name, value, own }),
        5 => (0..4_usize).prop_map(|which| Step::Report { which }),
        3 => (1..4_usize).prop_map(|changes| Step::Follow { changes }),
        1 => Just(Step::List),
        3 => (1..6_usize).prop_map(|events| Step::Observe { events }),
    ]
}

fn version(map: &ConfigMap) -> u64 {
    map.metadata.resource_version.as_deref().unwrap_or_default().parse().unwrap()
}

fn value(map: &ConfigMap) -> Option<String> {
    map.metadata.labels.as_ref()?.get("value").cloned()
}

fn same(one: Option<&Arc<ConfigMap>>, other: Option<&Arc<ConfigMap>>) -> bool {
    let known = |map: &Arc<ConfigMap>| (map.metadata.uid.clone(), version(map));
    one.map(known) == other.map(known)
}

impl Change {
    fn object(&self) -> &Arc<ConfigMap> {
        match self {
            Self::Made(object) | Self::Gone(object) => object,
        }
    }
}

impl World {
    fn new(capacity: usize, observing: bool) -> Self {
        let store = testing::Store::new();
        Self {
            by_value: store.index(value),
            cache: MutationCache::builder(store.lister()).capacity(capacity).build(),
            store,
            server: BTreeMap::new(),
            version: 1,
            history: Vec::new(),
            followed: 0,
            copy: BTreeMap::new(),
            reached: 0,
            events: std::collections::VecDeque::new(),
            unreported: Vec::new(),
            reported: Vec::new(),
            observing,
        }
    }

    fn step(&mut self, step: &Step, tally: &model::Tally) {
        match *step {
            Step::Write { name, value, own } => self.write(name, value, own, tally),
            Step::Report { which } if !self.unreported.is_empty() => {
                let change = self.unreported.remove(which % self.unreported.len());
                tally.count("writes reported", 1);
                match &change {
                    Change::Made(object) => self.cache.written(Arc::clone(object)),
                    Change::Gone(object) => self.cache.deleted(object),
                }
                self.reported.push(change);
            }
            Step::Report { .. } => {}
            Step::Follow { changes } => self.follow(changes),
            Step::List => self.list(),
            Step::Observe { events } => {
                let events = self.events.drain(..events.min(self.events.len()));
                for event in events.filter(|_| self.observing) {
                    self.cache.observe(&event);
                }
            }
        }
    }

    fn write(&mut self, name: usize, value: Option<usize>, own: bool, tally: &model::Tally) {
        let old = self.server.get(&name).cloned();
        let change = match (value, old) {
            (None, None) => return,
            (None, Some(last)) => {
                self.version += 1;
                self.server.remove(&name);
                // The response to a delete is the last state, or the state at the deletion's
                // version.
                let known =
                    if self.version.is_multiple_of(2) { version(&last) } else { self.version };
                Change::Gone(Arc::new(object(name, last.metadata.uid.as_deref(), known, None)))
            }
            (Some(value), old) => {
                self.version += 1;
                let uid = old.as_ref().and_then(|old| old.metadata.uid.as_deref());
                let new = Arc::new(object(name, uid, self.version, Some(VALUES[value])));
                self.server.insert(name, Arc::clone(&new));
                Change::Made(new)
            }
        };
        self.history.push(change.clone());
        if own {
            tally.count("own writes", 1);
            self.unreported.push(change);
        }
    }

    fn follow(&mut self, changes: usize) {
        let end = self.history.len().min(self.followed + changes);
        for at in self.followed..end {
            let change = self.history[at].clone();
            // Each change takes one version, after the first.
            self.reached = at as u64 + 2;
            let object = change.object();
            let name = NAMES.iter().position(|name| object.metadata.name.as_deref() == Some(name));
            let name = name.unwrap();
            match &change {
                Change::Made(object) => {
                    self.store.apply(Arc::clone(object));
                    self.copy.insert(name, Arc::clone(object));
                    let object = Arc::clone(object);
                    self.events.push_back(Event::Added { object, initial: false });
                }
                Change::Gone(object) => {
                    let mut last = (**object).clone();
                    last.metadata.resource_version = Some(self.reached.to_string());
                    let last_known = Arc::new(last);
                    self.store.delete(Arc::clone(&last_known));
                    self.copy.remove(&name);
                    self.events.push_back(Event::Deleted { last_known, certain: true });
                }
            }
        }
        self.followed = end;
    }

    fn list(&mut self) {
        let objects = self.server.values().map(|object| (**object).clone());
        self.store.replace(objects, self.version.to_string());
        self.reached = self.version;
        for (name, last) in &self.copy {
            let now = self.server.get(name);
            if now.is_none_or(|now| now.metadata.uid != last.metadata.uid) {
                let last_known = Arc::clone(last);
                self.events.push_back(Event::Deleted { last_known, certain: false });
            }
        }
        for object in self.server.values().cloned() {
            self.events.push_back(Event::Added { object, initial: false });
        }
        self.copy = self.server.clone();
        self.followed = self.history.len();
    }

    /// Returns the expected state: the newest of the informer's state and of the reported writes
    /// that it has not reached, unless that object was deleted by the newest change or by the
    /// controller.
    fn expected(&self, name: usize) -> Option<Arc<ConfigMap>> {
        let of_name =
            |change: &&Change| change.object().metadata.name.as_deref() == Some(NAMES[name]);
        let reported = || self.reported.iter().filter(of_name);
        let deleted = || reported().filter(|change| matches!(change, Change::Gone(_)));
        let gone: BTreeSet<_> =
            deleted().map(|change| change.object().metadata.uid.clone()).collect();
        let last_gone = deleted().map(|change| version(change.object())).max().unwrap_or(0);
        let written = reported().filter_map(|change| match change {
            Change::Made(object) => Some(object),
            Change::Gone(_) => None,
        });
        let ahead = written.filter(|object| version(object) > self.reached);
        let alive =
            ahead.chain(self.copy.get(&name)).filter(|object| !gone.contains(&object.metadata.uid));
        let newest = alive.max_by_key(|object| version(object));
        newest.filter(|object| version(object) > last_gone).cloned()
    }

    fn check(&self, exact: bool) {
        for (name, text) in NAMES.iter().enumerate() {
            let shown = self.cache.get(("n", *text));
            if exact {
                let expected = self.expected(name);
                assert!(same(shown.as_ref(), expected.as_ref()), "{shown:?} for {expected:?}");
            } else if let Some(shown) = &shown {
                let own = self.copy.get(&name);
                let is_copy = same(Some(shown), own);
                assert!(
                    is_copy || version(shown) > self.reached,
                    "neither newer than the store nor its state"
                );
                assert!(
                    own.is_none_or(|own| version(shown) >= version(own)),
                    "older than the store"
                );
            }
        }
        for value_of in VALUES {
            let mut found = self.cache.by_index(&self.by_value, value_of).to_vec();
            let shown = NAMES.iter().filter_map(|name| self.cache.get(("n", *name)));
            let mut expected: Vec<_> =
                shown.filter(|map| value(map).as_deref() == Some(value_of)).collect();
            found.sort_by_key(|map| version(map));
            expected.sort_by_key(|map| version(map));
            let versions = |maps: Vec<Arc<ConfigMap>>| -> Vec<_> {
                maps.iter().map(|map| version(map)).collect()
            };
            assert_eq!(versions(found), versions(expected), "index and lookup agree");
        }
    }

    /// Delivers everything that is pending, and checks that the cache then returns the server's
    /// state and remembers nothing.
    fn settle(&mut self) {
        self.follow(usize::MAX / 2);
        for change in std::mem::take(&mut self.unreported) {
            match &change {
                Change::Made(object) => self.cache.written(Arc::clone(object)),
                Change::Gone(object) => self.cache.deleted(object),
            }
        }
        for event in self.events.drain(..) {
            self.cache.observe(&event);
        }
        for (name, text) in NAMES.iter().enumerate() {
            let shown = self.cache.get(("n", *text));
            assert!(same(shown.as_ref(), self.server.get(&name)), "equals the server's state");
        }
        // Without `observe`, a deletion stays remembered where another object has taken the name.
        assert!(self.cache.remembered() == 0 || !self.observing);
    }
}

/// Returns an object of the server. Without a `uid` it is created at this version.
fn object(name: usize, uid: Option<&str>, version: u64, value: Option<&str>) -> ConfigMap {
    let uid = uid.map_or_else(|| format!("u{version}"), ToOwned::to_owned);
    let metadata = serde_json::json!({
        "name": NAMES[name], "namespace": "n", "uid": uid, "resourceVersion": version.to_string(),
        "labels": value.map(|value| BTreeMap::from([("value", value)])),
    });
    ConfigMap { metadata: serde_json::from_value(metadata).unwrap(), ..ConfigMap::default() }
}

#[test]
fn mutation_cache_matches_its_model() {
    let least = [("writes reported", 1000), ("own writes", 1500), ("ahead of the informer", 2000)];
    model::check(steps(), 40, &least, |steps, tally| {
        let mut world = World::new(CAPACITY, steps.len() % 2 == 0);
        for step in steps {
            world.step(step, tally);
            tally.count("ahead of the informer", world.cache.remembered().min(1));
            world.check(true);
        }
        world.settle();
    });
}

#[test]
fn mutation_cache_at_capacity_is_never_older_than_the_store() {
    let least = [("writes reported", 1000), ("own writes", 1500), ("forgotten", 100)];
    model::check(steps(), 40, &least, |steps, tally| {
        let mut world = World::new(1, steps.len() % 2 == 0);
        for step in steps {
            world.step(step, tally);
            world.check(false);
        }
        world.settle();
        tally.count("forgotten", usize::try_from(world.cache.forgotten()).unwrap());
    });
}
