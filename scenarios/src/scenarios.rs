//! The scenarios. Each runs on every [`Target`](crate::Target) unless it says otherwise.

use std::time::Duration;

use anyhow::ensure;
use futures::future::LocalBoxFuture;
use homeostat_apiserver::faults::Calls;

use crate::{Census, ReplicaSets, World, scene};

/// How long a world may take to converge after a fault: the back-off of a torn watch is below two
/// seconds at first, a restarted kube-apiserver takes about three to be ready.
const DEADLINE: Duration = Duration::from_secs(60);

/// A name, and what happens.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// A sentence: the name of the test.
    pub name: &'static str,
    /// Plays it in a fresh world.
    pub play: for<'a> fn(&'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>>,
}

/// All of them.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "a_replica_set_lives_its_whole_life",
        play: |world| Box::pin(whole_life(world)),
    },
    Scenario { name: "a_torn_watch_loses_nothing", play: |world| Box::pin(torn_watch(world)) },
    Scenario {
        name: "an_expired_watch_is_followed_by_a_list",
        play: |world| Box::pin(expired_watch(world)),
    },
    Scenario {
        name: "a_restart_of_the_server_is_survived",
        play: |world| Box::pin(server_restart(world)),
    },
    Scenario {
        name: "a_create_whose_reply_is_lost_is_counted",
        play: |world| Box::pin(lost_reply(world)),
    },
    Scenario {
        name: "a_killed_controller_is_followed_by_another",
        play: |world| Box::pin(killed_controller(world)),
    },
    Scenario {
        name: "a_stopped_controller_ends_within_seconds",
        play: |world| Box::pin(stopped_controller(world)),
    },
];

async fn whole_life(world: &mut World) -> anyhow::Result<()> {
    let controller = world.run_controller();
    let mut steps = 0;
    scene::play(world.user(), |_| steps += 1).await?;
    ensure!(steps == 7, "the scene has seven steps, {steps} were told");
    controller.stop().await
}

/// Scales up while the watches break, again and again.
async fn torn_watch(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = ReplicaSets::named(world.user(), "torn");
    web.create(3).await?;
    web.converged(3, DEADLINE).await?;
    let mut torn = 0;
    for replicas in [8, 2, 12] {
        torn += world.faults().tear_watches("pods");
        web.scale(replicas).await?;
        torn += world.faults().tear_watches("replicasets");
        web.converged(replicas, DEADLINE).await?;
    }
    ensure!(torn >= 4, "only {torn} watches were torn");
    ensure!(census.most_alive() <= 12, "{} pods were alive at once", census.most_alive());
    controller.stop().await
}

/// Each watch is told that its version is too old: what happened meanwhile comes by a list.
async fn expired_watch(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = ReplicaSets::named(world.user(), "expired");
    web.create(4).await?;
    web.converged(4, DEADLINE).await?;
    let expired = world.faults().expire_watches("pods");
    ensure!(expired >= 1, "no watch of pods was open");
    let victim = web.pods().await?.remove(0).metadata.name.unwrap_or_default();
    web.kill(&victim).await?;
    web.converged(4, DEADLINE).await?;
    world.faults().expire_watches("replicasets");
    web.scale(6).await?;
    web.converged(6, DEADLINE).await?;
    ensure!(census.most_alive() <= 6, "{} pods were alive at once", census.most_alive());
    controller.stop().await
}

/// The server goes away between the request and its outcome.
async fn server_restart(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = ReplicaSets::named(world.user(), "restarted");
    web.create(3).await?;
    web.converged(3, DEADLINE).await?;
    web.scale(7).await?;
    world.restart_api_server().await?;
    web.converged(7, DEADLINE).await?;
    web.scale(1).await?;
    web.converged(1, DEADLINE).await?;
    // A create that was under way when the server went may have lost its reply.
    ensure!(census.most_alive() <= 8, "{} pods were alive at once", census.most_alive());
    controller.stop().await
}

/// Two creates are carried out, and nobody hears of it.
async fn lost_reply(world: &mut World) -> anyhow::Result<()> {
    const LOST: usize = 2;
    let census = Census::start(world.user().clone(), "default").await?;
    for nth in [2, 4] {
        world.faults().lose_reply(Calls::create("pods").nth(nth));
    }
    let controller = world.run_controller();
    let web = ReplicaSets::named(world.user(), "lossy");
    web.create(10).await?;
    web.converged(10, DEADLINE).await?;
    let lost = world.faults().trace().faults();
    ensure!(lost == LOST, "{lost} replies were lost:\n{}", world.faults().trace());
    let most = census.most_alive();
    ensure!(most <= 10 + LOST, "{most} pods were alive at once, with {LOST} replies lost");
    // It stays so: the last uncertainty is settled, and nothing is created on top.
    tokio::time::sleep(Duration::from_secs(2)).await;
    web.converged(10, DEADLINE).await?;
    controller.stop().await
}

/// A controller dies in the middle of its work; the next one starts with empty caches.
async fn killed_controller(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = ReplicaSets::named(world.user(), "killed");
    web.create(20).await?;
    while census.alive() < 5 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(controller);
    let successor = world.run_controller();
    web.converged(20, DEADLINE).await?;
    // What the first had sent when it died may be committed after the second has listed.
    ensure!(census.ever() <= 20 + 16, "{} pods were created", census.ever());
    successor.stop().await
}

async fn stopped_controller(world: &mut World) -> anyhow::Result<()> {
    let controller = world.run_controller();
    let web = ReplicaSets::named(world.user(), "stopped");
    web.create(5).await?;
    web.converged(5, DEADLINE).await?;
    web.scale(50).await?;
    controller.stop().await?;
    // Whatever was in the making: the next one completes it.
    let successor = world.run_controller();
    web.converged(50, DEADLINE).await?;
    successor.stop().await
}
