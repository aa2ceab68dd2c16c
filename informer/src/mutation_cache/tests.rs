//! The rules of the overlay, one by one, over a store that each test fills by hand.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::advance;

use super::*;
use crate::index::Index;
use crate::testing;

fn map(name: &str, uid: &str, version: &str, owner: &str) -> ConfigMap {
    let metadata = serde_json::json!({
        "name": name, "namespace": "n", "uid": uid, "resourceVersion": version,
        "labels": {"owner": owner},
    });
    ConfigMap { metadata: serde_json::from_value(metadata).unwrap(), ..ConfigMap::default() }
}

fn owner(map: &ConfigMap) -> Option<String> {
    map.metadata.labels.as_ref()?.get("owner").cloned()
}

struct Fixture {
    store: testing::Store<ConfigMap>,
    cache: MutationCache<ConfigMap>,
    by_owner: Index<ConfigMap, String>,
}

impl Fixture {
    fn new() -> Self {
        let store = testing::Store::<ConfigMap>::new();
        let cache = MutationCache::builder(store.lister()).build();
        let by_owner = store.index(owner);
        Self { store, cache, by_owner }
    }

    /// Returns `uid version` of the object that a read returns.
    fn get(&self, name: &str) -> String {
        self.cache.get(("n", name)).map(|map| words(&map)).unwrap_or_default()
    }

    fn by_owner(&self, owner: &str) -> Vec<String> {
        self.cache.by_index(&self.by_owner, owner).iter().map(|map| words(map)).collect()
    }
}

fn words(map: &ConfigMap) -> String {
    let metadata = map.metadata.clone();
    [metadata.uid, metadata.resource_version].map(Option::unwrap_or_default).join(" ")
}

#[tokio::test]
async fn newer_state_of_each_object_is_returned() {
    let test = Fixture::new();
    test.store.apply(map("a", "u", "5", "eve"));
    test.cache.written(map("a", "u", "9", "ann"));
    test.cache.written(map("a", "u", "7", "bob"));
    assert_eq!(test.get("a"), "u 9", "versions compare as numbers, also if reported late");
    test.store.apply(map("a", "u", "8", "eve"));
    assert_eq!(test.get("a"), "u 9");
    test.store.apply(map("a", "u", "10", "eve"));
    assert_eq!((test.get("a").as_str(), test.cache.remembered()), ("u 10", 0));
}

#[tokio::test]
async fn write_is_forgotten_when_informer_passes_its_version() {
    let test = Fixture::new();
    test.cache.written(map("a", "u", "5", "eve"));
    assert_eq!(test.get("a"), "u 5");
    test.store.bookmark("6");
    assert_eq!(test.get("a"), "", "created and deleted; the store has passed both");
    test.cache.written(map("a", "u", "6", "eve"));
    assert_eq!((test.get("a").as_str(), test.cache.remembered()), ("", 0), "reported too late");
    assert_eq!(test.cache.forgotten(), 0);
}

#[tokio::test]
async fn index_lookup_places_written_object_by_its_new_value() {
    let test = Fixture::new();
    test.store.apply(map("a", "u", "1", "eve"));
    test.store.apply(map("b", "v", "2", "eve"));
    test.store.apply(map("c", "w", "3", "ann"));
    test.cache.written(map("a", "u", "5", "eve"));
    test.cache.written(map("b", "v", "6", "ann"));
    test.cache.written(map("d", "x", "7", "ann"));
    assert_eq!(test.by_owner("eve"), ["u 5"]);
    assert_eq!(test.by_owner("ann"), ["w 3", "v 6", "x 7"]);
    test.cache.deleted(&map("c", "w", "3", "ann"));
    assert_eq!(test.by_owner("ann"), ["v 6", "x 7"]);
    test.store.apply(map("b", "v", "8", "bob"));
    assert_eq!((test.by_owner("ann"), test.by_owner("bob")), (vec![], vec!["v 8".to_owned()]));
}

#[tokio::test]
async fn own_deletion_hides_only_the_object_with_its_uid() {
    let test = Fixture::new();
    test.store.apply(map("a", "u", "5", "eve"));
    test.cache.deleted(&map("a", "u", "5", "eve"));
    assert_eq!(test.get("a"), "");
    test.store.apply(map("a", "u", "7", "eve"));
    assert_eq!(test.get("a"), "", "another client changed it before the deletion");
    test.cache.written(map("a", "u", "8", "eve"));
    assert_eq!(test.get("a"), "", "reported late: written before the deletion");
    test.store.apply(map("a", "w", "10", "eve"));
    assert_eq!(test.get("a"), "w 10", "another uid");
}

#[tokio::test]
async fn own_deletion_is_forgotten_when_informer_observes_it() {
    let test = Fixture::new();
    test.store.apply(map("a", "u", "5", "eve"));
    test.cache.deleted(&map("a", "u", "5", "eve"));
    test.store.delete(map("a", "u", "6", "eve"));
    assert_eq!((test.get("a").as_str(), test.cache.remembered()), ("", 0));
    test.cache.deleted(&map("a", "u", "5", "eve"));
    assert_eq!(test.cache.remembered(), 0, "reported late");
    // Created and deleted; the informer has received neither event.
    test.cache.written(map("b", "v", "8", "eve"));
    test.cache.deleted(&map("b", "v", "8", "eve"));
    test.store.apply(map("b", "v", "8", "eve"));
    assert_eq!((test.get("b").as_str(), test.cache.remembered()), ("", 1));
    let last_known = Arc::new(map("b", "v", "9", "eve"));
    test.store.delete(Arc::clone(&last_known));
    test.cache.observe(&Event::Deleted { last_known, certain: true });
    assert_eq!((test.cache.remembered(), test.cache.forgotten()), (0, 0));
}

#[tokio::test]
async fn deletion_of_earlier_uid_keeps_the_written_object() {
    let test = Fixture::new();
    test.cache.written(map("a", "w", "9", "eve"));
    test.cache.deleted(&map("a", "u", "5", "eve"));
    assert_eq!(test.get("a"), "w 9");
    let last_known = Arc::new(map("a", "u", "6", "eve"));
    test.cache.observe(&Event::Deleted { last_known, certain: true });
    assert_eq!(test.get("a"), "w 9");
}

#[tokio::test]
async fn observed_event_replaces_older_write() {
    let test = Fixture::new();
    let event =
        |version| Event::Added { object: Arc::new(map("a", "u", version, "eve")), initial: false };
    test.cache.written(map("a", "u", "5", "eve"));
    test.cache.observe(&event("4"));
    assert_eq!(test.cache.remembered(), 1);
    test.cache.observe(&event("5"));
    assert_eq!(test.cache.remembered(), 0);
}

/// With a coalescing queue, events arrive before the store reaches their version.
#[tokio::test]
async fn observed_deletion_rejects_write_reported_later() {
    let test = Fixture::new();
    test.store.bookmark("4");
    let last_known = Arc::new(map("a", "u", "7", "eve"));
    test.cache.observe(&Event::Deleted { last_known, certain: true });
    test.cache.written(map("a", "u", "6", "eve"));
    assert_eq!((test.get("a").as_str(), test.cache.remembered()), ("", 1));
    test.cache.written(map("a", "w", "8", "eve"));
    assert_eq!(test.get("a"), "w 8");
    test.store.bookmark("9");
    assert_eq!((test.get("a").as_str(), test.cache.remembered()), ("", 0));
    let last_known = Arc::new(map("b", "v", "8", "eve"));
    test.cache.observe(&Event::Deleted { last_known, certain: true });
    assert_eq!(test.cache.remembered(), 0, "the store has passed this version");
}

#[tokio::test(start_paused = true)]
async fn write_expires_after_ttl() {
    let test = Fixture::new();
    test.cache.written(map("a", "u", "5", "eve"));
    advance(Duration::from_secs(299)).await;
    test.cache.deleted(&map("b", "v", "6", "eve"));
    assert_eq!(test.get("a"), "u 5");
    advance(Duration::from_secs(1)).await;
    assert_eq!(test.get("a"), "");
    assert_eq!((test.cache.remembered(), test.cache.forgotten()), (1, 1));
    let ever = MutationCache::builder(test.store.lister()).ttl(Duration::MAX).build();
    ever.written(map("a", "u", "5", "eve"));
    advance(Duration::from_secs(1 << 30)).await;
    assert!(ever.get(("n", "a")).is_some());
}

#[tokio::test]
async fn oldest_write_is_evicted_at_capacity() {
    let test = Fixture::new();
    let cache = MutationCache::builder(test.store.lister()).capacity(2).build();
    cache.written(map("a", "u", "5", "eve"));
    cache.written(map("b", "v", "6", "eve"));
    assert!(cache.get(("n", "a")).is_some(), "a read does not renew it");
    cache.written(map("b", "v", "7", "eve"));
    assert_eq!((cache.remembered(), cache.forgotten()), (2, 0), "the same object");
    cache.deleted(&map("c", "w", "8", "eve"));
    assert!(cache.get(("n", "a")).is_none());
    assert_eq!((cache.remembered(), cache.forgotten()), (2, 1));
    let none = MutationCache::builder(test.store.lister()).capacity(0).build();
    none.written(map("a", "u", "5", "eve"));
    assert!(none.get(("n", "a")).is_none());
}

#[tokio::test]
async fn store_version_going_back_drops_all_writes() {
    let test = Fixture::new();
    test.store.replace([], "50");
    test.cache.written(map("a", "u", "90", "eve"));
    assert_eq!(test.get("a"), "u 90");
    test.store.replace([], "7");
    assert_eq!((test.get("a").as_str(), test.cache.remembered()), ("", 0));
    test.cache.written(map("a", "w", "9", "eve"));
    assert_eq!(test.get("a"), "w 9");
}

#[tokio::test]
async fn non_numeric_versions_do_not_panic_and_informer_state_wins() {
    let test = Fixture::new();
    test.cache.written(map("a", "u", "five", "eve"));
    assert_eq!(test.get("a"), "u five");
    test.store.apply(map("a", "u", "next", "eve"));
    assert_eq!(test.get("a"), "u next");
    for version in ["", "0"] {
        test.cache.written(map("b", "v", version, "eve"));
        test.cache.written(map("", "v", "7", "eve"));
    }
    assert_eq!(test.cache.remembered(), 1, "a response has a version and a name");
}

#[tokio::test]
async fn newer_opaque_state_hides_older_write() {
    let test = Fixture::new();
    test.store.apply(map("a", "u", "5", "eve"));
    test.cache.written(map("a", "u", "7", "eve"));
    test.store.apply_opaque(map("a", "u", "6", "eve").metadata);
    assert_eq!((test.get("a").as_str(), test.by_owner("eve").len()), ("u 7", 1));
    test.store.apply_opaque(map("a", "u", "8", "eve").metadata);
    assert_eq!((test.get("a").as_str(), test.by_owner("eve").len()), ("", 0));
}

#[tokio::test]
async fn panicking_index_function_hides_written_object_and_is_counted() {
    let test = Fixture::new();
    let bomb = test.store.index(|map: &ConfigMap| {
        let owner = owner(map);
        assert_ne!(owner.as_deref(), Some("bomb"));
        owner
    });
    test.store.apply(map("a", "u", "5", "eve"));
    test.cache.written(map("a", "u", "6", "bomb"));
    test.cache.written(map("b", "v", "7", "eve"));
    let found = test.cache.by_index(&bomb, "eve");
    assert_eq!(found.iter().map(|map| words(map)).collect::<Vec<_>>(), ["v 7"]);
    assert_eq!(test.cache.shared.store.index_panics(), 1);
}

#[tokio::test]
#[should_panic(expected = "belongs to another informer")]
async fn index_of_another_informer_panics() {
    let (one, other) = (Fixture::new(), Fixture::new());
    one.cache.by_index(&other.by_owner, "eve");
}

/// An object type whose `metadata` and `Drop` use the cache.
struct Reentrant {
    metadata: crate::object::ObjectMeta,
    cache: Arc<Mutex<Option<MutationCache<Self>>>>,
}

impl Object for Reentrant {
    type Kind = ConfigMap;

    fn metadata(&self) -> &crate::object::ObjectMeta {
        self.assert_unlocked();
        &self.metadata
    }
}

impl Reentrant {
    fn assert_unlocked(&self) {
        let cache = self.cache.lock().clone();
        if let Some(cache) = cache {
            assert!(!cache.shared.overlay.is_locked());
        }
    }
}

impl Drop for Reentrant {
    fn drop(&mut self) {
        self.assert_unlocked();
    }
}

#[tokio::test]
async fn user_code_never_runs_under_the_lock() {
    let handle = Arc::new(Mutex::new(None));
    let object = |name: &str, version: &str| Reentrant {
        metadata: map(name, name, version, "eve").metadata,
        cache: Arc::clone(&handle),
    };
    let store = testing::Store::<Reentrant>::new();
    let cache = MutationCache::builder(store.lister()).capacity(2).build();
    *handle.lock() = Some(cache.clone());
    let watched = cache.clone();
    let index = store.index(move |object: &Reentrant| {
        assert!(!watched.shared.overlay.is_locked());
        object.metadata.name.clone()
    });
    store.apply(object("a", "5"));
    for (name, version) in [("a", "6"), ("a", "5"), ("b", "7"), ("c", "8"), ("c", "9")] {
        cache.written(object(name, version));
        assert!(cache.get(("n", "b")).is_none() || version > "6");
        assert!(cache.by_index(&index, name).len() <= 1);
    }
    cache.deleted(&object("c", "9"));
    cache.observe(&Event::Updated { old: object("b", "1").into(), new: object("b", "9").into() });
    store.bookmark("20");
    assert!(cache.get(("n", "c")).is_none());
    *handle.lock() = None;
}
