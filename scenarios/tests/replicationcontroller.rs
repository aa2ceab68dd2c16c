//! Every scenario of the `ReplicationController` controller on every target.

mod three_targets;

use homeostat_scenarios::{ALL, NEIGHBOURS, PodOwner, UPSTREAM, World};

fn main() {
    three_targets::run(
        &[ALL, NEIGHBOURS, UPSTREAM].concat(),
        |scenario| scenario.name,
        async |scenario, target| {
            let world = World::start(target).await?;
            let mut world = world.with_pod_owner(PodOwner::ReplicationController);
            let outcome = (scenario.play)(&mut world).await;
            outcome.map_err(|error| error.context(format!("faults:\n{}", world.faults().trace())))
        },
    );
}
