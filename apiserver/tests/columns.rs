//! The definitions of the columns of tables, compared with those of a real kube-apiserver.
//!
//! `HOMEOSTAT_RECORD=columns` writes their descriptions to `src/table/descriptions.json`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use http::Request;
use kube_client::Client;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const TIMEOUT: Duration = Duration::from_secs(60);

/// The real server has no column for the age in its rows.
const DIFFERENT: &str = "networking.k8s.io/IPAddress";

/// The name of a kind with its group, and the definitions of its columns.
type Kinds = BTreeMap<String, Vec<Value>>;

fn main() {
    let arguments = Arguments::from_args();
    let trial = Trial::ignorable_test("control_plane::columns_are_those_of_the_server", || {
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
    let real = columns(&control_plane.client()?).await;
    if std::env::var("HOMEOSTAT_RECORD").is_ok_and(|what| ["all", "columns"].contains(&&*what)) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/table/descriptions.json");
        return Ok(fs::write(file, serde_json::to_string_pretty(&descriptions(&real))? + "\n")?);
    }
    assert!(real.len() > 60, "{} kinds", real.len());
    let own = columns(&ApiServer::new().client()).await;
    let compared = real.iter().filter(|(kind, _)| *kind != DIFFERENT);
    let differ = compared.filter(|(kind, columns)| own.get(*kind) != Some(columns));
    let differ = differ.map(|(kind, columns)| {
        let (real, own) = (json!(columns), json!(own.get(kind)));
        format!("{kind}\nreal {real}\nown  {own}")
    });
    let differ: Vec<String> = differ.collect();
    if differ.is_empty() { Ok(()) } else { Err(differ.join("\n").into()) }
}

/// Returns the columns of every kind that a server lists, of scales, and of custom kinds.
async fn columns(client: &Client) -> Kinds {
    prepare(client).await;
    let mut kinds = Kinds::new();
    let groups = get(client, "/apis", "application/json").await;
    let groups = groups["groups"].as_array().unwrap();
    let versions = groups.iter().flat_map(|group| group["versions"].as_array().unwrap());
    let versions = versions.map(|version| format!("/apis/{}", text(version, "groupVersion")));
    for path in std::iter::once("/api/v1".to_owned()).chain(versions) {
        for resource in
            get(client, &path, "application/json").await["resources"].as_array().unwrap()
        {
            let group =
                path.strip_prefix("/apis/").map_or("", |path| path.split('/').next().unwrap());
            let name = text(resource, "name");
            if resource["verbs"].as_array().unwrap().contains(&json!("list")) {
                let table = get(client, &format!("{path}/{name}"), TABLE).await;
                let columns = table["columnDefinitions"].as_array().unwrap().clone();
                kinds.insert(key(group, text(resource, "kind")), columns);
            }
        }
    }
    for (kind, path) in [
        ("autoscaling/Scale", "/apis/apps/v1/namespaces/default/deployments/d/scale"),
        ("*/Scale", "/apis/columns.example.com/v1/namespaces/default/plains/p/scale"),
    ] {
        let table = get(client, path, TABLE).await;
        kinds.insert(kind.to_owned(), table["columnDefinitions"].as_array().unwrap().clone());
    }
    kinds
}

/// Creates the objects that have scales, and custom kinds with and without columns.
async fn prepare(client: &Client) {
    let meta = |name: &str| json!({"name": name});
    let pod = json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": meta("d"),
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod}});
    post(client, "/apis/apps/v1/namespaces/default/deployments", &deployment).await;
    let scale =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    let column = json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    for (kind, plural, columns) in [("Plain", "plains", json!([])), ("Shown", "showns", column)] {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "metadata": meta(&format!("{plural}.columns.example.com")),
            "spec": {
                "group": "columns.example.com", "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema}, "subresources": {"scale": scale},
                    "additionalPrinterColumns": columns}],
            },
        });
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        post(client, path, &definition).await;
        let deadline = Instant::now() + TIMEOUT;
        let path = format!("/apis/columns.example.com/v1/namespaces/default/{plural}");
        let object = json!({"apiVersion": "columns.example.com/v1", "kind": kind,
            "metadata": meta("p"), "spec": {"replicas": 1}});
        while send(client, "POST", &path, "application/json", &object).await.0 != 201 {
            assert!(Instant::now() < deadline, "{kind} is not served");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Returns the descriptions by kind and column. Those that most kinds have are at `*`.
fn descriptions(kinds: &Kinds) -> BTreeMap<&str, BTreeMap<&str, &str>> {
    let mut found: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for name in ["Name", "Age"] {
        let column = kinds["/ConfigMap"].iter().find(|column| text(column, "name") == name);
        found.entry("*").or_default().insert(name, text(column.unwrap(), "description"));
    }
    for (kind, columns) in kinds.iter().filter(|(kind, _)| !kind.starts_with("columns.example")) {
        for column in columns {
            let (name, description) = (text(column, "name"), text(column, "description"));
            if found["*"].get(name) != Some(&description) {
                found.entry(kind).or_default().insert(name, description);
            }
        }
    }
    found
}

fn key(group: &str, kind: &str) -> String {
    format!("{group}/{kind}")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

async fn get(client: &Client, path: &str, accept: &str) -> Value {
    let (code, body) = send(client, "GET", path, accept, &Value::Null).await;
    assert_eq!(code, 200, "{path}: {body}");
    body
}

async fn post(client: &Client, path: &str, body: &Value) {
    let (code, body) = send(client, "POST", path, "application/json", body).await;
    assert_eq!(code, 201, "{path}: {body}");
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    accept: &str,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path);
    let request = request.header("Accept", accept).header("Content-Type", "application/json");
    let response = client.send(request.body(body.into()).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
    (head.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default())
}
