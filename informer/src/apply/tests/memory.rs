//! Memory comes back: after a burst of objects, after a removed index, after a removed handler.

use super::*;
use crate::object::Object;

const BURST: usize = 20_000;
const LEFT: usize = 10;

fn numbered(number: usize, version: usize) -> Decoded<Pod> {
    pod(&format!("p{number}"), &format!("u{number}"), &version.to_string())
}

/// Fills a store with a burst, and deletes all but the last objects, one by one.
fn after_burst(store: &Applier<Pod>) {
    store.apply((0..BURST).map(|number| Delta::Applied(numbered(number, 1))).collect());
    let full = store.capacity();
    assert!(full >= BURST, "{full} places for {BURST} objects");
    for number in 0..BURST - LEFT {
        store.apply(vec![Delta::Deleted(numbered(number, 2))]);
    }
}

#[test]
fn memory_of_a_burst_of_objects_is_freed() {
    let store = applier();
    let by_name = Index::by_metadata(&store, |metadata| metadata.name.clone());
    let by_digit = Index::<Pod, char>::by_metadata(&store, |metadata| {
        metadata.name.as_deref().and_then(|name| name.chars().last())
    });
    assert!(store.in_namespace("n").is_none());
    after_burst(&store);
    let places = store.capacity();
    assert!(places < BURST / 20, "{places} places for {LEFT} objects");
    // A list visits the remaining objects only.
    let listed = store.freeze().entries;
    assert_eq!(listed.iter().len(), LEFT);
    assert_eq!(store.in_namespace("n").map(|found| found.entries.len()), Some(LEFT));
    assert_eq!((by_name.values().len(), by_digit.values().len()), (LEFT, 10));
    let last = format!("p{}", BURST - 1);
    assert_eq!((by_name.get(&last).len(), by_digit.get(&'9').len()), (1, 1));
    for entry in listed.iter() {
        let key = entry.object().map(|object| object.key()).unwrap();
        assert!(store.get((&key).into()).is_some());
    }
}

#[test]
fn relist_frees_the_memory_of_objects_that_are_gone() {
    let store = applier();
    let by_uid = Index::by_metadata(&store, |metadata| metadata.uid.clone());
    store.apply((0..BURST).map(|number| Delta::Applied(numbered(number, 1))).collect());
    let rest = (0..LEFT).map(|number| numbered(number * 1000, 1)).collect();
    store.apply(vec![replaced(rest, "9")]);
    assert!(store.capacity() < BURST / 20, "{} places", store.capacity());
    assert_eq!((store.count(), by_uid.values().len()), ((LEFT, 0), LEFT));
    assert_eq!(by_uid.get("u9000").len(), 1);
}

#[test]
fn index_is_removed_with_its_last_handle() {
    let store = applier();
    store.apply(vec![Delta::Applied(pod("a", "u", "1"))]);
    let function = Arc::new(());
    for _ in 0..200 {
        let captured = Arc::clone(&function);
        let index = Index::<Pod, String>::by_metadata(&store, move |metadata| {
            assert!(Arc::strong_count(&captured) > 1);
            metadata.name.clone()
        });
        let other = index.clone();
        drop(index);
        store.apply(vec![Delta::Applied(pod("a", "u", "2"))]);
        assert_eq!((other.get("a").len(), store.index_count()), (1, 1));
    }
    assert_eq!(store.index_count(), 0);
    // The staging area of the last step lets go of the function in the next one.
    store.apply(vec![Delta::Applied(pod("a", "u", "3"))]);
    assert_eq!(Arc::strong_count(&function), 1);
}

#[test]
fn index_keeps_its_values_while_others_are_removed() {
    let store = applier();
    let indices: Vec<_> = (0..4)
        .map(|_| Index::<Pod, String>::by_metadata(&store, |metadata| metadata.name.clone()))
        .collect();
    store.apply(vec![Delta::Applied(pod("a", "u", "1"))]);
    let mut indices = indices.into_iter();
    drop((indices.next(), indices.next()));
    let kept = indices.next().unwrap();
    drop(indices);
    store.apply(vec![Delta::Applied(pod("b", "v", "2")), Delta::Deleted(pod("a", "u", "3"))]);
    assert_eq!((kept.get("a").len(), kept.get("b").len(), store.index_count()), (0, 1, 1));
}

#[test]
fn snapshot_of_an_index_is_unchanged_by_later_steps() {
    let store = applier();
    let by_namespace =
        Index::<Pod, String>::by_metadata(&store, |metadata| metadata.namespace.clone());
    store.apply((0..1000).map(|number| Delta::Applied(numbered(number, 1))).collect());
    let before = by_namespace.get("n");
    store.apply((0..1000).map(|number| Delta::Applied(numbered(number, 2))).collect());
    store.apply((0..900).map(|number| Delta::Deleted(numbered(number, 3))).collect());
    assert_eq!(
        (before.len(), before.keys().count(), by_namespace.get("n").len()),
        (1000, 1000, 100)
    );
    let versions = |found: &crate::Snapshot<Pod>, version: &str| {
        found.iter().all(|pod| pod.metadata.resource_version.as_deref() == Some(version))
    };
    assert!(versions(&before, "1") && versions(&by_namespace.get("n"), "2"));
}
