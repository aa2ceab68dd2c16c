//! The same seed gives the same run, byte for byte: every request, response, event and fault.
//!
//! `HOMEOSTAT_CASES` sets the number of seeds.

use std::time::Duration;

use homeostat_apiserver::ServerFault;
use homeostat_faults::{Calls, Chaos};
use homeostat_scenarios::{ReplicaSets, Running};
use homeostat_testing::{Simulation, in_virtual_time};

const DEADLINE: Duration = Duration::from_secs(900);

#[test]
fn same_seed_gives_identical_trace_and_run_converges() {
    let cases = std::env::var("HOMEOSTAT_CASES").ok().and_then(|cases| cases.parse().ok());
    let seeds: u64 = cases.map_or(20, |cases: u64| cases.min(200));
    let mut faults = 0;
    let mut last = String::new();
    for seed in 0..seeds {
        let (first, count) = in_virtual_time(run(seed));
        let (second, _) = in_virtual_time(run(seed));
        if let Some(at) = difference(&first, &second) {
            panic!("seed {seed}: {at}");
        }
        assert_ne!(first, last, "seed {seed} gives the same run as the previous seed");
        faults += count;
        last = first;
    }
    assert!(faults >= usize::try_from(seeds).unwrap_or(0) * 5, "{faults} faults in {seeds} runs");
}

/// Scales a `ReplicaSet` and kills its pods during random faults. Returns the trace and the number
/// of faults.
async fn run(seed: u64) -> (String, usize) {
    let simulation = Simulation::start(seed);
    let (server, faults) = (simulation.server(), simulation.faults());
    faults.trace_traffic();
    let controller = || Calls::any().by("controller");
    faults.chaos(controller(), Chaos::of(0.15));
    faults.chaos(Calls::any().by("kubelet"), Chaos::of(0.05));
    server.fault_after(controller().chance(0.02), ServerFault::ExpireHistory);
    server.fault_before(controller().chance(0.01), ServerFault::Restart);
    let running = Running::in_simulation(&simulation);
    let outcome = workload(&simulation, seed).await;
    faults.heal();
    let outcome = match outcome {
        Ok(replicas) => {
            ReplicaSets::named(simulation.user(), "web").wait_for_replicas(replicas, DEADLINE).await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        panic!("seed {seed}: {error:?}\n{}", faults.trace());
    }
    drop(running);
    let trace = faults.trace();
    (trace.to_string(), trace.faults())
}

async fn workload(simulation: &Simulation, seed: u64) -> anyhow::Result<usize> {
    let web = ReplicaSets::named(simulation.user(), "web");
    web.create(4).await?;
    let mut replicas = 4;
    for round in 0..4 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let pods = web.pods().await?;
        if let Some(name) = pods.first().and_then(|pod| pod.metadata.name.as_deref()) {
            // The controller may have deleted the pod already.
            drop(web.kill(name).await);
        }
        replicas = [7, 3, 0, 5][(usize::try_from(seed)? + round) % 4];
        web.scale(replicas).await?;
    }
    Ok(replicas)
}

/// Returns the first line in which two traces differ.
fn difference(one: &str, other: &str) -> Option<String> {
    let mut lines = one.lines().zip(other.lines()).enumerate();
    let differing = lines.find(|(_, (one, other))| one != other);
    if let Some((at, (one, other))) = differing {
        return Some(format!("line {at}\n{one}\n{other}"));
    }
    (one.len() != other.len()).then(|| "one run goes on where the other has ended".to_owned())
}
