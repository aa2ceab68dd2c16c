//! The files in `deploy/` name metrics that the program exports. The test has its own file, because
//! the recorder is global.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;
use std::time::Duration;

use homeostat::kube_client::api::{Api, PostParams};
use homeostat::{LeaderElector, client};
use homeostat_apiserver::ApiServer;
use homeostat_faults::{ApiError, Calls, Faults};
use homeostat_replicaset::{HISTOGRAMS, Options, manager};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::Layer as _;

/// The first words of metrics. Labels and functions have none of them.
const PREFIXES: [&str; 8] = [
    "controller_runtime_",
    "homeostat_",
    "informer_",
    "leader_election_",
    "reflector_",
    "replicaset_",
    "rest_client_",
    "workqueue_",
];

#[tokio::test(start_paused = true)]
async fn every_metric_of_the_dashboard_and_the_alerts_is_exported() {
    let recorder = homeostat::install_prometheus_recorder_with(&HISTOGRAMS).unwrap();
    let _controller = play().await;
    let exported = recorder.render();
    let dashboard = include_str!("../../../deploy/grafana-dashboard.json");
    let alerts = include_str!("../../../deploy/prometheus-alerts.yaml");
    for (file, text) in [("dashboard", dashboard), ("alerts", alerts)] {
        let metrics = metrics_of(text);
        assert!(metrics.len() >= 7, "{file}: {metrics:?}");
        for metric in metrics {
            assert!(
                is_in(&exported, &metric),
                "{metric} of the {file} is not exported:\n{exported}"
            );
        }
    }
    let panels: Value = serde_json::from_str(dashboard).unwrap();
    for panel in panels["panels"].as_array().unwrap() {
        assert!(!metrics_of(&panel["targets"].to_string()).is_empty(), "no metric in {panel}");
    }
    for line in [
        r#"controller_runtime_reconcile_time_seconds_bucket{controller="replicaset",le="0.005"}"#,
        r#"controller_runtime_reconcile_total{controller="replicaset",result="error"} 1"#,
        r#"controller_runtime_reconcile_errors_total{controller="replicaset"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="replicaset"} 0"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="replicaset"} 5"#,
        r#"controller_runtime_active_workers{controller="replicaset"} 0"#,
        r#"replicaset_controller_sorting_deletion_age_ratio_bucket{le="0.25"}"#,
    ] {
        assert!(exported.contains(line), "{line} is not in {exported}");
    }
}

/// Returns true if a line of `exported` has a value of `metric`.
fn is_in(exported: &str, metric: &str) -> bool {
    let mut rests = exported.lines().filter_map(|line| line.strip_prefix(metric));
    rests.any(|rest| rest.starts_with(['{', ' ']))
}

/// Returns the names in `text` that begin as a metric does.
fn metrics_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let metrics = words.filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)));
    metrics.map(str::to_owned).collect()
}

/// Runs the controller as a leader for a minute. One create and one watch of it are refused.
async fn play() -> JoinSet<()> {
    let server = ApiServer::builder().seed(7).build();
    let user = server.client();
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    Api::all(user.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let faults = Faults::new();
    faults.refuse(Calls::create("pods").nth(2), ApiError::forbidden());
    faults.refuse(Calls::watch("pods").nth(1), ApiError::unavailable());
    let client = || client::builder().service(faults.layer().layer(server.service())).build();
    let elector = LeaderElector::builder(client(), "shop", "homeostat-replicaset").build().unwrap();
    let options = Options { seed: Some(7), ..Options::default() };
    let manager = manager(client(), &options).leader_election(elector);
    let mut controller = JoinSet::new();
    controller.spawn(async move {
        manager.run_until(std::future::pending()).await.unwrap();
    });
    let labels = json!({"app": "web"});
    let set: ReplicaSet = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels},
                              "spec": {"containers": [{"name": "c", "image": "i"}]}}},
    }))
    .unwrap();
    let sets: Api<ReplicaSet> = Api::namespaced(user, "shop");
    sets.create(&PostParams::default(), &set).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    controller
}
