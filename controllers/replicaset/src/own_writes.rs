//! Waits for the cache to show our last writes before looking again. Pure.
//!
//! A pass over a cache that is older than what it wrote itself counts too few pods, reports that, and adopts what it has
//! adopted. Every one of these writes is told to us anyway, and wakes the owner: waiting costs nothing. (Upstream has this
//! since 1.36, but asks again with a growing back-off.)
//!
//! This is not what keeps pods from being made twice: that is the expectations' part, and it has no end but the truth.

use std::collections::HashMap;
use std::time::Duration;

use homeostat::{ObjectKey, ResourceVersion, Uid};
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use tokio::time::Instant;

/// After this the cache is believed again: a resource version that never comes (a restored backup) must not stop an owner
/// for ever, and the server refuses a status that is made from what is too old.
const PATIENCE: Duration = Duration::from_secs(5);

/// The writes that the caches may not have shown yet.
#[derive(Debug, Default)]
pub(crate) struct OwnWrites {
    owners: HashMap<ObjectKey<Kind>, Writes>,
}

#[derive(Debug)]
struct Writes {
    /// Of the owner; another one under the same name has its own versions.
    uid: Uid,
    /// What the server made of the last status.
    status: Option<ResourceVersion>,
    /// The newest of the pods that were made, adopted or released.
    pods: Option<ResourceVersion>,
    /// When the last of them was written.
    at: Instant,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Status,
    Pod,
}

/// How far the caches have come.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The version of the owner itself.
    pub(crate) set: ResourceVersion,
    /// The version that the cache of pods has reached, deletes and bookmarks included.
    pub(crate) pods: Option<ResourceVersion>,
}

// === impl OwnWrites ===

impl OwnWrites {
    /// The server gave this version to what was written.
    pub(crate) fn wrote(
        &mut self,
        (key, uid): (&ObjectKey<Kind>, &Uid),
        what: Written,
        version: &str,
        now: Instant,
    ) {
        if self.owners.get(key).is_none_or(|writes| writes.uid != *uid) {
            let writes = Writes { uid: uid.clone(), status: None, pods: None, at: now };
            self.owners.insert(key.clone(), writes);
        }
        let Some(writes) = self.owners.get_mut(key) else { return };
        writes.at = now;
        let last = match what {
            Written::Status => &mut writes.status,
            Written::Pod => &mut writes.pods,
        };
        let version = ResourceVersion::from(version);
        if !is_older(&version, last.as_ref()) {
            *last = Some(version);
        }
    }

    /// How long to wait, at most, for caches that show this much; `None` when they are new enough.
    pub(crate) fn wait_for(
        &mut self,
        key: &ObjectKey<Kind>,
        uid: &Uid,
        shown: &Shown,
        now: Instant,
    ) -> Option<Duration> {
        let writes = self.owners.get(key)?;
        let left = PATIENCE.saturating_sub(now.saturating_duration_since(writes.at));
        let late = is_older(&shown.set, writes.status.as_ref())
            || shown.pods.as_ref().is_some_and(|pods| is_older(pods, writes.pods.as_ref()));
        if writes.uid == *uid && late && !left.is_zero() {
            return Some(left);
        }
        self.forget(key);
        None
    }

    /// The owner is gone.
    pub(crate) fn forget(&mut self, key: &ObjectKey<Kind>) {
        self.owners.remove(key);
    }
}

/// Versions that are no numbers have no order: then nothing is older.
fn is_older(version: &ResourceVersion, than: Option<&ResourceVersion>) -> bool {
    than.and_then(|than| version.compare(than)).is_some_and(std::cmp::Ordering::is_lt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey<Kind> {
        ObjectKey::namespaced("shop", "web")
    }

    fn shown(set: &str, pods: &str) -> Shown {
        Shown { set: ResourceVersion::from(set), pods: Some(ResourceVersion::from(pods)) }
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// What is waited after a second, when these were written and those are shown.
    fn wait(written: &[(Written, &str)], shown: &Shown) -> Option<Duration> {
        let (mut own, uid, start) = (OwnWrites::default(), Uid::from("u"), Instant::now());
        for (what, version) in written {
            own.wrote((&key(), &uid), *what, version, start);
        }
        own.wait_for(&key(), &uid, shown, start + seconds(1))
    }

    #[test]
    fn a_cache_older_than_any_of_our_writes_is_waited_for() {
        let written = [(Written::Status, "100"), (Written::Pod, "98"), (Written::Pod, "96")];
        assert_eq!(wait(&written, &shown("99", "98")), Some(seconds(4)));
        assert_eq!(wait(&written, &shown("100", "97")), Some(seconds(4)), "the newest pod counts");
        assert_eq!(wait(&written, &shown("100", "98")), None);
        assert_eq!(wait(&[], &shown("1", "1")), None);
    }

    #[test]
    fn versions_without_an_order_are_not_waited_for() {
        assert_eq!(wait(&[(Written::Status, "100")], &shown("restored", "1")), None);
        let nothing = Shown { pods: None, ..shown("1", "1") };
        assert_eq!(wait(&[(Written::Pod, "100")], &nothing), None);
    }

    #[test]
    fn patience_ends_and_another_owner_does_not_wait() {
        let (mut own, uid, start) = (OwnWrites::default(), Uid::from("u"), Instant::now());
        own.wrote((&key(), &uid), Written::Pod, "100", start);
        assert_eq!(own.wait_for(&key(), &uid, &shown("1", "1"), start + seconds(5)), None);
        assert!(own.owners.is_empty());
        own.wrote((&key(), &uid), Written::Pod, "100", start);
        assert_eq!(own.wait_for(&key(), &Uid::from("other"), &shown("1", "1"), start), None);
        own.wrote((&key(), &uid), Written::Pod, "100", start);
        own.wrote((&key(), &Uid::from("other")), Written::Status, "5", start);
        assert_eq!(own.wait_for(&key(), &Uid::from("other"), &shown("5", "1"), start), None);
    }
}
