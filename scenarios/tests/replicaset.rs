//! Every scenario on every target, each test named by both. What needs the real control plane is
//! reported as ignored where its binaries are not; `HOMEOSTAT_REQUIRE_CONTROL_PLANE=1` forbids that.

use std::time::Duration;

use homeostat_apiserver::control_plane::Binaries;
use homeostat_scenarios::{ALL, Scenario, Target, World};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let mut arguments = Arguments::from_args();
    // The worlds share two cores and measure deadlines in real time: one after the other.
    arguments.test_threads.get_or_insert(1);
    let missing = Binaries::find().err();
    if let Some(missing) = &missing {
        let required = std::env::var_os("HOMEOSTAT_REQUIRE_CONTROL_PLANE").is_some();
        assert!(!required, "{missing}");
    }
    let trials = [Target::InProcess, Target::Socket, Target::ControlPlane]
        .into_iter()
        .flat_map(|target| ALL.iter().map(move |scenario| trial(*scenario, target)))
        .map(|(trial, target)| {
            trial.with_ignored_flag(target == Target::ControlPlane && missing.is_some())
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(scenario: Scenario, target: Target) -> (Trial, Target) {
    let place = match target {
        Target::InProcess => "embedded, in virtual time",
        Target::Socket => "embedded, over a socket",
        Target::ControlPlane => "real kube-apiserver",
    };
    let name = format!("{} ({place})", scenario.name);
    (Trial::test(name, move || play(scenario, target)), target)
}

fn play(scenario: Scenario, target: Target) -> Result<(), Failed> {
    let virtual_time = target == Target::InProcess;
    let runtime = if virtual_time {
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
    }?;
    let outcome = runtime.block_on(async {
        let mut world = World::start(target).await?;
        let played = tokio::time::timeout(Duration::from_secs(300), (scenario.play)(&mut world));
        let outcome = match played.await {
            Ok(outcome) => outcome,
            Err(_) => Err(anyhow::anyhow!("the scenario did not end within 300 s")),
        };
        outcome.map_err(|error| error.context(format!("faults:\n{}", world.faults().trace())))
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    outcome.map_err(|error| Failed::from(format!("{error:?}")))
}
