//! Compares generated schedules of guards, tokens and events with a model that keeps every single
//! request.
//!
//! The model keeps no counts. It keeps the requests of each key's last decision and their outcomes:
//! a key is satisfied exactly if the cache has shown all that may have been carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeostat_expectations::{
    CreationToken, DeletionToken, ExpectedCreations, ExpectedDeletions, UidTrackingExpectations,
};
use proptest::collection::btree_set;
use proptest::prelude::{Just, Strategy, prop_oneof};
use tokio::time::{Instant, advance};

/// The work queue's runner of generated schedules; both crates share it.
#[path = "../../workqueue/src/testing.rs"]
mod testing;

use self::testing::{Schedules, Tally};

type Key = u8;
type Uid = u16;

const KEYS: Key = 2;
const OWNERS: Uid = 2;
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

#[derive(Debug, Clone, Copy)]
enum Outcome {
    Sent,
    Refused,
    Unknown,
}

#[derive(Debug, Clone)]
enum Step {
    ExpectCreations(Key, Uid, usize),
    ExpectDeletions(Key, Uid, BTreeSet<Uid>),
    /// Starts the next request of the n-th guard, or its request for this uid.
    Start(usize, Uid),
    /// Sets the outcome of the n-th token.
    Finish(usize, Outcome),
    DropGuard(usize),
    CreationObserved(Key, Uid),
    DeletionObserved(Key, Uid, Uid),
    Delete(Key),
    Pass(u64),
}

enum Guard {
    Creations(ExpectedCreations<Key, Uid>),
    Deletions(ExpectedDeletions<Key, Uid>),
}

enum Token {
    Creation(CreationToken<Key, Uid>),
    Deletion(DeletionToken<Key, Uid>),
}

/// One decision and its writes that the cache has yet to show.
#[derive(Clone)]
struct Entry {
    number: usize,
    owner: Uid,
    creations: i64,
    deletions: BTreeSet<Uid>,
    set_at: Instant,
}

/// A guard or a token, with the number of the decision that it belongs to.
struct Of<T> {
    number: usize,
    key: Key,
    /// The requests that a guard has not started, or the request of a token.
    creations: usize,
    deletions: BTreeSet<Uid>,
    real: T,
}

#[derive(Default)]
struct World {
    real: UidTrackingExpectations<Key, Uid>,
    entries: BTreeMap<Key, Entry>,
    guards: Vec<Of<Guard>>,
    tokens: Vec<Of<Token>>,
    decisions: usize,
}

// === impl World ===

impl World {
    fn expect(&mut self, key: Key, owner: Uid, creations: usize, deletions: BTreeSet<Uid>) {
        let real = if creations > 0 {
            Guard::Creations(self.real.expect_creations(&key, &owner, creations))
        } else {
            Guard::Deletions(self.real.expect_deletions(&key, &owner, deletions.clone()))
        };
        self.decisions += 1;
        let (number, set_at) = (self.decisions, Instant::now());
        let entry = Entry {
            number,
            owner,
            creations: signed(creations),
            deletions: deletions.clone(),
            set_at,
        };
        self.entries.insert(key, entry);
        self.guards.push(Of { number, key, creations, deletions, real });
    }

    fn start(&mut self, nth: usize, uid: Uid) {
        let Some(guard) = self.guards.get_mut(nth) else { return };
        let (number, key) = (guard.number, guard.key);
        let (real, creations, deletions) = match &guard.real {
            Guard::Creations(real) => {
                let creations = guard.creations.min(1);
                guard.creations -= creations;
                (Token::Creation(real.start()), creations, BTreeSet::new())
            }
            Guard::Deletions(real) => {
                let uids = guard.deletions.take(&uid).into_iter().collect();
                (Token::Deletion(real.start(&uid)), 0, uids)
            }
        };
        self.tokens.push(Of { number, key, creations, deletions, real });
    }

    fn finish(&mut self, nth: usize, outcome: Outcome, tally: &Tally) {
        if nth >= self.tokens.len() {
            return;
        }
        let Of { number, key, creations, deletions, real } = self.tokens.remove(nth);
        match (real, outcome) {
            (Token::Creation(real), Outcome::Sent) => real.sent(),
            (Token::Creation(real), Outcome::Refused) => real.refused(),
            (Token::Deletion(real), Outcome::Sent) => real.sent(),
            (Token::Deletion(real), Outcome::Refused) => real.refused(),
            (Token::Creation(_) | Token::Deletion(_), Outcome::Unknown) => {}
        }
        if let Outcome::Refused = outcome {
            tally.count("refused", 1);
            self.lower((key, number), creations, &deletions, tally);
        }
    }

    fn drop_guard(&mut self, nth: usize, tally: &Tally) {
        if nth < self.guards.len() {
            let Of { number, key, creations, deletions, real } = self.guards.remove(nth);
            drop(real);
            self.lower((key, number), creations, &deletions, tally);
        }
    }

    /// Lowers the entry of this decision, unless another decision has replaced it.
    fn lower(
        &mut self,
        (key, number): (Key, usize),
        creations: usize,
        deletions: &BTreeSet<Uid>,
        tally: &Tally,
    ) {
        match self.entries.get_mut(&key) {
            Some(entry) if entry.number == number => {
                entry.creations -= signed(creations);
                entry.deletions.retain(|uid| !deletions.contains(uid));
            }
            _ => tally.count("lowered a replaced entry", 1),
        }
    }

    fn observed(&mut self, key: Key, owner: Uid, deleted: Option<Uid>, tally: &Tally) {
        match &deleted {
            None => self.real.creation_observed(&key, &owner),
            Some(uid) => self.real.deletion_observed(&key, &owner, uid),
        }
        match (self.entries.get_mut(&key), deleted) {
            (Some(entry), _) if entry.owner != owner => {
                tally.count("observed for another owner", 1);
            }
            (Some(entry), None) => entry.creations -= 1,
            (Some(entry), Some(uid)) => {
                entry.deletions.remove(&uid);
            }
            (None, _) => {}
        }
    }

    async fn apply(&mut self, step: Step, tally: &Tally) {
        match step {
            Step::ExpectCreations(key, owner, n) => self.expect(key, owner, n, BTreeSet::new()),
            Step::ExpectDeletions(key, owner, uids) => self.expect(key, owner, 0, uids),
            Step::Start(nth, uid) => self.start(nth, uid),
            Step::Finish(nth, outcome) => self.finish(nth, outcome, tally),
            Step::DropGuard(nth) => self.drop_guard(nth, tally),
            Step::CreationObserved(key, owner) => self.observed(key, owner, None, tally),
            Step::DeletionObserved(key, owner, uid) => {
                self.observed(key, owner, Some(uid), tally);
            }
            Step::Delete(key) => {
                self.real.delete(&key);
                self.entries.remove(&key);
            }
            Step::Pass(seconds) => advance(Duration::from_secs(seconds)).await,
        }
    }

    /// Formats the outstanding writes of all keys.
    fn outstanding(&self) -> String {
        let of = |(key, entry): (&Key, &Entry)| match self.real.outstanding(key, &entry.owner) {
            Some(outstanding) => format!("{key}: {outstanding}"),
            None => format!("{key}: nothing"),
        };
        self.entries.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    fn check(&self, tally: &Tally) {
        for (key, owner) in (0..KEYS).flat_map(|key| (0..OWNERS).map(move |owner| (key, owner))) {
            let outstanding = self.real.outstanding(&key, &owner);
            let satisfied = self.real.satisfied(&key, &owner);
            let Some(entry) = self.entries.get(&key).filter(|entry| entry.owner == owner) else {
                assert_eq!((outstanding, satisfied), (None, true));
                continue;
            };
            let outstanding = outstanding.expect("the model has an entry");
            assert_eq!(outstanding.creations, entry.creations);
            assert_eq!(outstanding.deletions, signed(entry.deletions.len()));
            assert_eq!(outstanding.age, entry.set_at.elapsed());
            let fulfilled = entry.creations <= 0 && entry.deletions.is_empty();
            let expired = entry.set_at.elapsed() > TIMEOUT;
            assert_eq!(satisfied, fulfilled || expired);
            let what = match (fulfilled, expired) {
                (true, _) => "checked when fulfilled",
                (false, true) => "checked when expired",
                (false, false) => "checked while waiting",
            };
            tally.count(what, 1);
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).expect("few")
}

fn steps() -> impl Strategy<Value = Step> {
    let uid = || 0..6_u16;
    let outcome = prop_oneof![Just(Outcome::Sent), Just(Outcome::Refused), Just(Outcome::Unknown)];
    prop_oneof![
        3 => (0..KEYS, 0..OWNERS, 1..5_usize).prop_map(|(k, o, n)| Step::ExpectCreations(k, o, n)),
        3 => (0..KEYS, 0..OWNERS, btree_set(uid(), 0..4))
            .prop_map(|(k, o, uids)| Step::ExpectDeletions(k, o, uids)),
        8 => (0..4_usize, uid()).prop_map(|(nth, uid)| Step::Start(nth, uid)),
        6 => (0..4_usize, outcome).prop_map(|(nth, outcome)| Step::Finish(nth, outcome)),
        3 => (0..4_usize).prop_map(Step::DropGuard),
        5 => (0..KEYS, 0..OWNERS).prop_map(|(k, o)| Step::CreationObserved(k, o)),
        5 => (0..KEYS, 0..OWNERS, uid()).prop_map(|(k, o, uid)| Step::DeletionObserved(k, o, uid)),
        1 => (0..KEYS).prop_map(Step::Delete),
        1 => (0..250_u64).prop_map(Step::Pass),
    ]
}

async fn run(steps: &[Step], tally: &Tally) {
    let mut world = World::default();
    for step in steps {
        tally.record_step(|| format!("{step:?}"));
        world.apply(step.clone(), tally).await;
        tally.record_outcome(|| world.outstanding());
        world.check(tally);
    }
}

#[test]
fn any_schedule_agrees_with_model_of_single_requests() {
    let least = &[
        ("checked while waiting", 3_000),
        ("checked when fulfilled", 2_000),
        ("checked when expired", 40),
        ("refused", 200),
        ("lowered a replaced entry", 300),
        ("observed for another owner", 300),
    ];
    Schedules { step: steps(), longest: 120, least }.check(|steps, tally| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(run(steps, tally));
    });
}
