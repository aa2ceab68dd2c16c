//! Runs each scenario on every target, as a test that is named after both.
//!
//! Tests against the real control plane are reported as ignored if its binaries are missing;
//! `HOMEOSTAT_REQUIRE_CONTROL_PLANE=1` makes that an error.

use std::time::Duration;

use homeostat_scenarios::Target;
use homeostat_testing::control_plane::Binaries;
use homeostat_testing::{in_real_time, in_virtual_time};
use libtest_mimic::{Arguments, Failed, Trial};

/// The longest scenario takes a minute on a quiet machine.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the tests of `scenarios`, and ends the process. `play` plays a scenario on a target.
pub(crate) fn run<S, Play>(scenarios: &[S], name: impl Fn(&S) -> &'static str, play: Play) -> !
where
    S: Copy + Send + 'static,
    Play: AsyncFn(S, Target) -> anyhow::Result<()> + Copy + Send + 'static,
{
    let mut arguments = Arguments::from_args();
    // The worlds share two cores and measure timeouts in real time, so they run one after the
    // other.
    arguments.test_threads.get_or_insert(1);
    let missing = Binaries::missing_for_tests();
    let mut trials = Vec::new();
    for target in [Target::InProcess, Target::Socket, Target::ControlPlane] {
        for scenario in scenarios.iter().copied() {
            let name = format!("{} ({})", name(&scenario), place(target));
            let trial = Trial::test(name, move || test(scenario, target, play));
            let is_ignored = target == Target::ControlPlane && missing.is_some();
            trials.push(trial.with_ignored_flag(is_ignored));
        }
    }
    libtest_mimic::run(&arguments, trials).exit()
}

fn place(target: Target) -> &'static str {
    match target {
        Target::InProcess => "embedded, in virtual time",
        Target::Socket => "embedded, over a socket",
        Target::ControlPlane => "real kube-apiserver",
    }
}

fn test<S, Play>(scenario: S, target: Target, play: Play) -> Result<(), Failed>
where
    Play: AsyncFn(S, Target) -> anyhow::Result<()>,
{
    let played = async {
        let played = tokio::time::timeout(TIMEOUT, play(scenario, target)).await;
        played.unwrap_or_else(|_| Err(anyhow::anyhow!("the scenario did not end in {TIMEOUT:?}")))
    };
    let outcome = match target {
        Target::InProcess => in_virtual_time(played),
        Target::Socket | Target::ControlPlane => in_real_time(played),
    };
    outcome.map_err(|error| Failed::from(format!("{error:?}")))
}
