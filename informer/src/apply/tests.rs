//! The effect of each kind of step on objects, indices and events. `model.rs` compares any sequence
//! of steps with a model.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::Ordering;

mod late;
mod memory;
mod model;

use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex as TestMutex;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::event::Event;
use crate::index::Index;
use crate::list_watch::Decoded;
use crate::object::ObjectMeta;
use crate::processor::{self, HandlerOptions, Owner};

fn metadata(name: &str, uid: &str, version: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: Some("n".into()),
        uid: Some(uid.into()),
        resource_version: Some(version.into()),
        ..ObjectMeta::default()
    }
}

fn pod(name: &str, uid: &str, version: &str) -> Decoded<Pod> {
    let metadata = metadata(name, uid, version);
    Decoded::Fits(Arc::new(Pod { metadata, ..Pod::default() }))
}

fn opaque(name: &str, uid: &str, version: &str) -> Decoded<Pod> {
    Decoded::Opaque {
        metadata: Arc::new(metadata(name, uid, version)),
        error: "undecodable".into(),
    }
}

fn replaced(objects: Vec<Decoded<Pod>>, version: &str) -> Delta<Pod> {
    Delta::Replaced { objects, resource_version: version.into() }
}

/// Returns an event as text, with the versions before and after it.
fn event_text(event: &Event<Pod>) -> String {
    let version = |metadata: &ObjectMeta| metadata.resource_version.clone().unwrap_or_default();
    let name = event.metadata().name.clone().unwrap_or_default();
    match event {
        Event::Added { object, initial } => {
            let kind = if *initial { "initial" } else { "added" };
            format!("{kind} {name}{}", version(&object.metadata))
        }
        Event::Updated { old, new } => {
            format!("{name}{} to {}", version(&old.metadata), version(&new.metadata))
        }
        Event::Deleted { last_known, certain } => {
            let kind = if *certain { "deleted" } else { "lost" };
            format!("{kind} {name}{}", version(&last_known.metadata))
        }
        Event::Opaque { last_known, metadata } => {
            let last = last_known.as_ref().map(|last| version(&last.metadata)).unwrap_or_default();
            format!("opaque {name}{last} to {}", version(metadata))
        }
        Event::OpaqueDeleted { metadata } => format!("opaque deleted {name}{}", version(metadata)),
    }
}

/// The store, for reading.
impl Deref for Applier<Pod> {
    type Target = Arc<Store<Pod>>;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

fn applier() -> Arc<Applier<Pod>> {
    Arc::new(Applier::new(Arc::new(Store::new())))
}

/// A store with one handler whose task the test polls.
struct Fixture {
    store: Arc<Applier<Pod>>,
    received: Arc<TestMutex<Vec<Event<Pod>>>>,
    task: tokio_test::task::Spawn<futures::future::BoxFuture<'static, ()>>,
    /// Kept because dropping it would remove the handler.
    subscription: crate::Subscription,
    resync: processor::ResyncByHand<Pod>,
}

impl Fixture {
    fn new() -> Self {
        Self::on(applier())
    }

    fn on(store: Arc<Applier<Pod>>) -> Self {
        Self::with(store, "test".into())
    }

    fn with(store: Arc<Applier<Pod>>, options: HandlerOptions<Pod>) -> Self {
        let received = Arc::<TestMutex<Vec<_>>>::default();
        let log = Arc::clone(&received);
        let (stop, metrics) = (CancellationToken::new(), Metrics::new(None));
        let owner = Owner { stop: &stop, metrics: &metrics };
        let receive = Box::new(move |event| log.lock().push(event));
        let (listener, task, subscription) = processor::handler(options, owner, &store, receive);
        let resync = listener.resync_by_hand();
        store.add_listener(listener);
        let task: futures::future::BoxFuture<'static, ()> = Box::pin(task.run());
        let task = tokio_test::task::spawn(task);
        Self { store, received, task, subscription, resync }
    }

    fn apply(&mut self, batch: Vec<Delta<Pod>>) -> Vec<String> {
        self.store.apply(batch);
        self.received().iter().map(event_text).collect()
    }

    fn received(&mut self) -> Vec<Event<Pod>> {
        tokio_test::assert_pending!(self.task.poll());
        assert_eq!(self.subscription.queued(), 0);
        mem::take(&mut *self.received.lock())
    }

    /// Does what the handler's resync timer does.
    fn resync(&self) {
        (self.resync)(&self.store);
    }

    fn version(&self) -> String {
        self.store.resource_version().map(|version| version.to_string()).unwrap_or_default()
    }
}

#[test]
fn object_without_readable_uid_is_not_delivered_as_deleted() {
    let mut store = Fixture::new();
    store.apply(vec![Delta::Applied(pod("a", "u", "1"))]);
    let unreadable = ObjectMeta { uid: None, ..metadata("a", "", "2") };
    let unreadable =
        Decoded::Opaque { metadata: Arc::new(unreadable), error: "undecodable".into() };
    assert_eq!(store.apply(vec![Delta::Applied(unreadable)]), ["opaque a1 to 2"]);
    assert_eq!(store.apply(vec![Delta::Applied(pod("a", "u", "3"))]), ["a1 to 3"]);
}

#[test]
fn non_numeric_version_does_not_replace_a_number() {
    let mut store = Fixture::new();
    store.apply(vec![replaced(vec![], "7")]);
    store.apply(vec![Delta::Applied(pod("a", "u", "abc"))]);
    assert_eq!(store.version(), "7");
}

#[test]
fn object_is_added_updated_and_deleted() {
    let mut store = Fixture::new();
    let batch = vec![
        Delta::Applied(pod("a", "u", "1")),
        Delta::Applied(pod("a", "u", "2")),
        Delta::Deleted(pod("a", "u", "3")),
        Delta::Deleted(pod("b", "u", "4")),
    ];
    assert_eq!(store.apply(batch), ["added a1", "a1 to 2", "deleted a3"]);
    assert_eq!((store.store.count(), store.version()), ((0, 0), "4".to_owned()));
}

#[test]
fn relist_is_one_step_and_deletions_come_first() {
    let mut store = Fixture::new();
    let first = vec![replaced(vec![pod("a", "u", "1"), pod("b", "v", "2")], "5")];
    assert_eq!(store.apply(first), ["initial a1", "initial b2"]);
    let second = vec![replaced(vec![pod("c", "w", "6"), pod("b", "v", "7")], "8")];
    assert_eq!(store.apply(second), ["lost a1", "added c6", "b2 to 7"]);
    assert_eq!(store.version(), "8");
}

#[test]
fn relist_keeps_unchanged_object() {
    let mut store = Fixture::new();
    store.apply(vec![replaced(vec![pod("a", "u", "1")], "5")]);
    let before = store.store.get(("n", "a").into()).unwrap();
    assert_eq!(store.apply(vec![replaced(vec![pod("a", "u", "1")], "9")]), [""; 0]);
    assert!(Arc::ptr_eq(&before, &store.store.get(("n", "a").into()).unwrap()));
    let mut again = pod("a", "u", "1");
    store.store.reuse(&mut again);
    assert!(matches!(again, Decoded::Fits(object) if Arc::ptr_eq(&object, &before)));
}

#[test]
fn object_with_new_uid_is_deleted_then_added() {
    let mut store = Fixture::new();
    store.apply(vec![Delta::Applied(pod("a", "u", "1"))]);
    assert_eq!(store.apply(vec![Delta::Applied(pod("a", "v", "3"))]), ["lost a1", "added a3"]);
    let relist = vec![replaced(vec![pod("a", "w", "5")], "5")];
    assert_eq!(store.apply(relist), ["lost a3", "initial a5"]);
}

#[test]
fn older_object_and_bookmark_are_ignored() {
    let mut store = Fixture::new();
    store.apply(vec![Delta::Applied(pod("a", "v", "10"))]);
    let old = vec![
        Delta::Applied(pod("a", "v", "10")),
        Delta::Applied(pod("a", "v", "9")),
        Delta::Applied(pod("a", "u", "8")),
        Delta::Deleted(pod("a", "u", "9")),
        Delta::Bookmark("9".into()),
    ];
    assert_eq!(store.apply(old), [""; 0]);
    assert_eq!(store.version(), "10");
    let odd = vec![Delta::Applied(pod("a", "v", "odd")), Delta::Bookmark("12".into())];
    assert_eq!(store.apply(odd), ["a10 to odd"]);
    assert_eq!(store.version(), "12");
}

#[test]
fn older_deletion_of_same_object_is_ignored() {
    let mut store = Fixture::new();
    store.apply(vec![Delta::Applied(pod("a", "u", "12"))]);
    // A watch with a selector replays that the object left and came back.
    let replayed = vec![Delta::Deleted(pod("a", "u", "10")), Delta::Applied(pod("a", "u", "12"))];
    assert_eq!(store.apply(replayed), [""; 0]);
    assert_eq!(store.apply(vec![Delta::Deleted(pod("a", "u", "12"))]), ["deleted a12"]);
    store.apply(vec![Delta::Applied(pod("a", "u", "13"))]);
    let unordered = vec![Delta::Deleted(pod("a", "u", "odd"))];
    assert_eq!(store.apply(unordered), ["deleted aodd"], "an unknown order is believed");
}

#[test]
fn relist_may_lower_the_store_version() {
    let mut store = Fixture::new();
    store.apply(vec![replaced(vec![pod("a", "u", "90")], "100")]);
    assert_eq!(store.apply(vec![replaced(vec![pod("a", "u", "3")], "5")]), ["a90 to 3"]);
    assert_eq!(store.version(), "5");
}

#[test]
fn object_that_becomes_undecodable_is_opaque_and_not_deleted() {
    let mut store = Fixture::new();
    let batch = vec![
        Delta::Applied(pod("a", "u", "1")),
        Delta::Applied(opaque("a", "u", "2")),
        Delta::Applied(opaque("a", "u", "3")),
    ];
    assert_eq!(store.apply(batch), ["added a1", "opaque a1 to 2", "opaque a1 to 3"]);
    assert!(store.store.get(("n", "a").into()).is_none());
    let metadata = store.store.opaque(("n", "a").into()).unwrap();
    assert_eq!((metadata.resource_version.as_deref(), store.store.count()), (Some("3"), (0, 1)));
    let late = Fixture::on(Arc::clone(&store.store)).received();
    assert_eq!(late.iter().map(event_text).collect::<Vec<_>>(), ["initial a1", "opaque a1 to 3"]);
    assert_eq!(store.apply(vec![Delta::Applied(pod("a", "u", "4"))]), ["a1 to 4"]);
    assert_eq!(store.store.count(), (1, 0));
}

#[test]
fn never_decoded_object_is_deleted_as_opaque() {
    let mut store = Fixture::new();
    let batch = vec![
        Delta::Applied(opaque("a", "u", "1")),
        Delta::Deleted(pod("a", "u", "2")),
        Delta::Applied(opaque("b", "v", "3")),
        Delta::Applied(pod("b", "v", "4")),
        Delta::Deleted(opaque("b", "v", "5")),
    ];
    let expected = ["opaque a to 1", "opaque deleted a2", "opaque b to 3", "added b4", "lost b4"];
    assert_eq!(store.apply(batch), expected);
}

#[test]
fn object_index_fails_closed_and_metadata_index_is_exact() {
    let store = applier();
    let by_name = Index::<Pod, String>::new(&store, |pod| pod.metadata.name.clone());
    let by_uid = Index::<Pod, String>::by_metadata(&store, |metadata| metadata.uid.clone());
    store.apply(vec![Delta::Applied(pod("a", "u", "1")), Delta::Applied(opaque("b", "v", "2"))]);
    assert_eq!((by_name.get("a").len(), by_name.get("b").len(), by_uid.get("v").len()), (1, 0, 0));
    assert!(by_name.has_opaque("a") && by_name.has_opaque("anything"));
    assert!(!by_uid.has_opaque("u") && by_uid.has_opaque("v"));
    store.apply(vec![Delta::Applied(pod("b", "v", "3"))]);
    assert!(!by_name.has_opaque("a") && !by_uid.has_opaque("v"));
    assert_eq!(by_name.get("b").len(), 1);
}

#[test]
fn panicking_index_function_costs_one_entry_and_is_counted() {
    let store = applier();
    let by_name = Index::<Pod, String>::new(&store, |pod| {
        assert_ne!(pod.metadata.name.as_deref(), Some("bomb"));
        pod.metadata.name.clone()
    });
    let batch = [pod("a", "u", "1"), pod("bomb", "v", "2"), pod("c", "w", "3")];
    store.apply(batch.into_iter().map(Delta::Applied).collect());
    assert_eq!(
        (by_name.get("a").len(), by_name.get("bomb").len(), by_name.get("c").len()),
        (1, 0, 1)
    );
    assert!(store.get(("n", "bomb").into()).is_some() && by_name.has_opaque("a"));
    assert_eq!(store.index_panics(), 1);
    store.apply(vec![Delta::Deleted(pod("bomb", "v", "4"))]);
    assert!(!by_name.has_opaque("a"));
}

#[test]
fn index_function_may_read_the_store() {
    let store = applier();
    let reader = Arc::downgrade(&store);
    let index = Index::<Pod, usize>::new(&store, move |_| Some(reader.upgrade()?.count().0));
    store.apply(vec![Delta::Applied(pod("a", "u", "1"))]);
    assert_eq!(index.get(&0).len(), 1);
}

#[test]
fn object_listed_twice_keeps_its_newer_state() {
    let mut store = Fixture::new();
    let twice = vec![pod("a", "u", "2"), pod("b", "v", "1"), pod("a", "u", "1")];
    assert_eq!(store.apply(vec![replaced(twice, "5")]), ["initial a2", "initial b1"]);
    let twice = vec![pod("a", "u", "2"), pod("b", "v", "1"), pod("a", "u", "3")];
    assert_eq!(store.apply(vec![replaced(twice, "6")]), ["a2 to 3"]);
    let unordered = vec![pod("a", "u", "x"), pod("b", "v", "1"), pod("a", "u", "y")];
    assert_eq!(store.apply(vec![replaced(unordered, "7")]), ["a3 to y"]);
}

#[test]
fn object_decoded_later_at_the_same_version_is_added() {
    let mut store = Fixture::new();
    store.apply(vec![Delta::Applied(opaque("a", "u", "2"))]);
    assert_eq!(store.apply(vec![Delta::Applied(pod("a", "u", "2"))]), ["added a2"]);
    assert_eq!(
        store.apply(vec![Delta::Applied(opaque("a", "u", "2"))]),
        [""; 0],
        "the decoded state is kept"
    );
    assert_eq!(store.store.count(), (1, 0));
}

#[test]
fn index_function_may_use_the_store_and_add_indices() {
    let store = applier();
    let handle = Arc::downgrade(&store);
    let outer = Index::<Pod, usize>::new(&store, move |_| {
        let store = handle.upgrade()?;
        let inner = Index::<Pod, String>::new(&store, |pod| pod.metadata.name.clone());
        let found =
            inner.get("a").len() + store.in_namespace("n").map_or(0, |found| found.entries.len());
        let _listener = Fixture::on(Arc::clone(&store));
        Some(found)
    });
    store.apply(vec![Delta::Applied(pod("a", "u", "1"))]);
    store.apply(vec![Delta::Applied(pod("b", "v", "2"))]);
    assert_eq!(
        (outer.get(&0).len(), outer.get(&2).len()),
        (1, 1),
        "computed without and with the first object"
    );
}

/// An index value whose equality, hash or drop panics, selected by its text.
#[derive(Clone, Debug)]
struct Bomb(&'static str);

impl PartialEq for Bomb {
    fn eq(&self, other: &Self) -> bool {
        assert!(self.0 != "eq" && other.0 != "eq");
        self.0 == other.0
    }
}

impl Eq for Bomb {}

impl std::hash::Hash for Bomb {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        assert_ne!(self.0, "hash");
        // All values have the same hash, so that all of them are compared.
        state.write_u8(0);
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(self.0 != "drop" || std::thread::panicking());
    }
}

fn bombs(pod: &Pod) -> Vec<Bomb> {
    match pod.metadata.name.as_deref() {
        Some("hash") => vec![Bomb("good"), Bomb("hash")],
        Some("eq") => vec![Bomb("good"), Bomb("eq"), Bomb("never")],
        Some("drop") => vec![Bomb("drop")],
        _ => vec![Bomb("good"), Bomb("better"), Bomb("good")],
    }
}

#[test]
fn panicking_index_value_costs_its_object_the_entry() {
    let store = applier();
    let index = Index::new(&store, bombs);
    let batch = ["a", "hash", "b", "eq", "c"].map(|name| Delta::Applied(pod(name, name, "1")));
    store.apply(batch.into());
    assert_eq!((index.get(&Bomb("good")).len(), index.get(&Bomb("better")).len()), (3, 3));
    assert_eq!((index.get(&Bomb("never")).len(), store.index_panics()), (0, 2));
    assert!(index.has_opaque(&Bomb("good")));
    store.apply(vec![replaced(vec![pod("a", "a", "1")], "9")]);
    assert_eq!((index.get(&Bomb("good")).len(), index.values().len()), (1, 2));
    assert!(!index.has_opaque(&Bomb("good")));
    let again = Index::new(&store, bombs);
    assert_eq!(again.get(&Bomb("good")).len(), 1);
}

#[test]
fn panic_in_drop_of_index_value_affects_no_other_object() {
    let mut store = Fixture::new();
    let index = Index::new(&store.store, bombs);
    store.apply(vec![Delta::Applied(pod("drop", "d", "1"))]);
    let batch = vec![Delta::Deleted(pod("drop", "d", "2")), Delta::Applied(pod("a", "a", "3"))];
    assert_eq!(store.apply(batch), ["deleted drop2", "added a3"]);
    assert_eq!(index.get(&Bomb("good")).len(), 1);
}

#[test]
fn index_added_during_writes_is_complete_and_current() {
    let store = applier();
    let name = |number: u32| format!("p{number}");
    let make = move |number: u32, version: u32| {
        Delta::Applied(pod(&name(number), &format!("u{number}"), &version.to_string()))
    };
    store.apply((0..5_000).map(|number| make(number, 1)).collect());
    let writer = Arc::clone(&store);
    let go_on = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let stop = Arc::clone(&go_on);
    let writing = std::thread::spawn(move || {
        let mut version = 1;
        while go_on.load(Ordering::Relaxed) {
            version += 1;
            for number in 0..200 {
                writer.apply(vec![make(number * 20, version)]);
                writer.apply(vec![Delta::Deleted(pod(
                    &name(number * 20 + 1),
                    &format!("u{}", number * 20 + 1),
                    "9999999",
                ))]);
                writer.apply(vec![make(5_000 + number, version)]);
            }
        }
    });
    let indices: Vec<_> = (0..5)
        .map(|_| Index::by_metadata(&store, |metadata| metadata.resource_version.clone()))
        .collect();
    stop.store(false, Ordering::Relaxed);
    writing.join().unwrap();
    let mut expected = BTreeMap::<String, usize>::new();
    for entry in store.freeze().entries.iter() {
        *expected.entry(entry.metadata().resource_version.clone().unwrap()).or_default() += 1;
    }
    for index in indices {
        let found: BTreeMap<_, _> = index
            .values()
            .into_iter()
            .map(|version| (version.clone(), index.get(&version).len()))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn get_any_returns_each_object_once_and_keys_are_sorted() {
    let store = applier();
    let letters = Index::<Pod, char>::by_metadata(&store, |metadata| {
        metadata.name.clone().unwrap_or_default().chars().collect::<Vec<_>>()
    });
    let batch =
        [pod("ba", "1", "1"), pod("ab", "2", "2"), pod("bc", "3", "3"), opaque("cb", "4", "4")];
    store.apply(batch.into_iter().map(Delta::Applied).collect());
    let names = |found: crate::Snapshot<Pod>| -> Vec<String> {
        found.iter().filter_map(|pod| pod.metadata.name.clone()).collect()
    };
    assert_eq!(names(letters.get_any(&['a', 'c'])), ["ba", "ab", "bc"]);
    assert_eq!(names(letters.get_any(&['a', 'b'])), ["ba", "ab", "bc"]);
    assert_eq!(names(letters.get_any(&[])), [""; 0]);
    let keys: Vec<_> = letters.keys(&'b').iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["n/ab", "n/ba", "n/bc", "n/cb"]);
    let mut values = letters.values();
    values.sort_unstable();
    assert_eq!(values, ['a', 'b', 'c']);
}
