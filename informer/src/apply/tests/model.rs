//! A model that store, indices and handlers must match after any sequence of steps.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::{Applier, Fixture, applier, metadata};
use crate::delta::Delta;
use crate::event::Event;
use crate::index::Index;
use crate::list_watch::Decoded;
use crate::object::{ObjectKey, ObjectMeta};
use crate::processor::HandlerOptions;

#[derive(Clone, Debug)]
enum Op {
    Apply { name: u8, uid: u8, fits: bool, group: u8 },
    Delete { name: u8, fits: bool },
    Replace { keep: u8, name: u8, uid: u8, group: u8 },
    Replay { name: u8 },
    Readable { name: u8 },
    Index,
    AddHandler { coalesce: bool, filter: bool },
    Deliver { listener: u8 },
    Resync { listener: u8 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        10 => (0..6_u8, 0..2_u8, prop::bool::weighted(0.8), 0..3_u8)
            .prop_map(|(name, uid, fits, group)| Op::Apply { name, uid, fits, group }),
        4 => (0..6_u8, any::<bool>()).prop_map(|(name, fits)| Op::Delete { name, fits }),
        2 => (any::<u8>(), 0..6_u8, 0..2_u8, 0..3_u8)
            .prop_map(|(keep, name, uid, group)| Op::Replace { keep, name, uid, group }),
        1 => (0..6_u8).prop_map(|name| Op::Replay { name }),
        1 => (0..6_u8).prop_map(|name| Op::Readable { name }),
        1 => Just(Op::Index),
        2 => (any::<bool>(), any::<bool>())
            .prop_map(|(coalesce, filter)| Op::AddHandler { coalesce, filter }),
        3 => any::<u8>().prop_map(|listener| Op::Deliver { listener }),
        1 => any::<u8>().prop_map(|listener| Op::Resync { listener }),
    ]
}

/// The objects of the model by name: their metadata, and `true` if they decode.
type Model = BTreeMap<String, (ObjectMeta, bool)>;

fn decoded(metadata: &ObjectMeta, fits: bool) -> Decoded<Pod> {
    let metadata = metadata.clone();
    if fits {
        Decoded::Fits(Arc::new(Pod { metadata, ..Pod::default() }))
    } else {
        Decoded::Opaque { metadata: Arc::new(metadata), error: "undecodable".into() }
    }
}

fn group_of(metadata: &ObjectMeta) -> Option<String> {
    metadata.labels.as_ref()?.get("group").cloned()
}

fn version_of(metadata: &ObjectMeta) -> String {
    metadata.resource_version.clone().unwrap_or_default()
}

/// Applies the step to the model and returns the delta that the server sends for it.
fn step(model: &mut Model, op: &Op, clock: &mut u64) -> Option<Delta<Pod>> {
    *clock += 1;
    let version = clock.to_string();
    let make = |name: u8, uid: u8, group: u8| {
        let mut made = metadata(&format!("p{name}"), &format!("u{uid}"), &version);
        made.labels = Some(BTreeMap::from([("group".to_owned(), format!("g{group}"))]));
        made
    };
    match *op {
        Op::Apply { name, uid, fits, group } => {
            let applied = make(name, uid, group);
            model.insert(format!("p{name}"), (applied.clone(), fits));
            Some(Delta::Applied(decoded(&applied, fits)))
        }
        Op::Delete { name, fits } => {
            let (mut last, _) = model.remove(&format!("p{name}"))?;
            last.resource_version = Some(version);
            // The last state has no group. A handler with a filter must receive the deletion
            // nevertheless.
            last.labels = None;
            Some(Delta::Deleted(decoded(&last, fits)))
        }
        Op::Replace { keep, name, uid, group } => {
            let mut place = 0;
            model.retain(|_, _| {
                place += 1;
                keep >> (place - 1) & 1 == 1
            });
            let replaced = model.insert(format!("p{name}"), (make(name, uid, group), true));
            let mut objects: Vec<_> =
                model.values().map(|(metadata, fits)| decoded(metadata, *fits)).collect();
            // A list that was read during a change may contain two states of one object.
            objects.extend(replaced.map(|(metadata, fits)| decoded(&metadata, fits)));
            Some(Delta::Replaced { objects, resource_version: version.as_str().into() })
        }
        Op::Replay { name } => {
            let (metadata, fits) = model.get(&format!("p{name}"))?;
            Some(Delta::Applied(decoded(metadata, *fits)))
        }
        Op::Readable { name } => {
            let (metadata, fits) = model.get_mut(&format!("p{name}"))?;
            *fits = true;
            Some(Delta::Applied(decoded(metadata, true)))
        }
        Op::Index | Op::AddHandler { .. } | Op::Deliver { .. } | Op::Resync { .. } => None,
    }
}

/// The state of an object according to the events of a handler.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    uid: String,
    /// The version of the last state that decoded.
    fitted: Option<String>,
    opaque: bool,
}

/// Counts of the situations that a run has covered.
#[derive(Debug, Default)]
struct Seen {
    kinds: BTreeMap<&'static str, usize>,
    merged: usize,
    resyncs: usize,
}

struct Listener {
    fixture: Fixture,
    shadow: BTreeMap<String, Known>,
    filter: bool,
}

impl Listener {
    fn new(store: &Arc<Applier<Pod>>, coalesce: bool, filter: bool) -> Self {
        let mut options = HandlerOptions::new("model");
        if coalesce {
            options = options.coalesce();
        }
        if filter {
            options = options.filter(is_wanted);
        }
        let fixture = Fixture::with(Arc::clone(store), options);
        Self { fixture, shadow: BTreeMap::new(), filter }
    }

    fn deliver(&mut self, seen: &mut Seen) {
        let queued = self.fixture.subscription.queued();
        let events = self.fixture.received();
        seen.merged += usize::from(events.len() < queued);
        for event in events {
            self.follow(&event, seen);
        }
        assert_eq!(self.fixture.subscription.panics(), 0);
    }

    /// Applies an event to the handler's view. Panics if the event does not follow from the
    /// previous one.
    fn follow(&mut self, event: &Event<Pod>, seen: &mut Seen) {
        let key = event.key().to_string();
        let uid = event.metadata().uid.clone().unwrap_or_default();
        let before = self.shadow.remove(&key);
        if let Some(known) = &before {
            assert_eq!(known.uid, uid, "{event:?} after {before:?}");
        }
        let last = before.as_ref().and_then(|known| known.fitted.clone());
        let is_new = before.as_ref().is_none_or(|known| known.opaque && known.fitted.is_none());
        let (kind, after) = match event {
            Event::Added { object, .. } => {
                assert!(is_new, "{event:?} after {before:?}");
                ("added", Some((Some(version_of(&object.metadata)), false)))
            }
            Event::Updated { old, new } => {
                assert_eq!(last, Some(version_of(&old.metadata)), "{event:?} after {before:?}");
                let kind = if Arc::ptr_eq(old, new) { "again" } else { "updated" };
                (kind, Some((Some(version_of(&new.metadata)), false)))
            }
            Event::Opaque { last_known, .. } => {
                let known = last_known.as_ref().map(|known| version_of(&known.metadata));
                assert_eq!(known, last, "{event:?} after {before:?}");
                ("opaque", Some((last, true)))
            }
            Event::Deleted { last_known, certain } => {
                assert!(last.is_some(), "{event:?} after {before:?}");
                let is_last = last == Some(version_of(&last_known.metadata));
                assert!(*certain || is_last, "{event:?} after {before:?}");
                (if *certain { "deleted" } else { "lost" }, None)
            }
            Event::OpaqueDeleted { .. } => {
                assert!(before.is_some() && last.is_none(), "{event:?} after {before:?}");
                ("opaque deleted", None)
            }
        };
        *seen.kinds.entry(kind).or_default() += 1;
        let known = after.map(|(fitted, opaque)| Known { uid, fitted, opaque });
        self.shadow.extend(known.map(|known| (key, known)));
    }

    fn check(&self, model: &Model) {
        let wanted = |(metadata, fits): &&(ObjectMeta, bool)| {
            !self.filter || !fits || group_of(metadata).as_deref() == Some("g1")
        };
        let expected: Vec<_> = model
            .values()
            .filter(wanted)
            .map(|(metadata, fits)| {
                let fitted = fits.then(|| version_of(metadata));
                (metadata.uid.clone().unwrap_or_default(), fitted, !fits)
            })
            .collect();
        let received: Vec<_> = self
            .shadow
            .values()
            .map(|known| {
                let fitted = known.fitted.clone().filter(|_| !known.opaque);
                (known.uid.clone(), fitted, known.opaque)
            })
            .collect();
        assert_eq!(received, expected);
    }
}

fn is_wanted(pod: &Pod) -> bool {
    group_of(&pod.metadata).as_deref() == Some("g1")
}

fn check(store: &Applier<Pod>, model: &Model, indices: &[Index<Pod, String>]) {
    let fitting = model.values().filter(|(_, fits)| *fits).count();
    assert_eq!(store.count(), (fitting, model.len() - fitting));
    for (name, (metadata, fits)) in model {
        let key = ObjectKey::<Pod>::namespaced("n", name);
        let object = store.get((&key).into());
        let found = object.as_ref().map(|object| &object.metadata);
        assert_eq!(found, Some(metadata).filter(|_| *fits));
        assert_eq!(store.opaque((&key).into()).as_deref(), Some(metadata).filter(|_| !fits));
    }
    for (index, group) in indices.iter().flat_map(|index| ["g0", "g1", "g2"].map(|g| (index, g))) {
        let mut found: Vec<_> =
            index.get(group).iter().map(|pod| pod.metadata.name.clone()).collect();
        found.sort();
        assert_eq!(found, names(model, group, true));
        assert_eq!(index.has_opaque(group), !names(model, group, false).is_empty());
        let keys = index.keys(group).into_iter().map(|key| Some(key.name().to_owned()));
        let mut all = [names(model, group, true), names(model, group, false)].concat();
        all.sort();
        assert_eq!(keys.collect::<Vec<_>>(), all);
    }
    for index in indices {
        assert_eq!(index.get_any(&["g0", "g1", "g2"].map(String::from)).len(), fitting);
    }
}

/// Returns the names of a group's objects that decode, or of those that do not.
fn names(model: &Model, group: &str, fitting: bool) -> Vec<Option<String>> {
    let wanted = |(metadata, fits): &&(ObjectMeta, bool)| {
        *fits == fitting && group_of(metadata).as_deref() == Some(group)
    };
    model.values().filter(wanted).map(|(metadata, _)| metadata.name.clone()).collect()
}

fn run(ops: &[Op], seen: &mut Seen) {
    let store = applier();
    let (mut model, mut clock) = (Model::new(), 0);
    let mut indices = Vec::new();
    let mut listeners = Vec::<Listener>::new();
    for op in ops {
        let count = listeners.len().max(1);
        match *op {
            Op::Index => indices.push(Index::by_metadata(&store, group_of)),
            Op::AddHandler { coalesce, filter } => {
                listeners.push(Listener::new(&store, coalesce, filter));
            }
            Op::Deliver { listener } => {
                if let Some(listener) = listeners.get_mut(usize::from(listener) % count) {
                    listener.deliver(seen);
                    listener.check(&model);
                }
            }
            Op::Resync { listener } => {
                if let Some(listener) = listeners.get_mut(usize::from(listener) % count) {
                    listener.fixture.resync();
                    seen.resyncs += 1;
                }
            }
            _ => {
                let delta = step(&mut model, op, &mut clock);
                store.apply(delta.into_iter().collect());
            }
        }
        check(&store, &model, &indices);
    }
    for listener in &mut listeners {
        listener.deliver(seen);
        listener.check(&model);
    }
}

#[test]
fn store_indices_and_handlers_match_the_model() {
    let cases = std::env::var("HOMEOSTAT_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = cases.unwrap_or(128);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let seen = RefCell::new(Seen::default());
    let outcome = TestRunner::new(config).run(&prop::collection::vec(op(), 1..80), |ops| {
        run(&ops, &mut seen.borrow_mut());
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let seen = seen.into_inner();
    let least = cases as usize;
    for kind in ["added", "updated", "again", "opaque", "deleted", "lost"] {
        assert!(seen.kinds.get(kind).is_some_and(|count| *count >= least), "{kind}: {seen:?}");
    }
    assert!(seen.kinds.get("opaque deleted").is_some_and(|count| *count >= least / 4), "{seen:?}");
    assert!(seen.resyncs >= least / 4 && seen.merged >= least / 4, "{seen:?}");
}
