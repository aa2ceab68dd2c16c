use futures::{StreamExt as _, stream};
use homeostat_faults::{Calls, Faults, Verb};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube_client::Api;
use kube_client::api::{DeleteParams, ListParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime;
use tokio::time::sleep;

use super::*;
use crate::ApiServer;

/// The result of a run: the pods when all were ready, the number of requests per verb and resource,
/// and the number of pods at the end.
type Outcome = (String, Vec<(Verb, String, u64)>, usize);

/// Creates `count` pods with an owner, waits until they are ready, and deletes the owner.
fn create_and_delete(count: usize) -> Outcome {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let server = ApiServer::builder().seed(7).epoch("2026-01-01T00:00:00Z".parse().unwrap());
        let client = server.build().client();
        let faults = Faults::new();
        let kubelet = Kubelet::builder(faults.client(client.clone())).nodes(10).start();
        let collector = GarbageCollector::start(faults.client(client.clone()));

        let sets = Api::<ReplicaSet>::default_namespaced(client.clone());
        let set = json!({ "metadata": { "name": "set" }, "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "app": "set" } },
            "template": {
                "metadata": { "labels": { "app": "set" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        }});
        let set = serde_json::from_value(set).unwrap();
        let set = sets.create(&PostParams::default(), &set).await.unwrap();
        let pods = Api::<Pod>::default_namespaced(client);
        let create = async |index: usize| {
            let pod = json!({
                "metadata": { "name": format!("pod-{index:04}"), "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "set",
                    "uid": set.metadata.uid,
                }]},
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            });
            let pod = serde_json::from_value(pod).unwrap();
            pods.create(&PostParams::default(), &pod).await.unwrap();
        };
        stream::iter(0..count).for_each_concurrent(50, create).await;

        let all = wait_until(&pods, |pods| pods.len() == count && pods.iter().all(is_ready)).await;
        sets.delete("set", &DeleteParams::background()).await.unwrap();
        let left = wait_until(&pods, <[Pod]>::is_empty).await;
        collector.stop().await;
        kubelet.stop().await;
        let requests = faults.requests().into_iter().map(|((verb, on), n)| (verb, on, n));
        (serde_json::to_string(&all).unwrap(), requests.collect(), left.len())
    })
}

async fn wait_until(pods: &Api<Pod>, is_done: impl Fn(&[Pod]) -> bool) -> Vec<Pod> {
    for _ in 0..600 {
        let items = pods.list(&ListParams::default()).await.unwrap().items;
        if is_done(&items) {
            return items;
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("condition is not met after 60 s");
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}

fn decoded<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

/// Lets a client miss what happens to objects of a kind for a while: its watch ends, and its next
/// list comes late.
async fn miss(server: &ApiServer, resource: &str, client: &str, changes: impl Future<Output = ()>) {
    let list = Calls::list(resource).by(client);
    server.faults().delay_request(list, Duration::from_secs(5));
    assert_eq!(server.faults().expire_watches(Calls::watch(resource).by(client)), 1);
    sleep(Duration::from_secs(1)).await;
    changes.await;
    sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn missed_deletion_of_a_replica_set_is_made_good() {
    let server = ApiServer::builder().seed(7).build();
    let _controller = DeploymentController::start(server.client_as("deployments"));
    let deployment = decoded(json!({
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    }));
    let deployments = Api::<Deployment>::default_namespaced(server.client());
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let sets = Api::<ReplicaSet>::default_namespaced(server.client());
    let list = async || sets.list(&ListParams::default()).await.unwrap().items;
    let made = list().await;
    miss(&server, "replicasets", "deployments", async {
        let name = made[0].metadata.name.as_deref().unwrap();
        sets.delete(name, &DeleteParams::background()).await.unwrap();
    })
    .await;
    let again = list().await;
    assert_eq!(again.len(), 1);
    assert_ne!(again[0].metadata.uid, made[0].metadata.uid);
}

#[tokio::test(start_paused = true)]
async fn missed_deletion_of_a_pod_lets_its_claim_go() {
    let server = ApiServer::builder().seed(7).build();
    let _protection = VolumeProtection::start(server.client_as("protection"));
    let claims = Api::<PersistentVolumeClaim>::default_namespaced(server.client());
    let claim = decoded(json!({ "metadata": { "name": "data" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
    } }));
    claims.create(&PostParams::default(), &claim).await.unwrap();
    let pods = Api::<Pod>::default_namespaced(server.client());
    let pod = decoded(json!({ "metadata": { "name": "p" }, "spec": {
        "nodeName": "n", "containers": [{ "name": "c", "image": "i" }],
        "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }],
    } }));
    pods.create(&PostParams::default(), &pod).await.unwrap();
    claims.delete("data", &DeleteParams::default()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(claims.get_opt("data").await.unwrap().is_some());
    miss(&server, "pods", "protection", async {
        pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    })
    .await;
    assert!(claims.get_opt("data").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn delays_without_end_are_accepted() {
    let server = ApiServer::builder().seed(7).build();
    let kubelet = Kubelet::builder(server.client()).ready_delay(Duration::MAX);
    let kubelet = kubelet.stop_delay(Duration::MAX).restart_delay(Duration::MAX).start();
    let pods = Api::<Pod>::default_namespaced(server.client());
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    for name in ["a", "b"] {
        let pod = decoded(json!({ "metadata": { "name": name }, "spec": spec }));
        pods.create(&PostParams::default(), &pod).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        pods.delete(name, &DeleteParams::default()).await.unwrap();
        sleep(Duration::from_secs(3600)).await;
        let pod = pods.get(name).await.unwrap();
        assert_eq!(pod.status.as_ref().unwrap().phase.as_deref(), Some("Running"));
        assert!(!is_ready(&pod));
    }
    kubelet.stop().await;
}

#[test]
fn same_seed_gives_the_same_run() {
    let once = create_and_delete(40);
    assert!(once.0.contains("node-9"));
    assert_eq!(once, create_and_delete(40));
}

#[test]
fn requests_for_a_thousand_pods_are_minimal() {
    let (_, requests, left) = create_and_delete(1_000);
    assert_eq!(left, 0);
    let count = |verb, resource: &str| {
        let found = requests.iter().find(|(v, r, _)| (*v, r.as_str()) == (verb, resource));
        found.map_or(0, |(_, _, count)| *count)
    };
    assert_eq!(count(Verb::Create, "pods/binding"), 1_000);
    assert_eq!(count(Verb::Patch, "pods/status"), 1_000);
    // One delete by the garbage collector with the default grace period, one by the kubelet.
    let deletes = count(Verb::Delete, "pods");
    assert!((2_000..2_100).contains(&deletes), "{requests:?}");
    assert!(count(Verb::Get, "replicasets") <= 50, "{requests:?}");
}
