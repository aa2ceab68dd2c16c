//! `ControllerExpectations`: a schedule for each promise, and any schedule against upstream's rules.

#[path = "support/recorder.rs"]
mod recorder;

/// The work queue's: what runs a model is the same for both.
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
    let outstanding = expectations.outstanding(&KEY, &OWNER).expect("something was noted");
    (outstanding.creations, outstanding.deletions)
}

fn send(expected: &Expected<Key, Uid>, creations: usize, deletions: usize) {
    (0..creations).for_each(|_| expected.start_creation().sent());
    (0..deletions).for_each(|_| expected.start_deletion().sent());
}

#[test]
fn both_counts_must_be_shown() {
    let expectations = Expectations::default();
    send(&expectations.expect(&KEY, &OWNER, 1, 1), 1, 1);
    assert!(!expectations.satisfied(&KEY, &OWNER));
    expectations.deletion_observed(&KEY, &OWNER);
    assert!(!expectations.satisfied(&KEY, &OWNER));
    expectations.creation_observed(&KEY, &OWNER);
    assert!(expectations.satisfied(&KEY, &OWNER));
}

#[test]
fn what_was_refused_or_never_started_is_not_expected_and_what_is_unknown_is() {
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
fn no_count_is_too_large_for_a_guard() {
    let expectations = Expectations::default();
    drop(expectations.expect(&KEY, &OWNER, usize::MAX, usize::MAX));
    assert_eq!(counts(&expectations), (0, 0), "nothing was started");
}

#[test]
fn raising_adds_to_what_there_is_and_its_guard_lowers_what_was_not_started() {
    let expectations = Expectations::default();
    send(&expectations.expect(&KEY, &OWNER, 1, 0), 1, 0);
    let raised = expectations.raise(&KEY, &OWNER, 2, 3);
    assert_eq!(counts(&expectations), (3, 3));
    send(&raised, 1, 1);
    drop(raised);
    assert_eq!(counts(&expectations), (2, 1));
}

#[test]
fn raising_nothing_notes_nothing() {
    let expectations = Expectations::default();
    let raised = expectations.raise(&KEY, &OWNER, 2, 2);
    assert_eq!(expectations.outstanding(&KEY, &OWNER), None);
    let set = expectations.expect(&KEY, &OWNER, 1, 1);
    send(&set, 1, 1);
    drop((expectations.raise(&KEY, &8, 1, 1), set));
    raised.start_creation().refused();
    drop(raised);
    assert_eq!(counts(&expectations), (1, 1), "neither the early guard nor another owner's");
}

#[test]
fn old_guard_lowers_nothing_of_what_replaced_it() {
    let expectations = Expectations::default();
    let old = expectations.expect(&KEY, &OWNER, 3, 3);
    send(&expectations.expect(&KEY, &OWNER, 1, 1), 1, 1);
    drop(old);
    assert_eq!(counts(&expectations), (1, 1));
}

#[test]
fn another_owner_starts_clean_and_lowers_nothing() {
    let expectations = Expectations::default();
    send(&expectations.expect(&KEY, &OWNER, 1, 0), 1, 0);
    assert!(expectations.satisfied(&KEY, &8));
    expectations.creation_observed(&KEY, &8);
    assert!(!expectations.satisfied(&KEY, &OWNER));
    expectations.delete(&KEY);
    assert!(expectations.satisfied(&KEY, &OWNER));
}

// === the metric ===

const EXPIRED: &str = "controller_expectations_expired_total{controller=\"web\"}";

#[tokio::test(start_paused = true)]
async fn expiry_is_counted_once_for_each_entry_that_was_acted_upon() {
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
async fn what_was_fulfilled_never_expires() {
    let recorder = Recorder::default();
    let expectations = metrics::with_local_recorder(&recorder, || Expectations::new("web"));
    send(&expectations.expect(&KEY, &OWNER, 1, 0), 1, 0);
    expectations.creation_observed(&KEY, &OWNER);
    advance(2 * TIMEOUT).await;
    assert!(expectations.satisfied(&KEY, &OWNER));
    assert!(recorder.recorded(EXPIRED).is_empty());
}

// === any schedule, by upstream's rules ===

/// What becomes of the requests of one sort: so many are sent, refused, unanswered; the rest is never started.
type Fates = [usize; 3];

#[derive(Debug, Clone)]
enum Step {
    Set(Key, Uid, [usize; 2], [Fates; 2]),
    Raise(Key, Uid, [usize; 2], [Fates; 2]),
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
    /// Sends the requests of `expected`, and says how many of each sort stay expected.
    fn carry_out(expected: &Expected<Key, Uid>, noted: [usize; 2], fates: [Fates; 2]) -> [i64; 2] {
        for ([sent, refused, unknown], creates) in fates.into_iter().zip([true, false]) {
            (0..sent).for_each(|_| sent_one(creates, expected));
            (0..refused).for_each(|_| refused_one(creates, expected));
            (0..unknown).for_each(|_| lost_one(creates, expected));
        }
        let mut stay = [0; 2];
        for ((stay, noted), [sent, refused, unknown]) in stay.iter_mut().zip(noted).zip(fates) {
            let refused = refused.min(noted.saturating_sub(sent));
            let started = noted.min(sent + refused + unknown);
            *stay = i64::try_from(started - refused).expect("few");
        }
        stay
    }

    async fn apply(&mut self, step: Step, tally: &Tally) {
        match step {
            Step::Set(key, owner, [creations, deletions], fates) => {
                let expected = self.real.expect(&key, &owner, creations, deletions);
                let counts = Self::carry_out(&expected, [creations, deletions], fates);
                self.entries.insert(key, Entry { owner, counts, set_at: Instant::now() });
            }
            Step::Raise(key, owner, [creations, deletions], fates) => {
                let expected = self.real.raise(&key, &owner, creations, deletions);
                let more = Self::carry_out(&expected, [creations, deletions], fates);
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
                (true, _) if entry.counts.iter().any(|count| *count < 0) => "asked when below zero",
                (true, _) => "asked when fulfilled",
                (false, true) => "asked when expired",
                (false, false) => "asked while waiting",
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
    let fates = || [[0..3_usize, 0..2, 0..2], [0..3_usize, 0..2, 0..2]];
    let noted = || [0..5_usize, 0..5_usize];
    prop_oneof![
        4 => (0..2_u8, 0..2_u16, noted(), fates()).prop_map(|(k, o, n, f)| Step::Set(k, o, n, f)),
        4 => (0..2_u8, 0..2_u16, noted(), fates()).prop_map(|(k, o, n, f)| Step::Raise(k, o, n, f)),
        8 => (0..2_u8, 0..2_u16, [0..3_usize, 0..3]).prop_map(|(k, o, n)| Step::Observed(k, o, n)),
        1 => (0..2_u8).prop_map(Step::Delete),
        2 => (0..200_u64).prop_map(Step::Pass),
    ]
}

async fn run(steps: &[Step], tally: &Tally) {
    let mut world = World::default();
    for step in steps {
        tally.tell(|| format!("{step:?}"));
        world.apply(step.clone(), tally).await;
        tally.tell_outcome(|| format!("{:?}", world.real));
        world.check(tally);
    }
}

#[test]
fn any_schedule_is_that_of_two_counts_and_a_time() {
    let least = &[
        ("asked while waiting", 4_000),
        ("asked when fulfilled", 500),
        ("asked when below zero", 1_000),
        ("asked when expired", 150),
        ("raised", 500),
        ("raised without an entry", 500),
    ];
    Schedules { step: steps(), longest: 80, least }.check(|steps, tally| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(run(steps, tally));
    });
}
