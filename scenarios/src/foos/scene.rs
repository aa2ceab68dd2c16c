//! The scene of the example: the life of a Foo, step by step.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use homeostat::kube_client::Client;
use tokio::time::Instant;

use super::user::Foos;
use crate::scene::Step;

/// The timeout of one step.
const DEADLINE: Duration = Duration::from_secs(60);

/// Creates a Foo, scales it, deletes its Deployment, takes its name and then deletes the Foo. Calls
/// `report` after each step. The definition of Foo is installed already.
///
/// # Errors
///
/// Returns the first step that did not converge, with the actual state.
pub async fn play(client: &Client, mut report: impl FnMut(Step)) -> anyhow::Result<()> {
    let user = Foos::new(client);
    for step in STEPS {
        let started = Instant::now();
        let done = match step {
            Play::Create => create(&user).await,
            Play::Scale => scale(&user).await,
            Play::DeleteDeployment => delete_deployment(&user).await,
            Play::TakeName => take_name(&user).await,
            Play::DeleteFoo => delete_foo(&user).await,
            Play::CleanUp => clean_up(&user).await,
        }
        .with_context(|| format!("cannot {}", step.request()))?;
        report(Step { request: step.request(), done, took: started.elapsed() });
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Play {
    Create,
    Scale,
    DeleteDeployment,
    TakeName,
    DeleteFoo,
    CleanUp,
}

const STEPS: [Play; 6] = [
    Play::Create,
    Play::Scale,
    Play::DeleteDeployment,
    Play::TakeName,
    Play::DeleteFoo,
    Play::CleanUp,
];

impl Play {
    fn request(self) -> &'static str {
        match self {
            Self::Create => "create the Foo `web` with 2 replicas of the Deployment `nginx`",
            Self::Scale => "scale it to 4",
            Self::DeleteDeployment => "delete the Deployment",
            Self::TakeName => "create a second Foo, `late`, that names the same Deployment",
            Self::DeleteFoo => "delete the Foo `web`",
            Self::CleanUp => "delete the Foo `late`, in the foreground",
        }
    }
}

async fn create(user: &Foos) -> anyhow::Result<String> {
    user.create("web", "nginx", 2).await?;
    user.wait_for("web", 2, DEADLINE).await?;
    let message = user.wait_for_event("web", "Synced", DEADLINE).await?;
    Ok(format!("created the Deployment; 2 replicas are available; event: {message}"))
}

async fn scale(user: &Foos) -> anyhow::Result<String> {
    let uid = user.deployment_uid("nginx").await?;
    user.scale("web", 4).await?;
    user.wait_for("web", 4, DEADLINE).await?;
    ensure!(user.deployment_uid("nginx").await? == uid, "it is another Deployment");
    Ok("scaled the Deployment; 4 replicas are available".to_owned())
}

async fn delete_deployment(user: &Foos) -> anyhow::Result<String> {
    let uid = user.deployment_uid("nginx").await?;
    user.delete_deployment("nginx").await?;
    user.wait_for("web", 4, DEADLINE).await?;
    ensure!(user.deployment_uid("nginx").await? != uid, "it is the same Deployment");
    Ok("created it again".to_owned())
}

async fn take_name(user: &Foos) -> anyhow::Result<String> {
    user.create("late", "nginx", 1).await?;
    let message = user.wait_for_event("late", "ErrResourceExists", DEADLINE).await?;
    user.wait_for("web", 4, DEADLINE).await?;
    Ok(format!("changed nothing; event: {message}"))
}

async fn delete_foo(user: &Foos) -> anyhow::Result<String> {
    user.delete("web").await?;
    // `late` is woken when the garbage collector deletes the Deployment of `web`.
    user.wait_for("late", 1, DEADLINE).await?;
    Ok("gave the name to `late`, which waited for it".to_owned())
}

async fn clean_up(user: &Foos) -> anyhow::Result<String> {
    user.delete_in_foreground("late").await?;
    user.wait_for_deletion("late", "nginx", DEADLINE).await?;
    Ok("created nothing while the Foo was deleted".to_owned())
}
