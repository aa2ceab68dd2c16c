//! Deltas of one object together, objects in the order in which they were first heard of.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::Garbage;
use crate::{
    delta::{Batch, Delta, is_older},
    list_watch::{Decoded, WatchEvent},
    object::{Object, ObjectKey, ResourceVersion},
};

/// A queue of objects, each with what is to be done about it.
///
/// An object has an entry if something waits, or if the consumer has it; it is in the queue, once, if something waits.
pub(super) struct Coalescing<K: Object> {
    objects: HashMap<ObjectKey<K::Kind>, Told<K>, RandomState>,
    queue: VecDeque<ObjectKey<K::Kind>>,
    /// How many deltas wait.
    len: usize,
    version: Version,
    /// How many objects of the first list wait; `None` before there was anything.
    initial: Option<usize>,
    /// The number of the last list.
    list: u64,
}

/// What is said of one object.
struct Told<K: Object> {
    /// What waits, in order.
    waiting: Vec<Delta<K>>,
    /// What the consumer was handed last; `None` if it has no such object.
    known: Option<Decoded<K>>,
    /// The number of the last list that it was in.
    list: u64,
}

/// How far the server has got. The consumer has got that far when nothing waits any more.
struct Version {
    heard: Option<ResourceVersion>,
    /// Whether the consumer does not know yet.
    news: bool,
    /// Whether a list is among the news.
    relisted: bool,
}

// === impl Coalescing ===

impl<K: Object> Coalescing<K> {
    pub(super) fn new() -> Self {
        Self {
            objects: HashMap::default(),
            queue: VecDeque::new(),
            len: 0,
            version: Version { heard: None, news: false, relisted: false },
            initial: None,
            list: 0,
        }
    }

    pub(super) fn push(&mut self, events: Vec<WatchEvent<K>>, garbage: &mut Garbage<K>) {
        for event in events {
            self.initial.get_or_insert(0);
            match event {
                WatchEvent::Applied(object) => {
                    self.version.hear_of(&object);
                    self.wait(Delta::Applied(object), garbage);
                }
                WatchEvent::Deleted(object) => {
                    self.version.hear_of(&object);
                    self.delete(object, garbage);
                }
                WatchEvent::Bookmark { resource_version, .. } => {
                    self.version.hear(resource_version);
                }
            }
        }
    }

    /// A deletion of what neither waits nor was handed out is nobody's business.
    fn delete(&mut self, object: Decoded<K>, garbage: &mut Garbage<K>) {
        if self.objects.contains_key(&ObjectKey::from_metadata(object.metadata())) {
            self.wait(Delta::Deleted(object), garbage);
        } else {
            garbage.push(object);
        }
    }

    pub(super) fn replace(
        &mut self,
        objects: Vec<Decoded<K>>,
        version: ResourceVersion,
        garbage: &mut Garbage<K>,
    ) {
        self.list += 1;
        for object in objects {
            self.listed(object, garbage);
        }
        let list = self.list;
        let missing = |(key, told): (&ObjectKey<K::Kind>, &Told<K>)| {
            let gone = told.list != list && !told.ends_with_a_deletion();
            gone.then(|| Some((key.clone(), told.last_known()?.clone()))).flatten()
        };
        let mut missing: Vec<_> = self.objects.iter().filter_map(missing).collect();
        // The order of a map is chance.
        missing.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (_, object) in missing {
            self.wait(Delta::Vanished(object), garbage);
        }
        self.initial.get_or_insert(self.queue.len());
        self.version = Version { heard: Some(version), news: true, relisted: true };
    }

    fn listed(&mut self, object: Decoded<K>, garbage: &mut Garbage<K>) {
        let told = self.objects.get(&ObjectKey::from_metadata(object.metadata()));
        let twin = told.filter(|told| told.list == self.list).and_then(Told::last_known);
        // An object that the list shows twice counts in its newer state.
        if twin.is_some_and(|twin| is_older(object.metadata(), twin.metadata())) {
            garbage.push(object);
        } else {
            self.wait(Delta::Listed(object), garbage);
        }
    }

    /// What the consumer has and nothing waits for, once more. What waits is newer, and told anyway.
    pub(super) fn resync(&mut self) {
        let idle = |told: &&Told<K>| told.waiting.is_empty();
        let known = self.objects.values().filter(idle).filter_map(|told| told.known.clone());
        let mut known: Vec<_> =
            known.map(|object| (ObjectKey::from_metadata(object.metadata()), object)).collect();
        known.sort_by(|(one, _): &(ObjectKey<K::Kind>, _), (other, _)| one.cmp(other));
        for (_, object) in known {
            self.wait(Delta::Resynced(object), &mut Vec::new());
        }
    }

    fn wait(&mut self, delta: Delta<K>, garbage: &mut Garbage<K>) {
        let Some(object) = delta.object() else { return };
        let key = ObjectKey::from_metadata(object.metadata());
        let list = if matches!(delta, Delta::Listed(_)) { self.list } else { 0 };
        let told = self.objects.entry(key.clone()).or_insert_with(Told::new);
        told.list = told.list.max(list);
        if told.waiting.is_empty() {
            self.queue.push_back(key);
        }
        let before = told.waiting.len();
        told.wait(delta, garbage);
        self.len += told.waiting.len() - before;
    }

    /// What waits for the objects that come next: all of each, and so many objects that it is not more than `limit`, but
    /// one at least.
    pub(super) fn pop(&mut self, limit: usize, garbage: &mut Garbage<K>) -> Option<Batch<K>> {
        let mut deltas = Vec::new();
        while let Some(key) = self.queue.front() {
            let Some(told) = self.objects.get_mut(key) else { break };
            if !deltas.is_empty() && deltas.len() + told.waiting.len() > limit {
                break;
            }
            deltas.append(&mut told.waiting);
            garbage.extend(std::mem::replace(&mut told.known, deltas.last().and_then(remains)));
            let gone = told.known.is_none();
            if let (Some(key), true) = (self.queue.pop_front(), gone) {
                self.objects.remove(&key);
            }
            self.initial = self.initial.map(|left| left.saturating_sub(1));
        }
        self.len -= deltas.len();
        let reached = if self.queue.is_empty() { self.version.tell() } else { None };
        let (reached, relisted) = reached.unzip();
        (!deltas.is_empty() || reached.is_some()).then_some(Batch {
            deltas,
            reached,
            relisted: relisted.unwrap_or_default(),
            synced: self.initial == Some(0),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// What the consumer has of the object when it has done this.
fn remains<K: Object>(last: &Delta<K>) -> Option<Decoded<K>> {
    last.object().filter(|_| !last.is_deletion()).cloned()
}

// === impl Told ===

impl<K: Object> Told<K> {
    fn new() -> Self {
        Self { waiting: Vec::new(), known: None, list: 0 }
    }

    /// Of two deletions in a row one is enough: the one that somebody saw, or else the later one.
    fn wait(&mut self, delta: Delta<K>, garbage: &mut Garbage<K>) {
        match self.waiting.last_mut() {
            Some(last @ Delta::Vanished(_)) if delta.is_deletion() => {
                garbage.extend(std::mem::replace(last, delta).object().cloned());
            }
            Some(Delta::Deleted(_)) if delta.is_deletion() => {
                garbage.extend(delta.object().cloned());
            }
            _ => self.waiting.push(delta),
        }
    }

    fn ends_with_a_deletion(&self) -> bool {
        self.waiting.last().is_some_and(Delta::is_deletion)
    }

    /// The newest state that was heard of.
    fn last_known(&self) -> Option<&Decoded<K>> {
        self.waiting.last().and_then(Delta::object).or(self.known.as_ref())
    }
}

// === impl Version ===

impl Version {
    fn hear_of<K: Object>(&mut self, object: &Decoded<K>) {
        if let Some(version) = object.metadata().resource_version.as_deref() {
            self.hear(version.into());
        }
    }

    fn hear(&mut self, version: ResourceVersion) {
        let further = self.heard.as_ref().is_none_or(|heard| version.may_follow(heard));
        if version.is_point() && further {
            self.heard = Some(version);
            self.news = true;
        }
    }

    /// The version, and whether a list is a part of it, unless the consumer knows it.
    fn tell(&mut self) -> Option<(ResourceVersion, bool)> {
        let relisted = std::mem::take(&mut self.relisted);
        let version = self.heard.clone().filter(|_| std::mem::take(&mut self.news));
        version.map(|version| (version, relisted))
    }
}

#[cfg(test)]
impl<K: Object> Coalescing<K> {
    /// The objects that there is an entry for.
    pub(super) fn known(&self) -> Vec<String> {
        self.objects.keys().map(ToString::to_string).collect()
    }
}
