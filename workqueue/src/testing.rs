//! How models are run: generated schedules, what they exercised, and the shortest one that fails.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use proptest::collection::vec;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// What the schedules of a model have exercised; and, of one that fails, what it did.
#[derive(Default)]
pub(crate) struct Tally {
    counts: RefCell<BTreeMap<&'static str, u64>>,
    operations: Cell<u64>,
    /// Only while a schedule is told.
    told: RefCell<Option<Vec<String>>>,
}

/// Generated schedules of one kind of steps, all of them the same each time.
pub(crate) struct Schedules<'a, S> {
    pub(crate) step: S,
    /// No schedule is longer.
    pub(crate) longest: usize,
    /// Of each 10,000 operations, how often at least what has to happen.
    pub(crate) least: &'a [(&'static str, u64)],
}

// === impl Tally ===

impl Tally {
    pub(crate) fn count(&self, what: &'static str, by: usize) {
        *self.counts.borrow_mut().entry(what).or_default() += by as u64;
    }

    /// Tells what is about to happen.
    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        if let Some(told) = &mut *self.told.borrow_mut() {
            told.push(what());
        }
    }

    /// Tells what became of it.
    pub(crate) fn tell_outcome(&self, outcome: impl FnOnce() -> String) {
        if let Some(last) = self.told.borrow_mut().as_mut().and_then(|told| told.last_mut()) {
            *last += " → ";
            *last += &outcome();
        }
    }

    #[expect(clippy::print_stdout, reason = "a model says what it has exercised")]
    fn check(&self, least: &[(&'static str, u64)], wanted: u64) {
        let operations = self.operations.get();
        println!("generated operations: {operations}");
        assert!(operations >= wanted, "only {operations} operations of {wanted}");
        let counts = self.counts.borrow();
        for (what, per_ten_thousand) in least {
            let count = counts.get(what).copied().unwrap_or(0);
            println!("{what}: {count}");
            assert!(count * 10_000 >= per_ten_thousand * operations, "{what}: only {count}");
        }
        let known = |what: &str| least.iter().any(|(known, _)| *known == what);
        let unknown = counts.iter().find(|(what, count)| **count > 0 && !known(what));
        assert_eq!(unknown, None, "what is counted has a minimum");
    }
}

// === impl Schedules ===

impl<S> Schedules<'_, S>
where
    S: Strategy,
    S::Value: Clone + Debug,
{
    /// Runs `test` on so many schedules as `HOMEOSTAT_CASES` says, or as it takes for
    /// `HOMEOSTAT_OPERATIONS` steps. Panics with the shortest one that fails, if any does.
    pub(crate) fn check(&self, test: impl Fn(&[S::Value], &Tally)) {
        let wanted = number("HOMEOSTAT_OPERATIONS");
        // Half of the longest on average; a little more, because it is only an average.
        let enough = wanted * 21 / (self.longest as u64 * 10);
        let cases = enough.max(number("HOMEOSTAT_CASES")).max(256);
        let config = Config {
            cases: u32::try_from(cases).unwrap_or(u32::MAX),
            failure_persistence: None,
            ..Config::default()
        };
        let tally = Tally::default();
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let steps = vec(&self.step, 1..self.longest);
        let result = TestRunner::new_with_rng(config, rng).run(&steps, |steps| {
            tally.operations.update(|count| count + steps.len() as u64);
            test(&steps, &tally);
            Ok::<_, TestCaseError>(())
        });
        match result {
            Ok(()) => tally.check(self.least, wanted),
            Err(TestError::Fail(_, steps)) => {
                panic!("shortest schedule: {}", tell(&shorten(steps, &test), &test))
            }
            Err(aborted) => panic!("{aborted}"),
        }
    }
}

/// Leaves out of a failing schedule what it fails without. (proptest makes the steps simple, and does not
/// come back to those that it could leave out since.)
fn shorten<Step: Clone>(mut steps: Vec<Step>, test: impl Fn(&[Step], &Tally)) -> Vec<Step> {
    let fails =
        |steps: &[Step]| catch_unwind(AssertUnwindSafe(|| test(steps, &Tally::default()))).is_err();
    let hook = take_hook();
    set_hook(Box::new(|_| {})); // each attempt would be printed
    let mut place = 0;
    while place < steps.len() {
        let mut shorter = steps.clone();
        shorter.remove(place);
        if fails(&shorter) {
            (steps, place) = (shorter, 0);
        } else {
            place += 1;
        }
    }
    set_hook(hook);
    steps
}

/// Runs a failing schedule once more, and tells what it does.
fn tell<Step: Debug>(steps: &[Step], test: impl Fn(&[Step], &Tally)) -> String {
    let tally = Tally { told: RefCell::new(Some(Vec::new())), ..Tally::default() };
    let failure = catch_unwind(AssertUnwindSafe(|| test(steps, &tally)));
    let told = tally.told.take().unwrap_or_default();
    let outcome = if failure.is_err() { "fails" } else { "does not fail when it is told" };
    format!("{} → {outcome}\n{steps:?}", told.join("; "))
}

fn number(variable: &str) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(0)
}
