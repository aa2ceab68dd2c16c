//! Scenarios about what quotas count: scopes, services, storage, devices, and resized pods.

use homeostat::kube_client::client::Body;
use http::Request;
use serde_json::{Value, json};

use super::{Shop, options, pod, quota};
use crate::World;

/// A quota of this name, with the limit of nine pods, in one scope.
fn of_scope(name: &str, scope: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name},
           "spec": {"hard": {"pods": "9"}, "scopes": [scope]}})
}

/// A pod without requests that must run beside the pods of another namespace.
fn affine_pod(name: &str) -> Value {
    let term = json!({"topologyKey": "kubernetes.io/hostname", "namespaces": ["other"],
                      "labelSelector": {"matchLabels": {"app": "web"}}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    }})
}

/// Pods are counted in each scope that they are in, and leave it when they change.
pub(super) async fn every_scope(world: &mut World) -> anyhow::Result<()> {
    const SCOPES: [(&str, &str); 6] = [
        ("affinity", "CrossNamespacePodAffinity"),
        ("best-effort", "BestEffort"),
        ("classes", "PriorityClass"),
        ("not-best-effort", "NotBestEffort"),
        ("not-terminating", "NotTerminating"),
        ("terminating", "Terminating"),
    ];
    let shop = Shop::open(world, &quota(&json!({"pods": "9"}))).await?;
    for (name, scope) in SCOPES {
        shop.create("/api/v1", "resourcequotas", &of_scope(name, scope)).await?;
    }
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                       "metadata": {"name": "high"}, "value": 1000});
    shop.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await?;
    let running = world.run_quota_controller(options());
    let counts = async |expected: [u32; 6]| -> anyhow::Result<()> {
        for ((name, _), pods) in SCOPES.iter().zip(expected) {
            shop.wait_for_used_of(name, &format!("pods={pods}")).await?;
        }
        Ok(())
    };
    counts([0; 6]).await?;
    let mut ending = pod("ending", "100m");
    ending["spec"]["activeDeadlineSeconds"] = json!(3600);
    let mut important = pod("important", "100m");
    important["spec"]["priorityClassName"] = json!("high");
    for object in [ending, important, affine_pod("affine"), affine_pod("another")] {
        shop.create("/api/v1", "pods", &object).await?;
    }
    counts([2, 2, 1, 2, 3, 1]).await?;
    let deadline = json!({"spec": {"activeDeadlineSeconds": 60}});
    shop.send("PATCH", "/api/v1/namespaces/shop/pods/important", &deadline).await?;
    counts([2, 2, 1, 2, 2, 2]).await?;
    shop.delete("/api/v1", "pods", "another").await?;
    shop.delete("/api/v1", "pods", "ending").await?;
    counts([1, 1, 1, 1, 1, 1]).await?;
    running.stop().await
}

/// A service that changes its type is charged for the new one.
pub(super) async fn service_types(world: &mut World) -> anyhow::Result<()> {
    let hard = json!({"services": "9", "services.loadbalancers": "9", "services.nodeports": "9"});
    let shop = Shop::open(world, &quota(&hard)).await?;
    let running = world.run_quota_controller(options());
    let used = |services, load_balancers, node_ports| {
        format!(
            "services={services},services.loadbalancers={load_balancers},\
             services.nodeports={node_ports}"
        )
    };
    shop.wait_for_used(&used(0, 0, 0)).await?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"},
                 "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}});
    shop.create("/api/v1", "services", &service).await?;
    shop.wait_for_used(&used(1, 0, 0)).await?;
    for (kind, load_balancers, node_ports) in
        [("NodePort", 0, 2), ("LoadBalancer", 1, 2), ("ClusterIP", 0, 0)]
    {
        let patch = json!({"spec": {"type": kind}});
        shop.send("PATCH", "/api/v1/namespaces/shop/services/web", &patch).await?;
        shop.wait_for_used(&used(1, load_balancers, node_ports)).await?;
    }
    shop.delete("/api/v1", "services", "web").await?;
    shop.wait_for_used(&used(0, 0, 0)).await?;
    running.stop().await
}

/// A claim to storage is charged for the size that it has grown or shrunk to.
pub(super) async fn storage(world: &mut World) -> anyhow::Result<()> {
    const CLAIM: &str = "/api/v1/namespaces/shop/persistentvolumeclaims/data";
    let shop = Shop::open(world, &quota(&json!({"requests.storage": "99Gi"}))).await?;
    let running = world.run_quota_controller(options());
    shop.wait_for_used("requests.storage=0").await?;
    // A real API server lets only claims of such a class grow. The embedded one serves no classes.
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "elastic"}, "provisioner": "example.com/disk",
        "allowVolumeExpansion": true});
    let request = Request::post("/apis/storage.k8s.io/v1/storageclasses")
        .header("content-type", "application/json")
        .body(Body::from(serde_json::to_vec(&class)?))?;
    let status = world.user().send(request).await?.status();
    anyhow::ensure!(status.is_success() || status == 404, "the class is refused: {status}");
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "storageClassName": "elastic", "volumeName": "disk",
        "resources": {"requests": {"storage": "5Gi"}}}});
    shop.create("/api/v1", "persistentvolumeclaims", &claim).await?;
    shop.wait_for_used("requests.storage=5Gi").await?;
    let bound = json!({"status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"],
                                  "capacity": {"storage": "5Gi"}}});
    shop.send("PATCH", &format!("{CLAIM}/status"), &bound).await?;
    for size in ["20Gi", "10Gi"] {
        let request = json!({"spec": {"resources": {"requests": {"storage": size}}}});
        // The real server's cache may not show the class yet.
        shop.send_until_accepted("PATCH", CLAIM, &request).await?;
        shop.wait_for_used(&format!("requests.storage={size}")).await?;
    }
    // The node has more than is requested now.
    let allocated = json!({"status": {"allocatedResources": {"storage": "15Gi"}}});
    shop.send("PATCH", &format!("{CLAIM}/status"), &allocated).await?;
    shop.wait_for_used("requests.storage=15Gi").await?;
    running.stop().await
}

/// Claims to devices are charged by their device class.
pub(super) async fn devices(world: &mut World) -> anyhow::Result<()> {
    const ROOT: &str = "/apis/resource.k8s.io/v1";
    let devices = "gpu.example.com.deviceclass.resource.k8s.io/devices";
    let count = "count/resourceclaims.resource.k8s.io";
    let shop = Shop::open(world, &quota(&json!({count: "9", devices: "99"}))).await?;
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
                       "metadata": {"name": "gpu.example.com"}, "spec": {}});
    shop.send("POST", &format!("{ROOT}/deviceclasses"), &class).await?;
    let running = world.run_quota_controller(options());
    let used = |claims, charged| format!("{count}={claims},{devices}={charged}");
    shop.wait_for_used(&used(0, 0)).await?;
    let claim = |name: &str, request: Value| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
               "metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
    };
    let two = json!({"name": "r", "exactly": {"deviceClassName": "gpu.example.com",
                     "allocationMode": "ExactCount", "count": 2}});
    let all = json!({"name": "r", "exactly": {"deviceClassName": "gpu.example.com",
                     "allocationMode": "All"}});
    shop.create(ROOT, "resourceclaims", &claim("two", two)).await?;
    shop.create(ROOT, "resourceclaims", &claim("all", all)).await?;
    shop.wait_for_used(&used(2, 34)).await?;
    shop.delete(ROOT, "resourceclaims", "all").await?;
    shop.wait_for_used(&used(1, 2)).await?;
    running.stop().await
}

/// Admission charges a resize that needs more, and the controller lowers the usage after one that
/// needs less.
pub(super) async fn resize(world: &mut World) -> anyhow::Result<()> {
    let shop = Shop::open(world, &quota(&json!({"pods": "9", "requests.cpu": "2"}))).await?;
    let running = world.run_quota_controller(options());
    shop.wait_for_used("pods=0,requests.cpu=0").await?;
    // No node takes the pod: the scenario writes what a node reports.
    let mut waiting = pod("a", "100m");
    waiting["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    shop.create("/api/v1", "pods", &waiting).await?;
    shop.wait_for_used("pods=1,requests.cpu=100m").await?;
    let path = "/api/v1/namespaces/shop/pods/a/resize";
    let resized = |cpu: &str| json!({"spec": pod("a", cpu)["spec"]});
    shop.send("PATCH", path, &resized("1")).await?;
    anyhow::ensure!(shop.used().await? == "pods=1,requests.cpu=1", "the resize is charged first");
    let refused = shop.send("PATCH", path, &resized("3")).await;
    let refused = refused.expect_err("the resize exceeds the quota");
    let text = "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=1, \
                limited: requests.cpu=2";
    let message = format!("{refused:#}");
    anyhow::ensure!(message.contains(text), "another refusal: {message}");
    shop.send("PATCH", path, &resized("250m")).await?;
    shop.wait_for_used("pods=1,requests.cpu=250m").await?;
    // The node still runs the pod with more than it requests now.
    let in_effect = json!({"status": {"containerStatuses": [{
        "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {}}, "resources": {"requests": {"cpu": "400m"}},
    }]}});
    shop.send("PATCH", "/api/v1/namespaces/shop/pods/a/status", &in_effect).await?;
    shop.wait_for_used("pods=1,requests.cpu=400m").await?;
    running.stop().await
}
