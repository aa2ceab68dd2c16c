//! The metrics of a series of requests, compared with those of a real kube-apiserver.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use homeostat_apiserver::ApiServer;
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
const APPLY: &str = "application/apply-patch+yaml";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const TEMPLATES: &str = "/api/v1/namespaces/default/podtemplates";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// The families whose samples are compared. Of histograms only the counts are the same.
const COMPARED: [&str; 13] = [
    "apiserver_request_total",
    "apiserver_request_duration_seconds_count",
    "apiserver_response_sizes_count",
    "apiserver_longrunning_requests",
    "apiserver_requested_deprecated_apis",
    "apiserver_watch_events_total",
    "apiserver_admission_webhook_admission_duration_seconds_count",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
    "apiserver_admission_webhook_request_total",
    "apiserver_validating_admission_policy_check_total",
    "pod_security_evaluations_total",
    "pod_security_exemptions_total",
];

/// The resources that the real server itself does not ask for.
const RESOURCES: [&str; 10] = [
    "pods",
    "deployments",
    "podtemplates",
    "secrets",
    "configmaps",
    "componentstatuses",
    "endpoints",
    "selfsubjectaccessreviews",
    "pod",
    "controller",
];

/// The label of what shows that the server has read its policies and webhooks.
const PROBE: &str = "probe.example.com";

/// The samples of a document, by name and labels.
type Samples = BTreeMap<String, f64>;

fn main() {
    let arguments = Arguments::from_args();
    let trials = [
        Trial::ignorable_test("control_plane::metrics_are_those_of_the_server", || {
            if let Some(missing) = Binaries::missing_for_tests() {
                return Ok(Completion::ignored_with(missing));
            }
            Runtime::new()?.block_on(compare())?;
            Ok(Completion::Completed)
        }),
        Trial::test("embedded::requests_are_counted", || {
            Runtime::new()?.block_on(check_embedded());
            Ok(())
        }),
        Trial::test("embedded::write_that_waits_for_webhooks_counts_once", || {
            Runtime::new()?.block_on(check_restarted_write());
            Ok(())
        }),
    ];
    libtest_mimic::run(&arguments, trials.into()).exit();
}

async fn compare() -> Result<(), Failed> {
    let control_plane = ControlPlane::start().await?;
    let (real, real_text) = observe(&control_plane.client()?).await;
    let (own, own_text) = observe(&ApiServer::new().client()).await;
    assert!(real.len() > 80, "{} samples", real.len());
    let mut differ: Vec<String> = Vec::new();
    for name in real.keys().chain(own.keys()).collect::<BTreeSet<_>>() {
        if real.get(name) != own.get(name) {
            differ.push(format!("{name}: real {:?}, own {:?}", real.get(name), own.get(name)));
        }
    }
    let described = |text: &str| -> BTreeSet<String> {
        text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect()
    };
    let unknown: Vec<String> =
        described(&own_text).difference(&described(&real_text)).cloned().collect();
    let bounds = [bounds(&real_text), bounds(&own_text)];
    for (family, own) in &bounds[1] {
        if bounds[0].get(family) != Some(own) {
            differ.push(format!("{family}: {own:?}"));
        }
    }
    differ.extend(unknown);
    if differ.is_empty() { Ok(()) } else { Err(differ.join("\n").into()) }
}

/// Checks the counts that matter most, without a real server.
async fn check_embedded() {
    let (samples, text) = observe(&ApiServer::new().client()).await;
    let namespaces = "resource=\"namespaces\",scope=\"resource\",subresource=\"\",\
        verb=\"POST\",version=\"v1\"} 5";
    assert!(text.contains(namespaces), "four built-in namespaces are requests of the server");
    let request = |code, dry_run, resource, scope, verb| {
        let name = format!(
            "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",\
             dry_run=\"{dry_run}\",group=\"\",resource=\"{resource}\",scope=\"{scope}\",\
             subresource=\"\",verb=\"{verb}\",version=\"v1\"}}"
        );
        samples.get(&name).copied()
    };
    assert_eq!(request(201, "", "pods", "resource", "POST"), Some(2.0));
    assert_eq!(request(201, "All", "pods", "resource", "POST"), Some(1.0));
    assert_eq!(request(403, "", "pods", "resource", "POST"), Some(1.0));
    assert_eq!(request(404, "", "pods", "resource", "GET"), Some(1.0));
    assert_eq!(request(200, "", "pods", "namespace", "WATCH"), Some(3.0));
    let odd = samples.keys().filter(|name| name.contains("oddit"));
    assert_eq!(odd.count(), 0, "what a client invents is no label");
}

/// Checks the counts of a write that starts again with the answer of a webhook.
async fn check_restarted_write() {
    let allow = |_: &str, mut review: Value| {
        let uid = review["request"]["uid"].take();
        review["response"] = json!({"uid": uid, "allowed": true});
        review
    };
    let client = ApiServer::builder().webhook_function("shop", "checks", allow).build().client();
    let webhook = |name: &str| {
        json!({"name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "shop", "name": "checks"},
                "caBundle": "LS0t"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods"]}]})
    };
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let webhooks = json!({"metadata": {"name": "w"},
            "webhooks": [webhook("a.example.com"), webhook("b.example.com")]});
        create(&client, &path, &webhooks).await;
    }
    create(&client, PODS, &pod("p")).await;
    let text = scrape(&client).await;
    let counted = |start: &str| -> Vec<&str> {
        let lines = text.lines().filter(|line| line.starts_with(start));
        lines.filter_map(|line| Some(line.rsplit_once(' ')?.1)).collect()
    };
    assert_eq!(counted("pod_security_evaluations_total"), ["1", "0"]);
    assert_eq!(counted("apiserver_admission_webhook_request_total"), ["1"; 4]);
    let durations = counted("apiserver_admission_webhook_admission_duration_seconds_count");
    assert_eq!(durations, ["1"; 4]);
}

/// Makes requests, and returns the samples that they change, and the document.
async fn observe(client: &Client) -> (Samples, String) {
    prepare(client).await;
    let before = samples(&scrape(client).await);
    for (method, path, kind, body) in requests() {
        send(client, method, path, kind, &body).await;
    }
    let path = format!("{TEMPLATES}?watch=1");
    let mut open = client.send(Request::get(path).body(Vec::new().into()).unwrap()).await.unwrap();
    assert!(open.body_mut().frame().await.unwrap().is_ok(), "the watch sends an event");
    // The count of a watch follows its end.
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let text = scrape(client).await;
        let mut after = samples(&text);
        let watches = after.iter().filter(|(name, _)| name.starts_with("apiserver_longrunning"));
        let watches: f64 = watches.map(|(_, open)| open).sum();
        if (watches - 1.0).abs() < 0.1 {
            drop(open);
            after.retain(|name, value| before.get(name) != Some(value));
            for (name, value) in &mut after {
                *value -= before.get(name).copied().unwrap_or_default();
            }
            return (after, text);
        }
        assert!(Instant::now() < deadline, "{watches} watches are open");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the samples that are compared.
fn samples(text: &str) -> Samples {
    let is_compared = |name: &str| {
        let (family, labels) = name.split_once('{').unwrap_or((name, ""));
        let has = |label: &str, value: &str| labels.contains(&format!("{label}=\"{value}\""));
        let is_of_resource = |resource: &&str| has("resource", resource);
        if matches!(family, "apiserver_longrunning_requests" | "apiserver_watch_events_total") {
            // The real server has watches of its own, but not of this resource.
            return has("resource", "podtemplates");
        }
        // An update of the real server may read a late cache, and is admitted twice then.
        COMPARED.contains(&family)
            && !labels.contains(PROBE)
            && !has("request_operation", "update")
            && (RESOURCES.iter().any(is_of_resource)
                || ["/healthz", "/livez"].iter().any(|path| has("subresource", path))
                || labels.contains("example.com"))
    };
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let lines = lines.filter(|(name, _)| is_compared(name));
    lines.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// Returns the bounds of the buckets of each histogram.
fn bounds(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut bounds = BTreeMap::<String, BTreeSet<String>>::new();
    for line in text.lines() {
        if let (Some((family, _)), Some((_, bound))) =
            (line.split_once("_bucket{"), line.split_once("le=\""))
        {
            let bound = bound.split('"').next().unwrap().to_owned();
            bounds.entry(family.to_owned()).or_default().insert(bound);
        }
    }
    bounds
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

/// Creates policies and webhooks, and waits until the server has read them.
async fn prepare(client: &Client) {
    let webhook = |name: &str, resource: &str, policy: &str| {
        json!({"name": name, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "failurePolicy": policy, "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": [resource]}]})
    };
    let webhooks = json!({"metadata": {"name": "w"}, "webhooks": [
        webhook("open.example.com", "secrets", "Ignore"),
        webhook("closed.example.com", "configmaps", "Fail"),
        webhook(PROBE, "serviceaccounts", "Fail"),
    ]});
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let path = format!("{admission}/mutatingwebhookconfigurations");
    create(client, &path, &webhooks).await;
    for (name, actions, expression) in [
        ("warned.example.com", json!(["Warn", "Audit"]), "false"),
        ("wrong.example.com", json!(["Warn"]), "object.data.absent == '1'"),
        (PROBE, json!(["Deny"]), "object.metadata.name != 'probe'"),
    ] {
        let resource = if name == PROBE { "serviceaccounts" } else { "secrets" };
        let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": [resource]});
        let policy = json!({"metadata": {"name": name}, "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": expression}]}});
        create(client, &format!("{admission}/validatingadmissionpolicies"), &policy).await;
        let binding = json!({"metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": actions}});
        create(client, &format!("{admission}/validatingadmissionpolicybindings"), &binding).await;
    }
    let labels = json!({"pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/enforce-version": "v1.99",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/audit": "restricted",
        "pod-security.kubernetes.io/audit-version": "v1.25"});
    let strict = json!({"metadata": {"name": "strict", "labels": labels}});
    create(client, "/api/v1/namespaces", &strict).await;
    let deadline = Instant::now() + TIMEOUT;
    let path = format!("{ACCOUNTS}?dryRun=All");
    while send(client, "POST", &path, JSON, &named("probe")).await != 500 {
        assert!(Instant::now() < deadline, "the webhooks are not called");
        sleep(Duration::from_millis(50)).await;
    }
    // The probe's webhook comes before its policy.
    let probe = format!("{admission}/mutatingwebhookconfigurations/w");
    let ignored = json!({"webhooks": [
        webhook("open.example.com", "secrets", "Ignore"),
        webhook("closed.example.com", "configmaps", "Fail"),
        webhook(PROBE, "serviceaccounts", "Ignore"),
    ]});
    assert_eq!(send(client, "PATCH", &probe, MERGE, &ignored).await, 200);
    while send(client, "POST", &path, JSON, &named("probe")).await != 422 {
        assert!(Instant::now() < deadline, "the policies are not applied");
        sleep(Duration::from_millis(50)).await;
    }
}

type Call = (&'static str, &'static str, &'static str, Value);

fn requests() -> Vec<Call> {
    let mut all = writes();
    all.extend(reads().into_iter().map(|(method, path)| (method, path, JSON, Value::Null)));
    all
}

fn writes() -> Vec<Call> {
    let hosts = json!({"metadata": {"name": "h"},
        "spec": {"hostPID": true, "containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": hosts["spec"]}}});
    let template = json!({"metadata": {"name": "t"},
        "template": {"metadata": {}, "spec": pod("t")["spec"]}});
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let question = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let questions = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let dry = "/api/v1/namespaces/default/pods?dryRun=All&dryRun=All";
    let odd = "/api/v1/namespaces/default/pods?dryRun=Some";
    let apply = "/api/v1/namespaces/default/pods/p?fieldManager=x&force=true";
    vec![
        ("POST", PODS, JSON, pod("p")),
        ("POST", PODS, JSON, pod("p")),
        ("POST", dry, JSON, pod("q")),
        ("POST", odd, JSON, pod("q")),
        ("POST", PODS, "text/odd", pod("q")),
        ("POST", "/api/v1/pods", JSON, pod("q")),
        ("POST", "/api/v1/namespaces/missing/pods", JSON, pod("q")),
        ("POST", "/api/v1/namespaces/strict/pods", JSON, pod("q")),
        ("POST", "/api/v1/namespaces/strict/pods", JSON, hosts),
        ("PATCH", "/api/v1/namespaces/strict/pods/q", MERGE, labels.clone()),
        ("POST", "/apis/apps/v1/namespaces/strict/deployments", JSON, deployment),
        ("PUT", "/api/v1/namespaces/default/pods/p/status", JSON, pod("p")),
        ("PATCH", "/api/v1/namespaces/default/pods/p", MERGE, labels),
        ("PATCH", "/api/v1/namespaces/default/pods/p", "application/odd", json!({})),
        ("PATCH", apply, APPLY, pod("p")),
        ("POST", "/api/v1/namespaces/default/pods/p", JSON, pod("p")),
        ("ODD", "/api/v1/namespaces/default/pods/p", JSON, json!({})),
        ("POST", TEMPLATES, JSON, template),
        ("POST", SECRETS, JSON, named("s")),
        ("POST", MAPS, JSON, named("m")),
        ("POST", questions, JSON, question),
    ]
}

fn reads() -> Vec<(&'static str, &'static str)> {
    vec![
        ("GET", "/api/v1/namespaces/default/pods/p"),
        ("HEAD", "/api/v1/namespaces/default/pods/p"),
        ("HEAD", PODS),
        ("GET", "/api/v1/namespaces/default/pods/absent"),
        ("GET", PODS),
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/pods?watch=true&timeoutSeconds=1"),
        ("GET", "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1&resourceVersion=0"),
        ("GET", "/api/v1/namespaces/default/pods?watch=1&timeoutSeconds=1&labelSelector=a%3Db"),
        ("GET", "/api/v1/watch/namespaces/default/pods?timeoutSeconds=1"),
        ("GET", "/api/v1/watch/namespaces/default/pods/p?timeoutSeconds=1"),
        ("GET", "/api/v1/namespaces/default/podtemplates?watch=1&timeoutSeconds=1"),
        ("GET", "/api/v1/namespaces/default/pods/p/status"),
        ("GET", "/api/v1/namespaces/default/pods/p/log"),
        ("GET", "/api/v1/namespaces/default/pods/p/proxy/a/b"),
        ("GET", "/api/v1/namespaces/default/pods/p/oddity"),
        ("GET", "/apis/apps/v1/namespaces/default/deployments/d/scale"),
        ("GET", "/api/v1/namespaces/default/pods?limit=x"),
        ("GET", "/api/v1/namespaces/default/pods?timeout=x"),
        ("GET", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dp"),
        ("GET", "/api/v1/componentstatuses"),
        ("GET", "/api/v1/endpoints"),
        ("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0"),
        ("DELETE", PODS),
        ("DELETE", "/api/v1/pods"),
        ("PUT", "/api/v1/pods"),
        ("GET", "/api/v1/oddities"),
        ("GET", "/api/v1/namespaces/default/oddities"),
        ("GET", "/apis/odd.example.com/v1/oddities"),
        ("GET", "/oddity"),
        ("GET", "/api"),
        ("GET", "/apis"),
        ("GET", "/apis/apps/v1"),
        ("GET", "/version"),
        ("GET", "/healthz"),
        ("GET", "/livez"),
        ("GET", "/livez/ping"),
    ]
}

async fn create(client: &Client, path: &str, body: &Value) {
    assert_eq!(send(client, "POST", path, JSON, body).await, 201, "{path}");
}

/// Sends a request, reads the reply, and returns its code.
async fn send(client: &Client, method: &str, path: &str, kind: &str, body: &Value) -> u16 {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("Content-Type", kind);
    let response = client.send(request.body(body.into()).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    body.collect().await.unwrap();
    head.status.as_u16()
}

async fn scrape(client: &Client) -> String {
    client.request_text(Request::get("/metrics").body(Vec::new()).unwrap()).await.unwrap()
}
