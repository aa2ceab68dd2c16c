//! How the model tests of the pure parts are run.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Runs `test` on generated values: the same ones each time, more of them with `HOMEOSTAT_CASES`.
pub(crate) fn check<S: Strategy>(strategy: &S, test: impl Fn(S::Value)) {
    let cases = std::env::var("HOMEOSTAT_CASES").ok().and_then(|cases| cases.parse::<u32>().ok());
    let config = Config {
        cases: cases.unwrap_or(0).max(256),
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(strategy, |value| {
        test(value);
        Ok::<_, TestCaseError>(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
