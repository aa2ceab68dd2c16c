//! What to do while the cache has yet to show our own writes. Pure, but for the lock around it.
//!
//! Upstream waits for five minutes and then trusts the cache. A create whose reply was lost may never be shown, because it
//! was never carried out; and a cache that is five minutes late must not be trusted at all. So we ask: when a write has not
//! shown up for [`FIRST_LOOK`], the API server is asked which pods the owner has. If the cache shows the very same, there is
//! nothing left to wait for; if not, the cache is late, and we wait on, asking ever more seldom.

use std::collections::HashMap;
use std::time::Duration;

use homeostat::{ObjectKey, Uid};
use k8s_openapi::api::apps::v1::ReplicaSet as Kind;
use tokio::time::Instant;

/// How long the cache may be late before the server is asked. A watch shows a write within milliseconds, so this is
/// no shorter than what a person would wait, and no longer.
pub(crate) const FIRST_LOOK: Duration = Duration::from_secs(5);
/// A cache that stays late is asked about once a minute: each question is a list of the owner's pods.
const MOST: Duration = Duration::from_secs(60);

/// The owners whose writes the cache has yet to show.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    /// Absent: nothing was awaited when the owner was last looked at.
    owners: HashMap<ObjectKey<Kind>, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    /// Of the owner; another one under the same name starts anew.
    uid: Uid,
    /// When the server is asked next.
    due: Instant,
    /// How long was waited for that.
    pause: Duration,
}

/// What to do about an owner that still waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Nothing yet: look again after this time.
    Later(Duration),
    /// Ask the server which pods there are.
    Now,
}

// === impl Unsettled ===

impl Unsettled {
    /// What to do about an owner whose writes the cache has not shown. The first time is the time to start counting.
    pub(crate) fn look(&mut self, key: &ObjectKey<Kind>, uid: &Uid, now: Instant) -> Look {
        let due = match self.owners.get(key) {
            Some(waiting) if waiting.uid == *uid => waiting.due,
            _ => self.wait(key, uid, FIRST_LOOK, now),
        };
        match due.saturating_duration_since(now) {
            Duration::ZERO => Look::Now,
            left => Look::Later(left),
        }
    }

    /// Writes were just sent: the time to show them begins.
    pub(crate) fn written(&mut self, key: &ObjectKey<Kind>, uid: &Uid, now: Instant) {
        self.wait(key, uid, FIRST_LOOK, now);
    }

    /// The server was asked, and the cache is late: returns when to ask again.
    pub(crate) fn still_late(
        &mut self,
        key: &ObjectKey<Kind>,
        uid: &Uid,
        now: Instant,
    ) -> Duration {
        let last = self.owners.get(key).map_or(FIRST_LOOK, |waiting| waiting.pause);
        let pause = last.saturating_mul(2).min(MOST);
        self.wait(key, uid, pause, now);
        pause
    }

    /// The cache has shown everything, or the owner is gone.
    pub(crate) fn settled(&mut self, key: &ObjectKey<Kind>) {
        self.owners.remove(key);
    }

    fn wait(&mut self, key: &ObjectKey<Kind>, uid: &Uid, pause: Duration, now: Instant) -> Instant {
        let due = now + pause;
        self.owners.insert(key.clone(), Waiting { uid: uid.clone(), due, pause });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey<Kind> {
        ObjectKey::namespaced("shop", "web")
    }

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn the_server_is_asked_once_the_cache_has_had_its_time() {
        let (mut unsettled, uid, start) = (Unsettled::default(), Uid::from("u"), Instant::now());
        unsettled.written(&key(), &uid, start);
        assert_eq!(unsettled.look(&key(), &uid, start + seconds(1)), Look::Later(seconds(4)));
        assert_eq!(unsettled.look(&key(), &uid, start + seconds(5)), Look::Now);
        assert_eq!(unsettled.look(&key(), &uid, start + seconds(6)), Look::Now, "until told");
    }

    #[test]
    fn a_cache_that_stays_late_is_asked_about_ever_more_seldom() {
        let (mut unsettled, uid, now) = (Unsettled::default(), Uid::from("u"), Instant::now());
        unsettled.written(&key(), &uid, now);
        let pauses: Vec<u64> =
            (0..5).map(|_| unsettled.still_late(&key(), &uid, now).as_secs()).collect();
        assert_eq!(pauses, [10, 20, 40, 60, 60]);
        unsettled.written(&key(), &uid, now);
        assert_eq!(unsettled.look(&key(), &uid, now), Look::Later(FIRST_LOOK), "begins anew");
    }

    #[test]
    fn another_owner_of_the_same_name_starts_anew() {
        let (mut unsettled, start) = (Unsettled::default(), Instant::now());
        unsettled.written(&key(), &Uid::from("old"), start);
        let look = unsettled.look(&key(), &Uid::from("new"), start + seconds(60));
        assert_eq!(look, Look::Later(FIRST_LOOK));
        unsettled.settled(&key());
        assert!(unsettled.owners.is_empty());
    }
}
