//! The metrics of a series of requests, compared with those of a real kube-apiserver.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use http::Request;
use kube_client::Client;
use kube_client::client::Body;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

fn main() {
    let arguments = Arguments::from_args();
    let trial = Trial::ignorable_test("control_plane::metrics_are_those_of_the_server", || {
        if let Some(missing) = Binaries::missing_for_tests() {
            return Ok(Completion::ignored_with(missing));
        }
        Runtime::new()?.block_on(compare())?;
        Ok(Completion::Completed)
    });
    libtest_mimic::run(&arguments, vec![trial]).exit();
}

async fn compare() -> Result<(), Failed> {
    let control_plane = ControlPlane::start().await?;
    let client = control_plane.client()?;
    let start = scrape(&client).await;
    std::fs::write("/tmp/met-real0.txt", &start).unwrap();
    requests(&client).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    std::fs::write("/tmp/met-real1.txt", scrape(&client).await).unwrap();
    Ok(())
}

const JSON: &str = "application/json";

async fn requests(client: &Client) {
    let pod = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let ns = json!({"metadata": {"name": "strict",
        "labels": {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "baseline", "pod-security.kubernetes.io/audit": "restricted", "pod-security.kubernetes.io/audit-version": "v1.20"}}});
    let none = Value::Null;
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}},
       "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"hostPID": true, "containers": [{"name": "c", "image": "i"}]}}}});
    let csr = json!({"metadata": {"name": "c"}, "spec": {"signerName": "kubernetes.io/kube-apiserver-client"}});
    let series = [
        ("POST", "/api/v1/namespaces", JSON, ns),
        ("PUT", "/api/v1/namespaces/strict/finalize", JSON, json!({"metadata": {"name": "strict"}, "spec": {}})),
        ("POST", "/api/v1/namespaces/default/pods", JSON, pod("p")),
        ("POST", "/api/v1/namespaces/default/pods", JSON, pod("p")),
        ("POST", "/api/v1/namespaces/default/pods?dryRun=All", JSON, pod("q")),
        ("POST", "/api/v1/namespaces/default/pods?dryRun=Some", JSON, pod("q")),
        ("POST", "/api/v1/namespaces/strict/pods", JSON, pod("q")),
        ("POST", "/apis/apps/v1/namespaces/strict/deployments", JSON, deployment),
        ("POST", "/api/v1/namespaces/missing/pods", JSON, pod("q")),
        ("POST", "/api/v1/namespaces/default/pods", "text/odd", pod("q")),
        ("POST", "/api/v1/pods", JSON, pod("q")),
        ("GET", "/api/v1/namespaces/default/pods/p", JSON, none.clone()),
        ("HEAD", "/api/v1/namespaces/default/pods/p", JSON, none.clone()),
        ("HEAD", "/api/v1/namespaces/default/pods", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods/absent", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods", JSON, none.clone()),
        ("GET", "/api/v1/pods", JSON, none.clone()),
        ("GET", "/api/v1/pods?watch=true&timeoutSeconds=1", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1&resourceVersion=0", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dp", JSON, none.clone()),
        ("GET", "/api/v1/watch/namespaces/default/pods?timeoutSeconds=1", JSON, none.clone()),
        ("GET", "/api/v1/watch/namespaces/default/pods/p?timeoutSeconds=1", JSON, none.clone()),
        ("PUT", "/api/v1/namespaces/default/pods/p/status", JSON, pod("p")),
        ("GET", "/api/v1/namespaces/default/pods/p/status", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods/p/log", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods/p/proxy/a/b", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods/p/odd", JSON, none.clone()),
        ("PATCH", "/api/v1/namespaces/default/pods/p", "application/merge-patch+json", json!({"metadata": {"labels": {"a": "b"}}})),
        ("PATCH", "/api/v1/namespaces/default/pods/p?fieldManager=x&force=true", "application/apply-patch+yaml", pod("p")),
        ("PATCH", "/api/v1/namespaces/default/pods/p", "application/odd", json!({})),
        ("POST", "/api/v1/namespaces/default/pods/p/eviction", JSON, json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}})),
        ("POST", "/api/v1/namespaces/default/pods/p", JSON, json!({})),
        ("ODD", "/api/v1/namespaces/default/pods/p", JSON, json!({})),
        ("ODD", "/api/v1/namespaces/default/pods", JSON, json!({})),
        ("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0", JSON, none.clone()),
        ("DELETE", "/api/v1/namespaces/default/pods", JSON, none.clone()),
        ("DELETE", "/api/v1/pods", JSON, none.clone()),
        ("PUT", "/api/v1/pods", JSON, none.clone()),
        ("GET", "/api/v1/oddities", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/oddities", JSON, none.clone()),
        ("GET", "/apis/odd.example.com/v1/oddities", JSON, none.clone()),
        ("GET", "/odd", JSON, none.clone()),
        ("GET", "/api", JSON, none.clone()),
        ("GET", "/apis", JSON, none.clone()),
        ("GET", "/apis/apps", JSON, none.clone()),
        ("GET", "/apis/apps/v1", JSON, none.clone()),
        ("GET", "/apis/apps/v7", JSON, none.clone()),
        ("GET", "/", JSON, none.clone()),
        ("GET", "/version", JSON, none.clone()),
        ("POST", "/version", JSON, none.clone()),
        ("GET", "/healthz", JSON, none.clone()),
        ("GET", "/livez", JSON, none.clone()),
        ("GET", "/readyz", JSON, none.clone()),
        ("GET", "/readyz/ping", JSON, none.clone()),
        ("GET", "/metrics", JSON, none.clone()),
        ("GET", "/openapi/v2", JSON, none.clone()),
        ("GET", "/openapi/v3", JSON, none.clone()),
        ("GET", "/openapi/v3/api/v1", JSON, none.clone()),
        ("GET", "/.well-known/openid-configuration", JSON, none.clone()),
        ("GET", "/openid/v1/jwks", JSON, none.clone()),
        ("GET", "/api/v1/componentstatuses", JSON, none.clone()),
        ("GET", "/api/v1/endpoints", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default", JSON, none.clone()),
        ("GET", "/api/v1/namespaces", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods?limit=x", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods?timeout=x", JSON, none.clone()),
        ("GET", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dp", JSON, none.clone()),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", JSON, json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}})),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/d/scale", JSON, json!({})),
        ("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale", JSON, json!({})),
        ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", JSON, csr),
    ];
    for (method, path, kind, body) in series {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("Content-Type", kind);
        let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
        let code = response.status();
        let _ = tokio::time::timeout(Duration::from_secs(3), http_body_util::BodyExt::collect(response.into_body())).await;
        eprintln!("{method} {path} {code}");
    }
}

async fn scrape(client: &Client) -> String {
    client.request_text(Request::get("/metrics").body(Vec::new()).unwrap()).await.unwrap()
}
