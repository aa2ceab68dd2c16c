//! The objects of the requests.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Returns a map of 1 kB.
pub(super) fn map(index: u64, content: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("map-{index}"), "labels": { "app": "bench", "tier": "store" },
        },
        "data": { "content": format!("{content:0>760}") },
    })
}

/// Returns the configuration of a Deployment.
pub(super) fn deployment(index: u64, replicas: u64) -> Value {
    let labels = json!({ "app": format!("web-{index}") });
    let container = json!({
        "name": "web", "image": "registry.example.com/web:1.2.3",
        "ports": [{ "name": "http", "containerPort": 8080 }],
        "env": [{ "name": "MODE", "value": "production" }],
        "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": format!("web-{index}"), "labels": labels },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    })
}

/// Returns a pod with three containers and long annotations.
pub(super) fn large_pod(index: u64) -> Value {
    let containers = ["web", "sidecar", "agent"].map(|name| container(name, index));
    let mut notes = String::new();
    for line in 0..20 {
        write!(notes, "line {line} of what a tool has to say about pod {index}; ")
            .unwrap_or_default();
    }
    json!({
        "metadata": {
            "name": format!("large-{index}"),
            "labels": {
                "app": "web", "team": "shop", "pod-template-hash": "5d4f8c7b9", "release": "stable",
            },
            "annotations": {
                "example.com/notes": notes, "example.com/checksum": format!("{index:0>64}"),
            },
        },
        "spec": {
            "containers": containers,
            "volumes": [
                { "name": "config", "configMap": { "name": "web-config" } },
                { "name": "data", "emptyDir": {} },
            ],
            "tolerations": [{
                "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
            }],
        },
    })
}

/// Returns a container with 24 variables.
fn container(name: &str, index: u64) -> Value {
    let env = (0..24).map(|at| {
        let value = format!("value-{at}-of-{name}-{index}");
        json!({ "name": format!("SETTING_{at}"), "value": value })
    });
    json!({
        "name": name, "image": format!("registry.example.com/team/{name}@sha256:{index:0>64}"),
        "command": ["/usr/bin/app", "--config", "/etc/app/config.yaml", "--verbosity=2"],
        "ports": [
            { "name": "http", "containerPort": 8080 },
            { "name": "metrics", "containerPort": 9090 },
        ],
        "env": env.collect::<Vec<_>>(),
        "resources": {
            "requests": { "cpu": "100m", "memory": "128Mi" }, "limits": { "memory": "256Mi" },
        },
        "livenessProbe": { "httpGet": { "path": "/healthz", "port": "http" } },
        "readinessProbe": { "httpGet": { "path": "/readyz", "port": "http" } },
        "volumeMounts": [
            { "name": "config", "mountPath": "/etc/app" },
            { "name": "data", "mountPath": "/var/lib/app" },
        ],
    })
}
