//! Every scenario of the `ResourceQuota` controller on every target.

mod three_targets;

use homeostat_scenarios::{QUOTAS, World};

fn main() {
    three_targets::run(
        QUOTAS,
        |scenario| scenario.name,
        async |scenario, target| {
            let mut world = World::start(target).await?;
            let outcome = (scenario.play)(&mut world).await;
            outcome.map_err(|error| error.context(format!("faults:\n{}", world.faults().trace())))
        },
    );
}
