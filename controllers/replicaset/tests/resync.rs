//! A `ReplicaSet` is reconciled again without a change, so that no lost wake-up is permanent.

use std::time::Duration;

use homeostat::client;
use homeostat::kube_client::api::{Api, PostParams};
use homeostat::observe::Diagnostics;
use homeostat_apiserver::ApiServer;
use homeostat_replicaset::{Options, manager};
use k8s_openapi::api::apps::v1::ReplicaSet;
use serde_json::json;
use tokio::time::sleep;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn settled_replica_set_is_reconciled_every_twelve_hours() {
    let server = ApiServer::builder().seed(7).build();
    let client = client::builder().service(server.service()).build();
    let diagnostics = Diagnostics::new();
    let options = Options { seed: Some(7), ..Options::default() };
    let manager = manager(client, &options).diagnostics(&diagnostics);
    let labels = json!({"app": "web"});
    let set: ReplicaSet = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels},
                              "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }))
    .unwrap();
    let sets: Api<ReplicaSet> = Api::namespaced(server.client(), "default");
    let story = async {
        sets.create(&PostParams::default(), &set).await.unwrap();
        let reconciles = || diagnostics.report().queues.remove(0).reconciles;
        sleep(HOUR).await;
        let settled = reconciles().len();
        assert!(settled > 0, "the ReplicaSet was never reconciled");
        sleep(10 * HOUR).await;
        assert_eq!(reconciles().len(), settled, "a settled ReplicaSet waits");
        for resyncs in 1..=2 {
            sleep(12 * HOUR).await;
            assert_eq!(reconciles().len(), settled + resyncs);
            assert!(reconciles()[0].calls.is_empty(), "nothing is to do: {:?}", reconciles()[0]);
        }
    };
    manager.run_until(story).await.unwrap();
}
