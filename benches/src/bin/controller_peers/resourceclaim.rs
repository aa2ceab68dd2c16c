//! Pods with claims from a template, pods that finish, and claims that many pods share.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent};
use homeostat_benches::controllers::{Bench, Leg, Peer, all, report_memory, watch_until};
use homeostat_benches::process::Usage;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use serde_json::{Value, json};
use tokio::time::sleep;

/// The finalizer that the scheduler sets.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// The claims that pods share.
const SHARED: usize = 4;

/// The rest before memory is read: Go collects garbage at least every 2 minutes.
const REST: Duration = Duration::from_secs(150);

/// Measures `count` pods in each step.
pub(crate) async fn measure(peer: &Peer, count: usize) -> anyhow::Result<Vec<(&'static str, Leg)>> {
    let mut bench = Bench::start(peer, create_template).await?;
    let client = bench.client.clone();
    tokio::try_join!(wait_for_recorded(&client, "warm", 1), create_pods(&client, "warm", 1, 1))?;

    let work = async |client: &Client| {
        let created = create_pods(client, "one", count, 1);
        tokio::try_join!(wait_for_recorded(client, "one", count), created).map(drop)
    };
    bench.leg("1 entry", work).await?;
    let work = async |client: &Client| {
        let created = create_pods(client, "three", count, 3);
        tokio::try_join!(wait_for_recorded(client, "three", count), created).map(drop)
    };
    bench.leg("3 entries", work).await?;
    let claims = claims_of(&client, "one").await?;
    allocate_all(&client, &claims).await?;
    bench.leg("finished", async |client| finish(client, &claims, count).await).await?;
    let each = (count / SHARED).clamp(1, 250);
    create_shared(&client).await?;
    bench.leg("shared", async |client| share(client, each).await).await?;
    bench.finish().await
}

/// Measures the memory of both programs, in turn beside one control plane with `count` pods. 1 % of
/// the pods have a claim from a template.
pub(crate) async fn at_rest(peers: &[Peer; 2], rounds: usize, count: usize) -> anyhow::Result<()> {
    let with_claims = (count / 100).max(1);
    let mut bench = Bench::start(&peers[0], async |client| {
        create_template(client).await?;
        create_pods(client, "plain", count - with_claims, 0).await?;
        create_pods(client, "one", with_claims, 1).await
    })
    .await?;
    let mut usages = [Vec::new(), Vec::new()];
    for turn in 0..2 * rounds {
        // Theirs is first in the rounds 0, 2 and so on.
        let at = (turn + turn / 2) % 2;
        if turn > 0 {
            bench = bench.replace(&peers[at]).await?;
        }
        usages[at].push(rest(&bench, turn, with_claims).await?);
    }
    bench.finish().await?;
    let [theirs, ours] = usages;
    report_memory(&theirs, &ours);
    Ok(())
}

/// Waits until the program has worked, and for a rest after that. Returns its usage then.
async fn rest(bench: &Bench, turn: usize, with_claims: usize) -> anyhow::Result<Usage> {
    create_pods(&bench.client, &format!("probe-{turn}"), 1, 1).await?;
    let expected = with_claims + turn + 1;
    while claims(&bench.client).list_metadata(&ListParams::default()).await?.items.len() < expected
    {
        sleep(Duration::from_secs(1)).await;
    }
    sleep(REST).await;
    bench.usage()
}

async fn create_template(client: &Client) -> anyhow::Result<()> {
    let template = json!({"metadata": {"name": "t"}, "spec": {"spec": one_device()}});
    let api = Api::<ResourceClaimTemplate>::namespaced(client.clone(), "default");
    api.create(&PostParams::default(), &serde_json::from_value(template)?).await?;
    Ok(())
}

fn one_device() -> Value {
    json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}})
}

async fn create_pods(
    client: &Client,
    prefix: &str,
    count: usize,
    entries: usize,
) -> anyhow::Result<()> {
    let entry = |at: usize| json!({"name": format!("e{at}"), "resourceClaimTemplateName": "t"});
    let entries: Value = (0..entries).map(entry).collect();
    all((0..count).map(|at| create_pod(client, format!("{prefix}-{at}"), &entries, ""))).await
}

async fn create_pod(
    client: &Client,
    name: String,
    entries: &Value,
    node: &str,
) -> anyhow::Result<()> {
    let containers = json!([{"name": "c", "image": "pause"}]);
    let spec = json!({"resourceClaims": entries, "containers": containers, "nodeName": node});
    let pod = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?;
    pods(client).create(&PostParams::default(), &pod).await?;
    Ok(())
}

/// Waits until the status of `count` pods records a claim for each entry.
async fn wait_for_recorded(client: &Client, prefix: &str, count: usize) -> anyhow::Result<()> {
    let mut recorded = BTreeSet::new();
    watch_until(&pods(client), |event| {
        if let WatchEvent::Added(pod) | WatchEvent::Modified(pod) = event
            && let Some(name) = pod.metadata.name.as_ref().filter(|it| it.starts_with(prefix))
            && is_recorded(pod)
        {
            recorded.insert(name.clone());
        }
        recorded.len() >= count
    })
    .await
}

fn is_recorded(pod: &Pod) -> bool {
    let entries = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_ref());
    let statuses = pod.status.as_ref().and_then(|status| status.resource_claim_statuses.as_ref());
    statuses.map_or(0, Vec::len) == entries.map_or(0, Vec::len)
}

/// Returns the claims of the pods, with the pod that each is for.
async fn claims_of(client: &Client, prefix: &str) -> anyhow::Result<BTreeMap<String, Pod>> {
    let list = pods(client).list(&ListParams::default()).await?;
    let of_pod = |pod: Pod| {
        let name = pod.metadata.name.as_ref().filter(|name| name.starts_with(prefix))?;
        let _ = name;
        let statuses = pod.status.as_ref()?.resource_claim_statuses.as_ref()?;
        Some((statuses.first()?.resource_claim_name.clone()?, pod))
    };
    Ok(list.items.into_iter().filter_map(of_pod).collect())
}

/// Plays the scheduler: allocates each claim and reserves it for its pod.
async fn allocate_all(client: &Client, of: &BTreeMap<String, Pod>) -> anyhow::Result<()> {
    all(of.iter().map(|(claim, pod)| async move {
        let (name, uid) = (&pod.metadata.name, &pod.metadata.uid);
        let consumer = json!({"resource": "pods", "name": name, "uid": uid});
        allocate(client, claim, &json!([consumer])).await
    }))
    .await
}

async fn allocate(client: &Client, claim: &str, consumers: &Value) -> anyhow::Result<()> {
    let params = PatchParams::default();
    let patch = Patch::Merge(json!({"metadata": {"finalizers": [FINALIZER]}}));
    claims(client).patch(claim, &params, &patch).await?;
    let device = json!({"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"});
    let allocation = json!({"devices": {"results": [device]}});
    let patch = json!({"status": {"allocation": allocation, "reservedFor": consumers}});
    claims(client).patch_status(claim, &params, &Patch::Merge(patch)).await?;
    Ok(())
}

/// Ends the pods, and waits until their claims are gone.
async fn finish(client: &Client, of: &BTreeMap<String, Pod>, count: usize) -> anyhow::Result<()> {
    let finished = all(of.values().map(|pod| async move {
        let patch = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        pods(client).patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }));
    let mut gone = 0;
    let claims = claims(client);
    let watched = watch_until(&claims, |event| {
        gone += usize::from(matches!(event, WatchEvent::Deleted(_)));
        gone >= count
    });
    tokio::try_join!(watched, finished).map(drop)
}

async fn create_shared(client: &Client) -> anyhow::Result<()> {
    for at in 0..SHARED {
        let name = format!("shared-{at}");
        let claim = json!({"metadata": {"name": name}, "spec": one_device()});
        let claim = serde_json::from_value(claim)?;
        claims(client).create(&PostParams::default(), &claim).await?;
        allocate(client, &name, &json!([])).await?;
    }
    Ok(())
}

/// Creates pods on a node for each shared claim, and waits until the claims are reserved for them.
async fn share(client: &Client, each: usize) -> anyhow::Result<()> {
    let places = (0..SHARED).flat_map(|claim| (0..each).map(move |at| (claim, at)));
    let created = all(places.map(|(claim, at)| async move {
        let entries = json!([{"name": "e", "resourceClaimName": format!("shared-{claim}")}]);
        create_pod(client, format!("on-node-{claim}-{at}"), &entries, "node-0").await
    }));
    let mut complete = BTreeSet::new();
    let claims = claims(client);
    let watched = watch_until(&claims, |event| {
        if let WatchEvent::Added(claim) | WatchEvent::Modified(claim) = event
            && let Some(status) = &claim.status
            && status.reserved_for.as_ref().map_or(0, Vec::len) >= each
        {
            complete.insert(claim.metadata.name.clone());
        }
        complete.len() >= SHARED
    });
    tokio::try_join!(watched, created).map(drop)
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), "default")
}

fn claims(client: &Client) -> Api<ResourceClaim> {
    Api::namespaced(client.clone(), "default")
}
