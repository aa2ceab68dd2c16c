//! Tests of `ControllerExpectations`: one for each promise, and generated schedules that are
//! compared with upstream's rules.

#[path = "support/recorder.rs"]
mod recorder;

/// The work queue's runner of generated schedules; both crates share it.
#[path = "../../workqueue/src/testing.rs"]
mod testing;

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_expectations::{ControllerExpectations, Expected, UidTrackingExpectations};
use proptest::prelude::{Strategy, prop_oneof};
use tokio::time::{Instant, advance};

use self::recorder::Recorder;
use self::testing::{Schedules, Tally};

type Key = u8;
type Uid = u16;
type Expectations = ControllerExpectations<Key, Uid>;

const KEY: Key = 0;
const OWNER: Uid = 7;
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

fn counts(expectations: &Expectations) -> (i64, i64) {
    let outstanding = expectations.outstanding(&KEY, &OWNER).expect("the key has an entry");
    (outstanding.creations, outstanding.deletions)
}

fn send(expected: &Expected<Key, Uid>, creations: usize, deletions: usize) {
    (0..creations).for_each(|_| expected.start_creation().sent());
    (0..deletions).for_each(|_| expected.start_deletion().sent());
}

#[test]
fn key_is_satisfied_when_both_counts_are_shown() {
    let expectations = Expectations::default();
    send(&expectations.expect(&KEY, &OWNER, 1, 1), 1, 1);
    assert!(!expectations.satisfied(&KEY, &OWNER));
    expectations.deletion_observed(&KEY, &OWNER);
    assert!(!expectations.satisfied(&KEY, &OWNER));
    expectations.creation_observed(&KEY, &OWNER);
    assert!(expectations.satisfied(&KEY, &OWNER));
}

#[test]
fn only_sent_and_unknown_requests_stay_expected() {
    let expectations = Expectations::default();
    let expected = expectations.expect(&KEY, &OWNER, 4, 4);
    send(&expected, 1, 1);
    expected.start_creation().refused();
    expected.start_deletion().refused();
    drop((expected.start_creation(), expected.start_deletion()));
    assert_eq!(counts(&expectations), (3, 3));
    drop(expected);
    assert_eq!(counts(&expectations), (2, 2));
}

#[test]
fn surplus_tokens_lower_nothing() {
    let expectations = Expectations::default();
    let expected = expectations.expect(&KEY, &OWNER, 1, 0);
    let counted = expected.start_creation();
    expected.start_creation().refused();
    expected.start_deletion().refused();
    assert_eq!(counts(&expectations), (1, 0));
    counted.refused();
    assert_eq!(counts(&expectations), (0, 0));
}

#[test]
fn guard_accepts_largest_count() {
    let expectations = Expectations::default();
    drop(expectations.expect(&KEY, &OWNER, usize::MAX, usize::MAX));
    assert_eq!(counts(&expectations), (0, 0), "nothing was started");
}

#[test]
fn raise_adds_to_the_entry_and_its_guard_lowers_unstarted_requests() {
    let expectations = Expectations::default();
    send(&expectations.expect(&KEY, &OWNER, 1, 0), 1, 0);
    let raised = expectations.raise(&KEY, &OWNER, 2, 3);
    assert_eq!(counts(&expectations), (3, 3));
    send(&raised, 1, 1);
    drop(raised);
    assert_eq!(counts(&expectations), (2, 1));
}

#[test]
fn raise_without_an_entry_has_no_effect() {
    let expectations = Expectations::default();
    let raised = expectations.raise(&KEY, &OWNER, 2, 2);
    assert_eq!(expectations.outstanding(&KEY, &OWNER), None);
    let set = expectations.expect(&KEY, &OWNER, 1, 1);
    send(&set, 1, 1);
    drop((expectations.raise(&KEY, &8, 1, 1), set));
    raised.start_creation().refused();
    drop(raised);
    assert_eq!(
        counts(&expectations),
        (1, 1),
        "the early guard and another owner's guard lower nothing"
    );
}

#[test]
fn old_guard_does_not_lower_its_successor() {
    let expectations = Expectations::default();
    let old = expectations.expect(&KEY, &OWNER, 3, 3);
    send(&expectations.expect(&KEY, &OWNER, 1, 1), 1, 1);
    drop(old);
    assert_eq!(counts(&expectations), (1, 1));
}

#[test]
fn recreated_owner_has_no_expectations_and_lowers_nothing() {
    let expectations = Expectations::default();
    send(&expectations.expect(&KEY, &OWNER, 1, 0), 1, 0);
    assert!(expectations.satisfied(&KEY, &8));
    expectations.creation_observed(&KEY, &8);
    assert!(!expectations.satisfied(&KEY, &OWNER));
    expectations.delete(&KEY);
    assert!(expectations.satisfied(&KEY, &OWNER));
}

// === metrics ===

const EXPIRED: &str = "controller_expectations_expired_total{controller=\"web\"}";

#[tokio::test(start_paused = true)]
async fn expiry_is_counted_once_for_each_entry() {
    let recorder = Recorder::default();
    let (counting, tracking) = metrics::with_local_recorder(&recorder, || {
        (Expectations::new("web"), UidTrackingExpectations::<Key, Uid>::new("web"))
    });
    send(&counting.expect(&KEY, &OWNER, 1, 0), 1, 0);
    tracking.expect_deletions(&KEY, &OWNER, [1]).start(&1).sent();
    advance(TIMEOUT).await;
    assert!(!counting.satisfied(&KEY, &OWNER) && !tracking.satisfied(&KEY, &OWNER));
    assert!(recorder.recorded(EXPIRED).is_empty());
    advance(Duration::from_millis(1)).await;
    (0..3).for_each(|_| assert!(counting.satisfied(&KEY, &OWNER)));
    assert_eq!(recorder.recorded(EXPIRED).len(), 1);
    (0..3).for_each(|_| assert!(tracking.satisfied(&KEY, &OWNER)));
    assert_eq!(recorder.recorded(EXPIRED).len(), 2);
    send(&counting.expect(&KEY, &OWNER, 1, 0), 1, 0);
    advance(2 * TIMEOUT).await;
    assert!(counting.satisfied(&KEY, &OWNER));
    assert_eq!(recorder.recorded(EXPIRED).len(), 3, "another entry");
}

#[tokio::test(start_paused = true)]
async fn fulfilled_entry_never_expires() {
    let recorder = Recorder::default();
    let expectations = metrics::with_local_recorder(&recorder, || Expectations::new("web"));
    send(&expectations.expect(&KEY, &OWNER, 1, 0), 1, 0);
    expectations.creation_observed(&KEY, &OWNER);
    advance(2 * TIMEOUT).await;
    assert!(expectations.satisfied(&KEY, &OWNER));
    assert!(recorder.recorded(EXPIRED).is_empty());
}

// === generated schedules, compared with upstream's rules ===

/// The numbers of sent, refused and unanswered requests of one kind; the rest is never started.
type Outcomes = [usize; 3];

#[derive(Debug, Clone)]
enum Step {
    Set(Key, Uid, [usize; 2], [Outcomes; 2]),
    Raise(Key, Uid, [usize; 2], [Outcomes; 2]),
    Observed(Key, Uid, [usize; 2]),
    Delete(Key),
    Pass(u64),
}

/// Upstream's entry: two counts and a time.
struct Entry {
    owner: Uid,
    counts: [i64; 2],
    set_at: Instant,
}

#[derive(Default)]
struct World {
    real: Expectations,
    entries: BTreeMap<Key, Entry>,
}

impl World {
    /// Sends the requests of `expected`, and returns how many of each kind stay expected.
    fn carry_out(
        expected: &Expected<Key, Uid>,
        counts: [usize; 2],
        outcomes: [Outcomes; 2],
    ) -> [i64; 2] {
        for ([sent, refused, unknown], creates) in outcomes.into_iter().zip([true, false]) {
            (0..sent).for_each(|_| sent_one(creates, expected));
            (0..refused).for_each(|_| refused_one(creates, expected));
            (0..unknown).for_each(|_| lost_one(creates, expected));
        }
        let mut stay = [0; 2];
        for ((stay, counts), [sent, refused, unknown]) in stay.iter_mut().zip(counts).zip(outcomes)
        {
            let refused = refused.min(counts.saturating_sub(sent));
            let started = counts.min(sent + refused + unknown);
            *stay = i64::try_from(started - refused).expect("few");
        }
        stay
    }

    async fn apply(&mut self, step: Step, tally: &Tally) {
        match step {
            Step::Set(key, owner, [creations, deletions], outcomes) => {
                let expected = self.real.expect(&key, &owner, creations, deletions);
                let counts = Self::carry_out(&expected, [creations, deletions], outcomes);
                self.entries.insert(key, Entry { owner, counts, set_at: Instant::now() });
            }
            Step::Raise(key, owner, [creations, deletions], outcomes) => {
                let expected = self.real.raise(&key, &owner, creations, deletions);
                let more = Self::carry_out(&expected, [creations, deletions], outcomes);
                match self.entries.get_mut(&key).filter(|entry| entry.owner == owner) {
                    Some(entry) => {
                        tally.count("raised", 1);
                        entry.counts[0] += more[0];
                        entry.counts[1] += more[1];
                    }
                    None => tally.count("raised without an entry", 1),
                }
            }
            Step::Observed(key, owner, [creations, deletions]) => {
                (0..creations).for_each(|_| self.real.creation_observed(&key, &owner));
                (0..deletions).for_each(|_| self.real.deletion_observed(&key, &owner));
                let entry = self.entries.get_mut(&key).filter(|entry| entry.owner == owner);
                if let Some(entry) = entry {
                    entry.counts[0] -= i64::try_from(creations).expect("few");
                    entry.counts[1] -= i64::try_from(deletions).expect("few");
                }
            }
            Step::Delete(key) => {
                self.real.delete(&key);
                self.entries.remove(&key);
            }
            Step::Pass(seconds) => advance(Duration::from_secs(seconds)).await,
        }
    }

    fn check(&self, tally: &Tally) {
        for (key, owner) in (0..2).flat_map(|key| (0..2).map(move |owner| (key, owner))) {
            let satisfied = self.real.satisfied(&key, &owner);
            let outstanding = self.real.outstanding(&key, &owner);
            let Some(entry) = self.entries.get(&key).filter(|entry| entry.owner == owner) else {
                assert_eq!((outstanding, satisfied), (None, true));
                continue;
            };
            let outstanding = outstanding.expect("the model has an entry");
            assert_eq!([outstanding.creations, outstanding.deletions], entry.counts);
            let fulfilled = entry.counts.iter().all(|count| *count <= 0);
            let expired = entry.set_at.elapsed() > TIMEOUT;
            assert_eq!(satisfied, fulfilled || expired);
            let what = match (fulfilled, expired) {
                (true, _) if entry.counts.iter().any(|count| *count < 0) => "checked below zero",
                (true, _) => "checked when fulfilled",
                (false, true) => "checked when expired",
                (false, false) => "checked while waiting",
            };
            tally.count(what, 1);
        }
    }
}

fn sent_one(creates: bool, expected: &Expected<Key, Uid>) {
    if creates { expected.start_creation().sent() } else { expected.start_deletion().sent() }
}

fn refused_one(creates: bool, expected: &Expected<Key, Uid>) {
    if creates { expected.start_creation().refused() } else { expected.start_deletion().refused() }
}

fn lost_one(creates: bool, expected: &Expected<Key, Uid>) {
    if creates { drop(expected.start_creation()) } else { drop(expected.start_deletion()) }
}

fn steps() -> impl Strategy<Value = Step> {
    let outcomes = || [[0..3_usize, 0..2, 0..2], [0..3_usize, 0..2, 0..2]];
    let counts = || [0..5_usize, 0..5_usize];
    prop_oneof![
        4 => (0..2_u8, 0..2_u16, counts(), outcomes())
            .prop_map(|(k, o, n, f)| Step::Set(k, o, n, f)),
        4 => (0..2_u8, 0..2_u16, counts(), outcomes())
            .prop_map(|(k, o, n, f)| Step::Raise(k, o, n, f)),
        8 => (0..2_u8, 0..2_u16, [0..3_usize, 0..3]).prop_map(|(k, o, n)| Step::Observed(k, o, n)),
        1 => (0..2_u8).prop_map(Step::Delete),
        2 => (0..200_u64).prop_map(Step::Pass),
    ]
}

async fn run(steps: &[Step], tally: &Tally) {
    let mut world = World::default();
    for step in steps {
        tally.record_step(|| format!("{step:?}"));
        world.apply(step.clone(), tally).await;
        tally.record_outcome(|| format!("{:?}", world.real));
        world.check(tally);
    }
}

#[test]
fn any_schedule_agrees_with_upstream_rules() {
    let least = &[
        ("checked while waiting", 4_000),
        ("checked when fulfilled", 500),
        ("checked below zero", 1_000),
        ("checked when expired", 150),
        ("raised", 500),
        ("raised without an entry", 500),
    ];
    Schedules { step: steps(), longest: 80, least }.check(|steps, tally| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(run(steps, tally));
    });
}
