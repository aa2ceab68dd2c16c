//! One large `ReplicaSet` up and down, many small ones, and pods that are deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context as _;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent,
};
use homeostat_benches::controllers::{Bench, Leg, Peer, all, watch_until};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

/// The replicas of each of the many.
const FEW: usize = 3;

/// The deletions whose latency is measured: 10 s of them, each of a pod of another `ReplicaSet`.
const DELETED: usize = 400;

/// The time from one deletion to the next: 40 per second.
const PERIOD: Duration = Duration::from_millis(25);

/// The timeout of the bench's own replacements, six times what they take.
const LEAST_TIMEOUT: Duration = Duration::from_secs(60);

/// Measures a `ReplicaSet` of `count` replicas, and `count` with three replicas each.
pub(crate) async fn measure(peer: &Peer, count: usize) -> anyhow::Result<Vec<(&'static str, Leg)>> {
    let mut bench = Bench::start(peer, async |_| Ok(())).await?;
    // The first one warms the program up: after it, lists, watches and connections exist.
    let client = bench.client.clone();
    tokio::try_join!(wait_for_status(&client, "warm", 1, 1), create(&client, "warm", 1))?;
    sleep(Duration::from_secs(2)).await;

    let up = async |client: &Client| {
        let reached = wait_for_status(client, "large", 1, count);
        tokio::try_join!(reached, create(client, "large", count)).map(drop)
    };
    bench.leg("up", up).await?;
    let down = async |client: &Client| {
        tokio::try_join!(wait_for_status(client, "large", 1, 0), scale(client, "large", 0))
            .map(drop)
    };
    bench.leg("down", down).await?;
    let many = async |client: &Client| {
        let created = all((0..count).map(|at| {
            let client = client.clone();
            async move { create(&client, &small(at), FEW).await }
        }));
        tokio::try_join!(wait_for_status(client, "small-", count, FEW), created).map(drop)
    };
    bench.leg("many", many).await?;
    measure_replacements(bench, DELETED.min(count)).await
}

/// Measures the replacements of `count` pods by the program, then, after its end, those by the
/// bench itself, which replaces a pod at once: no controller can be faster. Returns all legs.
async fn measure_replacements(
    mut bench: Bench,
    count: usize,
) -> anyhow::Result<Vec<(&'static str, Leg)>> {
    let latencies = Mutex::new(Vec::new());
    let leg = bench
        .leg("40/s", async |client| {
            *latencies.lock() = replace_pods(client, count, |_| {}).await?;
            Ok(())
        })
        .await?;
    leg.latencies = latencies.into_inner();
    bench.end().await?;
    let (client, mut created) = (bench.client.clone(), JoinSet::new());
    let again = replace_pods(&client, count, |pod| {
        created.spawn(create_again(client.clone(), pod.clone()));
    });
    let least = timeout(LEAST_TIMEOUT, again).await.context("a pod was not replaced")??;
    while let Some(result) = created.join_next().await {
        result??;
    }
    let mut legs = bench.into_legs();
    legs.last_mut().context("the leg of the deletions")?.1.least_latencies = least;
    Ok(legs)
}

/// Deletes a pod of each of the first `count` small `ReplicaSet`s, 40 per second, and calls
/// `on_delete` with the event of each. Returns the times in milliseconds from the deletion to the
/// event of the pod that replaces it.
async fn replace_pods(
    client: &Client,
    count: usize,
    mut on_delete: impl FnMut(&Pod),
) -> anyhow::Result<Vec<f64>> {
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    let listed = pods.list_metadata(&ListParams::default()).await?;
    let names = listed.items.into_iter().filter_map(|pod| pod.metadata.name);
    let known: BTreeSet<String> = names.collect();
    let sent: Mutex<BTreeMap<String, Instant>> = Mutex::default();
    let deleted = async {
        let mut ticks = interval(PERIOD);
        for owner in (0..count).map(small) {
            ticks.tick().await;
            let prefix = format!("{owner}-");
            let Some(name) = known.range(prefix.clone()..).find(|it| it.starts_with(&prefix))
            else {
                anyhow::bail!("{owner} has no pod");
            };
            sent.lock().insert(owner, Instant::now());
            drop(pods.delete(name, &DeleteParams::default().grace_period(0)).await?);
        }
        Ok(())
    };
    let mut latencies = Vec::new();
    let watched = watch_until(&pods, |event| {
        if let WatchEvent::Deleted(pod) = event {
            on_delete(pod);
        }
        if let WatchEvent::Added(pod) = event
            && let Some(name) = &pod.metadata.name
            && !known.contains(name)
            && let Some((owner, _)) = name.rsplit_once('-')
        {
            let began = sent.lock().remove(owner);
            latencies.extend(began.map(|began| began.elapsed().as_secs_f64() * 1000.0));
        }
        latencies.len() >= count
    });
    tokio::try_join!(watched, deleted)?;
    Ok(latencies)
}

/// Creates a pod like `deleted`, of the same `ReplicaSet`.
async fn create_again(client: Client, deleted: Pod) -> anyhow::Result<()> {
    let ObjectMeta { name, generate_name, labels, owner_references, .. } = deleted.metadata;
    let name = generate_name.or(name).map(|prefix| prefix + "again");
    let metadata = ObjectMeta { name, labels, owner_references, ..ObjectMeta::default() };
    let pod = Pod { metadata, spec: deleted.spec, status: None };
    let pods = Api::<Pod>::namespaced(client, "default");
    pods.create(&PostParams::default(), &pod).await?;
    Ok(())
}

fn small(at: usize) -> String {
    format!("small-{at:04}")
}

fn sets(client: &Client) -> Api<ReplicaSet> {
    Api::namespaced(client.clone(), "default")
}

async fn create(client: &Client, name: &str, replicas: usize) -> anyhow::Result<()> {
    let labels = json!({"app": name});
    let containers = json!([{"name": "main", "image": "pause"}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    let selector = json!({"matchLabels": labels});
    let spec = json!({"replicas": replicas, "selector": selector, "template": template});
    let set = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?;
    sets(client).create(&PostParams::default(), &set).await?;
    Ok(())
}

async fn scale(client: &Client, name: &str, replicas: usize) -> anyhow::Result<()> {
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    sets(client).patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Waits until the current status of `count` `ReplicaSet`s whose names start with `prefix` shows
/// `replicas`.
async fn wait_for_status(
    client: &Client,
    prefix: &str,
    count: usize,
    replicas: usize,
) -> anyhow::Result<()> {
    let mut reached = BTreeSet::new();
    watch_until(&sets(client), |event| {
        if let WatchEvent::Added(set) | WatchEvent::Modified(set) = event
            && let Some(name) = set.metadata.name.as_ref().filter(|it| it.starts_with(prefix))
            && let Some(status) = &set.status
            && status.observed_generation == set.metadata.generation
            && usize::try_from(status.replicas) == Ok(replicas)
        {
            reached.insert(name.clone());
        }
        reached.len() >= count
    })
    .await
}
