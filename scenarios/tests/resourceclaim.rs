//! Every scenario of the `ResourceClaim` controller on every target.

mod three_targets;

use homeostat_scenarios::{CLAIMS, World, record_warnings};

fn main() {
    record_warnings();
    three_targets::run(
        CLAIMS,
        |scenario| scenario.name,
        async |scenario, target| {
            let mut world = World::start(target).await?;
            let outcome = (scenario.play)(&mut world).await;
            outcome.map_err(|error| error.context(format!("faults:\n{}", world.faults().trace())))
        },
    );
}
