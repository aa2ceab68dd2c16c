//! A server that refuses every pod of one namespace does not slow down the others.
//!
//! The client is the production client with its default rate limit of 20 requests per second.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use homeostat::client;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, PostParams};
use homeostat_apiserver::ApiServer;
use homeostat_faults::{ApiError, Calls, Faults, Verb};
use homeostat_replicaset::{Options, run};
use http::StatusCode;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::Layer as _;

/// The `ReplicaSet`s whose pods are refused.
const REFUSED: usize = 1000;

/// The result of one run.
#[derive(Debug)]
struct Run {
    /// The time from the creation of the healthy `ReplicaSet` to its status with all pods.
    converged_after: Duration,
    /// Requests of the controller in the ten minutes after that, except watches and events.
    requests: u64,
}

fn webhook_failure() -> ApiError {
    let message = "Internal error occurred: failed calling webhook \"pods.example.com\": failed to \
                   call webhook: Post \"https://webhook.default.svc:443/\": connection refused";
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
}

#[tokio::test(start_paused = true)]
async fn healthy_replica_set_converges_beside_a_thousand_that_are_refused() {
    // Long enough for each ReplicaSet to fail twice: 6,000 requests at 20 per second.
    let minutes = Duration::from_secs(300);
    let alone = play(0, webhook_failure(), minutes).await.converged_after;
    for error in [webhook_failure(), ApiError::internal_error()] {
        let beside = play(REFUSED, error, minutes).await.converged_after;
        let limit = alone + Duration::from_secs(3);
        assert!(beside < limit, "{beside:?} instead of {alone:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_creates_back_off_to_a_thousand_seconds() {
    let hour = Duration::from_secs(3600);
    for (error, per_attempt) in [(webhook_failure(), 1), (ApiError::internal_error(), 3)] {
        let requests = play(20, error, hour).await.requests;
        // Ten minutes are less than one back-off.
        assert!(requests <= 20 * per_attempt, "{requests} requests of 20 ReplicaSets");
    }
}

/// Runs the controller with `refused` `ReplicaSet`s whose pods get `error`, and creates a healthy
/// one after the time of `trouble`.
async fn play(refused: usize, error: ApiError, trouble: Duration) -> Run {
    let server = ApiServer::builder().seed(7).build();
    let user = server.client();
    for namespace in ["refused", "shop"] {
        let object = json!({"metadata": {"name": namespace}});
        let object: Namespace = serde_json::from_value(object).unwrap();
        Api::all(user.clone()).create(&PostParams::default(), &object).await.unwrap();
    }
    for index in 0..refused {
        create(&user, "refused", &format!("web-{index}"), 1).await;
    }
    let faults = Faults::new();
    faults.refuse(Calls::create("pods").in_namespace("refused").always(), error);
    let client = client::builder().service(faults.layer().layer(server.service())).build();
    let mut controller = JoinSet::new();
    let options = Options { seed: Some(7), ..Options::default() };
    controller.spawn(run(client, options, std::future::pending()));
    tokio::time::sleep(trouble).await;

    let start = Instant::now();
    create(&user, "shop", "healthy", 3).await;
    let sets: Api<ReplicaSet> = Api::namespaced(user, "shop");
    while sets.get("healthy").await.unwrap().status.unwrap_or_default().replicas < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let converged_after = start.elapsed();
    let before = requests(&faults);
    tokio::time::sleep(Duration::from_secs(600)).await;
    Run { converged_after, requests: requests(&faults) - before }
}

fn requests(faults: &Faults) -> u64 {
    let counted = faults.requests().into_iter();
    let counted = counted.filter(|((verb, what), _)| *verb != Verb::Watch && what != "events");
    counted.map(|(_, count)| count).sum()
}

async fn create(user: &Client, namespace: &str, name: &str, replicas: i32) {
    let labels = json!({"app": name});
    let set = json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels},
                              "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    });
    let set: ReplicaSet = serde_json::from_value(set).unwrap();
    Api::namespaced(user.clone(), namespace).create(&PostParams::default(), &set).await.unwrap();
}
