use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::*;

struct World {
    expectations: UidTrackingExpectations<ObjectKey<ConfigMap>, Uid>,
    observer: Observer<ConfigMap>,
    owner: Owner<ConfigMap>,
}

impl World {
    fn awaiting_creations(n: usize) -> Self {
        let world = Self::new();
        let expected = world.expectations.expect_creations(&world.owner.0, &world.owner.1, n);
        (0..n).for_each(|_| expected.start().sent());
        drop(expected);
        world
    }

    fn awaiting_deletion_of(uid: &str) -> Self {
        let world = Self::new();
        let (key, owner) = &world.owner;
        let expected = world.expectations.expect_deletions(key, owner, [Uid::from(uid)]);
        expected.start(&Uid::from(uid)).sent();
        drop(expected);
        world
    }

    fn new() -> Self {
        let expectations = UidTrackingExpectations::default();
        let observer = Observer::new(expectations.clone());
        let owner = (ObjectKey::namespaced("ns", "owner"), Uid::from("owner"));
        Self { expectations, observer, owner }
    }

    /// Returns true if all expectations are fulfilled after `event` of an object of the owner.
    fn is_satisfied_after(&mut self, event: &Event<ConfigMap>) -> bool {
        self.observer.observe(event, std::slice::from_ref(&self.owner), &[]);
        self.expectations.satisfied(&self.owner.0, &self.owner.1)
    }
}

fn object(uid: &str) -> Arc<ConfigMap> {
    Arc::new(ConfigMap { metadata: meta(uid), ..ConfigMap::default() })
}

fn meta(uid: &str) -> ObjectMeta {
    ObjectMeta { uid: Some(uid.into()), ..ObjectMeta::default() }
}

fn leaving(uid: &str) -> Arc<ConfigMap> {
    let mut metadata = meta(uid);
    metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    Arc::new(ConfigMap { metadata, ..ConfigMap::default() })
}

fn added(object: Arc<ConfigMap>) -> Event<ConfigMap> {
    Event::Added { object, initial: false }
}

fn updated(object: Arc<ConfigMap>) -> Event<ConfigMap> {
    Event::Updated { old: Arc::clone(&object), new: object }
}

fn opaque(uid: &str) -> Event<ConfigMap> {
    Event::Opaque { last_known: None, metadata: Arc::new(meta(uid)) }
}

#[test]
fn new_object_is_one_creation_and_an_update_is_none() {
    let mut world = World::awaiting_creations(2);
    assert!(!world.is_satisfied_after(&added(object("1"))));
    assert!(!world.is_satisfied_after(&updated(object("1"))));
    assert!(world.is_satisfied_after(&added(object("2"))));
}

#[test]
fn object_that_is_leaving_when_first_seen_is_a_creation() {
    let mut world = World::awaiting_creations(1);
    assert!(world.is_satisfied_after(&added(leaving("1"))));
}

#[test]
fn object_that_does_not_decode_at_first_is_counted_once() {
    let mut world = World::awaiting_creations(2);
    assert!(!world.is_satisfied_after(&opaque("1")));
    assert!(!world.is_satisfied_after(&opaque("1")));
    assert!(!world.is_satisfied_after(&added(object("1"))));
    assert!(world.is_satisfied_after(&opaque("2")));
    let gone = Event::OpaqueDeleted { metadata: Arc::new(meta("2")) };
    world.is_satisfied_after(&gone);
    assert!(world.observer.counted_while_opaque.is_empty());
}

#[test]
fn deletion_is_observed_when_the_object_is_deleted_or_leaving() {
    for event in [
        Event::Deleted { last_known: object("1"), certain: true },
        Event::OpaqueDeleted { metadata: Arc::new(meta("1")) },
        updated(leaving("1")),
        added(leaving("1")),
    ] {
        let mut world = World::awaiting_deletion_of("1");
        assert!(!world.is_satisfied_after(&updated(object("1"))));
        let another = Event::Deleted { last_known: object("2"), certain: true };
        assert!(!world.is_satisfied_after(&another), "another object");
        assert!(world.is_satisfied_after(&event), "{event:?}");
    }
}

#[test]
fn deletion_is_observed_for_the_previous_owner_too() {
    let mut world = World::awaiting_deletion_of("1");
    let current = (ObjectKey::namespaced("ns", "other"), Uid::from("other"));
    world.observer.observe(
        &updated(leaving("1")),
        std::slice::from_ref(&current),
        std::slice::from_ref(&world.owner),
    );
    assert!(world.expectations.satisfied(&world.owner.0, &world.owner.1));
}
