//! With `Options::namespaces` the controllers work in these namespaces alone, with roles there.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use homeostat::client;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, ListParams};
use homeostat_apiserver::{ApiServer, User};
use homeostat_replicaset::{Controllers, Options, manager};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn create(user: &Client, path: &str, object: &Value) {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(object).unwrap()).unwrap();
    user.request_text(request).await.unwrap();
}

/// Creates `namespace` with a `ReplicaSet` of 2 pods and a `ReplicationController` of 1 pod.
async fn fill(user: &Client, namespace: &str) {
    let object = json!({"metadata": {"name": namespace}});
    create(user, "/api/v1/namespaces", &object).await;
    let template = |app: &str| {
        json!({"metadata": {"labels": {"app": app}},
               "spec": {"containers": [{"name": "c", "image": "i"}]}})
    };
    let set = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")}});
    create(user, &format!("/apis/apps/v1/namespaces/{namespace}/replicasets"), &set).await;
    let rc = json!({"metadata": {"name": "old"}, "spec": {
        "replicas": 1, "selector": {"app": "old"}, "template": template("old")}});
    create(user, &format!("/api/v1/namespaces/{namespace}/replicationcontrollers"), &rc).await;
}

/// Binds the roles of the manifests in `namespace` alone.
async fn bind(user: &Client, namespace: &str) {
    for role in ["homeostat-replicaset", "homeostat-replicationcontroller"] {
        let binding = json!({
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "homeostat-replicaset",
                          "namespace": "kube-system"}],
        });
        create(user, &format!("{RBAC}/namespaces/{namespace}/rolebindings"), &binding).await;
    }
}

async fn create_cluster_roles(user: &Client) {
    let manifests =
        [include_str!("../rbac.yaml"), include_str!("../rbac-replicationcontroller.yaml")];
    let documents = manifests.iter().flat_map(|manifest| manifest.split("\n---\n"));
    for role in documents.filter(|text| text.lines().any(|line| line == "kind: ClusterRole")) {
        let request = Request::post(format!("{RBAC}/clusterroles"));
        let request = request.header("content-type", "application/yaml");
        user.request_text(request.body(role.as_bytes().to_vec()).unwrap()).await.unwrap();
    }
}

async fn pods(user: &Client, namespace: &str) -> usize {
    let pods = Api::<Pod>::namespaced(user.clone(), namespace);
    pods.list(&ListParams::default()).await.unwrap().items.len()
}

#[tokio::test(start_paused = true)]
async fn controllers_work_in_their_namespaces_with_roles_there() {
    let server = ApiServer::builder().seed(7).authorization().build();
    let user = server.client();
    create_cluster_roles(&user).await;
    for namespace in ["bank", "other", "shop"] {
        fill(&user, namespace).await;
    }
    bind(&user, "bank").await;
    bind(&user, "shop").await;
    let account = User::service_account("kube-system", "homeostat-replicaset");
    let client = client::builder().service(server.service_of(account)).build();
    let options = Options {
        namespaces: vec!["bank".to_owned(), "shop".to_owned()],
        controllers: Controllers { replica_set: true, replication_controller: true },
        epoch: Some(server.now()),
        seed: Some(7),
        ..Options::default()
    };
    let manager = manager(client, &options);
    let mut running = JoinSet::new();
    running.spawn(manager.run_until(std::future::pending()));
    let converged = async {
        while (pods(&user, "bank").await, pods(&user, "shop").await) != (3, 3) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), converged).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(pods(&user, "other").await, 0);
    assert!(running.try_join_next().is_none(), "the manager runs");
}
