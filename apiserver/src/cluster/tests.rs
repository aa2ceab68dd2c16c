use futures::{StreamExt as _, stream};
use homeostat_faults::{Faults, Verb};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Api;
use kube_client::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;
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
