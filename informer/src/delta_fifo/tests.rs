//! The rules of both queue designs, one by one.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::delta::Delta;
use crate::object::ObjectMeta;

type Fifo = DeltaFifo<Pod>;

pub(super) fn pod(name: &str, version: &str) -> Decoded<Pod> {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        resource_version: Some(version.into()),
        ..ObjectMeta::default()
    };
    Decoded::Fits(Arc::new(Pod { metadata, ..Pod::default() }))
}

pub(super) fn applied(name: &str, version: &str) -> WatchEvent<Pod> {
    WatchEvent::Applied(pod(name, version))
}

pub(super) fn deleted(name: &str, version: &str) -> WatchEvent<Pod> {
    WatchEvent::Deleted(pod(name, version))
}

pub(super) fn bookmark(version: &str) -> WatchEvent<Pod> {
    WatchEvent::Bookmark { resource_version: version.into(), initial_events_end: false }
}

fn both() -> [Fifo; 2] {
    [Fifo::in_order(), Fifo::coalescing()]
}

/// Returns a delta as text: `applied a1`.
pub(super) fn text(delta: &Delta<Pod>) -> String {
    let named = |object: &Decoded<Pod>| {
        let metadata = object.metadata();
        [metadata.name.as_deref(), metadata.resource_version.as_deref()]
            .map(Option::unwrap_or_default)
            .concat()
    };
    let word = match delta {
        Delta::Replaced { objects, resource_version } => {
            let objects: Vec<_> = objects.iter().map(named).collect();
            return format!("all {} at {resource_version}", objects.join(" "));
        }
        Delta::Bookmark(version) => return format!("bookmark {version}"),
        Delta::ResyncedAll => return "resynced all".to_owned(),
        Delta::Applied(_) => "applied",
        Delta::Deleted(_) => "deleted",
        Delta::Listed(_) => "listed",
        Delta::Vanished(_) => "vanished",
        Delta::Resynced(_) => "resynced",
    };
    format!("{word} {}", delta.object().map(named).unwrap_or_default())
}

pub(super) fn texts(batch: &Batch<Pod>) -> Vec<String> {
    batch.deltas.iter().map(text).collect()
}

/// Pops everything. Returns the deltas and the last version that was reached.
fn drain(fifo: &Fifo) -> (Vec<String>, Option<String>) {
    let (mut deltas, mut reached) = (Vec::new(), None);
    while let Some(batch) = fifo.try_pop() {
        deltas.extend(texts(&batch));
        reached = batch.reached.map(|version| version.to_string()).or(reached);
    }
    assert!(fifo.is_empty());
    (deltas, reached)
}

fn deltas(fifo: &Fifo) -> Vec<String> {
    drain(fifo).0
}

// === in order ===

#[test]
fn in_order_keeps_every_delta_in_order() {
    let fifo = Fifo::in_order();
    let events = [applied("a", "1"), applied("b", "2"), applied("a", "3"), deleted("a", "4")];
    fifo.push(events);
    fifo.push([deleted("a", "4"), deleted("unknown", "5"), bookmark("6"), applied("a", "7")]);
    let expected = [
        "applied a1",
        "applied b2",
        "applied a3",
        "deleted a4",
        "deleted a4",
        "deleted unknown5",
        "bookmark 6",
        "applied a7",
    ];
    assert_eq!(deltas(&fifo), expected);
}

#[test]
fn in_order_list_is_one_delta_alone_in_its_batch() {
    let fifo = Fifo::in_order();
    fifo.push([applied("a", "1")]);
    fifo.replace(vec![pod("b", "2")], "2");
    fifo.replace(vec![], "3");
    fifo.push([bookmark("4")]);
    let batches: Vec<_> =
        std::iter::from_fn(|| fifo.try_pop().map(|batch| texts(&batch))).collect();
    assert_eq!(batches, [["applied a1"], ["all b2 at 2"], ["all  at 3"], ["bookmark 4"]]);
}

#[test]
fn in_order_resync_is_one_delta_after_earlier_deltas() {
    let fifo = Fifo::in_order();
    fifo.push([applied("a", "1")]);
    fifo.resync();
    fifo.push([applied("a", "2")]);
    assert_eq!(deltas(&fifo), ["applied a1", "resynced all", "applied a2"]);
}

#[test]
fn in_order_batch_has_at_most_1000_deltas() {
    let fifo = Fifo::in_order();
    fifo.push((1..=2500).map(|version| applied("a", &version.to_string())));
    let lengths: Vec<_> =
        std::iter::from_fn(|| fifo.try_pop().map(|batch| batch.deltas.len())).collect();
    assert_eq!(lengths, [1000, 1000, 500], "one object may be in a batch many times");
}

#[test]
fn in_order_batch_reports_the_version_it_reaches() {
    let fifo = Fifo::in_order();
    let reached = |batch: Option<Batch<Pod>>| {
        let batch = batch.unwrap();
        (batch.reached.map(|version| version.to_string()), batch.relisted)
    };
    fifo.replace(vec![pod("a", "3")], "5");
    assert_eq!(reached(fifo.try_pop()), (Some("5".into()), true));
    fifo.push([applied("a", "7"), deleted("a", "9"), applied("b", "8")]);
    assert_eq!(reached(fifo.try_pop()), (Some("9".into()), false), "deletions count");
    fifo.push([applied("b", "8"), bookmark("9")]);
    assert_eq!(reached(fifo.try_pop()), (None, false), "no later version");
    fifo.push([bookmark("20")]);
    assert_eq!(reached(fifo.try_pop()), (Some("20".into()), false));
    fifo.replace(vec![], "4");
    assert_eq!(reached(fifo.try_pop()), (Some("4".into()), true), "restored server");
    fifo.push([applied("b", "6")]);
    assert_eq!(reached(fifo.try_pop()), (Some("6".into()), false));
}

#[test]
fn in_order_synced_is_set_after_first_list_is_popped() {
    let fifo = Fifo::in_order();
    fifo.replace(vec![pod("a", "1")], "1");
    fifo.push([applied("a", "2")]);
    fifo.replace(vec![], "3");
    let synced: Vec<_> = std::iter::from_fn(|| fifo.try_pop().map(|batch| batch.synced)).collect();
    assert_eq!(synced, [true, true, true]);
    let fifo = Fifo::in_order();
    fifo.push([applied("a", "2")]);
    assert!(fifo.try_pop().unwrap().synced, "a queue that starts without a list is synced");
    let fifo = Fifo::in_order();
    fifo.resync();
    assert!(!fifo.try_pop().unwrap().synced);
}

// === coalescing ===

/// Returns an empty queue whose consumer has these objects.
fn with(known: &[(&str, &str)]) -> Fifo {
    let fifo = Fifo::coalescing();
    fifo.replace(known.iter().map(|(name, version)| pod(name, version)).collect(), "1");
    drain(&fifo);
    fifo
}

#[test]
fn coalescing_groups_deltas_by_object() {
    let fifo = Fifo::coalescing();
    fifo.push([applied("a", "1"), applied("b", "2"), applied("a", "3"), deleted("a", "4")]);
    assert_eq!(fifo.len(), 4);
    assert_eq!(deltas(&fifo), ["applied a1", "applied a3", "deleted a4", "applied b2"]);
}

#[test]
fn coalescing_merges_consecutive_deletions_and_keeps_the_observed_one() {
    let fifo = with(&[("a", "1")]);
    fifo.push([deleted("a", "2"), deleted("a", "3")]);
    assert_eq!((fifo.len(), deltas(&fifo)), (1, vec!["deleted a2".to_owned()]));
    let fifo = with(&[("a", "1")]);
    fifo.replace(vec![], "5");
    fifo.push([deleted("a", "4")]);
    assert_eq!(deltas(&fifo), ["deleted a4"], "the tombstone has an older state");
    let fifo = with(&[("a", "1")]);
    fifo.push([deleted("a", "4")]);
    fifo.replace(vec![], "5");
    assert_eq!(deltas(&fifo), ["deleted a4"]);
    let fifo = with(&[("a", "1")]);
    fifo.push([deleted("a", "4"), applied("a", "5"), deleted("a", "6")]);
    assert_eq!(deltas(&fifo), ["deleted a4", "applied a5", "deleted a6"]);
}

#[test]
fn coalescing_drops_old_events_so_that_a_list_finds_what_vanished() {
    for replayed in [vec![deleted("a", "46")], vec![applied("a", "45"), deleted("a", "46")]] {
        let fifo = with(&[("a", "47")]);
        fifo.push(replayed);
        assert_eq!(deltas(&fifo), [""; 0]);
        fifo.replace(vec![], "71");
        assert_eq!(deltas(&fifo), ["vanished a47"]);
    }
    let fifo = with(&[("a", "47")]);
    fifo.push([deleted("a", "48"), applied("a", "46")]);
    assert_eq!(deltas(&fifo), ["deleted a48", "applied a46"], "the consumer has no state then");
}

#[test]
fn coalescing_drops_deletion_of_unknown_object() {
    let fifo = Fifo::coalescing();
    fifo.push([deleted("a", "4")]);
    assert_eq!(drain(&fifo), (vec![], Some("4".into())), "its version is reached");
    fifo.push([applied("a", "5"), deleted("a", "6")]);
    assert_eq!(deltas(&fifo), ["applied a5", "deleted a6"], "a queued object counts as known");
    fifo.push([deleted("a", "7")]);
    assert_eq!(deltas(&fifo), [""; 0], "the consumer has deleted it");
}

#[test]
fn coalescing_list_is_split_per_object_and_missing_objects_vanish() {
    let fifo = with(&[("a", "1"), ("b", "1"), ("z", "1"), ("y", "1")]);
    fifo.push([applied("b", "3"), applied("c", "4"), applied("d", "5")]);
    fifo.replace(vec![pod("e", "6"), pod("a", "1"), pod("c", "7")], "8");
    let expected = [
        "applied b3",
        "vanished b3",
        "applied c4",
        "listed c7",
        "applied d5",
        "vanished d5",
        "listed e6",
        "listed a1",
        "vanished y1",
        "vanished z1",
    ];
    assert_eq!(drain(&fifo), (expected.map(str::to_owned).to_vec(), Some("8".into())));
    fifo.replace(vec![], "9");
    assert_eq!(deltas(&fifo), ["vanished a1", "vanished c7", "vanished e6"]);
}

#[test]
fn coalescing_object_listed_twice_ends_in_newer_state() {
    let fifo = Fifo::coalescing();
    fifo.replace(vec![pod("a", "5"), pod("a", "4"), pod("a", "6")], "7");
    assert_eq!(deltas(&fifo), ["listed a5", "listed a6"]);
    fifo.replace(vec![pod("a", "4")], "3");
    assert_eq!(deltas(&fifo), ["listed a4"], "a list overrides a newer known state");
}

#[test]
fn coalescing_resync_covers_known_objects_that_are_not_queued() {
    let fifo = with(&[("b", "1"), ("a", "1"), ("c", "1")]);
    fifo.push([applied("b", "2"), applied("d", "3"), deleted("c", "4")]);
    fifo.resync();
    fifo.resync();
    let expected = ["applied b2", "applied d3", "deleted c4", "resynced a1"];
    assert_eq!(deltas(&fifo), expected, "an old state never follows a new one");
    fifo.resync();
    assert_eq!(deltas(&fifo), ["resynced a1", "resynced b2", "resynced d3"]);
}

#[test]
fn coalescing_version_is_reached_when_queue_is_empty() {
    let fifo = Fifo::coalescing();
    fifo.push((0..1500).map(|name| applied(&name.to_string(), &(name + 1).to_string())));
    fifo.push([bookmark("2000")]);
    let first = fifo.try_pop().unwrap();
    assert_eq!((first.deltas.len(), first.reached), (1000, None));
    let second = fifo.try_pop().unwrap();
    assert_eq!((second.deltas.len(), second.reached), (500, Some("2000".into())));
    fifo.push([bookmark("1999"), bookmark("0"), bookmark("")]);
    assert!(fifo.try_pop().is_none(), "no new version");
    fifo.push([bookmark("2001")]);
    let only = fifo.try_pop().unwrap();
    assert_eq!((only.deltas.len(), only.reached), (0, Some("2001".into())));
    fifo.replace(vec![], "7");
    assert_eq!(fifo.try_pop().unwrap().reached, None);
    let back = fifo.try_pop().unwrap();
    assert_eq!((back.reached, back.relisted), (Some("7".into()), true), "restored server");
}

#[test]
fn coalescing_never_splits_deltas_of_one_object() {
    let fifo = Fifo::coalescing();
    fifo.push((1..=900).map(|version| applied("a", &version.to_string())));
    fifo.push((1..=1100).map(|version| applied("b", &version.to_string())));
    let lengths: Vec<_> =
        std::iter::from_fn(|| fifo.try_pop().map(|batch| batch.deltas.len())).collect();
    assert_eq!(lengths, [900, 1100]);
}

#[test]
fn coalescing_synced_is_set_after_first_list_is_popped() {
    let synced = |fifo: &Fifo| {
        std::iter::from_fn(|| fifo.try_pop().map(|batch| batch.synced)).collect::<Vec<_>>()
    };
    let fifo = Fifo::coalescing();
    fifo.replace((0..1500).map(|name| pod(&name.to_string(), "1")).collect(), "1");
    fifo.push((0..600).map(|name| applied(&format!("late {name}"), "2")));
    assert_eq!(synced(&fifo), [false, true, true]);
    let fifo = Fifo::coalescing();
    fifo.replace(vec![], "1");
    assert_eq!(synced(&fifo), [true], "an empty list counts");
    let fifo = Fifo::coalescing();
    fifo.push([applied("a", "1")]);
    assert_eq!(synced(&fifo), [true], "a queue that starts without a list is synced");
}

#[test]
fn coalescing_forgets_deleted_objects() {
    let fifo = with(&[("a", "1"), ("b", "1")]);
    fifo.push([deleted("a", "2"), applied("c", "3"), deleted("c", "4")]);
    drain(&fifo);
    let queue = fifo.queue.lock();
    let Design::Coalescing(coalescing) = &queue.design else { panic!() };
    assert_eq!(coalescing.known(), ["b"]);
}

// === both ===

#[tokio::test(start_paused = true)]
async fn pop_waits_for_push_and_ends_when_queue_is_closed_and_empty() {
    for fifo in both() {
        let producer = async {
            sleep(Duration::from_secs(1)).await;
            fifo.push([applied("a", "1")]);
            sleep(Duration::from_secs(1)).await;
            fifo.push([applied("a", "2")]);
            fifo.close();
        };
        let consumer = async {
            let start = Instant::now();
            assert_eq!(texts(&fifo.pop().await.unwrap()), ["applied a1"]);
            assert_eq!(start.elapsed().as_secs(), 1);
            assert_eq!(texts(&fifo.pop().await.unwrap()), ["applied a2"], "closed, but not empty");
            assert!(fifo.pop().await.is_none() && fifo.pop().await.is_none());
            assert_eq!(start.elapsed().as_secs(), 2);
        };
        tokio::join!(consumer, producer);
        fifo.push([applied("a", "3")]);
        assert!(fifo.pop().await.is_some(), "a push after close is still popped");
    }
}

#[tokio::test(start_paused = true)]
async fn producer_waits_while_2000_deltas_are_queued() {
    for fifo in both() {
        fifo.push((0..1999).map(|name| applied(&name.to_string(), "1")));
        fifo.wait_for_room().await;
        fifo.push([applied("last", "1")]);
        assert!(timeout(Duration::from_secs(60), fifo.wait_for_room()).await.is_err());
        let popped = async {
            sleep(Duration::from_secs(1)).await;
            fifo.pop().await
        };
        let ((), batch) = tokio::join!(fifo.wait_for_room(), popped);
        assert_eq!(batch.unwrap().deltas.len(), 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_pop_takes_nothing() {
    for fifo in both() {
        assert!(timeout(Duration::from_secs(1), fifo.pop()).await.is_err());
        fifo.push([applied("a", "1")]);
        assert_eq!(texts(&fifo.pop().await.unwrap()), ["applied a1"]);
    }
}

/// An object whose `Drop` locks the queue that it was in.
struct LocksOnDrop {
    metadata: ObjectMeta,
    fifo: std::sync::Weak<DeltaFifo<Self>>,
}

impl Object for LocksOnDrop {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Drop for LocksOnDrop {
    fn drop(&mut self) {
        if let Some(fifo) = self.fifo.upgrade() {
            fifo.len();
        }
    }
}

#[test]
fn objects_are_dropped_outside_the_lock() {
    for fifo in [DeltaFifo::in_order(), DeltaFifo::coalescing()] {
        let fifo = Arc::new(fifo);
        let object = |name: &str| {
            let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
            Decoded::Fits(Arc::new(LocksOnDrop { metadata, fifo: Arc::downgrade(&fifo) }))
        };
        fifo.replace(vec![object("a"), object("b"), object("a")], "1");
        fifo.push(["a", "b", "c"].map(|name| WatchEvent::Deleted(object(name))));
        fifo.push(["a", "a"].map(|name| WatchEvent::Applied(object(name))));
        fifo.push(["a", "a"].map(|name| WatchEvent::Deleted(object(name))));
        drop(fifo.try_pop());
        drop(fifo.try_pop());
        fifo.replace(vec![object("b")], "2");
        fifo.push([WatchEvent::Deleted(object("b"))]);
        fifo.replace(vec![], "3");
        while fifo.try_pop().is_some() {}
    }
}
