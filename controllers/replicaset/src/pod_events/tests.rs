use std::sync::Arc;

use homeostat::expectations::UidTrackingExpectations;
use homeostat::informer::testing::Store;
use homeostat::testing::OwnedEventsTest;
use homeostat::{ObjectKey, Uid};
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use serde_json::{Value, json};

use super::*;
use crate::workload::ReplicaSet;

/// A namespace with the `ReplicaSet`s `web` and `db`, and the handler of pod events.
struct World {
    sets: Store<ReplicaSet>,
    handler: OwnedEventsTest<ReplicaSet, PodEvents<Kind>>,
    expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>,
}

impl World {
    fn new() -> Self {
        let (sets, expectations) = (Store::new(), UidTrackingExpectations::default());
        for (name, min_ready_seconds) in [("web", 0), ("db", 7)] {
            sets.apply(set(name, &json!({"matchLabels": {"app": name}}), min_ready_seconds));
        }
        let events = PodEvents::new(sets.lister());
        let handler = OwnedEventsTest::new(sets.lister(), Some(&expectations), events);
        Self { sets, handler, expectations }
    }

    /// Returns the keys that an event enqueues, each with its delay in seconds.
    fn enqueued(&mut self, event: &Event<Pod>) -> Vec<(String, u64)> {
        let enqueued = self.handler.deliver(event.clone()).into_iter();
        enqueued.map(|(key, delay)| (key.to_string(), delay.as_secs())).collect()
    }

    /// Lets `web` expect three creations. Returns a function for the outstanding counts.
    fn expecting(&self) -> impl Fn() -> (i64, i64) + use<> {
        let (key, owner) = (ObjectKey::namespaced("shop", "web"), Uid::from("uid-web"));
        let expectations = self.expectations.clone();
        let creations = expectations.expect_creations(&key, &owner, 3);
        (0..3).for_each(|_| creations.start().sent());
        move || {
            let outstanding = expectations.outstanding(&key, &owner).unwrap();
            (outstanding.creations, outstanding.deletions)
        }
    }

    fn expecting_deletion_of(&self, uid: &str) -> impl Fn() -> i64 + use<> {
        let (key, owner) = (ObjectKey::namespaced("shop", "web"), Uid::from("uid-web"));
        let expectations = self.expectations.clone();
        let uid = Uid::from(uid);
        let deletions = expectations.expect_deletions(&key, &owner, [uid.clone()]);
        deletions.start(&uid).sent();
        move || expectations.outstanding(&key, &owner).unwrap().deletions
    }
}

fn set(name: &str, selector: &Value, min_ready_seconds: i32) -> ReplicaSet {
    let value = json!({
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}")},
        "spec": {"selector": selector, "minReadySeconds": min_ready_seconds},
    });
    serde_json::from_str(&value.to_string()).unwrap()
}

/// Returns the pod `a` at a version, with a label, maybe an owner, and a `change`.
fn pod(version: u32, app: &str, owner: Option<&str>, change: impl FnOnce(&mut Value)) -> Arc<Pod> {
    let mut value = json!({"metadata": {"namespace": "shop", "name": "a", "uid": "pod-a",
                           "resourceVersion": version.to_string(), "labels": {"app": app}}});
    if let Some(owner) = owner {
        value["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner,
             "uid": format!("uid-{owner}"), "controller": true}]);
    }
    change(&mut value);
    Arc::new(serde_json::from_str(&value.to_string()).unwrap())
}

fn plain(_: &mut Value) {}

fn leaving(value: &mut Value) {
    value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
}

fn ready(value: &mut Value) {
    value["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
}

fn added(object: Arc<Pod>) -> Event<Pod> {
    Event::Added { object, initial: false }
}

fn deleted(last_known: Arc<Pod>) -> Event<Pod> {
    Event::Deleted { last_known, certain: true }
}

fn now(names: &[&str]) -> Vec<(String, u64)> {
    names.iter().map(|name| (format!("shop/{name}"), 0)).collect()
}

#[test]
fn new_pod_lowers_creations_and_enqueues_its_owner() {
    let mut world = World::new();
    let left = world.expecting();
    assert_eq!(world.enqueued(&added(pod(1, "web", Some("web"), plain))), now(&["web"]));
    assert_eq!(left(), (2, 0));
}

#[test]
fn pod_that_is_leaving_when_first_seen_counts_as_deleted() {
    let mut world = World::new();
    let left = world.expecting();
    assert_eq!(world.enqueued(&added(pod(1, "web", Some("web"), leaving))), now(&["web"]));
    assert_eq!(left(), (3, 0), "no creation");
    let left = world.expecting_deletion_of("pod-a");
    world.enqueued(&added(pod(1, "web", Some("web"), leaving)));
    assert_eq!(left(), 0);
}

#[test]
fn orphan_enqueues_all_sets_that_select_it() {
    let mut world = World::new();
    let left = world.expecting();
    assert_eq!(world.enqueued(&added(pod(1, "web", None, plain))), now(&["web"]));
    assert_eq!(world.enqueued(&added(pod(1, "none", None, plain))), []);
    assert_eq!(left(), (3, 0), "the orphan is no awaited creation");
    world.sets.apply(set("also", &json!({"matchLabels": {"app": "web"}}), 0));
    world.sets.apply(set("empty", &json!({}), 0));
    world.sets.apply(set(
        "broken",
        &json!({"matchExpressions": [{"key": "a", "operator": "X"}]}),
        0,
    ));
    let mut enqueued = world.enqueued(&added(pod(1, "web", None, plain)));
    enqueued.sort();
    assert_eq!(enqueued, now(&["also", "web"]));
    let unlabelled = pod(1, "web", None, |value| value["metadata"]["labels"] = json!({}));
    assert_eq!(world.enqueued(&added(unlabelled)), []);
}

/// Upstream's `TestPodControllerLookup`.
#[test]
fn orphan_of_another_namespace_enqueues_nothing() {
    let mut world = World::new();
    let elsewhere = pod(1, "web", None, |value| value["metadata"]["namespace"] = json!("else"));
    assert_eq!(world.enqueued(&added(elsewhere)), []);
}

/// Upstream's `TestOverlappingRSs`.
#[test]
fn pod_enqueues_its_owner_alone_of_nine_that_select_it() {
    let mut world = World::new();
    for n in 1..10 {
        world.sets.apply(set(&format!("web-{n}"), &json!({"matchLabels": {"app": "web"}}), 0));
    }
    assert_eq!(world.enqueued(&added(pod(1, "web", Some("web-4"), plain))), now(&["web-4"]));
}

#[test]
fn owner_is_found_by_kind_name_and_uid() {
    let mut world = World::new();
    let of = |key: &str, value: &str| {
        let (key, value) = (key.to_owned(), value.to_owned());
        added(pod(1, "web", Some("web"), move |pod| {
            pod["metadata"]["ownerReferences"][0][key] = json!(value);
        }))
    };
    assert_eq!(world.enqueued(&of("kind", "Job")), []);
    assert_eq!(world.enqueued(&of("name", "other")), []);
    assert_eq!(world.enqueued(&of("uid", "older")), []);
    assert_eq!(world.enqueued(&of("apiVersion", "extensions/v1beta1")), now(&["web"]));
}

#[test]
fn resync_enqueues_nothing() {
    let mut world = World::new();
    let old = pod(1, "web", Some("web"), plain);
    let new = pod(1, "web", Some("web"), ready);
    assert_eq!(world.enqueued(&Event::Updated { old, new }), []);
}

#[test]
fn pod_that_starts_to_leave_counts_as_deleted_once() {
    let mut world = World::new();
    let left = world.expecting_deletion_of("pod-a");
    let old = pod(1, "web", Some("web"), plain);
    let new = pod(2, "web", Some("web"), leaving);
    let event = Event::Updated { old, new: Arc::clone(&new) };
    assert_eq!(world.enqueued(&event), now(&["web"]));
    assert_eq!(left(), 0);
    assert_eq!(world.enqueued(&deleted(new)), now(&["web"]));
    assert_eq!(left(), 0);
}

/// Upstream's `TestDeletionTimestamp`, its third and fourth part.
#[test]
fn later_events_of_a_leaving_pod_lower_nothing() {
    let mut world = World::new();
    let left = world.expecting_deletion_of("another");
    let old = pod(1, "web", Some("web"), leaving);
    let new = pod(2, "web", Some("web"), leaving);
    world.enqueued(&Event::Updated { old, new: Arc::clone(&new) });
    world.enqueued(&deleted(new));
    assert_eq!(left(), 1);
    let another = pod(3, "web", Some("web"), |value| value["metadata"]["uid"] = json!("another"));
    assert_eq!(world.enqueued(&deleted(another)), now(&["web"]));
    assert_eq!(left(), 0);
}

/// Upstream's `TestDeleteFinalStateUnknown`.
#[test]
fn missed_deletion_counts_as_one() {
    let mut world = World::new();
    let left = world.expecting_deletion_of("pod-a");
    let last_known = pod(1, "web", Some("web"), plain);
    let event = Event::Deleted { last_known, certain: false };
    assert_eq!(world.enqueued(&event), now(&["web"]));
    assert_eq!(left(), 0);
}

/// Upstream's `TestUpdatePods`, its first and last case.
#[test]
fn relabelled_pod_enqueues_its_owner_alone() {
    let mut world = World::new();
    for owner in ["web", "db"] {
        let old = pod(1, "web", Some(owner), plain);
        let new = pod(2, "db", Some(owner), plain);
        assert_eq!(world.enqueued(&Event::Updated { old, new }), now(&[owner]));
    }
}

#[test]
fn relabelled_pod_that_leaves_enqueues_both_owners() {
    let mut world = World::new();
    let old = pod(1, "web", Some("web"), plain);
    let new = pod(2, "db", Some("db"), leaving);
    assert_eq!(world.enqueued(&Event::Updated { old, new }), now(&["web", "db"]));
}

#[test]
fn pod_that_changes_its_owner_enqueues_both() {
    let mut world = World::new();
    let (web, db) = (pod(1, "web", Some("web"), plain), pod(2, "web", Some("db"), plain));
    assert_eq!(world.enqueued(&Event::Updated { old: web, new: db }), now(&["web", "db"]));
}

#[test]
fn released_pod_enqueues_its_owner_and_the_sets_that_select_it() {
    let mut world = World::new();
    let (old, new) = (pod(1, "web", Some("web"), plain), pod(2, "db", None, plain));
    assert_eq!(world.enqueued(&Event::Updated { old, new }), now(&["web", "db"]));
    let (old, new) = (pod(2, "db", None, plain), pod(3, "web", None, plain));
    assert_eq!(world.enqueued(&Event::Updated { old, new }), now(&["web"]));
    let (old, new) = (pod(3, "web", None, plain), pod(4, "web", None, ready));
    assert_eq!(world.enqueued(&Event::Updated { old, new }), [], "labels and owner are as before");
}

#[tokio::test(start_paused = true)]
async fn pod_that_becomes_ready_enqueues_its_owner_when_it_may_be_available() {
    let mut world = World::new();
    let old = pod(1, "db", Some("db"), plain);
    let new = pod(2, "db", Some("db"), ready);
    let event = Event::Updated { old, new };
    assert_eq!(world.enqueued(&event), [("shop/db".to_owned(), 0), ("shop/db".to_owned(), 7)]);
    let (old, new) = (pod(1, "web", Some("web"), plain), pod(2, "web", Some("web"), ready));
    assert_eq!(world.enqueued(&Event::Updated { old, new }), now(&["web"]), "nothing to wait for");
}

#[test]
fn deleted_orphan_enqueues_nothing() {
    let mut world = World::new();
    assert_eq!(world.enqueued(&deleted(pod(1, "web", None, plain))), []);
}

#[test]
fn pod_that_does_not_decode_lowers_creations_once() {
    let mut world = World::new();
    let left = world.expecting();
    let metadata = Arc::new(pod(1, "web", Some("web"), plain).metadata.clone());
    let event = Event::Opaque { last_known: None, metadata: Arc::clone(&metadata) };
    assert_eq!(world.enqueued(&event), now(&["web"]));
    assert_eq!(left(), (2, 0));
    world.enqueued(&event);
    assert_eq!(left(), (2, 0), "counted once");
    world.enqueued(&added(pod(2, "web", Some("web"), plain)));
    assert_eq!(left(), (2, 0), "it is the same pod");
    let left = world.expecting_deletion_of("pod-a");
    assert_eq!(world.enqueued(&Event::OpaqueDeleted { metadata }), now(&["web"]));
    assert_eq!(left(), 0);
}
