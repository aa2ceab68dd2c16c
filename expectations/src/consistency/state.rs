//! What was written, what the caches show, and who waits. Pure: it is told what time it is.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::mem;
use std::time::Duration;

use tokio::time::Instant;

use super::version::Version;

/// How long the caches may be late before the server is asked. A watch shows a write within milliseconds, so
/// this is no shorter than what a person would wait, and no longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// A cache that stays late is asked about once a minute: each question may be a list of many objects.
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// The number of a resource, in the order in which they were named.
pub(super) type Resource = usize;

/// All owners of one controller.
pub(super) struct State<Key, Uid> {
    /// Who has something that the caches have yet to show. Never a record without that.
    records: HashMap<Key, Record<Uid>>,
    readings: Vec<Reading<Key>>,
    /// Tells apart what waits for one version; never used twice.
    tickets: u64,
}

/// How far the cache of one resource is.
struct Reading<Key> {
    /// `None`: it has not said so, or nobody can tell. Then nothing is awaited.
    read: Option<Version>,
    /// Who awaits which later version. Each place belongs to one [`Awaited`], and the other way round.
    awaited: BTreeMap<Place, Key>,
}

/// Where in [`Reading::awaited`].
type Place = (Version, u64);

/// One owner that has written.
struct Record<Uid> {
    /// To an owner with another uid this means nothing.
    uid: Uid,
    /// The highest version that was written of each resource, unless the cache has reached it. Few.
    awaited: Vec<Awaited>,
    /// How long the versions are waited for. Each write begins it anew.
    wait: Wait,
    /// Whether something is awaited that has no version, and how long. No write puts that off: an owner that keeps
    /// writing would never look for it.
    unseen: Option<Wait>,
    /// Whether it was told to wait for a version, and is to be woken.
    waits: bool,
}

struct Wait {
    /// From then on the server is to be asked.
    due: Instant,
    /// How long was waited for that.
    patience: Duration,
}

struct Awaited {
    resource: Resource,
    place: Place,
    written_at: Instant,
}

/// Whether an owner may act; what the first thing is that it misses.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Ready,
    Waiting { missing: Option<Gap>, due: Instant },
    Overdue { missing: Option<Gap> },
}

/// A version that was written, and a cache that has not reached it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Gap {
    pub(super) resource: Resource,
    pub(super) written: Version,
    pub(super) read: Option<Version>,
}

/// What a step leaves behind. Declare it before the lock is taken: keys and uids are the user's, and are not
/// dropped under it.
pub(super) struct Outcome<Key, Uid> {
    /// Who waited and may act now, in the order of what they waited for.
    pub(super) woken: Vec<Key>,
    /// How long the cache took to show what was written.
    pub(super) shown_after: Vec<Duration>,
    keys: Vec<Key>,
    uids: Vec<Uid>,
}

// === impl State ===

impl<Key: Eq + Hash, Uid: Eq> State<Key, Uid> {
    pub(super) fn new(resources: usize) -> Self {
        let reading = || Reading { read: None, awaited: BTreeMap::new() };
        let readings = (0..resources).map(|_| reading()).collect();
        Self { records: HashMap::new(), readings, tickets: 0 }
    }

    /// How many owners have something that the caches have yet to show.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The server has given `version` to what this owner wrote.
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

    /// Whether the caches show all versions that this owner wrote. If not, it is woken when they do.
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

    /// This owner awaits something without a version: how long is that to be waited for?
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

    /// The server was asked, and the caches are late: when to ask again, and what is missing.
    pub(super) fn still_late(
        &mut self,
        key: &Key,
        uid: &Uid,
        now: Instant,
    ) -> (Duration, Option<Resource>) {
        let record = self.records.get_mut(key).filter(|record| record.uid == *uid);
        let Some(record) = record else { return (PATIENCE, None) };
        let missing = record.awaited.iter().map(|it| it.resource).min();
        let wait = match &mut record.unseen {
            Some(unseen) if missing.is_none() => unseen,
            _ => &mut record.wait,
        };
        wait.lengthen(now);
        (wait.patience, missing)
    }

    /// Nothing is awaited any longer for this owner; `None` for whatever uid it has.
    pub(super) fn clear(&mut self, key: &Key, uid: Option<&Uid>, outcome: &mut Outcome<Key, Uid>) {
        self.forget(key, |record| uid.is_none_or(|uid| record.uid == *uid), outcome);
    }

    /// The cache of this resource shows all up to `version`; `None` if that has no place in an order.
    ///
    /// A version that is older than the last one, or none, ends what was known: the server has another history.
    /// What was written in the old one will never be shown.
    pub(super) fn reached(
        &mut self,
        resource: Resource,
        version: Option<Version>,
        now: Instant,
        outcome: &mut Outcome<Key, Uid>,
    ) {
        let reading = &mut self.readings[resource];
        let goes_on = version >= reading.read; // `None` is less than all.
        let is_known = version.is_some();
        reading.read = version;
        while let Some(first) = reading.awaited.first_entry() {
            let shown = reading.read.as_ref().is_some_and(|read| first.key().0 <= *read);
            if goes_on && is_known && !shown {
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

    /// Drops a record that `is_stale`, and its places.
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

/// The owner's record, made if need be.
fn record_of<'a, Key: Eq + Hash, Uid>(
    records: &'a mut HashMap<Key, Record<Uid>>,
    (key, uid): (Key, Uid),
    now: Instant,
    outcome: &mut Outcome<Key, Uid>,
) -> &'a mut Record<Uid> {
    // Not `entry(key)` alone: that drops a key that is known.
    let (key, record) = match records.remove_entry(&key) {
        Some(known) => {
            outcome.discard([(key, uid)]);
            known
        }
        None => (key, Record::new(uid, now)),
    };
    records.entry(key).or_insert(record)
}

/// The cache has shown what this owner awaited of `resource`, or never will. Says when that was written.
fn settle<Key: Eq + Hash, Uid>(
    records: &mut HashMap<Key, Record<Uid>>,
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
        Self { due: now + PATIENCE, patience: PATIENCE }
    }

    fn lengthen(&mut self, now: Instant) {
        self.patience = self.patience.saturating_mul(2).min(MOST_PATIENCE);
        self.due = now + self.patience;
    }

    fn answer(&self, missing: Option<Gap>, now: Instant) -> Answer {
        if now < self.due {
            Answer::Waiting { missing, due: self.due }
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
