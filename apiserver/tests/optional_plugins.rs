//! Admission plugins that are off by default, compared with those of a real kube-apiserver.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use homeostat_apiserver::{AdmissionPlugin, ApiServer};
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use http::Request;
use http_body_util::BodyExt as _;
use kube_client::Client;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

const TIMEOUT: Duration = Duration::from_secs(60);
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A method, a path, a media type and a body. A user stands before the path.
type Call = (&'static str, &'static str, &'static str, Value);

fn main() {
    let arguments = Arguments::from_args();
    let trials = [
        Trial::ignorable_test("control_plane::plugins_answer_as_those_of_the_server", || {
            if let Some(missing) = Binaries::missing_for_tests() {
                return Ok(Completion::ignored_with(missing));
            }
            Runtime::new()?.block_on(compare())?;
            Ok(Completion::Completed)
        }),
        Trial::test("embedded::plugins_are_off_by_default", || {
            Runtime::new()?.block_on(check_default());
            Ok(())
        }),
    ];
    libtest_mimic::run(&arguments, trials.into()).exit();
}

fn added() -> impl Iterator<Item = AdmissionPlugin> {
    AdmissionPlugin::ALL.into_iter().filter(|plugin| !plugin.is_default())
}

async fn compare() -> Result<(), Failed> {
    let names: Vec<&str> = added().map(AdmissionPlugin::name).collect();
    let flag = format!("--enable-admission-plugins={}", names.join(","));
    let control_plane = ControlPlane::builder().api_server_arg(flag).start().await?;
    let real = replies(&control_plane.client()?).await;
    let builder = ApiServer::builder().authorization();
    let server = added().fold(builder, homeostat_apiserver::Builder::with_plugin).build();
    let own = replies(&server.client()).await;
    let differ = real.iter().zip(&own).filter(|(real, own)| real != own);
    let differ: Vec<String> =
        differ.map(|(real, own)| format!("real {real}\nown  {own}")).collect();
    if differ.is_empty() { Ok(()) } else { Err(differ.join("\n").into()) }
}

/// Checks that no plugin does anything unless it is switched on.
async fn check_default() {
    let client = ApiServer::builder().authorization().build().client();
    let replies = replies(&client).await;
    let refused = replies.iter().filter(|reply| reply.contains("admission control"));
    assert_eq!(refused.count(), 0);
    assert!(
        replies
            .iter()
            .any(|reply| reply.starts_with("POST /api/v1/namespaces/new/")
                && reply.contains(" 404 "))
    );
}

/// Sends all requests, and returns what the replies say.
async fn replies(client: &Client) -> Vec<String> {
    for (path, body) in objects() {
        let (code, reply) = send(client, ("POST", path, JSON, body)).await;
        assert_eq!(code, 201, "{path}: {reply}");
    }
    // The real server reads roles and namespaces a little later.
    let deadline = Instant::now() + TIMEOUT;
    let may = || ("GET", "jane@/api/v1/namespaces/default/configmaps/absent", JSON, Value::Null);
    while send(client, may()).await.0 != 404 {
        assert!(Instant::now() < deadline, "the role has no effect");
        sleep(Duration::from_millis(50)).await;
    }
    let mut replies = Vec::new();
    for call in calls() {
        let (method, path) = (call.0, call.1);
        let (code, reply) = send(client, call).await;
        let shown = match reply["kind"].as_str() {
            Some("Status") => reply["message"].clone(),
            _ => json!([
                reply["spec"]["nodeSelector"],
                reply["spec"]["containers"],
                reply["spec"]["volumes"],
                reply["spec"]["externalIPs"]
            ]),
        };
        replies.push(format!("{method} {path} {code} {shown}"));
    }
    replies
}

fn objects() -> Vec<(&'static str, Value)> {
    let annotated = |name: &str, text: &str| {
        let annotations = json!({"scheduler.alpha.kubernetes.io/node-selector": text});
        json!({"metadata": {"name": name, "annotations": annotations}})
    };
    let grant = |group: &str, resource: &str, verbs: &[&str]| -> Value {
        let resources = [resource];
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
    };
    let role = json!({"metadata": {"name": "jane"}, "rules": [
        grant("", "configmaps", &["get", "create", "update", "patch"]),
        grant("apps", "deployments/finalizers", &["update"]),
    ]});
    let binding = json!({"metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "jane"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}]});
    vec![
        ("/api/v1/namespaces", annotated("east", "zone=east, disk = fast")),
        ("/api/v1/namespaces", annotated("odd", "zone")),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", role),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding),
    ]
}

fn calls() -> Vec<Call> {
    let mut calls = calls_for_pods();
    calls.extend(calls_for_owners());
    let named = |name: &str| json!({"metadata": {"name": name}});
    let service = |name: &str, addresses: Value| {
        json!({"metadata": {"name": name},
            "spec": {"ports": [{"port": 80}], "externalIPs": addresses}})
    };
    let address = json!({"spec": {"externalIPs": ["1.2.3.4"]}});
    calls.extend([
        ("POST", SERVICES, JSON, service("s", json!(["1.2.3.4"]))),
        ("POST", SERVICES, JSON, service("t", json!([]))),
        ("PATCH", "/api/v1/namespaces/default/services/t", MERGE, address),
        ("POST", "/api/v1/namespaces/new/configmaps?dryRun=All", JSON, named("m")),
        ("POST", "/api/v1/namespaces/new/configmaps", JSON, named("m")),
        ("GET", "/api/v1/namespaces/new", JSON, Value::Null),
        ("POST", "/api/v1/namespaces/newer/configmaps", JSON, json!({"metadata": {"name": "_"}})),
        ("GET", "/api/v1/namespaces/newer", JSON, Value::Null),
        ("POST", "/api/v1/namespaces/Bad_/configmaps", JSON, named("m")),
        ("POST", "jane@/api/v1/namespaces/other/configmaps", JSON, named("m")),
    ]);
    calls
}

fn calls_for_pods() -> Vec<Call> {
    let pod = |name: &str, selector: Value, policy: &str| {
        let container = json!({"name": "c", "image": "i", "imagePullPolicy": policy,
            "resources": {}, "terminationMessagePath": "/l", "terminationMessagePolicy": "File"});
        let image = json!({"reference": "r", "pullPolicy": "Never"});
        json!({"metadata": {"name": name}, "spec": {
            "automountServiceAccountToken": false, "nodeSelector": selector,
            "containers": [container], "volumes": [{"name": "v", "image": image}]}})
    };
    let image = json!({"spec": {"containers": [{"name": "c", "image": "j",
        "imagePullPolicy": "Never", "resources": {}, "terminationMessagePath": "/l",
        "terminationMessagePolicy": "File"}]}});
    let same = image.clone();
    let none = || json!({});
    vec![
        ("POST", PODS, JSON, pod("p", none(), "Never")),
        ("PATCH", "/api/v1/namespaces/default/pods/p", MERGE, image),
        ("PATCH", "/api/v1/namespaces/default/pods/p", MERGE, same),
        ("POST", "/api/v1/namespaces/east/pods", JSON, pod("p", none(), "Always")),
        (
            "POST",
            "/api/v1/namespaces/east/pods",
            JSON,
            pod("q", json!({"disk": "fast", "a": "b"}), "Always"),
        ),
        ("POST", "/api/v1/namespaces/east/pods", JSON, pod("r", json!({"zone": "west"}), "Always")),
        ("POST", "/api/v1/namespaces/odd/pods", JSON, pod("p", none(), "Always")),
    ]
}

fn calls_for_owners() -> Vec<Call> {
    let owner = |version: &str, kind: &str, uid: &str, blocks: bool| {
        json!({"apiVersion": version, "kind": kind, "name": "o", "uid": uid,
            "blockOwnerDeletion": blocks})
    };
    let map =
        |name: &str, owners: Value| json!({"metadata": {"name": name, "ownerReferences": owners}});
    let with_owners = |owners: Value| json!({"metadata": {"ownerReferences": owners}});
    let jane = "jane@/api/v1/namespaces/default/configmaps";
    let free = "jane@/api/v1/namespaces/default/configmaps/free";
    vec![
        ("POST", jane, JSON, map("free", json!([]))),
        ("POST", jane, JSON, map("a", json!([owner("v1", "Pod", "1", false)]))),
        ("POST", jane, JSON, map("b", json!([owner("v1", "Pod", "1", true)]))),
        ("POST", jane, JSON, map("c", json!([owner("v1", "Node", "1", true)]))),
        ("POST", jane, JSON, map("d", json!([owner("apps/v1", "Deployment", "1", true)]))),
        ("POST", jane, JSON, map("e", json!([owner("e.example.com/v1", "Odd", "1", true)]))),
        ("POST", jane, JSON, map("f", json!([owner("v1", "Odd", "1", true)]))),
        ("PATCH", free, MERGE, with_owners(json!([owner("v1", "Pod", "1", false)]))),
        ("PATCH", free, MERGE, json!({"data": {"a": "b"}})),
        ("POST", MAPS, JSON, map("g", json!([owner("v1", "Pod", "1", true)]))),
    ]
}

/// Sends a request, as another user if one stands before the path.
async fn send(client: &Client, (method, path, kind, body): Call) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let (user, path) = path.split_once('@').unwrap_or(("", path));
    let mut request = Request::builder().method(method).uri(path).header("Content-Type", kind);
    if !user.is_empty() {
        request = request.header("Impersonate-User", user);
    }
    let response = client.send(request.body(body.into()).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
}
