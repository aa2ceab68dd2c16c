//! Requests that meet other requests half-way.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use homeostat_apiserver::ApiServer;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Api;
use kube_client::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::task::JoinSet;

/// The number of objects that concurrent clients create.
const OBJECTS: usize = 300;

/// Runs a number of clients at the same time, each in a task of its own.
async fn together<F: Future<Output = ()> + Send + 'static>(client: impl Fn(usize) -> F) {
    let mut clients: JoinSet<()> = (0..4).map(client).collect();
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_first_applies_of_an_object_all_succeed() {
    let server = ApiServer::new();
    let apply = |number: usize| {
        let maps = Api::<ConfigMap>::default_namespaced(server.client());
        async move {
            let params = PatchParams::apply(&format!("manager-{number}"));
            for object in 0..OBJECTS {
                let name = format!("map-{object}");
                let key = format!("key-{number}");
                let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name}, "data": {key: "1"}});
                maps.patch(&name, &params, &Patch::Apply(&config)).await.unwrap();
            }
        }
    };
    together(apply).await;
    let maps = Api::<ConfigMap>::default_namespaced(server.client());
    let all = maps.list(&ListParams::default().labels("!none")).await.unwrap().items;
    let applied = all.iter().filter(|map| map.data.as_ref().is_some_and(|data| data.len() == 4));
    assert_eq!(applied.count(), OBJECTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn update_that_another_create_overtakes_is_no_create() {
    let server = ApiServer::new();
    let update = |_| {
        let leases = Api::<Lease>::default_namespaced(server.client());
        async move {
            for object in 0..OBJECTS {
                let name = format!("lease-{object}");
                let lease = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
                // Without a version only the first one may succeed.
                match leases.replace(&name, &PostParams::default(), &lease).await {
                    Ok(_) => {}
                    Err(kube_client::Error::Api(status)) => assert_eq!(status.code, 422),
                    Err(error) => panic!("{error}"),
                }
            }
        }
    };
    together(update).await;
}
