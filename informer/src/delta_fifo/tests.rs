//! The rules of both designs, one by one.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::{delta::Delta, object::ObjectMeta};

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

/// `applied a1`.
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

/// All deltas that are there, and the last version that was reached.
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
fn in_order_nothing_is_merged_and_no_order_is_changed() {
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
fn in_order_a_list_comes_alone_in_its_place_and_whole() {
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
fn in_order_resync_is_one_delta_after_what_came_before() {
    let fifo = Fifo::in_order();
    fifo.push([applied("a", "1")]);
    fifo.resync();
    fifo.push([applied("a", "2")]);
    assert_eq!(deltas(&fifo), ["applied a1", "resynced all", "applied a2"]);
}

#[test]
fn in_order_a_batch_is_no_longer_than_a_thousand_deltas() {
    let fifo = Fifo::in_order();
    fifo.push((1..=2500).map(|version| applied("a", &version.to_string())));
    let lengths: Vec<_> =
        std::iter::from_fn(|| fifo.try_pop().map(|batch| batch.deltas.len())).collect();
    assert_eq!(lengths, [1000, 1000, 500], "one object may come often in one batch");
}

#[test]
fn in_order_each_batch_says_how_far_it_leads() {
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
    assert_eq!(reached(fifo.try_pop()), (None, false), "no further than before");
    fifo.push([bookmark("20")]);
    assert_eq!(reached(fifo.try_pop()), (Some("20".into()), false));
    fifo.replace(vec![], "4");
    assert_eq!(reached(fifo.try_pop()), (Some("4".into()), true), "another history");
    fifo.push([applied("b", "6")]);
    assert_eq!(reached(fifo.try_pop()), (Some("6".into()), false));
}

#[test]
fn in_order_synced_means_that_the_first_list_has_been_handed_out() {
    let fifo = Fifo::in_order();
    fifo.replace(vec![pod("a", "1")], "1");
    fifo.push([applied("a", "2")]);
    fifo.replace(vec![], "3");
    let synced: Vec<_> = std::iter::from_fn(|| fifo.try_pop().map(|batch| batch.synced)).collect();
    assert_eq!(synced, [true, true, true]);
    let fifo = Fifo::in_order();
    fifo.push([applied("a", "2")]);
    assert!(fifo.try_pop().unwrap().synced, "what does not begin with a list is synced");
    let fifo = Fifo::in_order();
    fifo.resync();
    assert!(!fifo.try_pop().unwrap().synced);
}

// === coalescing ===

/// A queue whose consumer has these objects.
fn with(known: &[(&str, &str)]) -> Fifo {
    let fifo = Fifo::coalescing();
    fifo.replace(known.iter().map(|(name, version)| pod(name, version)).collect(), "1");
    drain(&fifo);
    fifo
}

#[test]
fn coalescing_what_happens_to_one_object_comes_together() {
    let fifo = Fifo::coalescing();
    fifo.push([applied("a", "1"), applied("b", "2"), applied("a", "3"), deleted("a", "4")]);
    assert_eq!(fifo.len(), 4);
    assert_eq!(deltas(&fifo), ["applied a1", "applied a3", "deleted a4", "applied b2"]);
}

#[test]
fn coalescing_deletions_in_a_row_are_one_the_one_that_was_seen() {
    let fifo = with(&[("a", "1")]);
    fifo.push([deleted("a", "2"), deleted("a", "3")]);
    assert_eq!((fifo.len(), deltas(&fifo)), (1, vec!["deleted a2".to_owned()]));
    let fifo = with(&[("a", "1")]);
    fifo.replace(vec![], "5");
    fifo.push([deleted("a", "4")]);
    assert_eq!(deltas(&fifo), ["deleted a4"], "the tombstone knows less");
    let fifo = with(&[("a", "1")]);
    fifo.push([deleted("a", "4")]);
    fifo.replace(vec![], "5");
    assert_eq!(deltas(&fifo), ["deleted a4"]);
    let fifo = with(&[("a", "1")]);
    fifo.push([deleted("a", "4"), applied("a", "5"), deleted("a", "6")]);
    assert_eq!(deltas(&fifo), ["deleted a4", "applied a5", "deleted a6"]);
}

#[test]
fn coalescing_a_deletion_of_what_nobody_has_is_dropped() {
    let fifo = Fifo::coalescing();
    fifo.push([deleted("a", "4")]);
    assert_eq!(drain(&fifo), (vec![], Some("4".into())), "but its version was reached");
    fifo.push([applied("a", "5"), deleted("a", "6")]);
    assert_eq!(deltas(&fifo), ["applied a5", "deleted a6"], "what is only queued will be had");
    fifo.push([deleted("a", "7")]);
    assert_eq!(deltas(&fifo), [""; 0], "handed out and gone");
}

#[test]
fn coalescing_a_list_is_taken_apart_and_what_it_does_not_show_is_gone() {
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
fn coalescing_an_object_that_a_list_shows_twice_ends_in_its_newer_state() {
    let fifo = Fifo::coalescing();
    fifo.replace(vec![pod("a", "5"), pod("a", "4"), pod("a", "6")], "7");
    assert_eq!(deltas(&fifo), ["listed a5", "listed a6"]);
    fifo.replace(vec![pod("a", "4")], "3");
    assert_eq!(deltas(&fifo), ["listed a4"], "against what was known the list is right");
}

#[test]
fn coalescing_resync_tells_what_is_known_and_does_not_wait() {
    let fifo = with(&[("b", "1"), ("a", "1"), ("c", "1")]);
    fifo.push([applied("b", "2"), applied("d", "3"), deleted("c", "4")]);
    fifo.resync();
    fifo.resync();
    let expected = ["applied b2", "applied d3", "deleted c4", "resynced a1"];
    assert_eq!(deltas(&fifo), expected, "an old state never comes after a new one");
    fifo.resync();
    assert_eq!(deltas(&fifo), ["resynced a1", "resynced b2", "resynced d3"]);
}

#[test]
fn coalescing_a_version_is_reached_when_nothing_waits() {
    let fifo = Fifo::coalescing();
    fifo.push((0..1500).map(|name| applied(&name.to_string(), &(name + 1).to_string())));
    fifo.push([bookmark("2000")]);
    let first = fifo.try_pop().unwrap();
    assert_eq!((first.deltas.len(), first.reached), (1000, None));
    let second = fifo.try_pop().unwrap();
    assert_eq!((second.deltas.len(), second.reached), (500, Some("2000".into())));
    fifo.push([bookmark("1999"), bookmark("0"), bookmark("")]);
    assert!(fifo.try_pop().is_none(), "nothing new");
    fifo.push([bookmark("2001")]);
    let only = fifo.try_pop().unwrap();
    assert_eq!((only.deltas.len(), only.reached), (0, Some("2001".into())));
    fifo.replace(vec![], "7");
    assert_eq!(fifo.try_pop().unwrap().reached, None);
    let back = fifo.try_pop().unwrap();
    assert_eq!((back.reached, back.relisted), (Some("7".into()), true), "another history");
}

#[test]
fn coalescing_what_happened_to_one_object_is_never_cut() {
    let fifo = Fifo::coalescing();
    fifo.push((1..=900).map(|version| applied("a", &version.to_string())));
    fifo.push((1..=1100).map(|version| applied("b", &version.to_string())));
    let lengths: Vec<_> =
        std::iter::from_fn(|| fifo.try_pop().map(|batch| batch.deltas.len())).collect();
    assert_eq!(lengths, [900, 1100]);
}

#[test]
fn coalescing_synced_means_that_the_first_list_has_been_handed_out() {
    let synced = |fifo: &Fifo| {
        std::iter::from_fn(|| fifo.try_pop().map(|batch| batch.synced)).collect::<Vec<_>>()
    };
    let fifo = Fifo::coalescing();
    fifo.replace((0..1500).map(|name| pod(&name.to_string(), "1")).collect(), "1");
    fifo.push((0..600).map(|name| applied(&format!("late {name}"), "2")));
    assert_eq!(synced(&fifo), [false, true, true]);
    let fifo = Fifo::coalescing();
    fifo.replace(vec![], "1");
    assert_eq!(synced(&fifo), [true], "an empty list is one, too");
    let fifo = Fifo::coalescing();
    fifo.push([applied("a", "1")]);
    assert_eq!(synced(&fifo), [true], "what does not begin with a list is synced");
}

#[test]
fn coalescing_forgets_what_is_gone() {
    let fifo = with(&[("a", "1"), ("b", "1")]);
    fifo.push([deleted("a", "2"), applied("c", "3"), deleted("c", "4")]);
    drain(&fifo);
    let queue = fifo.queue.lock();
    let Design::Coalescing(coalescing) = &queue.design else { panic!() };
    assert_eq!(coalescing.known(), ["b"]);
}

// === both ===

#[tokio::test(start_paused = true)]
async fn consumer_waits_for_a_push_and_ends_when_the_queue_is_closed_and_empty() {
    for fifo in both() {
        let producer = async {
            sleep(Duration::from_secs(1)).await;
            fifo.push([applied("a", "1")]);
            sleep(Duration::from_secs(1)).await;
            fifo.push([applied("a", "2")]);
            fifo.close();
        };
        let consumer = async {
            let begin = Instant::now();
            assert_eq!(texts(&fifo.pop().await.unwrap()), ["applied a1"]);
            assert_eq!(begin.elapsed().as_secs(), 1);
            assert_eq!(texts(&fifo.pop().await.unwrap()), ["applied a2"], "closed, but not empty");
            assert!(fifo.pop().await.is_none() && fifo.pop().await.is_none());
            assert_eq!(begin.elapsed().as_secs(), 2);
        };
        tokio::join!(consumer, producer);
        fifo.push([applied("a", "3")]);
        assert!(fifo.pop().await.is_some(), "who writes after the end is still heard");
    }
}

#[tokio::test(start_paused = true)]
async fn producer_waits_while_two_batches_wait() {
    for fifo in both() {
        fifo.push((0..1999).map(|name| applied(&name.to_string(), "1")));
        fifo.room().await;
        fifo.push([applied("last", "1")]);
        assert!(timeout(Duration::from_secs(60), fifo.room()).await.is_err());
        let popped = async {
            sleep(Duration::from_secs(1)).await;
            fifo.pop().await
        };
        let ((), batch) = tokio::join!(fifo.room(), popped);
        assert_eq!(batch.unwrap().deltas.len(), 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_that_is_given_up_takes_nothing() {
    for fifo in both() {
        assert!(timeout(Duration::from_secs(1), fifo.pop()).await.is_err());
        fifo.push([applied("a", "1")]);
        assert_eq!(texts(&fifo.pop().await.unwrap()), ["applied a1"]);
    }
}

/// An object whose `Drop` uses the queue that it was in.
struct Nosy {
    metadata: ObjectMeta,
    fifo: std::sync::Weak<DeltaFifo<Self>>,
}

impl Object for Nosy {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(fifo) = self.fifo.upgrade() {
            fifo.len();
        }
    }
}

#[test]
fn objects_are_dropped_outside_of_the_lock() {
    for fifo in [DeltaFifo::in_order(), DeltaFifo::coalescing()] {
        let fifo = Arc::new(fifo);
        let nosy = |name: &str| {
            let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
            Decoded::Fits(Arc::new(Nosy { metadata, fifo: Arc::downgrade(&fifo) }))
        };
        fifo.replace(vec![nosy("a"), nosy("b"), nosy("a")], "1");
        fifo.push(["a", "b", "c"].map(|name| WatchEvent::Deleted(nosy(name))));
        fifo.push(["a", "a"].map(|name| WatchEvent::Applied(nosy(name))));
        fifo.push(["a", "a"].map(|name| WatchEvent::Deleted(nosy(name))));
        drop(fifo.try_pop());
        drop(fifo.try_pop());
        fifo.replace(vec![nosy("b")], "2");
        fifo.push([WatchEvent::Deleted(nosy("b"))]);
        fifo.replace(vec![], "3");
        while fifo.try_pop().is_some() {}
    }
}
