//! Compares generated schedules of writes, cache advances and checks with a model that keeps every
//! single write.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_expectations::{ConsistencyStore, GroupResource, Readiness};
use proptest::option;
use proptest::prelude::{Just, Strategy, prop_oneof};
use tokio::time::{Instant, advance};

/// The work queue's runner of generated schedules; both crates share it.
#[path = "../../workqueue/src/testing.rs"]
mod testing;

use self::testing::{Schedules, Tally};

type Key = u8;
type Uid = u8;
type Resource = usize;

const KEYS: Key = 3;
const OWNERS: Uid = 2;

#[derive(Debug, Clone)]
enum Step {
    /// A write whose version is this far ahead of the cache, or behind it.
    Wrote(Key, Uid, Resource, i64),
    WroteOddly(Key, Uid, Resource),
    /// The version of the cache advances by this number.
    Advance(Resource, i64),
    /// The server has another history, at this version or at one without an order.
    Restored(Resource, Option<i64>),
    Ready(Key, Uid),
    Unseen(Key, Uid),
    StillLate(Key, Uid),
    Clear(Key, Option<Uid>),
    Pass(u64),
}

/// A write and the history that it belongs to.
struct Write {
    resource: Resource,
    version: i64,
    history: usize,
}

struct Owner {
    uid: Uid,
    writes: Vec<Write>,
    wait: Wait,
    /// The wait for a write without a version.
    unseen: Option<Wait>,
    waits: bool,
}

/// The deadline and the length of a wait.
type Wait = (Instant, Duration);

struct World {
    real: ConsistencyStore<Key, Uid>,
    resources: [GroupResource; 2],
    read: [Option<i64>; 2],
    history: [usize; 2],
    owners: BTreeMap<Key, Owner>,
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn wait(timeout: Duration) -> Wait {
    (Instant::now() + timeout, timeout)
}

impl World {
    fn new() -> Self {
        let resources = [GroupResource::new("", "pods"), GroupResource::new("apps", "sets")];
        Self {
            real: ConsistencyStore::new("model", resources.clone()),
            resources,
            read: [None; 2],
            history: [0; 2],
            owners: BTreeMap::new(),
        }
    }

    /// Returns the first resource that this owner still awaits.
    fn awaited(&self, owner: &Owner) -> Option<Resource> {
        let missing = |write: &&Write| {
            write.history == self.history[write.resource]
                && self.read[write.resource].is_some_and(|read| write.version > read)
        };
        owner.writes.iter().filter(missing).map(|write| write.resource).min()
    }

    /// Removes the record of the key if its owner has another uid.
    fn meet(&mut self, key: Key, uid: Uid, tally: &Tally) {
        if self.owners.get(&key).is_some_and(|owner| owner.uid != uid) {
            tally.count("another owner", 1);
            self.owners.remove(&key);
        }
    }

    fn owner(&mut self, key: Key, uid: Uid) -> &mut Owner {
        self.owners.entry(key).or_insert_with(|| Owner {
            uid,
            writes: Vec::new(),
            wait: wait(seconds(5)),
            unseen: None,
            waits: false,
        })
    }

    fn wrote(&mut self, (key, uid): (Key, Uid), resource: Resource, ahead: i64, tally: &Tally) {
        let version = (self.read[resource].unwrap_or(50) + ahead).max(1);
        self.real.wrote_at(&key, &uid, &self.resources[resource], &version.to_string());
        self.meet(key, uid, tally);
        match self.read[resource] {
            Some(read) if version > read => {
                let history = self.history[resource];
                let owner = self.owner(key, uid);
                owner.writes.push(Write { resource, version, history });
                owner.wait = wait(seconds(5));
            }
            Some(_) => tally.count("shown before the answer", 1),
            None => {}
        }
    }

    fn reached(&mut self, resource: Resource, version: Option<i64>, tally: &Tally) {
        let restored = version < self.read[resource] || version.is_none();
        let before = self.awaiting();
        self.history[resource] += usize::from(restored);
        self.read[resource] = version;
        let after = self.awaiting();
        let shown: Vec<Key> = before.into_iter().filter(|key| !after.contains(key)).collect();
        let mut woken = Vec::new();
        for key in shown {
            let owner = self.owners.get_mut(&key).expect("it awaited something");
            if std::mem::take(&mut owner.waits) {
                woken.push(key);
            }
        }
        self.owners.retain(|key, owner| owner.unseen.is_some() || after.contains(key));
        let text = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        let mut real = self.real.reached(&self.resources[resource], &text);
        real.sort_unstable();
        assert_eq!(real, woken);
        let what = if restored { "woken by a restore" } else { "woken" };
        tally.count(what, woken.len());
    }

    fn awaiting(&self) -> Vec<Key> {
        let awaits = |(_, owner): &(&Key, &Owner)| self.awaited(owner).is_some();
        self.owners.iter().filter(awaits).map(|(key, _)| *key).collect()
    }

    fn ready(&mut self, key: Key, uid: Uid, tally: &Tally) {
        let real = self.real.ready(&key, &uid);
        self.meet(key, uid, tally);
        let awaited = self.owners.get(&key).and_then(|owner| self.awaited(owner));
        let (Some(resource), Some(owner)) = (awaited, self.owners.get_mut(&key)) else {
            assert_eq!(real, Readiness::Ready);
            return;
        };
        owner.waits = true;
        let deadline = owner.wait.0;
        let late = Instant::now() >= deadline;
        let (missing, what) = match real {
            Readiness::Waiting { missing, until } if !late && until == deadline => {
                (missing, "waiting")
            }
            Readiness::Overdue { missing } if late => (missing, "overdue"),
            other => panic!("{other:?}, late: {late}"),
        };
        tally.count(what, 1);
        let missing = missing.expect("a version is missing");
        assert_eq!(missing.resource, self.resources[resource]);
        assert_eq!(Some(missing.read), self.read[resource].map(|read| read.to_string()));
        let owner = &self.owners[&key];
        let of_resource = owner
            .writes
            .iter()
            .filter(|write| write.resource == resource && write.history == self.history[resource]);
        let highest = of_resource.map(|write| write.version).max().expect("it is awaited");
        assert_eq!(missing.written, highest.to_string());
    }

    fn unseen(&mut self, key: Key, uid: Uid, tally: &Tally) {
        let real = self.real.unseen(&key, &uid);
        self.meet(key, uid, tally);
        let (until, _) = *self.owner(key, uid).unseen.get_or_insert_with(|| wait(seconds(5)));
        let expected = if Instant::now() < until {
            Readiness::Waiting { missing: None, until }
        } else {
            Readiness::Overdue { missing: None }
        };
        assert_eq!(real, expected);
        tally.count("awaited something unseen", 1);
    }

    fn still_late(&mut self, key: Key, uid: Uid) {
        let real = self.real.still_late(&key, &uid);
        let awaited = self.owners.get(&key).and_then(|owner| self.awaited(owner));
        let Some(owner) = self.owners.get_mut(&key).filter(|owner| owner.uid == uid) else {
            assert_eq!(real, seconds(5));
            return;
        };
        let versions = &mut owner.wait;
        let late =
            if awaited.is_some() { versions } else { owner.unseen.as_mut().unwrap_or(versions) };
        *late = wait((2 * late.1).min(seconds(60)));
        assert_eq!(real, late.1);
    }

    async fn apply(&mut self, step: Step, tally: &Tally) {
        match step {
            Step::Wrote(key, uid, resource, ahead) => {
                self.wrote((key, uid), resource, ahead, tally);
            }
            Step::WroteOddly(key, uid, resource) => {
                self.real.wrote_at(&key, &uid, &self.resources[resource], "0x10");
            }
            Step::Advance(resource, by) => {
                let version = self.read[resource].unwrap_or(50) + by;
                self.reached(resource, Some(version), tally);
            }
            Step::Restored(resource, version) => self.reached(resource, version, tally),
            Step::Ready(key, uid) => self.ready(key, uid, tally),
            Step::Unseen(key, uid) => self.unseen(key, uid, tally),
            Step::StillLate(key, uid) => self.still_late(key, uid),
            Step::Clear(key, uid) => {
                self.real.clear(&key, uid.as_ref());
                self.owners
                    .retain(|other, owner| *other != key || uid.is_some_and(|it| it != owner.uid));
            }
            Step::Pass(time) => advance(seconds(time)).await,
        }
        let owners = format!("owners: {}", self.owners.len());
        assert!(format!("{:?}", self.real).contains(&owners), "{:?}: {owners}", self.real);
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let uid = prop_oneof![9 => Just(0), 1 => 1..OWNERS];
    let owner = move || (0..KEYS, uid.clone());
    prop_oneof![
        9 => (owner(), 0..2_usize, -3..8_i64).prop_map(|((k, u), r, n)| Step::Wrote(k, u, r, n)),
        1 => (owner(), 0..2_usize).prop_map(|((k, u), r)| Step::WroteOddly(k, u, r)),
        7 => (0..2_usize, 0..6_i64).prop_map(|(r, n)| Step::Advance(r, n)),
        1 => (0..2_usize, option::weighted(0.95, 30..60_i64))
            .prop_map(|(r, version)| Step::Restored(r, version)),
        9 => owner().prop_map(|(k, u)| Step::Ready(k, u)),
        1 => owner().prop_map(|(k, u)| Step::Unseen(k, u)),
        1 => owner().prop_map(|(k, u)| Step::StillLate(k, u)),
        1 => (0..KEYS, option::of(0..OWNERS)).prop_map(|(k, u)| Step::Clear(k, u)),
        2 => (0..8_u64).prop_map(Step::Pass),
    ]
}

async fn run(steps: &[Step], tally: &Tally) {
    let mut world = World::new();
    for step in steps {
        tally.record_step(|| format!("{step:?}"));
        world.apply(step.clone(), tally).await;
        tally.record_outcome(|| format!("read {:?}, awaiting {:?}", world.read, world.awaiting()));
    }
}

#[test]
fn any_schedule_agrees_with_model_of_single_writes() {
    let least = &[
        ("woken", 80),
        ("woken by a restore", 15),
        ("waiting", 300),
        ("overdue", 40),
        ("shown before the answer", 150),
        ("another owner", 250),
        ("awaited something unseen", 100),
    ];
    Schedules { step: steps(), longest: 120, least }.check(|steps, tally| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(run(steps, tally));
    });
}
