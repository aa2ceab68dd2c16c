//! A `ResourceQuota` controller without a cluster: an API server that enforces quotas, and the
//! controller, in this process.
//!
//! ```text
//! cargo run --example resourcequota                       # on the embedded API server
//! cargo run --example resourcequota -- --control-plane    # on a real etcd and kube-apiserver
//! cargo run --example resourcequota -- --kubeconfig F     # on your cluster (kwok, kind, …)
//! ```
//!
//! It plays a scene and ends by itself; the exit code is not zero if a step does not converge.

mod place;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Parser;
use homeostat::kube_client::{Client, Error};
use homeostat_resourcequota::Options;
use http::Request;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use self::place::{Place, print};

/// Plays the life of a quota: admission raises its usage, and the controller lowers it.
#[derive(Debug, Parser)]
struct Arguments {
    /// Play on the cluster that this kubeconfig names; its own `ResourceQuota` controller must be
    /// off.
    #[arg(long, value_name = "FILE", conflicts_with = "control_plane")]
    kubeconfig: Option<PathBuf>,
    /// Play on a real etcd and kube-apiserver, started for the scene.
    #[arg(long)]
    control_plane: bool,
}

const NAMESPACE: &str = "/api/v1/namespaces/quota-example";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The user of the scene.
struct User {
    client: Client,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    place::run("error", Box::pin(run(Arguments::parse()))).await
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    if arguments.control_plane {
        print("Starting etcd and kube-apiserver …");
    }
    let place = Place::open(arguments.kubeconfig, arguments.control_plane).await?;
    print(&format!("The scene runs on {}.\n", place.describe()));
    let user = User { client: place.client().await? };
    // The controller, with a client of its own. It runs until `stop` is dropped, and then drains.
    let (stop, stopped) = oneshot::channel::<()>();
    let options = Options {
        sync_period: None,
        discovery_period: Duration::from_secs(1),
        ..Options::default()
    };
    let controller = homeostat_resourcequota::run(place.client().await?, options, async {
        // A dropped sender means the same: the scene has ended.
        let _ = stopped.await;
    });
    let play = async {
        let outcome = play(&user).await;
        if !place.is_ours() {
            user.clean_up().await;
        }
        drop(stop);
        outcome
    };
    let (ran, played) = tokio::join!(controller, play);
    played?;
    ran.context("the controller")?;
    print("\nEvery step converged.");
    Ok(())
}

async fn play(user: &User) -> anyhow::Result<()> {
    user.post("/api/v1/namespaces", &json!({"metadata": {"name": "quota-example"}})).await?;
    // A cluster's own controller may have created it.
    let account = json!({"metadata": {"name": "default"}});
    let _taken = user.post(&format!("{NAMESPACE}/serviceaccounts"), &account).await;
    print("you:         a quota of 1 cpu and 3 meters");
    let hard = json!({"requests.cpu": "1", "count/meters.example.com": "3"});
    user.quota("q", &json!({"hard": hard})).await?;
    user.wait_for_used("q", "requests.cpu=0").await?;

    print("you:         a pod `a` that requests 600m");
    user.pod("a", "600m", "").await?;
    user.wait_for_used("q", "requests.cpu=600m").await?;
    print("you:         a pod `b` that requests 900m more");
    let refused = user.pod("b", "900m", "").await;
    let Err(refused) = refused else { bail!("the pod fits into the quota") };
    print(&format!("admission:   {refused:#}"));
    ensure!(format!("{refused:#}").contains("exceeded quota: q"), "refused for another reason");
    print("you:         `a` has finished");
    let done = json!({"status": {"phase": "Succeeded"}});
    user.send("PATCH", &format!("{NAMESPACE}/pods/a/status"), &done).await?;
    user.wait_for_used("q", "requests.cpu=0").await?;
    print("you:         the pod `b` again");
    user.pod("b", "900m", "").await?;
    user.wait_for_used("q", "requests.cpu=900m").await?;

    print("you:         a quota for pods of the priority class quota-example-high");
    let class = json!({"metadata": {"name": "quota-example-high"}, "value": 1000});
    user.post(CLASSES, &class).await?;
    let scope = json!({"scopeName": "PriorityClass", "operator": "In",
                       "values": ["quota-example-high"]});
    let selector = json!({"matchExpressions": [scope]});
    user.quota("high", &json!({"hard": {"pods": "1"}, "scopeSelector": selector})).await?;
    user.wait_for_used("high", "pods=0").await?;
    print("you:         a pod `c` of that class, which requests 50m and counts for both quotas");
    user.pod("c", "50m", "quota-example-high").await?;
    user.wait_for_used("high", "pods=1").await?;

    print("you:         the definition of meters, which the first quota names");
    user.post(DEFINITIONS, &definition()).await?;
    user.wait_for_used("q", "count/meters.example.com=0,requests.cpu=950m").await?;
    print("you:         a meter");
    let meter = json!({"apiVersion": "example.com/v1", "kind": "Meter",
                       "metadata": {"name": "m"}});
    let meters = "/apis/example.com/v1/namespaces/quota-example/meters";
    user.post(meters, &meter).await?;
    user.wait_for_used("q", "count/meters.example.com=1,requests.cpu=950m").await
}

/// Returns the definition of `meters.example.com`.
fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "meters.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Meter", "plural": "meters", "singular": "meter",
                      "listKind": "MeterList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

// === impl User ===

impl User {
    async fn send(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<Value> {
        let kind = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let answer = self.client.request_text(request.body(serde_json::to_vec(body)?)?).await;
        let answer = answer.map_err(|error| match error {
            Error::Api(status) => anyhow::anyhow!("{}", status.message),
            error => error.into(),
        })?;
        Ok(serde_json::from_str(&answer)?)
    }

    async fn post(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        self.send("POST", path, object).await.map(drop)
    }

    async fn quota(&self, name: &str, spec: &Value) -> anyhow::Result<()> {
        let quota = json!({"metadata": {"name": name}, "spec": spec});
        self.post(&format!("{NAMESPACE}/resourcequotas"), &quota).await
    }

    /// Creates a pod. No class is the empty text.
    async fn pod(&self, name: &str, cpu: &str, class: &str) -> anyhow::Result<()> {
        let mut spec = json!({"containers": [
            {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}},
        ]});
        if !class.is_empty() {
            spec["priorityClassName"] = json!(class);
        }
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.post(&format!("{NAMESPACE}/pods"), &pod).await
    }

    /// Waits until `status.used` of a quota is this, as `cpu=1,pods=2`.
    async fn wait_for_used(&self, name: &str, expected: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let path = format!("{NAMESPACE}/resourcequotas/{name}");
        let mut last = String::new();
        let arrived = async {
            while last != expected {
                sleep(Duration::from_millis(10)).await;
                last = used(&self.send("GET", &path, &Value::Null).await?);
            }
            anyhow::Ok(())
        };
        let arrived = timeout(Duration::from_secs(60), arrived).await;
        arrived.with_context(|| format!("expected {expected}, got {last}"))??;
        let took = began.elapsed().as_millis();
        print(&format!("{:13}used {expected}, after {took} ms", format!("{name}:")));
        Ok(())
    }

    /// Deletes what the scene has created, for a cluster that goes on.
    async fn clean_up(&self) {
        let class = format!("{CLASSES}/quota-example-high");
        let definition = format!("{DEFINITIONS}/meters.example.com");
        for path in [NAMESPACE, &class, &definition] {
            // A scene that failed early has created less.
            let _missing = self.send("DELETE", path, &json!({})).await;
        }
    }
}

fn used(quota: &Value) -> String {
    let used = quota["status"]["used"].as_object().into_iter().flatten();
    let text =
        |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or("?"));
    used.map(text).collect::<Vec<_>>().join(",")
}
