//! Pods in many namespaces, quotas over them, deletions, and an idle minute.
//!
//! Admission is that of the real API server, which charges what is created while a quota exists.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent};
use homeostat_benches::controllers::{Bench, Leg, Peer, all, watch_until};
use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// The pods in each namespace.
const PODS: usize = 50;

/// The share of the namespaces whose pods are deleted: 2,000 of 5,000 pods.
const DELETED: (usize, usize) = (4, 10);

/// The quotas in each namespace when all of them change.
const QUOTAS: usize = 10;

/// The period of the recounts of all quotas: six of them in a minute.
const PERIOD: &str = "10s";

/// The deletions whose latency is measured.
const PACED: usize = 100;

/// Measures with this number of namespaces.
pub(crate) async fn measure(
    peer: &Peer,
    namespaces: usize,
) -> anyhow::Result<Vec<(&'static str, Leg)>> {
    let mut bench = Bench::start(peer, async |client| {
        all((0..namespaces).map(|at| create_namespace(client, at))).await
    })
    .await?;
    sleep(Duration::from_secs(5)).await;
    let load = Load { namespaces };
    bench.leg("pods", async |client| load.create_pods(client).await).await?;
    bench.leg("quotas", async |client| load.create_quotas(client, 0..1).await).await?;
    bench.leg("deletions", async |client| load.delete_pods(client).await).await?;
    let latencies = Mutex::new(Vec::new());
    let leg = bench
        .leg("10/s", async |client| {
            *latencies.lock() = load.delete_paced(client).await?;
            Ok(())
        })
        .await?;
    leg.latencies = latencies.into_inner();
    bench.leg("1,000 more", async |client| load.create_quotas(client, 1..QUOTAS).await).await?;
    bench.leg("all change", async |client| load.change_quotas(client).await).await?;
    let idle = async |_: &Client| {
        sleep(Duration::from_secs(57)).await;
        Ok(())
    };
    bench.leg("idle minute", idle).await?;
    bench.leg("removed", async |client| load.delete_quotas(client).await).await?;
    load.create_quotas(&bench.client, 0..QUOTAS).await?;
    let periodic = peer.clone().with_flag("--resource-quota-sync-period", PERIOD);
    let mut bench = bench.replace(&periodic).await?;
    // The start counts all quotas too.
    sleep(Duration::from_secs(15)).await;
    bench.leg("recounts", idle).await?;
    bench.finish().await
}

struct Load {
    namespaces: usize,
}

// === impl Load ===

impl Load {
    async fn create_pods(&self, client: &Client) -> anyhow::Result<()> {
        let all_pods = (0..self.namespaces).flat_map(|at| (0..PODS).map(move |pod| (at, pod)));
        all(all_pods.map(|(at, pod)| async move {
            let pod = serde_json::from_value(pod_named(&pod_name(pod)))?;
            let api = Api::<Pod>::namespaced(client.clone(), &namespace(at));
            api.create(&PostParams::default(), &pod).await?;
            Ok(())
        }))
        .await
    }

    /// Creates quotas in each namespace, and waits until each has its usage.
    async fn create_quotas(
        &self,
        client: &Client,
        numbers: std::ops::Range<usize>,
    ) -> anyhow::Result<()> {
        let places = (0..self.namespaces).flat_map(|at| numbers.clone().map(move |no| (at, no)));
        let expected = self.namespaces * numbers.len();
        let mut counted = BTreeSet::new();
        let prefix: BTreeSet<_> = numbers.clone().map(|no| format!("quota-{no}")).collect();
        let quotas = Api::<ResourceQuota>::all(client.clone());
        let watched = watch_until(&quotas, |event| {
            if let WatchEvent::Added(quota) | WatchEvent::Modified(quota) = event
                && quota.metadata.name.as_ref().is_some_and(|name| prefix.contains(name))
                && used(quota, "pods").is_some()
            {
                counted.insert((quota.metadata.namespace.clone(), quota.metadata.name.clone()));
            }
            counted.len() >= expected
        });
        let created = all(places.map(|(at, no)| async move {
            let quota = serde_json::from_value(quota_named(&format!("quota-{no}")))?;
            let api = Api::<ResourceQuota>::namespaced(client.clone(), &namespace(at));
            api.create(&PostParams::default(), &quota).await?;
            Ok(())
        }));
        tokio::try_join!(watched, created).map(drop)
    }

    /// Deletes all pods of some namespaces, and waits until their quotas show none.
    async fn delete_pods(&self, client: &Client) -> anyhow::Result<()> {
        let emptied = self.emptied();
        let pods = (0..emptied).flat_map(|at| (0..PODS).map(move |pod| (at, pod)));
        let deleted = all(pods.map(|(at, pod)| delete_pod(client, at, pod)));
        let mut empty = BTreeSet::new();
        let quotas = Api::<ResourceQuota>::all(client.clone());
        let watched = watch_until(&quotas, |event| {
            if let WatchEvent::Added(quota) | WatchEvent::Modified(quota) = event
                && used(quota, "pods") == Some(0)
            {
                empty.insert(quota.metadata.namespace.clone());
            }
            empty.len() >= emptied
        });
        tokio::try_join!(watched, deleted).map(drop)
    }

    /// Deletes ten pods per second, each in another namespace than the last. Returns the times in
    /// milliseconds from the deletion to the status that shows it.
    async fn delete_paced(&self, client: &Client) -> anyhow::Result<Vec<f64>> {
        let rest = self.namespaces - self.emptied();
        let places: Vec<_> =
            (0..PACED.min(rest * PODS)).map(|no| (self.emptied() + no % rest, no / rest)).collect();
        let sent: Mutex<BTreeMap<(String, usize), Instant>> = Mutex::default();
        let deleted = async {
            for (at, pod) in &places {
                sent.lock().insert((namespace(*at), PODS - pod - 1), Instant::now());
                delete_pod(client, *at, *pod).await?;
                sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        };
        let mut latencies = Vec::new();
        let quotas = Api::<ResourceQuota>::all(client.clone());
        let watched = watch_until(&quotas, |event| {
            if let WatchEvent::Modified(quota) = event
                && let Some(left) = used(quota, "pods")
            {
                let place = (quota.metadata.namespace.clone().unwrap_or_default(), left);
                let began = sent.lock().remove(&place);
                latencies.extend(began.map(|began| began.elapsed().as_secs_f64() * 1000.0));
            }
            latencies.len() >= places.len()
        });
        tokio::try_join!(watched, deleted)?;
        Ok(latencies)
    }

    /// Raises a limit of every quota, and waits until each status has it.
    async fn change_quotas(&self, client: &Client) -> anyhow::Result<()> {
        let places = (0..self.namespaces).flat_map(|at| (0..QUOTAS).map(move |no| (at, no)));
        let expected = self.namespaces * QUOTAS;
        let mut changed = BTreeSet::new();
        let quotas = Api::<ResourceQuota>::all(client.clone());
        let watched = watch_until(&quotas, |event| {
            if let WatchEvent::Added(quota) | WatchEvent::Modified(quota) = event
                && hard(quota, "pods") == Some(2000)
            {
                changed.insert((quota.metadata.namespace.clone(), quota.metadata.name.clone()));
            }
            changed.len() >= expected
        });
        let patched = all(places.map(|(at, no)| async move {
            let patch = Patch::Merge(json!({"spec": {"hard": {"pods": "2000"}}}));
            let api = Api::<ResourceQuota>::namespaced(client.clone(), &namespace(at));
            api.patch(&format!("quota-{no}"), &PatchParams::default(), &patch).await?;
            Ok(())
        }));
        tokio::try_join!(watched, patched).map(drop)
    }

    async fn delete_quotas(&self, client: &Client) -> anyhow::Result<()> {
        let places = (0..self.namespaces).flat_map(|at| (0..QUOTAS).map(move |no| (at, no)));
        all(places.map(|(at, no)| async move {
            let api = Api::<ResourceQuota>::namespaced(client.clone(), &namespace(at));
            drop(api.delete(&format!("quota-{no}"), &DeleteParams::default()).await?);
            Ok(())
        }))
        .await
    }

    fn emptied(&self) -> usize {
        (self.namespaces * DELETED.0 / DELETED.1).max(1)
    }
}

async fn create_namespace(client: &Client, at: usize) -> anyhow::Result<()> {
    let api = Api::<Namespace>::all(client.clone());
    let object = serde_json::from_value(json!({"metadata": {"name": namespace(at)}}))?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

async fn delete_pod(client: &Client, at: usize, pod: usize) -> anyhow::Result<()> {
    let api = Api::<Pod>::namespaced(client.clone(), &namespace(at));
    let now = DeleteParams::default().grace_period(0);
    drop(api.delete(&pod_name(pod), &now).await?);
    Ok(())
}

fn namespace(at: usize) -> String {
    format!("team-{at:03}")
}

fn pod_name(at: usize) -> String {
    format!("pod-{at:02}")
}

fn pod_named(name: &str) -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": "pause", "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "200m", "memory": "128Mi"},
        }})
    };
    json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [container("main"), container("side")]},
    })
}

fn quota_named(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"hard": {
        "pods": "1000", "requests.cpu": "1000", "requests.memory": "1000Gi",
        "limits.cpu": "2000", "limits.memory": "2000Gi",
        "services": "100", "secrets": "100", "configmaps": "100",
    }}})
}

fn used(quota: &ResourceQuota, name: &str) -> Option<usize> {
    quota.status.as_ref()?.used.as_ref()?.get(name)?.0.parse().ok()
}

fn hard(quota: &ResourceQuota, name: &str) -> Option<usize> {
    match quota.status.as_ref()?.hard.as_ref()?.get(name)?.0.as_str() {
        "2k" => Some(2000),
        text => text.parse().ok(),
    }
}
