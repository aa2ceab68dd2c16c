//! What an event about an object means for its owner. Pure: no queue, no cache, no clock.

use std::collections::HashSet;

use homeostat_expectations::UidTrackingExpectations;
use homeostat_informer::{Event, Lister, Object, ObjectKey, ObjectMeta, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_client::Resource;

use crate::owner::controller_of;

/// Finds the owner of an object in the owners' cache. The reference's kind and group must be `K`'s (its version may be
/// another), and the UID that of the cached owner: a new owner under an old name does not inherit.
pub(crate) fn owner_in<K>(
    owners: &Lister<K>,
    object: &ObjectMeta,
) -> Option<(ObjectKey<K::Kind>, Uid)>
where
    K: Object,
    K::Kind: Resource<DynamicType = ()>,
{
    let reference = controller_of(object)?;
    if !names_kind::<K::Kind>(reference) {
        return None;
    }
    // In the object's namespace, or in none for an owner that is cluster-scoped.
    let in_namespace = object
        .namespace
        .as_deref()
        .map(|namespace| ObjectKey::namespaced(namespace, &reference.name));
    let cluster_wide = ObjectKey::cluster(&reference.name);
    [in_namespace, Some(cluster_wide)]
        .into_iter()
        .flatten()
        .find(|key| uid_of(owners, key).as_deref() == Some(reference.uid.as_str()))
        .map(|key| (key, Uid::from(reference.uid.as_str())))
}

fn names_kind<Kind: Resource<DynamicType = ()>>(reference: &OwnerReference) -> bool {
    let group = match reference.api_version.split_once('/') {
        Some((group, _)) => group,
        None => "",
    };
    reference.kind == Kind::kind(&()) && group == Kind::group(&())
}

/// Also of an owner that no longer fits its type: it still owns.
fn uid_of<K: Object>(owners: &Lister<K>, key: &ObjectKey<K::Kind>) -> Option<String> {
    match owners.get(key) {
        Some(owner) => owner.metadata().uid.clone(),
        None => owners.opaque(key)?.uid.clone(),
    }
}

/// Keeps a controller's expectations in step with what the cache has come to show.
#[derive(Debug)]
pub(crate) struct Observer<Key, U> {
    expectations: UidTrackingExpectations<Key, U>,
    /// Objects whose creation was seen while they did not fit their type: when one of them is told as added later, it
    /// has been counted. Never one that is known to be gone.
    counted_while_opaque: HashSet<Uid>,
}

// === impl Observer ===

impl<Kind: 'static> Observer<ObjectKey<Kind>, Uid> {
    pub(crate) fn new(expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>) -> Self {
        Self { expectations, counted_while_opaque: HashSet::new() }
    }

    /// Lowers what `event` fulfils. It belongs *before* the owner is enqueued: a worker that looks first would find
    /// the expectation unfulfilled, and nobody would call it again.
    pub(crate) fn observe<P: Object>(&mut self, event: &Event<P>, owner: &(ObjectKey<Kind>, Uid)) {
        let metadata = event.metadata();
        let uid = Uid::from(metadata.uid.as_deref().unwrap_or_default());
        let (key, owner) = owner;
        if self.is_new(event, &uid) {
            self.expectations.creation_observed(key, owner);
        }
        // An object that is going counts as gone: its controller does not delete it again.
        if is_gone(event) || metadata.deletion_timestamp.is_some() {
            self.expectations.deletion_observed(key, owner, &uid);
        }
    }

    /// Whether this is the first that is told of the object.
    fn is_new<P: Object>(&mut self, event: &Event<P>, uid: &Uid) -> bool {
        match event {
            Event::Added { .. } => !self.counted_while_opaque.remove(uid),
            Event::Opaque { last_known: None, .. } => self.counted_while_opaque.insert(uid.clone()),
            Event::Deleted { .. } | Event::OpaqueDeleted { .. } => {
                self.counted_while_opaque.remove(uid);
                false
            }
            _ => false,
        }
    }
}

fn is_gone<P: Object>(event: &Event<P>) -> bool {
    matches!(event, Event::Deleted { .. } | Event::OpaqueDeleted { .. })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    type Owner = (ObjectKey<ConfigMap>, Uid);

    struct World {
        expectations: UidTrackingExpectations<ObjectKey<ConfigMap>, Uid>,
        observer: Observer<ObjectKey<ConfigMap>, Uid>,
        owner: Owner,
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

        /// Whether everything that was expected has been seen after `event`.
        fn satisfied_after(&mut self, event: &Event<ConfigMap>) -> bool {
            self.observer.observe(event, &self.owner);
            self.expectations.satisfied(&self.owner.0, &self.owner.1)
        }
    }

    fn object(uid: &str) -> Arc<ConfigMap> {
        Arc::new(ConfigMap { metadata: meta(uid), ..ConfigMap::default() })
    }

    fn meta(uid: &str) -> ObjectMeta {
        ObjectMeta { uid: Some(uid.into()), ..ObjectMeta::default() }
    }

    fn going(uid: &str) -> Arc<ConfigMap> {
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
    fn each_new_object_is_one_creation_and_an_update_is_none() {
        let mut world = World::awaiting_creations(2);
        assert!(!world.satisfied_after(&added(object("1"))));
        assert!(!world.satisfied_after(&updated(object("1"))));
        assert!(world.satisfied_after(&added(object("2"))));
    }

    #[test]
    fn an_object_that_is_going_when_it_is_first_seen_was_created_all_the_same() {
        let mut world = World::awaiting_creations(1);
        assert!(world.satisfied_after(&added(going("1"))));
    }

    #[test]
    fn an_object_that_did_not_fit_at_first_is_counted_once() {
        let mut world = World::awaiting_creations(2);
        assert!(!world.satisfied_after(&opaque("1")));
        assert!(!world.satisfied_after(&opaque("1")));
        assert!(!world.satisfied_after(&added(object("1"))));
        assert!(world.satisfied_after(&opaque("2")));
        let gone = Event::OpaqueDeleted { metadata: Arc::new(meta("2")) };
        world.satisfied_after(&gone);
        assert!(world.observer.counted_while_opaque.is_empty());
    }

    #[test]
    fn a_deletion_is_seen_when_the_object_is_gone_or_going() {
        for event in [
            Event::Deleted { last_known: object("1"), certain: true },
            Event::OpaqueDeleted { metadata: Arc::new(meta("1")) },
            updated(going("1")),
            added(going("1")),
        ] {
            let mut world = World::awaiting_deletion_of("1");
            assert!(!world.satisfied_after(&updated(object("1"))));
            let another = Event::Deleted { last_known: object("2"), certain: true };
            assert!(!world.satisfied_after(&another), "another object");
            assert!(world.satisfied_after(&event), "{event:?}");
        }
    }
}
