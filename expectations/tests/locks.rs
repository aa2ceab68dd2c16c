//! Checks that no lock is held while a key or uid, which are the user's types, is dropped.

use std::hash::{Hash, Hasher};

use homeostat_expectations::{
    ConsistencyStore, ControllerExpectations, GroupResource, UidTrackingExpectations,
};

/// A key or uid whose `Drop` takes the locks of all three stores.
#[derive(Clone)]
struct Probe(u8);

impl PartialEq for Probe {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Probe {}

impl Hash for Probe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

thread_local! {
    static COUNTING: ControllerExpectations<Probe, Probe> = ControllerExpectations::default();
    static TRACKING: UidTrackingExpectations<Probe, Probe> = UidTrackingExpectations::default();
    static STORE: ConsistencyStore<Probe, Probe> = ConsistencyStore::new("locks", [pods(), sets()]);
}

impl Drop for Probe {
    fn drop(&mut self) {
        // Deadlocks if the lock is held. While the thread ends, the thread locals are gone.
        COUNTING.try_with(|it| format!("{it:?}")).unwrap_or_default();
        TRACKING.try_with(|it| format!("{it:?}")).unwrap_or_default();
        STORE.try_with(|it| format!("{it:?}")).unwrap_or_default();
    }
}

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn sets() -> GroupResource {
    GroupResource::new("apps", "replicasets")
}

#[test]
fn keys_of_expectations_are_not_dropped_under_the_lock() {
    let (counting, tracking) = (COUNTING.with(Clone::clone), TRACKING.with(Clone::clone));
    let (key, owner, other) = (Probe(1), Probe(2), Probe(3));
    for uid in [&owner, &owner, &other] {
        let guard = counting.expect(&key, uid, 2, 2); // a new, a replaced, another owner's entry
        guard.start_creation().refused();
        guard.start_deletion().sent();
        drop(counting.raise(&key, uid, 1, 1));
        drop(guard);
        counting.deletion_observed(&key, uid);

        let guard = tracking.expect_deletions(&key, uid, [Probe(4), Probe(5), Probe(4), Probe(6)]);
        guard.start(&Probe(4)).refused();
        drop((guard.start(&Probe(5)), guard));
        tracking.deletion_observed(&key, uid, &Probe(5));
        drop(tracking.expect_deletions(&key, uid, [Probe(7)]).start(&Probe(7)));
        tracking.expect_creations(&key, uid, 1).start().sent();
        assert!(!tracking.satisfied(&key, uid));
    }
    counting.delete(&key);
    tracking.delete(&key);
    assert!(tracking.satisfied(&key, &owner) && counting.satisfied(&key, &owner));
}

#[test]
fn keys_of_the_consistency_store_are_not_dropped_under_the_lock() {
    let store = STORE.with(Clone::clone);
    let (key, owner, other) = (Probe(1), Probe(2), Probe(3));
    store.wrote_at(&key, &owner, &pods(), "10"); // no cache yet
    assert!(store.reached(&pods(), "10").is_empty());
    assert!(store.reached(&sets(), "10").is_empty());
    for (uid, version) in [(&owner, "9"), (&owner, "12"), (&owner, "11"), (&other, "14")] {
        // A shown, a new, a lower version, then the version of another owner.
        store.wrote_at(&key, uid, &pods(), version);
        store.wrote_at(&key, uid, &sets(), version);
        let (_ready, _unseen) = (store.ready(&key, uid), store.unseen(&key, uid));
        store.still_late(&key, uid);
    }
    assert!(store.reached(&pods(), "13").is_empty());
    assert!(store.reached(&pods(), "14").is_empty(), "no key waits: the sets are late");
    let _readiness = store.ready(&key, &other);
    assert_eq!(store.reached(&sets(), "5").len(), 1, "restored");
    store.clear(&key, Some(&other));
    store.wrote_at(&key, &other, &pods(), "20");
    assert!(store.reached(&pods(), "20").is_empty(), "no key waits");
}
