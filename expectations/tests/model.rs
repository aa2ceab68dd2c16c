//! Any schedule of guards, tokens and events against a model that remembers every single request.
//!
//! The model is not counts but requests, each with what became of it: a key is satisfied exactly if none
//! of the requests of its last decision is still to be seen.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeostat_expectations::{
    CreationToken, DeletionToken, ExpectedCreations, ExpectedDeletions, UidTrackingExpectations,
};
use proptest::collection::{btree_set, vec};
use proptest::prelude::{Strategy, prop_oneof};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tokio::time::{Instant, advance};

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
    /// The n-th guard's next request, or that of this uid.
    Start(usize, Uid),
    /// What becomes of the n-th token.
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

/// One decision and what of it is still to be seen.
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
    /// Guards: what was not started. Tokens: what they stand for.
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

#[derive(Default)]
struct Exercised {
    waiting: Cell<usize>,
    fulfilled: Cell<usize>,
    expired: Cell<usize>,
    refused: Cell<usize>,
    stale: Cell<usize>,
    other_owner: Cell<usize>,
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

    fn finish(&mut self, nth: usize, outcome: Outcome, exercised: &Exercised) {
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
            exercised.refused.update(|count| count + 1);
            self.lower((key, number), creations, &deletions, exercised);
        }
    }

    fn drop_guard(&mut self, nth: usize, exercised: &Exercised) {
        if nth < self.guards.len() {
            let Of { number, key, creations, deletions, real } = self.guards.remove(nth);
            drop(real);
            self.lower((key, number), creations, &deletions, exercised);
        }
    }

    /// A decision lowers its own entry, unless another one has replaced it.
    fn lower(
        &mut self,
        (key, number): (Key, usize),
        creations: usize,
        deletions: &BTreeSet<Uid>,
        exercised: &Exercised,
    ) {
        match self.entries.get_mut(&key) {
            Some(entry) if entry.number == number => {
                entry.creations -= signed(creations);
                entry.deletions.retain(|uid| !deletions.contains(uid));
            }
            _ => exercised.stale.update(|count| count + 1),
        }
    }

    fn observed(&mut self, key: Key, owner: Uid, deleted: Option<Uid>, exercised: &Exercised) {
        match &deleted {
            None => self.real.creation_observed(&key, &owner),
            Some(uid) => self.real.deletion_observed(&key, &owner, uid),
        }
        match (self.entries.get_mut(&key), deleted) {
            (Some(entry), _) if entry.owner != owner => {
                exercised.other_owner.update(|count| count + 1);
            }
            (Some(entry), None) => entry.creations -= 1,
            (Some(entry), Some(uid)) => {
                entry.deletions.remove(&uid);
            }
            (None, _) => {}
        }
    }

    async fn apply(&mut self, step: Step, exercised: &Exercised) {
        match step {
            Step::ExpectCreations(key, owner, n) => self.expect(key, owner, n, BTreeSet::new()),
            Step::ExpectDeletions(key, owner, uids) => self.expect(key, owner, 0, uids),
            Step::Start(nth, uid) => self.start(nth, uid),
            Step::Finish(nth, outcome) => self.finish(nth, outcome, exercised),
            Step::DropGuard(nth) => self.drop_guard(nth, exercised),
            Step::CreationObserved(key, owner) => self.observed(key, owner, None, exercised),
            Step::DeletionObserved(key, owner, uid) => {
                self.observed(key, owner, Some(uid), exercised);
            }
            Step::Delete(key) => {
                self.real.delete(&key);
                self.entries.remove(&key);
            }
            Step::Pass(seconds) => advance(Duration::from_secs(seconds)).await,
        }
    }

    fn check(&self, exercised: &Exercised) {
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
            let counter = match (fulfilled, expired) {
                (true, _) => &exercised.fulfilled,
                (false, true) => &exercised.expired,
                (false, false) => &exercised.waiting,
            };
            counter.update(|count| count + 1);
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).expect("few")
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let uid = || 0..6_u16;
    let outcome = prop_oneof![
        (0..1).prop_map(|_| Outcome::Sent),
        (0..1).prop_map(|_| Outcome::Refused),
        (0..1).prop_map(|_| Outcome::Unknown)
    ];
    let step = prop_oneof![
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
    ];
    vec(step, 1..120)
}

#[test]
#[expect(clippy::print_stdout, reason = "a model test says what it has exercised")]
fn any_schedule_is_that_of_single_requests() {
    let exercised = Exercised::default();
    let cases = std::env::var("HOMEOSTAT_CASES").ok().and_then(|cases| cases.parse::<u32>().ok());
    let config = Config {
        cases: cases.unwrap_or(0).max(256),
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&steps(), |steps| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build()?;
        runtime.block_on(async {
            let mut world = World::default();
            for step in steps {
                world.apply(step, &exercised).await;
                world.check(&exercised);
            }
        });
        Ok::<_, TestCaseError>(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    for (what, number, least) in [
        ("asked while waiting", &exercised.waiting, 1_000),
        ("asked when fulfilled", &exercised.fulfilled, 1_000),
        ("asked when expired", &exercised.expired, 100),
        ("refused", &exercised.refused, 300),
        ("lowered what was replaced", &exercised.stale, 300),
        ("observed for another owner", &exercised.other_owner, 300),
    ] {
        println!("{what}: {}", number.get());
        assert!(number.get() >= least, "{what}: only {}", number.get());
    }
}
