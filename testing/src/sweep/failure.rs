//! [`SweepFailure`]: the plan that failed, with its reason and the command that repeats it.

use std::{fmt, thread};

use homeostat_faults::Trace;

use super::Plan;
use super::choice::ONLY;

/// The first plan whose run failed or ended in another state. Plans are tried from the first call
/// or event on, so it is the shortest one.
pub struct SweepFailure {
    failed: Failed,
    seed: u64,
    why: String,
    trace: Box<Trace>,
    /// The arguments that select the test, or nothing if it has no name.
    test: String,
}

/// Names the plan of a run if the story or the controller panics in it.
pub(super) struct NamedPanic<'a>(pub(super) &'a Plan);

/// The part of a sweep that failed.
pub(super) enum Failed {
    /// The run without faults.
    Reference,
    /// The choice of a plan by its name.
    Choice,
    /// The run with the faults of this plan.
    Run(Plan),
}

// === impl SweepFailure ===

impl SweepFailure {
    pub(super) fn new(failed: Failed, seed: u64, why: String, trace: Trace) -> Self {
        Self { failed, seed, why, trace: Box::new(trace), test: test() }
    }

    /// Returns the plan; `None` if the run without faults failed, or the variable `HOMEOSTAT_PLAN`
    /// names no plan.
    pub fn plan(&self) -> Option<Plan> {
        match &self.failed {
            Failed::Run(plan) => Some(plan.clone()),
            Failed::Reference | Failed::Choice => None,
        }
    }
}

impl fmt::Display for SweepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failed {
            Failed::Choice => f.write_str(&self.why),
            Failed::Reference => {
                write!(f, "the run without faults failed (seed {}): {}", self.seed, self.why)
            }
            Failed::Run(plan) => write!(
                f,
                "{plan} (seed {}): {}\nfaults:\n{}repeat it: {ONLY}=\"{plan}\" cargo test{}",
                self.seed, self.why, self.trace, self.test
            ),
        }
    }
}

/// Writes the message, so that `unwrap` shows it.
impl fmt::Debug for SweepFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SweepFailure {}

// === impl NamedPanic ===

impl Drop for NamedPanic<'_> {
    #[expect(clippy::print_stderr, reason = "a panic has no other way to report the plan")]
    fn drop(&mut self) {
        if thread::panicking() {
            let Self(plan) = self;
            eprintln!("in the run of {plan}; repeat it: {ONLY}=\"{plan}\" cargo test{}", test());
        }
    }
}

/// Returns the arguments that select the running test, or nothing if it has no name.
fn test() -> String {
    // The harness of Rust's tests names the thread of a test after it.
    let name = thread::current().name().filter(|name| *name != "main").map(str::to_owned);
    name.map(|name| format!(" -- --exact {name}")).unwrap_or_default()
}
