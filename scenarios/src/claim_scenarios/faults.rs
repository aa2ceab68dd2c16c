//! Faults between the controller and the server.

use anyhow::ensure;
use homeostat_faults::{ApiError, Calls};

use super::REST;
use crate::World;
use crate::resource_claims::{ResourceClaims, pod};

pub(super) async fn lost_reply(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    user.create_template().await?;
    let lost = world.faults().lose_reply(Calls::create("resourceclaims"));
    let controller = world.run_claim_controller();
    // The first claim shows that the watch of claims runs.
    user.create_pod(&pod("first", 1)).await?;
    let mut expected = user.wait_for_names("first", 1).await?;
    let lost_again = world.faults().lose_reply(Calls::create("resourceclaims"));
    // The informer does not show the second claim.
    let held = world.faults().hold_watches("resourceclaims");
    user.create_pod(&pod("web", 1)).await?;
    let names = user.wait_for_names("web", 1).await?;
    drop(held);
    tokio::time::sleep(REST).await;
    ensure!(lost.hits() + lost_again.hits() == 2, "both replies were lost");
    expected.extend(names);
    expected.sort();
    ensure!(user.names().await? == expected, "there is one claim per entry");
    controller.stop().await
}

pub(super) async fn killed_controller(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    user.create_template().await?;
    let apply = Calls::patch("pods").subresource("status");
    world.faults().refuse(apply.always(), ApiError::internal_error());
    let controller = world.run_claim_controller();
    user.create_pod(&pod("web", 3)).await?;
    user.wait("the claims are created", async || Ok(user.names().await?.len() == 3)).await?;
    drop(controller);
    world.faults().heal();
    let controller = world.run_claim_controller();
    let names = user.wait_for_names("web", 3).await?;
    tokio::time::sleep(REST).await;
    let mut claims = user.names().await?;
    claims.sort();
    let mut sorted = names;
    sorted.sort();
    ensure!(claims == sorted, "one claim per entry: {claims:?}");
    controller.stop().await
}

pub(super) async fn torn_watches(world: &mut World) -> anyhow::Result<()> {
    let user = ResourceClaims::new(world.user());
    let controller = world.run_claim_controller();
    user.create_template().await?;
    for n in 0..6 {
        user.create_pod(&pod(&format!("web-{n}"), 1)).await?;
        if n % 2 == 0 {
            tear_watches(world);
        }
    }
    for n in 0..6 {
        user.wait_for_names(&format!("web-{n}"), 1).await?;
        user.finish(&format!("web-{n}")).await?;
        tear_watches(world);
    }
    user.wait_for_claims(&[]).await?;
    controller.stop().await
}

fn tear_watches(world: &World) {
    for resource in ["pods", "resourceclaims", "resourceclaimtemplates"] {
        world.faults().tear_watches(resource);
    }
}
