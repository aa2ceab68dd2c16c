//! The scene of the example: the life of a `ReplicaSet`, step by step.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::kube_client::Client;
use tokio::time::Instant;

use crate::ReplicaSets;

/// The timeout of one step.
const DEADLINE: Duration = Duration::from_secs(20);

/// The result of one step.
#[derive(Debug)]
pub struct Step {
    /// The user's request.
    pub request: &'static str,
    /// The controller's actions.
    pub done: String,
    /// The time from the request to the requested state.
    pub took: Duration,
}

/// Creates a `ReplicaSet`, scales it, kills, adopts and releases pods, and deletes everything.
/// Calls `report` after each step.
///
/// # Errors
///
/// Returns the first step that did not converge, with the actual state.
pub async fn play(client: &Client, report: impl FnMut(Step)) -> anyhow::Result<()> {
    play_with(&ReplicaSets::named(client, "web"), report).await
}

/// Plays the scene with `web`, which does not exist yet.
///
/// # Errors
///
/// Returns the first step that did not converge, with the actual state.
pub async fn play_with(web: &ReplicaSets, mut report: impl FnMut(Step)) -> anyhow::Result<()> {
    for step in STEPS {
        let (done, took) = match step {
            Play::Create => create(web).await,
            Play::Scale => scale(web).await,
            Play::Kill => kill(web).await,
            Play::Adopt => adopt(web).await,
            Play::Release => release(web).await,
            Play::ScaleToZero => scale_to_zero(web).await,
            Play::Delete => delete(web).await,
        }
        .with_context(|| format!("cannot {}", step.request()))?;
        report(Step { request: step.request(), done, took });
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Play {
    Create,
    Scale,
    Kill,
    Adopt,
    Release,
    ScaleToZero,
    Delete,
}

const STEPS: [Play; 7] = [
    Play::Create,
    Play::Scale,
    Play::Kill,
    Play::Adopt,
    Play::Release,
    Play::ScaleToZero,
    Play::Delete,
];

impl Play {
    fn request(self) -> &'static str {
        match self {
            Self::Create => "create a ReplicaSet `web` with 3 replicas",
            Self::Scale => "scale it to 5",
            Self::Kill => "kill one of its pods",
            Self::Adopt => {
                "give a running pod without an owner, `stray`, the label that it selects"
            }
            Self::Release => "give one pod a label that no longer matches",
            Self::ScaleToZero => "scale to 0",
            Self::Delete => "scale to 2, then delete the ReplicaSet",
        }
    }
}

type Outcome = anyhow::Result<(String, Duration)>;

async fn create(web: &ReplicaSets) -> Outcome {
    let started = Instant::now();
    web.create(3).await?;
    web.wait_for_replicas(3, DEADLINE).await?;
    let took = started.elapsed();
    Ok((format!("created {}", names_of(web).await?.join(", ")), took))
}

async fn scale(web: &ReplicaSets) -> Outcome {
    let before = names_of(web).await?;
    let started = Instant::now();
    web.scale(5).await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    let took = started.elapsed();
    Ok((format!("created {}", only_in(&names_of(web).await?, &before)), took))
}

async fn kill(web: &ReplicaSets) -> Outcome {
    let before = names_of(web).await?;
    let victim = before.first().context("there is a pod to kill")?;
    let started = Instant::now();
    web.kill(victim).await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    let took = started.elapsed();
    let created = only_in(&names_of(web).await?, &before);
    Ok((format!("{victim} is gone; created {created}"), took))
}

async fn adopt(web: &ReplicaSets) -> Outcome {
    let before = names_of(web).await?;
    web.create_stray("stray", DEADLINE).await?;
    let started = Instant::now();
    web.label("stray").await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    let took = started.elapsed();
    let after = names_of(web).await?;
    ensure!(after.iter().any(|name| name == "stray"), "`stray` was not kept");
    let deleted = only_in(&before, &after);
    Ok((format!("adopted `stray`; deleted {deleted}, now one too many"), took))
}

async fn release(web: &ReplicaSets) -> Outcome {
    let before = names_of(web).await?;
    let released = before.last().context("there is a pod to release")?;
    let started = Instant::now();
    web.relabel(released).await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    let owners = web.wait_for_release(released, DEADLINE).await;
    let took = started.elapsed();
    owners?;
    let created = only_in(&names_of(web).await?, &before);
    // The pod has no owner now: the scene deletes it.
    web.kill(released).await?;
    Ok((format!("released {released}; created {created}"), took))
}

async fn scale_to_zero(web: &ReplicaSets) -> Outcome {
    let started = Instant::now();
    web.scale(0).await?;
    web.wait_for_replicas(0, DEADLINE).await?;
    Ok(("deleted all 5".to_owned(), started.elapsed()))
}

async fn delete(web: &ReplicaSets) -> Outcome {
    web.scale(2).await?;
    web.wait_for_replicas(2, DEADLINE).await?;
    let started = Instant::now();
    web.delete().await?;
    web.wait_for_deletion(DEADLINE).await?;
    let took = started.elapsed();
    Ok(("nothing: the garbage collector deleted its 2 pods".to_owned(), took))
}

async fn names_of(web: &ReplicaSets) -> anyhow::Result<Vec<String>> {
    Ok(web.pods().await?.into_iter().filter_map(|pod| pod.metadata.name).collect())
}

fn only_in(these: &[String], not_in_those: &[String]) -> String {
    let only = these.iter().filter(|name| !not_in_those.contains(name)).cloned();
    only.collect::<Vec<_>>().join(", ")
}
