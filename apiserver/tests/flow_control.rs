//! The flows that replies name, compared with those of a real kube-apiserver.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_apiserver::{ApiServer, User};
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

const TIMEOUT: Duration = Duration::from_secs(60);
const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const HEADERS: [&str; 2] = ["x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"];
const SEATS: &str = "apiserver_flowcontrol_nominal_limit_seats";

/// The user of the schema of these tests.
const JANE: &[&str] = &["jane"];
const JOHN: &[&str] = &["john"];
/// A user without a name is the client itself, an administrator.
const ADMIN: &[&str] = &[];
const ACCOUNT: &[&str] = &["system:serviceaccount:default:web"];
const SYSTEM: &[&str] = &["system:kube-controller-manager"];
const NODE: &[&str] = &["system:node:a", "system:nodes"];

/// The requests: the user and its groups, and the path.
const REQUESTS: [(&[&str], &str); 13] = [
    (ADMIN, "/version"),
    (JANE, "/version"),
    (JOHN, "/version"),
    (JOHN, "/healthz"),
    (JOHN, "/nowhere"),
    // These accounts have no rights: a refusal names its flow, too.
    (ACCOUNT, "/api/v1/namespaces/default/pods"),
    (SYSTEM, "/api/v1/pods"),
    (SYSTEM, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"),
    (NODE, "/api/v1/nodes/a"),
    (NODE, "/api/v1/pods"),
    (JANE, "/api/v1/namespaces/default/pods/none/log"),
    (JANE, "/api/v1/namespaces?watch=1&timeoutSeconds=1"),
    (JANE, "/api/v1/namespaces/default/pods/none"),
];

fn main() {
    let arguments = Arguments::from_args();
    let trials = [
        Trial::ignorable_test("control_plane::flows_are_those_of_the_server", || {
            if let Some(missing) = Binaries::missing_for_tests() {
                return Ok(Completion::ignored_with(missing));
            }
            Runtime::new()?.block_on(compare())?;
            Ok(Completion::Completed)
        }),
        Trial::test("embedded::reply_names_the_flow_of_its_request", || {
            Runtime::new()?.block_on(check_embedded());
            Ok(())
        }),
        Trial::test("embedded::schema_is_dangling_without_its_level", || {
            Runtime::new()?.block_on(check_conditions());
            Ok(())
        }),
        Trial::test("embedded::server_without_users_has_no_flows", || {
            Runtime::new()?.block_on(check_without_users());
            Ok(())
        }),
    ];
    libtest_mimic::run(&arguments, trials.into()).exit();
}

async fn compare() -> Result<(), Failed> {
    let control_plane = ControlPlane::start().await?;
    let real = observe(&control_plane.client()?).await;
    let own = observe(&embedded()).await;
    let differ = real.iter().zip(&own).filter(|(real, own)| real != own);
    let differ: Vec<String> =
        differ.map(|(real, own)| format!("real {real}\nown  {own}")).collect();
    assert_eq!(real.len(), own.len());
    if differ.is_empty() { Ok(()) } else { Err(differ.join("\n").into()) }
}

/// Checks the flows that matter most, without a real server.
async fn check_embedded() {
    let client = embedded();
    let seen = observe(&client).await;
    let flow = |user: &[&str], path: &str| {
        let start = format!("{user:?} {path}: ");
        let line = seen.iter().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("{start}{seen:#?}"))
    };
    assert_eq!(flow(ADMIN, "/version"), "exempt exempt");
    assert_eq!(flow(JANE, "/version"), "tested tested");
    assert_eq!(flow(JOHN, "/version"), "global-default global-default");
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(flow(ACCOUNT, pods), "service-accounts workload-low");
    let log = format!("{pods}/none/log");
    assert_eq!(flow(JANE, &log), "- -", "a request that lasts has no flow");
    assert!(seen.contains(&format!("{SEATS}{{priority_level=\"tested\"}} 3")), "{seen:#?}");
}

/// Checks that the condition of a schema follows its level, and who writes it.
async fn check_conditions() {
    let client = embedded();
    create(&client, SCHEMAS, &schema()).await;
    let path = format!("{SCHEMAS}/tested");
    let dangling = condition(&get(&client, &path).await);
    assert_eq!(dangling, ("True".to_owned(), "NotFound".to_owned()));
    create(&client, LEVELS, &level()).await;
    let found = get(&client, &path).await;
    assert_eq!(condition(&found), ("False".to_owned(), "Found".to_owned()));
    let managers = found["metadata"]["managedFields"].as_array().unwrap();
    let own = managers.iter().find(|entry| entry["subresource"] == "status").unwrap();
    assert_eq!(own["manager"], "api-priority-and-fairness-config-consumer-v1");
    // A write that changes nothing of it leaves the schema as it is.
    create(&client, LEVELS, &json!({"metadata": {"name": "other"}, "spec": level()["spec"]})).await;
    assert_eq!(get(&client, &path).await, found);
    delete(&client, &format!("{LEVELS}/tested")).await;
    assert_eq!(condition(&get(&client, &path).await).0, "True");
}

async fn check_without_users() {
    let client = ApiServer::new().client();
    create(&client, SCHEMAS, &schema()).await;
    let found = get(&client, &format!("{SCHEMAS}/tested")).await;
    assert_eq!(found["status"], json!({}));
    let response = send(&client, "GET", JANE, "/version", &Value::Null).await;
    assert!(HEADERS.iter().all(|header| !response.headers().contains_key(*header)));
    assert!(!metrics(&client).await.contains(SEATS));
}

fn embedded() -> Client {
    ApiServer::builder().authorization().build().client_of(User::admin())
}

/// Returns the flow of each request, the conditions of the schema, and the seats of each level.
async fn observe(client: &Client) -> Vec<String> {
    create(client, LEVELS, &level()).await;
    create(client, SCHEMAS, &schema()).await;
    let found = wait_for(client, "False").await;
    let mut seen = vec![found.to_string()];
    let names = names(client).await;
    for (user, path) in REQUESTS {
        let response = send(client, "GET", user, path, &Value::Null).await;
        let flow = HEADERS.map(|header| match response.headers().get(header) {
            Some(uid) => names[uid.to_str().unwrap()].clone(),
            None => "-".to_owned(),
        });
        seen.push(format!("{user:?} {path}: {}", flow.join(" ")));
    }
    let metrics = metrics(client).await;
    seen.extend(metrics.lines().filter(|line| line.contains(SEATS)).map(str::to_owned));
    delete(client, &format!("{LEVELS}/tested")).await;
    seen.push(wait_for(client, "True").await.to_string());
    let response = send(client, "GET", JANE, "/version", &Value::Null).await;
    let uid = response.headers()[HEADERS[0]].to_str().unwrap();
    seen.push(format!("without the level: {}", names[uid]));
    seen
}

/// Returns the name of each schema and level by its uid.
async fn names(client: &Client) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for path in [SCHEMAS, LEVELS] {
        for item in get(client, path).await["items"].as_array().unwrap() {
            let member = |name: &str| item["metadata"][name].as_str().unwrap().to_owned();
            names.insert(member("uid"), member("name"));
        }
    }
    names
}

/// Waits until the schema's condition has this status. Returns the condition without its time.
async fn wait_for(client: &Client, status: &str) -> Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let mut found = get(client, &format!("{SCHEMAS}/tested")).await;
        if condition(&found).0 == status {
            let mut condition = found["status"]["conditions"][0].take();
            condition["lastTransitionTime"].take();
            return condition;
        }
        assert!(Instant::now() < deadline, "{found}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Returns status and reason of the condition of a schema; empty if it has none.
fn condition(schema: &Value) -> (String, String) {
    let condition = &schema["status"]["conditions"][0];
    let text = |member: &str| condition[member].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn level() -> Value {
    json!({"metadata": {"name": "tested"}, "spec": {"type": "Limited",
        "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}})
}

fn schema() -> Value {
    json!({"metadata": {"name": "tested"}, "spec": {
    "matchingPrecedence": 950, "priorityLevelConfiguration": {"name": "tested"},
    "rules": [{
        "subjects": [{"kind": "User", "user": {"name": JANE[0]}}],
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
            "clusterScope": true, "namespaces": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }]}})
}

// === requests ===

async fn create(client: &Client, path: &str, object: &Value) {
    let response = send(client, "POST", ADMIN, path, object).await;
    assert_eq!(response.status(), 201, "{object}");
}

async fn delete(client: &Client, path: &str) {
    let response = send(client, "DELETE", ADMIN, path, &Value::Null).await;
    assert_eq!(response.status(), 200, "{path}");
}

async fn get(client: &Client, path: &str) -> Value {
    let response = send(client, "GET", ADMIN, path, &Value::Null).await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

async fn metrics(client: &Client) -> String {
    let response = send(client, "GET", ADMIN, "/metrics", &Value::Null).await;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// Sends a request as a user of a name and groups.
async fn send(
    client: &Client,
    method: &str,
    user: &[&str],
    path: &str,
    object: &Value,
) -> Response<Body> {
    let mut request =
        Request::builder().method(method).uri(path).header("content-type", "application/json");
    if let [name, groups @ ..] = user {
        request = request.header("impersonate-user", *name);
        for group in groups {
            request = request.header("impersonate-group", *group);
        }
    }
    let body = if object.is_null() { Vec::new() } else { object.to_string().into_bytes() };
    client.send(request.body(body.into()).unwrap()).await.unwrap()
}
