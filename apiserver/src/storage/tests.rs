use std::time::Duration;

use serde_json::json;

use super::*;
use crate::kinds::{Kind, built_in};

const MAPS: ResourceId = ResourceId(0);

fn config_map() -> Kind {
    built_in().into_iter().find(|kind| kind.kind == "ConfigMap").unwrap()
}

fn object(name: &str) -> Encoded {
    let object = json!({"metadata": {"name": name, "namespace": "default"}, "data": {"a": "1"}});
    config_map().encode(object.as_object().unwrap().clone())
}

fn free(key: &str) -> Slot<'_> {
    Slot { key, expected: None }
}

fn names(objects: &Objects) -> Vec<&str> {
    objects.keys().map(|key| &**key).collect()
}

#[tokio::test(start_paused = true)]
async fn write_that_expects_another_revision_is_stale() {
    let mut storage = Storage::new(1);
    let now = Instant::now();
    let first = storage.put(MAPS, free("default/a"), &object("a"), now).unwrap();
    assert!(storage.put(MAPS, free("default/a"), &object("a"), now).is_err());
    assert!(storage.delete(MAPS, "default/a", first.revision + 1, now).is_err());
    assert_eq!(storage.revision(), first.revision);
}

#[tokio::test(start_paused = true)]
async fn compaction_reaches_resources_without_writes() {
    let mut storage = Storage::new(1);
    let a = storage.put(MAPS, free("default/a"), &object("a"), Instant::now()).unwrap();
    storage.put(MAPS, free("default/b"), &object("b"), Instant::now()).unwrap();
    let unwritten = ResourceId(7);
    assert!(storage.objects_at(unwritten, a.revision).is_ok());
    storage.compact();
    assert!(storage.objects_at(unwritten, a.revision).is_err());
    assert!(storage.check_watchable(unwritten, a.revision).is_ok());
    storage.drop_watch_cache();
    assert!(storage.check_watchable(unwritten, a.revision).is_err());
    let backup = Storage::new(1).backup();
    storage.restore(&backup);
    assert!(storage.objects_at(unwritten, backup.revision()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn old_state_is_rebuilt_from_the_history() {
    let mut storage = Storage::new(1);
    let now = Instant::now();
    let a = storage.put(MAPS, free("default/a"), &object("a"), now).unwrap();
    let b = storage.put(MAPS, free("default/b"), &object("b"), now).unwrap();
    storage.delete(MAPS, "default/a", a.revision, now).unwrap();
    assert_eq!(names(&storage.objects_at(MAPS, b.revision).unwrap()), ["default/a", "default/b"]);
    assert_eq!(names(&storage.objects_at(MAPS, a.revision).unwrap()), ["default/a"]);
    assert_eq!(names(storage.objects(MAPS)), ["default/b"]);
}

#[tokio::test(start_paused = true)]
async fn compaction_fails_lists_of_older_states_but_no_watch() {
    let mut storage = Storage::new(1);
    let a = storage.put(MAPS, free("default/a"), &object("a"), Instant::now()).unwrap();
    storage.put(MAPS, free("default/b"), &object("b"), Instant::now()).unwrap();
    storage.compact();
    assert_eq!(
        storage.objects_at(MAPS, a.revision).unwrap_err(),
        TooOld { oldest: storage.revision() }
    );
    assert!(storage.check_watchable(MAPS, a.revision).is_ok());
    storage.drop_watch_cache();
    assert!(storage.check_watchable(MAPS, a.revision).is_err());
    // A watch that is open reads on.
    assert_eq!(storage.changes_after(MAPS, a.revision).unwrap().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn window_grows_only_while_it_fills_quickly() {
    let mut quick = Storage::new(1);
    for n in 0..300 {
        quick.put(MAPS, free(&format!("default/{n}")), &object("x"), Instant::now()).unwrap();
    }
    assert!(quick.changes_after(MAPS, 1).is_some());
    let mut slow = Storage::new(1);
    for n in 0..300 {
        tokio::time::advance(Duration::from_secs(60)).await;
        slow.put(MAPS, free(&format!("default/{n}")), &object("x"), Instant::now()).unwrap();
    }
    assert!(slow.changes_after(MAPS, 1).is_none());
    assert_eq!(slow.changes_after(MAPS, 201).unwrap().count(), 100);
}

#[test]
fn version_of_an_object_changes_without_parsing() {
    let stored = object("a").at(7);
    let later = stored.at(12_345);
    assert!(stored.bytes().starts_with(
        br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","#
    ));
    assert_eq!(later.fields()["metadata"]["resourceVersion"], "12345");
    assert_eq!(later.fields()["data"], json!({"a": "1"}));
    assert!(later.item().starts_with(b"\"metadata\""));
}

#[tokio::test(start_paused = true)]
async fn memory_holds_the_objects_the_window_and_sixteen_lists() {
    const OBJECTS: usize = 10;
    let mut storage = Storage::new(1);
    let mut versions = Vec::new();
    for second in 0..5_000 {
        tokio::time::advance(Duration::from_secs(1)).await;
        let key = format!("default/{}", second % OBJECTS);
        let expected = storage.get(MAPS, &key).map(|known| known.revision);
        let slot = Slot { key: &key, expected };
        let stored = storage.put(MAPS, slot, &object("x"), Instant::now()).unwrap();
        versions.push(Arc::downgrade(&stored));
        if second == 1_000 || second == 4_800 {
            // A client lists page by page, and does not return for some time: the first list is
            // compacted, the second is not.
            let objects = storage.objects(MAPS).clone();
            storage.pin(MAPS, storage.revision(), &objects);
        }
    }
    let alive = |versions: &[std::sync::Weak<Stored>]| {
        versions.iter().filter(|version| version.strong_count() > 0).count()
    };
    // The window also holds the object before each change.
    let window = 100 + OBJECTS;
    assert_eq!(alive(&versions), window + OBJECTS, "with one list");
    for _ in 0..40 {
        let key = "default/0";
        let expected = storage.get(MAPS, key).map(|known| known.revision);
        let stored =
            storage.put(MAPS, Slot { key, expected }, &object("x"), Instant::now()).unwrap();
        versions.push(Arc::downgrade(&stored));
        let objects = storage.objects(MAPS).clone();
        storage.pin(MAPS, storage.revision(), &objects);
    }
    assert!(alive(&versions) <= window + 16 * OBJECTS, "{}", alive(&versions));
}
