//! Keys and uids are the user's: whatever their `Drop` does, it is not done under a lock.

use std::hash::{Hash, Hasher};

use homeostat_expectations::{
    ConsistencyStore, ControllerExpectations, GroupResource, UidTrackingExpectations,
};

/// A key, or a uid, that asks all of them when it goes.
#[derive(Clone)]
struct Nosy(u8);

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Nosy {}

impl Hash for Nosy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

thread_local! {
    static COUNTING: ControllerExpectations<Nosy, Nosy> = ControllerExpectations::default();
    static TRACKING: UidTrackingExpectations<Nosy, Nosy> = UidTrackingExpectations::default();
    static STORE: ConsistencyStore<Nosy, Nosy> = ConsistencyStore::new("nosy", [pods(), sets()]);
}

impl Drop for Nosy {
    fn drop(&mut self) {
        // Would never return if the lock were held. While the thread ends, there is nobody to ask.
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
    let (key, owner, other) = (Nosy(1), Nosy(2), Nosy(3));
    for uid in [&owner, &owner, &other] {
        let guard = counting.expect(&key, uid, 2, 2); // new, replaced, another owner's
        guard.start_creation().refused();
        guard.start_deletion().sent();
        drop(counting.raise(&key, uid, 1, 1));
        drop(guard);
        counting.deletion_observed(&key, uid);

        let guard = tracking.expect_deletions(&key, uid, [Nosy(4), Nosy(5), Nosy(4), Nosy(6)]);
        guard.start(&Nosy(4)).refused();
        drop((guard.start(&Nosy(5)), guard));
        tracking.deletion_observed(&key, uid, &Nosy(5));
        drop(tracking.expect_deletions(&key, uid, [Nosy(7)]).start(&Nosy(7)));
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
    let (key, owner, other) = (Nosy(1), Nosy(2), Nosy(3));
    store.wrote_at(&key, &owner, &pods(), "10"); // no cache yet
    assert!(store.reached(&pods(), "10").is_empty());
    assert!(store.reached(&sets(), "10").is_empty());
    for (uid, version) in [(&owner, "9"), (&owner, "12"), (&owner, "11"), (&other, "14")] {
        store.wrote_at(&key, uid, &pods(), version); // shown, new, lower, another owner's
        store.wrote_at(&key, uid, &sets(), version);
        let (_ready, _unseen) = (store.ready(&key, uid), store.unseen(&key, uid));
        store.still_late(&key, uid);
    }
    assert!(store.reached(&pods(), "13").is_empty());
    assert!(store.reached(&pods(), "14").is_empty(), "not asked for yet: the sets are late");
    let _readiness = store.ready(&key, &other);
    assert_eq!(store.reached(&sets(), "5").len(), 1, "restored");
    store.clear(&key, Some(&other));
    store.wrote_at(&key, &other, &pods(), "20");
    assert!(store.reached(&pods(), "20").is_empty(), "nobody waits");
}
