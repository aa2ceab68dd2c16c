//! Compares both queue designs with simple models, for random schedules of pushes and pops.
//!
//! The in-order model is a list. The coalescing model is client-go's description of its
//! `DeltaFIFO`: a list of keys with their pending deltas, and the objects that the consumer has.
//! Both are compared delta by delta. The consumer's objects are also compared with the server's,
//! because two queues with the same fault would agree.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::{Strategy, any, prop_oneof};

use super::tests::{applied, bookmark, deleted, pod, text, texts};
use super::*;
use crate::delta::{Delta, newest_of};
use crate::model::{Tally, check};

/// Objects are `a` to `e`.
const OBJECTS: u8 = 5;

#[derive(Clone, Debug)]
enum Step {
    Apply(u8),
    Delete(u8),
    Bookmark,
    /// A list. Bits of `there` select the objects that exist; bits of `changed` those among them
    /// with a new version.
    Replace {
        there: u8,
        changed: u8,
    },
    Resync,
    Pop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..OBJECTS).prop_map(Step::Apply),
        4 => (0..OBJECTS).prop_map(Step::Delete),
        1 => any::<()>().prop_map(|()| Step::Bookmark),
        2 => any::<[u8; 2]>().prop_map(|[there, changed]| Step::Replace { there, changed }),
        1 => any::<()>().prop_map(|()| Step::Resync),
        4 => (1..6_usize).prop_map(Step::Pop),
    ]
}

fn name(object: u8) -> String {
    char::from(b'a' + object).to_string()
}

/// The server: its objects and its version.
struct Server {
    version: u64,
    objects: BTreeMap<String, String>,
}

impl Server {
    fn next(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Applies a step and returns its event; `None` for a step that is not the server's.
    fn event(&mut self, step: &Step) -> Option<WatchEvent<Pod>> {
        match step {
            Step::Apply(object) => {
                let (name, version) = (name(*object), self.next());
                self.objects.insert(name.clone(), version.clone());
                Some(applied(&name, &version))
            }
            Step::Delete(object) => {
                let (name, version) = (name(*object), self.next());
                self.objects.remove(&name);
                Some(deleted(&name, &version))
            }
            Step::Bookmark => Some(bookmark(&self.next())),
            _ => None,
        }
    }

    fn list(&mut self, there: u8, changed: u8) -> Vec<Decoded<Pod>> {
        for object in 0..OBJECTS {
            let name = name(object);
            if there >> object & 1 == 0 {
                self.objects.remove(&name);
            } else if changed >> object & 1 == 1 || !self.objects.contains_key(&name) {
                let version = self.next();
                self.objects.insert(name, version);
            }
        }
        self.next();
        self.objects.iter().map(|(name, version)| pod(name, version)).collect()
    }
}

/// The consumer of the deltas.
#[derive(Default)]
struct Consumer {
    objects: BTreeMap<String, String>,
    reached: u64,
    synced: bool,
}

impl Consumer {
    fn take(&mut self, batch: &Batch<Pod>) {
        for delta in &batch.deltas {
            self.take_delta(delta);
        }
        if let Some(reached) = &batch.reached {
            let reached = reached.as_str().parse().unwrap();
            assert!(reached > self.reached, "versions increase");
            self.reached = reached;
        }
        assert!(batch.synced || !self.synced, "synced never goes back");
        self.synced = batch.synced;
    }

    fn take_delta(&mut self, delta: &Delta<Pod>) {
        let parts = |object: &Decoded<Pod>| {
            let metadata = object.metadata();
            (metadata.name.clone().unwrap(), metadata.resource_version.clone().unwrap())
        };
        match delta {
            Delta::Replaced { objects, .. } => self.objects = objects.iter().map(parts).collect(),
            Delta::Applied(object) | Delta::Listed(object) => {
                let (name, version) = parts(object);
                self.objects.insert(name, version);
            }
            Delta::Deleted(object) => {
                self.objects.remove(&parts(object).0);
            }
            Delta::Vanished(object) => {
                let (name, version) = parts(object);
                assert_eq!(self.objects.remove(&name), Some(version), "the last known state");
            }
            Delta::Resynced(object) => {
                let (name, version) = parts(object);
                assert_eq!(
                    self.objects.get(&name),
                    Some(&version),
                    "the state that the consumer has"
                );
            }
            Delta::ResyncedAll | Delta::Bookmark(_) => {}
        }
    }
}

// === in order ===

#[test]
fn in_order_queue_matches_its_model() {
    let least = [("list", 700), ("resync", 300), ("batch of several", 500), ("empty pop", 100)];
    check(step(), 60, &least, |steps, tally| {
        let mut queue = InOrder::new();
        let mut server = Server { version: 0, objects: BTreeMap::new() };
        let mut consumer = Consumer::default();
        let mut expected: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::Replace { there, changed } => {
                    let objects = server.list(*there, *changed);
                    let version = ResourceVersion::from(server.version.to_string());
                    let delta = Delta::Replaced {
                        objects: objects.clone(),
                        resource_version: version.clone(),
                    };
                    expected.push(text(&delta));
                    queue.replace(objects, version);
                    tally.count("list", 1);
                }
                Step::Resync => {
                    expected.push("resynced all".to_owned());
                    queue.resync();
                    tally.count("resync", 1);
                }
                Step::Pop(limit) => {
                    pop_in_order(&mut queue, &mut expected, *limit, &mut consumer, tally);
                }
                _ => {
                    let event = server.event(step).unwrap();
                    expected.push(delta_text(&event));
                    let newest = newest_of(std::slice::from_ref(&event));
                    queue.push(vec![event], newest);
                }
            }
            assert_eq!(queue.len(), expected.len());
        }
        while !expected.is_empty() {
            pop_in_order(&mut queue, &mut expected, 1000, &mut consumer, tally);
        }
        assert_eq!((consumer.objects, consumer.reached), (server.objects, server.version));
    });
}

fn delta_text(event: &WatchEvent<Pod>) -> String {
    match event {
        WatchEvent::Applied(object) => text(&Delta::Applied(object.clone())),
        WatchEvent::Deleted(object) => text(&Delta::Deleted(object.clone())),
        WatchEvent::Bookmark { resource_version, .. } => format!("bookmark {resource_version}"),
    }
}

fn pop_in_order(
    queue: &mut InOrder<Pod>,
    expected: &mut Vec<String>,
    limit: usize,
    consumer: &mut Consumer,
    tally: &Tally,
) {
    let Some(batch) = queue.pop(limit) else {
        assert!(expected.is_empty(), "a delta stays queued");
        tally.count("empty pop", 1);
        return;
    };
    let deltas = texts(&batch);
    assert!(!deltas.is_empty() && deltas.len() <= limit);
    assert_eq!(deltas[..], expected[..deltas.len()]);
    let lists = deltas.iter().filter(|delta| delta.starts_with("all")).count();
    assert!(lists == 0 || deltas.len() == 1, "a list is alone in its batch");
    expected.drain(..deltas.len());
    tally.count("batch of several", usize::from(deltas.len() > 1));
    consumer.take(&batch);
}

// === coalescing ===

/// A model of client-go's `DeltaFIFO`, written from its documentation.
#[derive(Default)]
struct DeltaFifoModel {
    queue: Vec<(String, Vec<String>)>,
    /// The version of each object that the consumer has.
    known: BTreeMap<String, String>,
    pushed: u64,
    reported: u64,
    /// The objects of the first list that are still queued; `None` before the first list.
    first: Option<BTreeSet<String>>,
}

impl DeltaFifoModel {
    fn pending(&mut self, name: &str) -> Option<&mut Vec<String>> {
        self.queue.iter_mut().find(|(key, _)| key == name).map(|(_, pending)| pending)
    }

    fn enqueue(&mut self, name: &str, delta: String) {
        match self.pending(name) {
            Some(pending) => pending.push(delta),
            None => self.queue.push((name.to_owned(), vec![delta])),
        }
    }

    fn is_deletion(delta: &str) -> bool {
        delta.starts_with("deleted") || delta.starts_with("vanished")
    }

    fn push(&mut self, event: &WatchEvent<Pod>, tally: &Tally) {
        self.first.get_or_insert_default();
        let name = |object: &Decoded<Pod>| object.metadata().name.clone().unwrap();
        match event {
            WatchEvent::Applied(object) => self.enqueue(&name(object), delta_text(event)),
            WatchEvent::Deleted(object) => self.delete(&name(object), delta_text(event), tally),
            WatchEvent::Bookmark { .. } => {}
        }
    }

    fn delete(&mut self, name: &str, delta: String, tally: &Tally) {
        let known = self.known.contains_key(name);
        match self.pending(name) {
            None if !known => tally.count("dropped deletion", 1),
            Some(pending) if pending.last().is_some_and(|last| Self::is_deletion(last)) => {
                tally.count("second deletion", 1);
                let last = pending.last_mut().unwrap();
                if last.starts_with("vanished") {
                    *last = delta;
                }
            }
            _ => self.enqueue(name, delta),
        }
    }

    fn replace(&mut self, objects: &BTreeMap<String, String>, tally: &Tally) {
        for (name, version) in objects {
            self.enqueue(name, format!("listed {name}{version}"));
        }
        let keys: BTreeSet<String> =
            self.queue.iter().map(|(key, _)| key).chain(self.known.keys()).cloned().collect();
        for name in keys.iter().filter(|name| !objects.contains_key(*name)) {
            let pending = self.pending(name).and_then(|pending| pending.last().cloned());
            let last = match pending {
                Some(last) => last.split(' ').nth(1).unwrap().to_owned(),
                None => format!("{name}{}", self.known[name]),
            };
            tally.count("tombstone", 1);
            self.delete(name, format!("vanished {last}"), tally);
        }
        self.first.get_or_insert_with(|| self.queue.iter().map(|(key, _)| key.clone()).collect());
    }

    fn resync(&mut self, tally: &Tally) {
        for (name, version) in self.known.clone() {
            if self.pending(&name).is_none() {
                tally.count("resynced object", 1);
                self.enqueue(&name, format!("resynced {name}{version}"));
            }
        }
    }

    /// Returns the deltas of a batch, the version that it reaches, and `true` if the first list is
    /// complete.
    fn pop(&mut self, limit: usize) -> Option<(Vec<String>, Option<u64>, bool)> {
        let mut deltas: Vec<String> = Vec::new();
        while let Some((name, pending)) = self.queue.first() {
            if !deltas.is_empty() && deltas.len() + pending.len() > limit {
                break;
            }
            let last = pending.last().unwrap().clone();
            if Self::is_deletion(&last) {
                self.known.remove(name);
            } else {
                let version = last.split(' ').nth(1).unwrap()[1..].to_owned();
                self.known.insert(name.clone(), version);
            }
            if let Some(first) = &mut self.first {
                first.remove(name);
            }
            deltas.extend(self.queue.remove(0).1);
        }
        let news = self.queue.is_empty() && self.pushed > self.reported;
        if news {
            self.reported = self.pushed;
        }
        let synced = self.first.as_ref().is_some_and(BTreeSet::is_empty);
        (news || !deltas.is_empty()).then_some((deltas, news.then_some(self.pushed), synced))
    }
}

#[test]
fn coalescing_queue_matches_the_delta_fifo_model() {
    let least = [
        ("list", 700),
        ("tombstone", 1000),
        ("second deletion", 150),
        ("dropped deletion", 100),
        ("resynced object", 150),
        ("empty pop", 100),
        ("only a version", 10),
        ("several of one object", 500),
        ("unsynced batch", 20),
    ];
    check(step(), 60, &least, |steps, tally| {
        let mut world = World {
            queue: Coalescing::new(),
            model: DeltaFifoModel::default(),
            server: Server { version: 0, objects: BTreeMap::new() },
            consumer: Consumer::default(),
            tally,
        };
        for step in steps {
            world.step(step);
            let pending: usize = world.model.queue.iter().map(|(_, pending)| pending.len()).sum();
            assert_eq!(world.queue.len(), pending);
        }
        while world.queue.len() > 0 || world.model.pushed > world.model.reported {
            world.pop(3);
        }
        let World { consumer, server, .. } = world;
        assert_eq!((consumer.objects, consumer.reached), (server.objects, server.version));
    });
}

/// Both queues, the server that fills them, and the consumer.
struct World<'a> {
    queue: Coalescing<Pod>,
    model: DeltaFifoModel,
    server: Server,
    consumer: Consumer,
    tally: &'a Tally,
}

impl World<'_> {
    fn step(&mut self, step: &Step) {
        let Self { queue, model, server, tally, .. } = self;
        let garbage = &mut Vec::new();
        match step {
            Step::Replace { there, changed } => {
                let objects = server.list(*there, *changed);
                queue.replace(objects, server.version.to_string().into(), garbage);
                model.replace(&server.objects, tally);
                tally.count("list", 1);
            }
            Step::Resync => {
                queue.resync();
                model.resync(tally);
                return;
            }
            Step::Pop(limit) => return self.pop(*limit),
            Step::Apply(_) | Step::Delete(_) | Step::Bookmark => {
                let event = server.event(step).unwrap();
                model.push(&event, tally);
                let newest = newest_of(std::slice::from_ref(&event));
                queue.push(vec![event], newest, garbage);
            }
        }
        model.pushed = server.version;
    }

    fn pop(&mut self, limit: usize) {
        let batch = self.queue.pop(limit, &mut Vec::new());
        let number = |version: &ResourceVersion| version.as_str().parse::<u64>().unwrap();
        let plain =
            |batch: &Batch<Pod>| (texts(batch), batch.reached.as_ref().map(number), batch.synced);
        assert_eq!(batch.as_ref().map(plain), self.model.pop(limit));
        let Some(batch) = batch else { return self.tally.count("empty pop", 1) };
        self.tally.count("only a version", usize::from(batch.deltas.is_empty()));
        self.tally.count("unsynced batch", usize::from(!batch.synced));
        let name = |delta: &Delta<Pod>| delta.object().unwrap().metadata().name.clone();
        let names: Vec<_> = batch.deltas.iter().map(name).collect();
        let again = names.windows(2).filter(|pair| pair[0] == pair[1]).count();
        self.tally.count("several of one object", again);
        self.consumer.take(&batch);
        assert!(self.queue.len() > 0 || self.consumer.reached == self.model.pushed);
    }
}
