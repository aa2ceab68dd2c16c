//! Runs the model tests of this crate: generates schedules and counts the situations that they
//! cover.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::collection::vec;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Counts of the situations that a model test has covered.
#[derive(Default)]
pub(crate) struct Tally(RefCell<BTreeMap<&'static str, u64>>);

impl Tally {
    pub(crate) fn count(&self, what: &'static str, by: usize) {
        *self.0.borrow_mut().entry(what).or_default() += by as u64;
    }
}

/// Runs `test` on generated schedules of up to `longest` steps, the same ones in each run.
///
/// There are 256 schedules, or as many as it takes for `HOMEOSTAT_OPERATIONS` steps. Each situation
/// in `least` must occur at least that often per 10,000 steps.
#[expect(clippy::print_stdout, reason = "reports the covered situations")]
pub(crate) fn check<S: Strategy<Value: Debug + Clone>>(
    step: S,
    longest: usize,
    least: &[(&'static str, u64)],
    test: impl Fn(&[S::Value], &Tally),
) {
    let wanted = std::env::var("HOMEOSTAT_OPERATIONS").ok();
    let wanted = wanted.and_then(|wanted| wanted.parse::<u64>().ok()).unwrap_or(0);
    // A schedule has about half of `longest` steps on average; 5 % are added because it is only an
    // average.
    let cases = (wanted * 21 / (longest as u64 * 10)).max(256);
    let cases = u32::try_from(cases).unwrap_or(u32::MAX);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let tally = Tally::default();
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng).run(&vec(step, 1..longest), |steps| {
        tally.count("steps", steps.len());
        test(&steps, &tally);
        Ok::<_, TestCaseError>(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let counts = tally.0.into_inner();
    let steps = counts.get("steps").copied().unwrap_or(0);
    assert!(steps >= wanted, "only {steps} steps of {wanted}");
    println!("{counts:?}");
    for (what, count) in &counts {
        let minimum = least.iter().find(|(known, _)| known == what);
        assert!(*what == "steps" || minimum.is_some(), "{what} is counted and has no minimum");
        let (_, per_ten_thousand) = minimum.unwrap_or(&("", 0));
        assert!(count * 10_000 >= per_ten_thousand * steps, "{what}: only {count} in {steps}");
    }
    for (what, _) in least {
        assert!(counts.contains_key(what), "{what} never happened");
    }
}
