use homeostat::informer::testing::Store;
use serde_json::{Value, json};

use super::*;

/// A namespace with the `ReplicaSet`s `web` and `db`, and a handler of events about pods.
struct World {
    sets: Store<ReplicaSet>,
    handler: PodEvents,
    expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>,
}

impl World {
    fn new() -> Self {
        let (sets, expectations) = (Store::new(), UidTrackingExpectations::default());
        for (name, min_ready_seconds) in [("web", 0), ("db", 7)] {
            sets.apply(set(name, &json!({"matchLabels": {"app": name}}), min_ready_seconds));
        }
        let handler = PodEvents::new(sets.lister(), expectations.clone());
        Self { sets, handler, expectations }
    }

    /// Which keys an event asks for, each with its delay in seconds.
    fn asked(&mut self, event: &Event<Pod>) -> Vec<(String, u64)> {
        let mut asked = Vec::new();
        self.handler.handle(event, &mut |key, delay| {
            asked.push((key.to_string(), delay.map_or(0, |delay| delay.as_secs())));
        });
        asked
    }

    /// `web` expects three creations, and that `uid` goes.
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

/// A pod `a` at a version, with a label and perhaps an owner; `change` makes it special.
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
fn a_new_pod_fulfils_and_asks_for_its_owner() {
    let mut world = World::new();
    let left = world.expecting();
    assert_eq!(world.asked(&added(pod(1, "web", Some("web"), plain))), now(&["web"]));
    assert_eq!(left(), (2, 0));
}

#[test]
fn a_pod_that_is_leaving_when_first_seen_counts_as_gone() {
    let mut world = World::new();
    let left = world.expecting();
    assert_eq!(world.asked(&added(pod(1, "web", Some("web"), leaving))), now(&["web"]));
    assert_eq!(left(), (3, 0), "no creation");
    let left = world.expecting_deletion_of("pod-a");
    world.asked(&added(pod(1, "web", Some("web"), leaving)));
    assert_eq!(left(), 0);
}

#[test]
fn an_orphan_asks_for_all_that_select_it() {
    let mut world = World::new();
    let left = world.expecting();
    assert_eq!(world.asked(&added(pod(1, "web", None, plain))), now(&["web"]));
    assert_eq!(world.asked(&added(pod(1, "none", None, plain))), []);
    assert_eq!(left(), (3, 0), "nobody made it");
    world.sets.apply(set("also", &json!({"matchLabels": {"app": "web"}}), 0));
    world.sets.apply(set("empty", &json!({}), 0));
    world.sets.apply(set(
        "broken",
        &json!({"matchExpressions": [{"key": "a", "operator": "X"}]}),
        0,
    ));
    let mut asked = world.asked(&added(pod(1, "web", None, plain)));
    asked.sort();
    assert_eq!(asked, now(&["also", "web"]));
    let unlabelled = pod(1, "web", None, |value| value["metadata"]["labels"] = json!({}));
    assert_eq!(world.asked(&added(unlabelled)), []);
}

#[test]
fn an_owner_is_meant_by_kind_name_and_uid() {
    let mut world = World::new();
    let of = |key: &str, value: &str| {
        let (key, value) = (key.to_owned(), value.to_owned());
        added(pod(1, "web", Some("web"), move |pod| {
            pod["metadata"]["ownerReferences"][0][key] = json!(value);
        }))
    };
    assert_eq!(world.asked(&of("kind", "Job")), []);
    assert_eq!(world.asked(&of("name", "other")), []);
    assert_eq!(world.asked(&of("uid", "older")), []);
    assert_eq!(world.asked(&of("apiVersion", "extensions/v1beta1")), now(&["web"]));
}

#[test]
fn a_resent_pod_asks_for_nothing() {
    let mut world = World::new();
    let old = pod(1, "web", Some("web"), plain);
    let new = pod(1, "web", Some("web"), ready);
    assert_eq!(world.asked(&Event::Updated { old, new }), []);
}

#[test]
fn a_pod_that_starts_to_leave_counts_as_gone_once() {
    let mut world = World::new();
    let left = world.expecting_deletion_of("pod-a");
    let old = pod(1, "web", Some("web"), plain);
    let new = pod(2, "web", Some("web"), leaving);
    let event = Event::Updated { old, new: Arc::clone(&new) };
    assert_eq!(world.asked(&event), now(&["web"]));
    assert_eq!(left(), 0);
    assert_eq!(world.asked(&deleted(new)), now(&["web"]));
    assert_eq!(left(), 0);
}

#[test]
fn a_relabelled_pod_that_leaves_asks_for_both_its_lives() {
    let mut world = World::new();
    let old = pod(1, "web", Some("web"), plain);
    let new = pod(2, "db", Some("db"), leaving);
    assert_eq!(world.asked(&Event::Updated { old, new }), now(&["db", "web"]));
}

#[test]
fn a_pod_that_changes_hands_asks_for_both_owners() {
    let mut world = World::new();
    let (web, db) = (pod(1, "web", Some("web"), plain), pod(2, "web", Some("db"), plain));
    assert_eq!(world.asked(&Event::Updated { old: web, new: db }), now(&["web", "db"]));
}

#[test]
fn a_released_pod_asks_for_its_owner_and_for_whoever_selects_it_now() {
    let mut world = World::new();
    let (old, new) = (pod(1, "web", Some("web"), plain), pod(2, "db", None, plain));
    assert_eq!(world.asked(&Event::Updated { old, new }), now(&["web", "db"]));
    let (old, new) = (pod(2, "db", None, plain), pod(3, "web", None, plain));
    assert_eq!(world.asked(&Event::Updated { old, new }), now(&["web"]));
    let (old, new) = (pod(3, "web", None, plain), pod(4, "web", None, ready));
    assert_eq!(world.asked(&Event::Updated { old, new }), [], "labels and owner are as before");
}

#[test]
fn a_pod_that_became_ready_is_looked_at_again_when_it_may_be_available() {
    let mut world = World::new();
    let old = pod(1, "db", Some("db"), plain);
    let new = pod(2, "db", Some("db"), ready);
    let event = Event::Updated { old, new };
    assert_eq!(world.asked(&event), [("shop/db".to_owned(), 0), ("shop/db".to_owned(), 7)]);
    let (old, new) = (pod(1, "web", Some("web"), plain), pod(2, "web", Some("web"), ready));
    assert_eq!(world.asked(&Event::Updated { old, new }), now(&["web"]), "nothing to wait for");
}

#[test]
fn a_deleted_orphan_asks_for_nobody() {
    let mut world = World::new();
    assert_eq!(world.asked(&deleted(pod(1, "web", None, plain))), []);
}

#[test]
fn a_pod_that_does_not_decode_was_made_all_the_same() {
    let mut world = World::new();
    let left = world.expecting();
    let metadata = Arc::new(pod(1, "web", Some("web"), plain).metadata.clone());
    let event = Event::Opaque { last_known: None, metadata: Arc::clone(&metadata) };
    assert_eq!(world.asked(&event), now(&["web"]));
    assert_eq!(left(), (2, 0));
    world.asked(&event);
    assert_eq!(left(), (2, 0), "counted once");
    world.asked(&added(pod(2, "web", Some("web"), plain)));
    assert_eq!(left(), (2, 0), "it is the same pod");
    let left = world.expecting_deletion_of("pod-a");
    assert_eq!(world.asked(&Event::OpaqueDeleted { metadata }), now(&["web"]));
    assert_eq!(left(), 0);
}
