//! Runs models: generates schedules, counts what they exercise, and reports the shortest schedule
//! that fails.
//!
//! proptest generates and simplifies the schedules. What is added here: a minimum for each
//! situation, so that a change of the generator that no longer reaches a situation fails the test,
//! and a second pass that removes single steps from a failing schedule.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use proptest::collection::vec;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// Counts the situations that a model's schedules exercise, and records the steps of a schedule
/// that fails.
#[derive(Default)]
pub(crate) struct Tally {
    /// The number of times that each situation occurred, in all schedules of the run.
    counts: RefCell<BTreeMap<&'static str, u64>>,
    /// The number of generated steps, in all schedules of the run.
    operations: Cell<u64>,
    /// The steps of the current schedule; `None` unless they are recorded.
    recorded: RefCell<Option<Vec<String>>>,
}

/// Generated schedules of one type of step; each run generates the same schedules.
pub(crate) struct Schedules<'a, S> {
    /// Generates one step.
    pub(crate) step: S,
    /// The largest number of steps in a schedule.
    pub(crate) longest: usize,
    /// The lowest count of each situation per 10,000 operations.
    pub(crate) least: &'a [(&'static str, u64)],
}

// === impl Tally ===

impl Tally {
    /// Adds to the count of a situation.
    pub(crate) fn count(&self, what: &'static str, by: usize) {
        *self.counts.borrow_mut().entry(what).or_default() += by as u64;
    }

    /// Records the step that runs next, if steps are recorded.
    pub(crate) fn record_step(&self, step: impl FnOnce() -> String) {
        if let Some(recorded) = &mut *self.recorded.borrow_mut() {
            recorded.push(step());
        }
    }

    /// Records the outcome of the last step, if steps are recorded.
    pub(crate) fn record_outcome(&self, outcome: impl FnOnce() -> String) {
        if let Some(last) = self.recorded.borrow_mut().as_mut().and_then(|steps| steps.last_mut()) {
            *last += " → ";
            *last += &outcome();
        }
    }

    /// Prints the counts and checks them against their minimum.
    ///
    /// # Panics
    ///
    /// If fewer than `wanted` steps ran, if a situation is below its minimum, or if a counted
    /// situation has none.
    #[expect(clippy::print_stdout, reason = "a model reports what it exercised")]
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
        assert_eq!(unknown, None, "each counted situation has a minimum");
    }
}

// === impl Schedules ===

impl<S> Schedules<'_, S>
where
    S: Strategy,
    S::Value: Clone + Debug,
{
    /// Runs `test` on `HOMEOSTAT_CASES` schedules (at least 256), or on as many as
    /// `HOMEOSTAT_OPERATIONS` steps need.
    ///
    /// # Panics
    ///
    /// If a schedule fails; the message contains the shortest schedule that fails.
    pub(crate) fn check(&self, test: impl Fn(&[S::Value], &Tally)) {
        let wanted = number("HOMEOSTAT_OPERATIONS");
        // The average schedule has half the steps of the longest; 5 % more schedules allow for
        // deviations from it.
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
                panic!("shortest schedule: {}", replay(&shorten(steps, &test), &test))
            }
            Err(aborted) => panic!("{aborted}"),
        }
    }
}

/// Removes the steps that a schedule does not need in order to fail.
///
/// proptest simplifies the steps, but does not retry removals that simpler steps have made
/// possible.
fn shorten<Step: Clone>(mut steps: Vec<Step>, test: impl Fn(&[Step], &Tally)) -> Vec<Step> {
    let fails =
        |steps: &[Step]| catch_unwind(AssertUnwindSafe(|| test(steps, &Tally::default()))).is_err();
    let hook = take_hook();
    set_hook(Box::new(|_| {})); // otherwise the panic of each attempt is printed
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

/// Runs a failing schedule again and returns a description of its steps.
fn replay<Step: Debug>(steps: &[Step], test: impl Fn(&[Step], &Tally)) -> String {
    let tally = Tally { recorded: RefCell::new(Some(Vec::new())), ..Tally::default() };
    let failure = catch_unwind(AssertUnwindSafe(|| test(steps, &tally)));
    let recorded = tally.recorded.take().unwrap_or_default();
    let outcome = if failure.is_err() { "fails" } else { "does not fail when it is replayed" };
    format!("{} → {outcome}\n{steps:?}", recorded.join("; "))
}

/// Reads a number from the environment; 0 if the variable is not set or is no number.
fn number(variable: &str) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(0)
}
