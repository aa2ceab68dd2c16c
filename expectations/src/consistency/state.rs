//! The versions of writes and caches, and the owners that wait. Pure: the caller passes the time.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::mem;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;

use super::version::Version;

/// The time that a cache has to show a write before the caller lists from the API server. A watch
/// normally shows a write within milliseconds.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time between two comparisons of a late cache with the API server. Each comparison
/// may list many objects.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// The index of a resource, in the order in which the caller named them.
pub(super) type Resource = usize;

/// All owners of one controller.
///
/// The lock of `ConsistencyStore` protects it. A record exists only while its owner awaits a
/// version or an unseen write; the last `settle` or a `clear` removes it.
pub(super) struct State<Key, Uid> {
    /// The owners that have a write that the caches have yet to show.
    records: HashMap<Key, Record<Uid>, RandomState>,
    /// One per resource, indexed by [`Resource`]; the length never changes.
    readings: Vec<Reading<Key>>,
    /// The last ticket. Tickets distinguish owners that await the same version; each is unique.
    tickets: u64,
}

/// The version of the cache of one resource.
struct Reading<Key> {
    /// `None` if the cache has not reported a version, or one without an order. Then `awaited` is
    /// empty.
    read: Option<Version>,
    /// The owners that await a later version. Each place belongs to exactly one [`Awaited`].
    awaited: BTreeMap<Place, Key>,
}

/// A key of [`Reading::awaited`]: a version and a ticket.
type Place = (Version, u64);

/// The writes of one owner.
struct Record<Uid> {
    /// The record does not apply to an owner with another uid.
    uid: Uid,
    /// The highest version written of each resource that its cache has not reached. Few entries.
    awaited: Vec<Awaited>,
    /// The wait for the versions. Each write restarts it.
    wait: Wait,
    /// The wait for a write without a version, if there is such a write. Later writes do not
    /// restart it: otherwise an owner that keeps writing would wait without limit.
    unseen: Option<Wait>,
    /// True if the owner waits for a version and has to be woken.
    waits: bool,
}

/// A deadline that moves only by a new write or by [`lengthen`](Self::lengthen).
struct Wait {
    /// The deadline; after it the caller lists from the API server.
    deadline: Instant,
    /// The length of this wait.
    timeout: Duration,
}

/// The highest write of one owner to one resource, which the cache has yet to show. Its `place` is
/// a key of that resource's [`Reading::awaited`]; both are removed together.
struct Awaited {
    resource: Resource,
    place: Place,
    /// The time of the response, for the metric.
    written_at: Instant,
}

/// The result of a check; `missing` is the first resource whose cache is late.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Ready,
    Waiting { missing: Option<Gap>, deadline: Instant },
    Overdue { missing: Option<Gap> },
}

/// A written version that the cache has not reached.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gap {
    pub(super) resource: Resource,
    pub(super) written: Version,
    pub(super) read: Option<Version>,
}

/// The results of one operation. Declare it before taking the lock: keys and uids are the user's
/// types, and must not be dropped under the lock.
pub(super) struct Outcome<Key, Uid> {
    /// The keys that waited and may act now, in the order of the versions that they awaited.
    pub(super) woken: Vec<Key>,
    /// The times that the cache took to show each write.
    pub(super) shown_after: Vec<Duration>,
    /// Keys to drop after the release of the lock.
    keys: Vec<Key>,
    /// Uids to drop after the release of the lock.
    uids: Vec<Uid>,
}

// === impl State ===

impl<Key: Eq + Hash, Uid: Eq> State<Key, Uid> {
    pub(super) fn new(resources: usize) -> Self {
        let reading = || Reading { read: None, awaited: BTreeMap::new() };
        let readings = (0..resources).map(|_| reading()).collect();
        Self { records: HashMap::default(), readings, tickets: 0 }
    }

    /// Returns the number of owners that have a write that the caches have yet to show.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Records that the API server has returned `version` for a write of this owner.
    pub(super) fn wrote(
        &mut self,
        ([key, place_key], uid): ([Key; 2], Uid),
        (resource, version): (Resource, Version),
        now: Instant,
        outcome: &mut Outcome<Key, Uid>,
    ) {
        self.forget(&key, |record| record.uid != uid, outcome);
        let read = self.readings[resource].read.as_ref();
        if read.is_none_or(|read| *read >= version) {
            outcome.shown_after.extend(read.map(|_| Duration::ZERO));
            outcome.keys.push(place_key);
            outcome.discard([(key, uid)]);
            return;
        }
        let Self { records, readings, tickets } = self;
        let record = record_of(records, (key, uid), now, outcome);
        record.wait = Wait::new(now);
        let places = &mut readings[resource].awaited;
        if let Some(at) = record.awaited.iter().position(|it| it.resource == resource) {
            if record.awaited[at].place.0 >= version {
                outcome.keys.push(place_key);
                return;
            }
            outcome.keys.extend(places.remove(&record.awaited.swap_remove(at).place));
        }
        *tickets += 1;
        let place = (version, *tickets);
        places.insert(place.clone(), place_key);
        record.awaited.push(Awaited { resource, place, written_at: now });
    }

    /// Reports if the caches show all versions that this owner wrote. If not, the owner is woken
    /// when they do.
    pub(super) fn ready(
        &mut self,
        key: &Key,
        uid: &Uid,
        now: Instant,
        outcome: &mut Outcome<Key, Uid>,
    ) -> Answer {
        self.forget(key, |record| record.uid != *uid, outcome);
        let Some(record) = self.records.get_mut(key) else { return Answer::Ready };
        let Some(awaited) = record.awaited.iter().min_by_key(|it| it.resource) else {
            return Answer::Ready;
        };
        record.waits = true;
        let (resource, written) = (awaited.resource, awaited.place.0.clone());
        let read = self.readings[resource].read.clone();
        record.wait.answer(Some(Gap { resource, written, read }), now)
    }

    /// Records that this owner awaits a write without a version, and reports if its wait is over.
    pub(super) fn unseen(
        &mut self,
        (key, uid): (Key, Uid),
        now: Instant,
        outcome: &mut Outcome<Key, Uid>,
    ) -> Answer {
        self.forget(&key, |record| record.uid != uid, outcome);
        let record = record_of(&mut self.records, (key, uid), now, outcome);
        record.unseen.get_or_insert_with(|| Wait::new(now)).answer(None, now)
    }

    /// Lengthens the wait after a comparison with the API server that failed. Returns the new wait
    /// and the resource that is missing.
    pub(super) fn still_late(
        &mut self,
        key: &Key,
        uid: &Uid,
        now: Instant,
    ) -> (Duration, Option<Resource>) {
        let record = self.records.get_mut(key).filter(|record| record.uid == *uid);
        let Some(record) = record else { return (TIMEOUT, None) };
        let missing = record.awaited.iter().map(|it| it.resource).min();
        let wait = match &mut record.unseen {
            Some(unseen) if missing.is_none() => unseen,
            _ => &mut record.wait,
        };
        wait.lengthen(now);
        (wait.timeout, missing)
    }

    /// Removes the record of this owner; with `None`, whatever its uid is.
    pub(super) fn clear(&mut self, key: &Key, uid: Option<&Uid>, outcome: &mut Outcome<Key, Uid>) {
        self.forget(key, |record| uid.is_none_or(|uid| record.uid == *uid), outcome);
    }

    /// Records that the cache of this resource shows everything up to `version`; `None` if the
    /// version has no order.
    ///
    /// `None`, or a version that is lower than the last one, means that the API server has another
    /// history: the cache will never show the writes of the old history.
    pub(super) fn reached(
        &mut self,
        resource: Resource,
        version: Option<Version>,
        now: Instant,
        outcome: &mut Outcome<Key, Uid>,
    ) {
        let reading = &mut self.readings[resource];
        let is_same_history = version >= reading.read; // `None` sorts before every version
        let is_known = version.is_some();
        reading.read = version;
        while let Some(first) = reading.awaited.first_entry() {
            let shown = reading.read.as_ref().is_some_and(|read| first.key().0 <= *read);
            if is_same_history && is_known && !shown {
                return;
            }
            let key = first.remove();
            if let Some(written_at) = settle(&mut self.records, resource, key, outcome)
                && shown
            {
                outcome.shown_after.push(now.saturating_duration_since(written_at));
            }
        }
    }

    /// Removes the record of `key` and its places if `is_stale` returns true for it.
    fn forget(
        &mut self,
        key: &Key,
        is_stale: impl FnOnce(&Record<Uid>) -> bool,
        outcome: &mut Outcome<Key, Uid>,
    ) {
        if !self.records.get(key).is_some_and(is_stale) {
            return;
        }
        let Some((key, record)) = self.records.remove_entry(key) else { return };
        for Awaited { resource, place, .. } in record.awaited {
            outcome.keys.extend(self.readings[resource].awaited.remove(&place));
        }
        outcome.discard([(key, record.uid)]);
    }
}

/// Returns the owner's record, and creates it if there is none.
fn record_of<'a, Key: Eq + Hash, Uid>(
    records: &'a mut HashMap<Key, Record<Uid>, RandomState>,
    (key, uid): (Key, Uid),
    now: Instant,
    outcome: &mut Outcome<Key, Uid>,
) -> &'a mut Record<Uid> {
    // Not `entry(key)` alone: it would drop `key`, under the lock, when the map has an equal key.
    let (key, record) = match records.remove_entry(&key) {
        Some(known) => {
            outcome.discard([(key, uid)]);
            known
        }
        None => (key, Record::new(uid, now)),
    };
    records.entry(key).or_insert(record)
}

/// Ends the wait of this owner for `resource`: the cache has shown the write, or never will.
/// Returns the time of the write.
fn settle<Key: Eq + Hash, Uid>(
    records: &mut HashMap<Key, Record<Uid>, RandomState>,
    resource: Resource,
    key: Key,
    outcome: &mut Outcome<Key, Uid>,
) -> Option<Instant> {
    let record = records.get_mut(&key)?;
    let at = record.awaited.iter().position(|it| it.resource == resource)?;
    let written_at = record.awaited.swap_remove(at).written_at;
    let wake = record.awaited.is_empty() && mem::take(&mut record.waits);
    if record.awaited.is_empty() && record.unseen.is_none() {
        outcome.discard(records.remove_entry(&key).map(|(key, record)| (key, record.uid)));
    }
    if wake {
        outcome.woken.push(key);
    } else {
        outcome.keys.push(key);
    }
    Some(written_at)
}

// === impl Record ===

impl<Uid> Record<Uid> {
    fn new(uid: Uid, now: Instant) -> Self {
        Self { uid, awaited: Vec::new(), wait: Wait::new(now), unseen: None, waits: false }
    }
}

// === impl Wait ===

impl Wait {
    fn new(now: Instant) -> Self {
        Self { deadline: now + TIMEOUT, timeout: TIMEOUT }
    }

    /// Doubles the wait, up to [`MAX_TIMEOUT`], and starts it now.
    fn lengthen(&mut self, now: Instant) {
        self.timeout = self.timeout.saturating_mul(2).min(MAX_TIMEOUT);
        self.deadline = now + self.timeout;
    }

    fn answer(&self, missing: Option<Gap>, now: Instant) -> Answer {
        if now < self.deadline {
            Answer::Waiting { missing, deadline: self.deadline }
        } else {
            Answer::Overdue { missing }
        }
    }
}

// === impl Outcome ===

impl<Key, Uid> Outcome<Key, Uid> {
    fn discard(&mut self, owners: impl IntoIterator<Item = (Key, Uid)>) {
        for (key, uid) in owners {
            self.keys.push(key);
            self.uids.push(uid);
        }
    }
}

impl<Key, Uid> Default for Outcome<Key, Uid> {
    fn default() -> Self {
        let (woken, shown_after) = (Vec::new(), Vec::new());
        Self { woken, shown_after, keys: Vec::new(), uids: Vec::new() }
    }
}
