//! Every scenario of the `ReplicaSet` controller on every target.

mod three_targets;

use homeostat_scenarios::{
    ALL, NEIGHBOURS, NEIGHBOURS_REPLICA_SETS, UPSTREAM, UPSTREAM_REPLICA_SETS, World,
};

fn main() {
    three_targets::run(
        &[ALL, NEIGHBOURS, NEIGHBOURS_REPLICA_SETS, UPSTREAM, UPSTREAM_REPLICA_SETS].concat(),
        |scenario| scenario.name,
        async |scenario, target| {
            let mut world = World::start(target).await?;
            let outcome = (scenario.play)(&mut world).await;
            outcome.map_err(|error| error.context(format!("faults:\n{}", world.faults().trace())))
        },
    );
}
