//! The scenarios of Foos. Each runs on every [`Target`](crate::Target).

use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::future::LocalBoxFuture;
use homeostat::LeaderElector;
use homeostat::kube_client::Api;
use homeostat::kube_client::api::PostParams;
use homeostat_faults::{Calls, Verb};
use homeostat_sample::{Foo, Options};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use super::scene;
use super::user::Foos;
use super::world::World;
use crate::world::Running;

/// The timeout for convergence after a fault. An informer whose definition is missing tries again
/// after at most 60 s.
const DEADLINE: Duration = Duration::from_secs(120);

/// A scenario: its name and its function.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// A sentence: the name of the test.
    pub name: &'static str,
    /// Plays it in a fresh world, whose definition of Foo is not installed yet.
    pub play: for<'a> fn(&'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>>,
}

/// All scenarios.
pub const ALL: &[Scenario] = &[
    Scenario { name: "foo_runs_through_its_life_cycle", play: |it| Box::pin(life_cycle(it)) },
    Scenario { name: "hundred_foos_converge", play: |it| Box::pin(hundred(it)) },
    Scenario { name: "recreated_foo_gets_a_deployment_of_its_own", play: |it| Box::pin(again(it)) },
    Scenario { name: "foreign_deployment_is_never_touched", play: |it| Box::pin(foreign(it)) },
    Scenario { name: "faulty_foos_are_left_alone", play: |it| Box::pin(faulty(it)) },
    Scenario { name: "renamed_deployment_stays", play: |it| Box::pin(renamed(it)) },
    Scenario { name: "late_definition_is_waited_for", play: |it| Box::pin(late_definition(it)) },
    Scenario { name: "definition_that_goes_may_come_back", play: |it| Box::pin(gone(it)) },
    Scenario { name: "torn_watches_lose_no_foo", play: |it| Box::pin(torn_watches(it)) },
    Scenario { name: "controller_of_foos_survives_restarts", play: |it| Box::pin(restarts(it)) },
    Scenario { name: "create_with_a_lost_reply_is_used", play: |it| Box::pin(lost_reply(it)) },
    Scenario {
        name: "service_account_with_the_checked_in_roles_is_enough_for_foos",
        play: |it| Box::pin(service_account(it)),
    },
];

async fn life_cycle(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let controller = world.run_controller();
    let mut steps = 0;
    scene::play(world.user(), |_| steps += 1).await?;
    ensure!(steps == 6, "the scene has six steps, {steps} were reported");
    controller.stop().await
}

/// The name of the service account of `deploy/rbac.yaml`, of its namespace and of the Lease.
const NAME: &str = "homeostat-sample";

/// The permissions of `deploy/rbac.yaml` that the story does not need: those for a server without
/// streaming lists, and for one that checks `blockOwnerDeletion`.
const SPARE: [&str; 3] = [
    "list deployments.apps",
    "list foos.samplecontroller.k8s.io",
    "update foos/finalizers.samplecontroller.k8s.io",
];

/// The full story with leader election, as a service account with the roles of `deploy/rbac.yaml`
/// alone. A lost reply makes the controller read the Deployment.
async fn service_account(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let namespaces = Api::<Namespace>::all(world.user().clone());
    let namespace = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata: namespace, ..Namespace::default() };
    namespaces.create(&PostParams::default(), &namespace).await?;
    let roles = include_str!("../../../controllers/sample/deploy/rbac.yaml");
    let client = world.service_account(roles, (NAME, NAME)).await?;
    world.faults().lose_reply(Calls::create("deployments").nth(1));
    let elector = LeaderElector::builder(client.clone(), NAME, NAME).build()?;
    let manager = homeostat_sample::manager(client, &Options::default()).leader_election(elector);
    let controller = Running::spawn(|stop| manager.run_until(stop.cancelled_owned()));
    scene::play(world.user(), |_| ()).await?;
    controller.stop().await?;
    Ok(world.requested().compare(&[roles], &SPARE)?)
}

async fn hundred(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let controller = world.run_controller();
    let user = Foos::new(world.user());
    for n in 0..100 {
        user.create(&format!("foo-{n}"), &format!("nginx-{n}"), 1).await?;
    }
    for n in 0..100 {
        user.wait_for(&format!("foo-{n}"), 1, DEADLINE).await?;
    }
    let owned = user.owned_deployments().await?;
    ensure!(owned == 100, "{owned} Deployments belong to Foos");
    let created = world.faults().count(Verb::Create, "deployments");
    ensure!(created == 100, "{created} creates were sent for 100 Foos");
    controller.stop().await
}

/// A Foo is deleted and created again under its name while its Deployment waits for the garbage
/// collector.
async fn again(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let controller = world.run_controller();
    let user = Foos::new(world.user());
    user.create("web", "nginx", 2).await?;
    user.wait_for("web", 2, DEADLINE).await?;
    let earlier = user.deployment_uid("nginx").await?;
    user.delete("web").await?;
    user.create("web", "nginx", 1).await?;
    user.wait_for("web", 1, DEADLINE).await?;
    ensure!(user.deployment_uid("nginx").await? != earlier, "the earlier Deployment is kept");
    controller.stop().await
}

async fn foreign(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let user = Foos::new(world.user());
    user.create_deployment("theirs").await?;
    let version = |it: &Foos| {
        let deployments = it.deployments.clone();
        async move {
            let found = deployments.get("theirs").await?;
            anyhow::Ok((found.spec, found.metadata.owner_references, found.metadata.generation))
        }
    };
    let before = version(&user).await?;
    let controller = world.run_controller();
    user.create("web", "theirs", 3).await?;
    let message = user.wait_for_event("web", "ErrResourceExists", DEADLINE).await?;
    ensure!(
        message == "Resource \"theirs\" already exists and is not managed by Foo",
        "the message is {message}"
    );
    ensure!(version(&user).await? == before, "the Deployment was changed");
    let patched = world.faults().count(Verb::Patch, "deployments");
    ensure!(patched == 0, "{patched} patches of Deployments were sent");
    user.delete_deployment("theirs").await?;
    user.wait_for("web", 3, DEADLINE).await?;
    controller.stop().await
}

/// Foos that do not decode, where the definition has no schema. The others are reconciled, and a
/// Foo is once it decodes.
async fn faulty(world: &mut World) -> anyhow::Result<()> {
    let mut definition = Foo::crd();
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    definition.spec.versions[0].schema =
        Some(serde_json::from_value(json!({ "openAPIV3Schema": any }))?);
    world.install_definition(&definition).await?;
    let user = Foos::new(world.user());
    let large = 2_147_483_648_i64;
    user.create_untyped("no-spec", &Value::Null).await?;
    user.create_untyped("text", &json!({ "deploymentName": "text", "replicas": "3" })).await?;
    user.create_untyped("large", &json!({ "deploymentName": "large", "replicas": large })).await?;
    let controller = world.run_controller();
    user.create("web", "nginx", 1).await?;
    user.wait_for("web", 1, DEADLINE).await?;
    let created = world.faults().count(Verb::Create, "deployments");
    ensure!(created == 1, "{created} creates were sent for one Foo that decodes");
    user.patch("web", json!({ "spec": { "replicas": "3" } })).await?;
    user.scale("text", 2).await?;
    user.wait_for("text", 2, DEADLINE).await?;
    let replicas = user.deployments.get("nginx").await?.spec.replicas;
    ensure!(replicas == Some(1), "the Deployment of a faulty Foo has {replicas:?} replicas");
    let patched = world.faults().count(Verb::Patch, "deployments");
    ensure!(patched == 0, "{patched} patches of Deployments were sent");
    let owned = user.owned_deployments().await?;
    ensure!(owned == 2, "{owned} Deployments belong to Foos");
    controller.stop().await
}

async fn renamed(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let controller = world.run_controller();
    let user = Foos::new(world.user());
    user.create("web", "one", 1).await?;
    user.wait_for("web", 1, DEADLINE).await?;
    user.rename("web", "two").await?;
    user.wait_for("web", 1, DEADLINE).await?;
    let owned = user.owned_deployments().await?;
    ensure!(owned == 2, "{owned} Deployments belong to the Foo, as upstream it has two");
    controller.stop().await
}

async fn late_definition(world: &mut World) -> anyhow::Result<()> {
    let controller = world.run_controller();
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.install().await?;
    let user = Foos::new(world.user());
    user.create("web", "nginx", 1).await?;
    user.wait_for("web", 1, DEADLINE).await?;
    controller.stop().await
}

async fn gone(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let controller = world.run_controller();
    let user = Foos::new(world.user());
    user.create("web", "nginx", 1).await?;
    user.wait_for("web", 1, DEADLINE).await?;
    user.delete_definition(DEADLINE).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.install().await?;
    user.create("again", "other", 2).await?;
    user.wait_for("again", 2, DEADLINE).await?;
    controller.stop().await
}

async fn torn_watches(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let controller = world.run_controller();
    let user = Foos::new(world.user());
    user.create("web", "nginx", 1).await?;
    user.wait_for("web", 1, DEADLINE).await?;
    let mut torn = 0;
    for replicas in [3, 2, 5] {
        torn += world.faults().tear_watches("foos");
        user.scale("web", replicas).await?;
        torn += world.faults().tear_watches("deployments");
        user.wait_for("web", replicas, DEADLINE).await?;
    }
    ensure!(torn >= 3, "only {torn} watches were torn");
    world.faults().expire_watches("deployments");
    let uid = user.deployment_uid("nginx").await?;
    user.delete_deployment("nginx").await?;
    user.wait_for("web", 5, DEADLINE).await?;
    ensure!(user.deployment_uid("nginx").await? != uid, "it is the same Deployment");
    controller.stop().await
}

/// The API server restarts, and then the controller.
async fn restarts(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let controller = world.run_controller();
    let user = Foos::new(world.user());
    user.create("web", "nginx", 1).await?;
    user.wait_for("web", 1, DEADLINE).await?;
    user.scale("web", 2).await?;
    world.restart_api_server().await?;
    user.wait_for("web", 2, DEADLINE).await?;
    drop(controller);
    user.scale("web", 3).await?;
    let successor = world.run_controller();
    user.wait_for("web", 3, DEADLINE).await?;
    let patched = world.faults().count(Verb::Patch, "deployments");
    // While the server is down, a pass is repeated after 5 ms, 10 ms, 20 ms and so on.
    ensure!(patched <= 20, "{patched} patches of Deployments were sent for two changes");
    successor.stop().await
}

async fn lost_reply(world: &mut World) -> anyhow::Result<()> {
    world.install().await?;
    let lost = world.faults().lose_reply(Calls::create("deployments").nth(1));
    let controller = world.run_controller();
    let user = Foos::new(world.user());
    user.create("web", "nginx", 2).await?;
    user.wait_for("web", 2, DEADLINE).await.context("after the reply to a create was lost")?;
    ensure!(lost.hits() == 1, "{} replies were lost", lost.hits());
    // The pass is repeated after 5 ms, 10 ms, 20 ms and so on. The server refuses another create
    // with 409 until the cache shows the Deployment.
    let created = world.faults().count(Verb::Create, "deployments");
    ensure!(created <= 20, "{created} creates of one Deployment were sent");
    controller.stop().await
}
