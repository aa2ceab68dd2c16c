//! The scenarios. Each runs on every [`Target`](crate::Target) unless its documentation names an
//! exception.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use futures::future::LocalBoxFuture;
use homeostat::EventRecorder;
use homeostat::events::{EventCounts, EventsApi, NewEvent};
use homeostat::kube_client::Api;
use homeostat::kube_client::api::ListParams;
use homeostat_faults::{ApiError, Calls};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::Role;

use crate::consistency::compare_pods;
use crate::world::create_all;
use crate::{Census, PodOwner, World, scene};

/// The timeout for convergence after a fault. The back-off of a torn watch is below two seconds at
/// first, and a restarted kube-apiserver takes about three seconds to be ready.
const DEADLINE: Duration = Duration::from_secs(60);

/// A scenario: its name and its function.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// A sentence: the name of the test.
    pub name: &'static str,
    /// Plays it in a fresh world.
    pub play: for<'a> fn(&'a mut World) -> LocalBoxFuture<'a, anyhow::Result<()>>,
}

/// All scenarios.
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "replica_set_runs_through_its_life_cycle",
        play: |world| Box::pin(life_cycle(world)),
    },
    Scenario {
        name: "controller_works_with_its_roles_alone",
        play: |world| Box::pin(roles_alone(world)),
    },
    Scenario {
        name: "manifests_of_the_program_are_accepted",
        play: |world| Box::pin(manifests_of_the_program(world)),
    },
    Scenario {
        name: "equal_events_are_one_series",
        play: |world| Box::pin(series_of_events(world)),
    },
    Scenario { name: "torn_watch_loses_nothing", play: |world| Box::pin(torn_watch(world)) },
    Scenario {
        name: "expired_watch_is_followed_by_a_list",
        play: |world| Box::pin(expired_watch(world)),
    },
    Scenario {
        name: "controller_survives_server_restart",
        play: |world| Box::pin(server_restart(world)),
    },
    Scenario {
        name: "create_with_lost_reply_is_counted",
        play: |world| Box::pin(lost_reply(world)),
    },
    Scenario {
        name: "successor_of_killed_controller_converges",
        play: |world| Box::pin(killed_controller(world)),
    },
    Scenario {
        name: "stopped_controller_ends_within_seconds",
        play: |world| Box::pin(stopped_controller(world)),
    },
    Scenario {
        name: "watch_list_equals_list_of_same_version",
        play: |world| Box::pin(watch_list_equals_list(world)),
    },
];

async fn life_cycle(world: &mut World) -> anyhow::Result<()> {
    let controller = world.run_controller();
    let mut steps = 0;
    scene::play_with(&world.workload("web"), |_| steps += 1).await?;
    ensure!(steps == 7, "the scene has seven steps, {steps} were reported");
    controller.stop().await
}

/// Compares a watch-list with a list of the same version, while pods come and go and afterwards.
async fn watch_list_equals_list(world: &mut World) -> anyhow::Result<()> {
    let controller = world.run_controller();
    let web = world.workload("compared");
    web.create(2).await?;
    for replicas in [6, 1, 4] {
        web.scale(replicas).await?;
        for _ in 0..3 {
            compare_pods(world.user().clone(), "default").await?;
        }
        web.wait_for_replicas(replicas, DEADLINE).await?;
        let pods = compare_pods(world.user().clone(), "default").await?;
        ensure!(pods >= 1, "no pod was compared");
    }
    controller.stop().await
}

/// The controller has the service account of its manifests: a real server checks their roles.
async fn roles_alone(world: &mut World) -> anyhow::Result<()> {
    let of_both = include_str!("../../controllers/replicaset/rbac.yaml");
    let of_rcs = include_str!("../../controllers/replicaset/rbac-replicationcontroller.yaml");
    let manifests = [of_both, of_rcs].join("\n---\n");
    let client = world.service_account(&manifests, "homeostat-replicaset").await?;
    // Refused creates with one message: an event, and its patch.
    world.faults().refuse(Calls::create("pods").times(2), ApiError::forbidden());
    let controller = world.run_controller_as(client);
    scene::play_with(&world.workload("web"), |_| ()).await?;
    controller.stop().await?;
    // Lists are for servers without streaming lists. Finalizers: an admission plugin asks for them.
    let spare = ["list pods", "list replicasets.apps", "update replicasets/finalizers.apps"];
    if world.pod_owner() == PodOwner::ReplicaSet {
        return Ok(world.requested().compare(&[of_both], &spare)?);
    }
    let of_sets =
        ["get replicasets.apps", "watch replicasets.apps", "update replicasets/status.apps"];
    let of_rc = ["list replicationcontrollers", "update replicationcontrollers/finalizers"];
    let spare = [&spare[..], &of_sets, &of_rc].concat();
    Ok(world.requested().compare(&[of_both, of_rcs], &spare)?)
}

/// The API server accepts the manifests in `deploy/` and those of the roles.
async fn manifests_of_the_program(world: &mut World) -> anyhow::Result<()> {
    let roles = include_str!("../../controllers/replicaset/rbac.yaml");
    let program = include_str!("../../deploy/replicaset/deployment.yaml");
    create_all(world.user(), roles).await?;
    create_all(world.user(), program).await?;
    let deployments = Api::<Deployment>::namespaced(world.user().clone(), "kube-system");
    let deployment = deployments.get("homeostat-replicaset").await?;
    let pod = deployment.spec.template.spec.context("the template has a pod")?;
    let account = pod.service_account_name.as_deref();
    ensure!(account == Some("homeostat-replicaset"), "the service account is {account:?}");
    let container = pod.containers.first().context("the pod has a container")?;
    let has_probes = container.liveness_probe.is_some() && container.readiness_probe.is_some();
    ensure!(has_probes, "a probe is missing: {container:?}");
    let roles = Api::<Role>::namespaced(world.user().clone(), "kube-system");
    roles.get("homeostat-replicaset-election").await?;
    Ok(())
}

/// Four equal events of `events.k8s.io/v1` are one event with a count, after two patches.
async fn series_of_events(world: &mut World) -> anyhow::Result<()> {
    let builder = EventRecorder::builder(world.user().clone(), "series-scenario");
    let recorder = builder.api(EventsApi::Series).instance("series-scenario-0").build();
    let regarding = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("ConfigMap".to_owned()),
        namespace: Some("default".to_owned()),
        name: Some("settings".to_owned()),
        ..ObjectReference::default()
    };
    for _ in 0..4 {
        let event = NewEvent::warning(regarding.clone(), "Failed", "no licence").action("Opening");
        recorder.publish(event);
    }
    let done = |counts: EventCounts| counts.sent + counts.counted + counts.refused + counts.unsent;
    while done(recorder.counts()) < 4 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    recorder.shut_down().await;
    let counts = recorder.counts();
    ensure!((counts.sent, counts.counted) == (2, 2), "{counts:?}");
    let events = Api::<Event>::namespaced(world.user().clone(), "default");
    let mut events = events.list(&ListParams::default()).await?.items;
    events.retain(|it| it.reporting_controller.as_deref() == Some("series-scenario"));
    ensure!(events.len() == 1, "{} events: {events:?}", events.len());
    let event = events.remove(0);
    let series = event.series.as_ref().context("the event has a series")?;
    ensure!(series.count == 4, "the count is {}", series.count);
    let texts = [&event.note, &event.action, &event.reason, &event.reporting_instance];
    let texts = texts.map(|text| text.as_deref().unwrap_or_default());
    ensure!(texts == ["no licence", "Opening", "Failed", "series-scenario-0"], "{texts:?}");
    Ok(())
}

/// Scales up while watches break repeatedly.
async fn torn_watch(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = world.workload("torn");
    web.create(3).await?;
    web.wait_for_replicas(3, DEADLINE).await?;
    let mut torn = 0;
    for replicas in [8, 2, 12] {
        torn += world.faults().tear_watches("pods");
        web.scale(replicas).await?;
        torn += world.faults().tear_watches(world.pod_owner().plural());
        web.wait_for_replicas(replicas, DEADLINE).await?;
    }
    ensure!(torn >= 4, "only {torn} watches were torn");
    ensure!(census.most_alive() <= 12, "{} pods were alive at once", census.most_alive());
    controller.stop().await
}

/// Each watch receives 410: changes since then arrive by a list.
async fn expired_watch(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = world.workload("expired");
    web.create(4).await?;
    web.wait_for_replicas(4, DEADLINE).await?;
    let expired = world.faults().expire_watches("pods");
    ensure!(expired >= 1, "no watch of pods was open");
    let victim = web.pods().await?.remove(0).metadata.name.unwrap_or_default();
    web.kill(&victim).await?;
    web.wait_for_replicas(4, DEADLINE).await?;
    world.faults().expire_watches(world.pod_owner().plural());
    web.scale(6).await?;
    web.wait_for_replicas(6, DEADLINE).await?;
    ensure!(census.most_alive() <= 6, "{} pods were alive at once", census.most_alive());
    controller.stop().await
}

/// The server restarts between a request and its response.
async fn server_restart(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = world.workload("restarted");
    web.create(3).await?;
    web.wait_for_replicas(3, DEADLINE).await?;
    web.scale(7).await?;
    world.restart_api_server().await?;
    web.wait_for_replicas(7, DEADLINE).await?;
    web.scale(1).await?;
    web.wait_for_replicas(1, DEADLINE).await?;
    // The response of a create that was in flight may be lost.
    ensure!(census.most_alive() <= 8, "{} pods were alive at once", census.most_alive());
    controller.stop().await
}

/// Two creates are committed, and their responses are lost.
async fn lost_reply(world: &mut World) -> anyhow::Result<()> {
    const LOST: usize = 2;
    let census = Census::start(world.user().clone(), "default").await?;
    for nth in [2, 4] {
        world.faults().lose_reply(Calls::create("pods").nth(nth));
    }
    let controller = world.run_controller();
    let web = world.workload("lossy");
    web.create(10).await?;
    web.wait_for_replicas(10, DEADLINE).await?;
    let lost = world.faults().trace().faults();
    ensure!(lost == LOST, "{lost} replies were lost:\n{}", world.faults().trace());
    let most = census.most_alive();
    ensure!(most <= 10 + LOST, "{most} pods were alive at once, with {LOST} replies lost");
    // The state stays: the last unknown create is resolved, and no further pod is created.
    tokio::time::sleep(Duration::from_secs(2)).await;
    web.wait_for_replicas(10, DEADLINE).await?;
    controller.stop().await
}

/// A controller is killed during its work; its successor starts with empty caches.
async fn killed_controller(world: &mut World) -> anyhow::Result<()> {
    let census = Census::start(world.user().clone(), "default").await?;
    let controller = world.run_controller();
    let web = world.workload("killed");
    web.create(20).await?;
    while census.alive() < 5 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(controller);
    let successor = world.run_controller();
    web.wait_for_replicas(20, DEADLINE).await?;
    // Requests that the first controller had sent may be committed after its successor has listed.
    ensure!(census.ever() <= 20 + 16, "{} pods were created", census.ever());
    successor.stop().await
}

async fn stopped_controller(world: &mut World) -> anyhow::Result<()> {
    let controller = world.run_controller();
    let web = world.workload("stopped");
    web.create(5).await?;
    web.wait_for_replicas(5, DEADLINE).await?;
    web.scale(50).await?;
    controller.stop().await?;
    // The successor completes unfinished work.
    let successor = world.run_controller();
    web.wait_for_replicas(50, DEADLINE).await?;
    successor.stop().await
}
