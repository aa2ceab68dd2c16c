//! The scene that the example plays: what a `ReplicaSet` goes through in its life, step by step.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::kube_client::Client;
use tokio::time::Instant;

use crate::ReplicaSets;

/// How long one step may take to converge.
const DEADLINE: Duration = Duration::from_secs(20);

/// What happened in one step.
#[derive(Debug)]
pub struct Step {
    /// What was asked, as a user would say it.
    pub asked: &'static str,
    /// What the controller did.
    pub done: String,
    /// From the request to the state that was asked for.
    pub took: Duration,
}

/// Creates a `ReplicaSet`, scales it, kills, adopts and releases pods, and deletes it all; `tell`
/// hears of each step when it has converged.
///
/// # Errors
///
/// The first step that did not converge, and what there was instead.
pub async fn play(client: &Client, mut tell: impl FnMut(Step)) -> anyhow::Result<()> {
    let web = ReplicaSets::named(client, "web");
    for step in STEPS {
        let (done, took) = match step {
            Play::Create => create(&web).await,
            Play::Scale => scale(&web).await,
            Play::Kill => kill(&web).await,
            Play::Adopt => adopt(&web).await,
            Play::Release => release(&web).await,
            Play::ScaleToZero => scale_to_zero(&web).await,
            Play::Delete => delete(&web).await,
        }
        .with_context(|| format!("asked to {}", step.asked()))?;
        tell(Step { asked: step.asked(), done, took });
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
    fn asked(self) -> &'static str {
        match self {
            Self::Create => "create a ReplicaSet `web` with 3 replicas",
            Self::Scale => "scale it to 5",
            Self::Kill => "kill one of its pods",
            Self::Adopt => {
                "give a running pod that nobody owns, `stray`, the label that it selects"
            }
            Self::Release => "give one pod a label that no longer matches",
            Self::ScaleToZero => "scale to 0",
            Self::Delete => "scale to 2, then delete the ReplicaSet",
        }
    }
}

type Outcome = anyhow::Result<(String, Duration)>;

async fn create(web: &ReplicaSets) -> Outcome {
    let asked = Instant::now();
    web.create(3).await?;
    web.converged(3, DEADLINE).await?;
    let took = asked.elapsed();
    Ok((format!("created {}", names_of(web).await?.join(", ")), took))
}

async fn scale(web: &ReplicaSets) -> Outcome {
    let before = names_of(web).await?;
    let asked = Instant::now();
    web.scale(5).await?;
    web.converged(5, DEADLINE).await?;
    let took = asked.elapsed();
    Ok((format!("created {}", only_in(&names_of(web).await?, &before)), took))
}

async fn kill(web: &ReplicaSets) -> Outcome {
    let before = names_of(web).await?;
    let victim = before.first().context("there is a pod to kill")?;
    let asked = Instant::now();
    web.kill(victim).await?;
    web.converged(5, DEADLINE).await?;
    let took = asked.elapsed();
    let created = only_in(&names_of(web).await?, &before);
    Ok((format!("{victim} is gone; created {created}"), took))
}

async fn adopt(web: &ReplicaSets) -> Outcome {
    let before = names_of(web).await?;
    web.create_stray("stray", DEADLINE).await?;
    let asked = Instant::now();
    web.label("stray").await?;
    web.converged(5, DEADLINE).await?;
    let took = asked.elapsed();
    let after = names_of(web).await?;
    ensure!(after.iter().any(|name| name == "stray"), "`stray` was not kept");
    let deleted = only_in(&before, &after);
    Ok((format!("adopted `stray`; deleted {deleted}, now one too many"), took))
}

async fn release(web: &ReplicaSets) -> Outcome {
    let before = names_of(web).await?;
    let released = before.last().context("there is a pod to release")?;
    let asked = Instant::now();
    web.relabel(released).await?;
    web.converged(5, DEADLINE).await?;
    let owners = web.released(released, DEADLINE).await;
    let took = asked.elapsed();
    owners?;
    let created = only_in(&names_of(web).await?, &before);
    // It is nobody's now: the scene tidies up after itself.
    web.kill(released).await?;
    Ok((format!("released {released}; created {created}"), took))
}

async fn scale_to_zero(web: &ReplicaSets) -> Outcome {
    let asked = Instant::now();
    web.scale(0).await?;
    web.converged(0, DEADLINE).await?;
    Ok(("deleted all 5".to_owned(), asked.elapsed()))
}

async fn delete(web: &ReplicaSets) -> Outcome {
    web.scale(2).await?;
    web.converged(2, DEADLINE).await?;
    let asked = Instant::now();
    web.delete().await?;
    web.gone(DEADLINE).await?;
    let took = asked.elapsed();
    Ok(("nothing: the garbage collector deleted its 2 pods".to_owned(), took))
}

async fn names_of(web: &ReplicaSets) -> anyhow::Result<Vec<String>> {
    Ok(web.pods().await?.into_iter().filter_map(|pod| pod.metadata.name).collect())
}

fn only_in(these: &[String], not_in_those: &[String]) -> String {
    let only = these.iter().filter(|name| !not_in_those.contains(name)).cloned();
    only.collect::<Vec<_>>().join(", ")
}
