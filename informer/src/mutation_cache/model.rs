//! Any schedule of writes, told late and in any order, and of an informer that lags behind: what is shown is what one
//! who forgets nothing would show.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;

use super::*;
use crate::{model, testing};

const NAMES: [&str; 3] = ["a", "b", "c"];
const VALUES: [&str; 3] = ["x", "y", "z"];

#[derive(Clone, Debug)]
enum Step {
    /// The server takes a write: to make or change the object, so that it has the value; or to delete it.
    Write { name: usize, value: Option<usize>, own: bool },
    /// One of our writes that we have not told of is told of.
    Tell { which: usize },
    /// The informer follows, up to so many changes.
    Follow { changes: usize },
    /// The informer lists: all up to now, in one step.
    List,
    /// The handler gets up to so many events.
    Observe { events: usize },
}

/// What the server did.
#[derive(Clone)]
enum Change {
    Made(Arc<ConfigMap>),
    Gone(Arc<ConfigMap>),
}

/// A server, an informer and a controller, and what the controller has told the cache.
struct World {
    store: testing::Store<ConfigMap>,
    by_value: Index<ConfigMap, String>,
    cache: MutationCache<ConfigMap>,
    server: BTreeMap<usize, Arc<ConfigMap>>,
    version: u64,
    history: Vec<Change>,
    /// How much of the history the informer has.
    followed: usize,
    /// What it has of each name.
    copy: BTreeMap<usize, Arc<ConfigMap>>,
    reached: u64,
    events: std::collections::VecDeque<Event<ConfigMap>>,
    untold: Vec<Change>,
    told: Vec<Change>,
    observing: bool,
}

fn steps() -> impl Strategy<Value = Step> {
    let value = prop_oneof![3 => (0..VALUES.len()).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        6 => (0..NAMES.len(), value, prop::bool::weighted(0.7))
            .prop_map(|(name, value, own)| Step::Write { name, value, own }),
        5 => (0..4_usize).prop_map(|which| Step::Tell { which }),
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
            untold: Vec::new(),
            told: Vec::new(),
            observing,
        }
    }

    fn step(&mut self, step: &Step, tally: &model::Tally) {
        match *step {
            Step::Write { name, value, own } => self.write(name, value, own, tally),
            Step::Tell { which } if !self.untold.is_empty() => {
                let change = self.untold.remove(which % self.untold.len());
                tally.count("writes told", 1);
                match &change {
                    Change::Made(object) => self.cache.written(Arc::clone(object)),
                    Change::Gone(object) => self.cache.deleted(object),
                }
                self.told.push(change);
            }
            Step::Tell { .. } => {}
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
                // What we know of it is its last state, or that of the deletion: the server answers with either.
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
            self.untold.push(change);
        }
    }

    fn follow(&mut self, changes: usize) {
        let end = self.history.len().min(self.followed + changes);
        for at in self.followed..end {
            let change = self.history[at].clone();
            // Each takes one version, after the first.
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

    /// What one who forgets nothing shows: the newest of what the informer has, and of what we were told and it has not
    /// reached; unless the newest of all was deleted, or we deleted it.
    fn expected(&self, name: usize) -> Option<Arc<ConfigMap>> {
        let of_name =
            |change: &&Change| change.object().metadata.name.as_deref() == Some(NAMES[name]);
        let told = || self.told.iter().filter(of_name);
        let deleted = || told().filter(|change| matches!(change, Change::Gone(_)));
        let gone: BTreeSet<_> =
            deleted().map(|change| change.object().metadata.uid.clone()).collect();
        let last_gone = deleted().map(|change| version(change.object())).max().unwrap_or(0);
        let written = told().filter_map(|change| match change {
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
                assert!(is_copy || version(shown) > self.reached, "neither newer nor the copy's");
                assert!(own.is_none_or(|own| version(shown) >= version(own)), "goes back");
            }
        }
        for value_of in VALUES {
            let mut found: Vec<_> = self.cache.by_index(&self.by_value, value_of);
            let shown = NAMES.iter().filter_map(|name| self.cache.get(("n", *name)));
            let mut expected: Vec<_> =
                shown.filter(|map| value(map).as_deref() == Some(value_of)).collect();
            found.sort_by_key(|map| version(map));
            expected.sort_by_key(|map| version(map));
            let versions = |maps: Vec<Arc<ConfigMap>>| -> Vec<_> {
                maps.iter().map(|map| version(map)).collect()
            };
            assert_eq!(versions(found), versions(expected), "index and look-up agree");
        }
    }

    /// Once everything has been followed, told and observed, nothing is left of it all.
    fn settle(&mut self) {
        self.follow(usize::MAX / 2);
        for change in std::mem::take(&mut self.untold) {
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
            assert!(same(shown.as_ref(), self.server.get(&name)), "shows what the server has");
        }
        // Without events a deletion is remembered where another object has taken the name.
        assert!(self.cache.remembered() == 0 || !self.observing);
    }
}

/// An object of the server; made at this version, if it has no uid yet.
fn object(name: usize, uid: Option<&str>, version: u64, value: Option<&str>) -> ConfigMap {
    let uid = uid.map_or_else(|| format!("u{version}"), ToOwned::to_owned);
    let metadata = serde_json::json!({
        "name": NAMES[name], "namespace": "n", "uid": uid, "resourceVersion": version.to_string(),
        "labels": value.map(|value| BTreeMap::from([("value", value)])),
    });
    ConfigMap { metadata: serde_json::from_value(metadata).unwrap(), ..ConfigMap::default() }
}

#[test]
fn any_schedule_shows_what_one_who_forgets_nothing_would() {
    let least = [("writes told", 1000), ("own writes", 1500), ("ahead of the informer", 2000)];
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
fn without_room_it_is_never_worse_than_the_informers_cache() {
    let least = [("writes told", 1000), ("own writes", 1500), ("forgotten", 100)];
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
