//! Servers that keep their objects in a file.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use homeostat_apiserver::{ApiServer, State, StateError};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams, WatchParams,
};
use kube_client::{Api, Client, Error, ResourceExt as _};
use serde_json::{Value, json};

/// All objects of a test: those of the kinds that it writes.
type Objects = Vec<Value>;

/// Opens the file once the server before has released it.
async fn open(path: &Path) -> State {
    for _ in 0..1000 {
        match State::open(path) {
            Err(StateError::InUse { .. }) => tokio::time::sleep(Duration::from_millis(10)).await,
            other => return other.unwrap(),
        }
    }
    panic!("the file is in use for 10 seconds");
}

async fn start(path: &Path) -> ApiServer {
    ApiServer::builder().seed(7).state(open(path).await).build()
}

fn definition() -> CustomResourceDefinition {
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "default": 1}, "color": {"type": "string"},
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "selectableFields": [{"jsonPath": ".spec.color"}],
            }],
        },
    });
    serde_json::from_value(definition).unwrap()
}

fn kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"))
}

fn widgets(client: &Client) -> Api<DynamicObject> {
    Api::default_namespaced_with(client.clone(), &kind())
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}})).unwrap()
}

fn widget(name: &str, color: &str) -> DynamicObject {
    DynamicObject::new(name, &kind()).data(json!({"spec": {"color": color}}))
}

/// Defines the kind `Widget`, and waits until it is served.
async fn define(client: &Client) {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    definitions.create(&PostParams::default(), &definition()).await.unwrap();
    while widgets(client).list(&ListParams::default()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn objects(client: &Client) -> Objects {
    let all = ListParams::default();
    let mut found = Objects::new();
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    for object in maps(client).list(&all).await.unwrap() {
        found.push(serde_json::to_value(object).unwrap());
    }
    for object in Api::<Namespace>::all(client.clone()).list(&all).await.unwrap() {
        found.push(serde_json::to_value(object).unwrap());
    }
    for object in definitions.list(&all).await.unwrap() {
        found.push(serde_json::to_value(object).unwrap());
    }
    if let Ok(widgets) = widgets(client).list(&all).await {
        found.extend(widgets.into_iter().map(|widget| serde_json::to_value(widget).unwrap()));
    }
    found
}

#[tokio::test(start_paused = true)]
async fn objects_versions_and_definitions_survive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let server = start(&path).await;
    let client = server.client();
    define(&client).await;
    let (post, delete) = (PostParams::default(), DeleteParams::default());
    for name in ["a", "b", "c"] {
        maps(&client).create(&post, &map(name)).await.unwrap();
        widgets(&client).create(&post, &widget(name, "red")).await.unwrap();
    }
    maps(&client).delete("b", &delete).await.unwrap();
    widgets(&client).delete("c", &delete).await.unwrap();
    let blue = Patch::Merge(json!({"spec": {"color": "blue"}}));
    widgets(&client).patch("b", &PatchParams::default(), &blue).await.unwrap();
    let before = objects(&client).await;
    let list = maps(&client).list(&ListParams::default()).await.unwrap();
    let version = list.metadata.resource_version.unwrap();
    drop((server, client));

    let server = start(&path).await;
    let client = server.client();
    assert_eq!(objects(&client).await, before);
    let blue = ListParams::default().fields("spec.color=blue");
    let found = widgets(&client).list(&blue).await.unwrap().items;
    assert_eq!(found.iter().map(DynamicObject::name_any).collect::<Vec<_>>(), ["b"]);

    let new = maps(&client).create(&post, &map("d")).await.unwrap();
    let number = |version: Option<String>| version.unwrap().parse::<u64>().unwrap();
    assert!(number(new.resource_version()) > number(Some(version.clone())));
    let uid = new.uid().unwrap();
    assert!(before.iter().all(|object| object["metadata"]["uid"] != uid), "{uid} is used twice");
    let new = widgets(&client).create(&post, &widget("d", "green")).await.unwrap();
    assert_eq!(new.data["spec"]["size"], 1, "the schema is in effect");
    // What was before the restart is no history of this server.
    let watch = maps(&client).watch(&WatchParams::default(), "3").await;
    let mut watch = Box::pin(watch.unwrap());
    let event = futures::TryStreamExt::try_next(&mut watch).await.unwrap().unwrap();
    assert!(format!("{event:?}").contains("too old resource version"), "{event:?}");
}

#[tokio::test(start_paused = true)]
async fn file_that_ends_anywhere_has_the_acknowledged_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let server = start(&path).await;
    let client = server.client();
    define(&client).await;
    let post = PostParams::default();
    let length = || usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
    let mut states = vec![(length(), objects(&client).await)];
    for name in ["a", "b", "c", "d"] {
        maps(&client).create(&post, &map(name)).await.unwrap();
        states.push((length(), objects(&client).await));
        widgets(&client).create(&post, &widget(name, "red")).await.unwrap();
        states.push((length(), objects(&client).await));
        if name == "c" {
            maps(&client).delete("a", &DeleteParams::default()).await.unwrap();
            states.push((length(), objects(&client).await));
        }
    }
    drop((server, client));
    let file = fs::read(&path).unwrap();
    let copy = folder.path().join("copy");
    for pair in states.windows(2) {
        let [(complete, before), (next, _)] = pair else { unreachable!() };
        for end in [*complete, complete + 1, complete + 11, usize::midpoint(*complete, *next)] {
            fs::write(&copy, &file[..end]).unwrap();
            let server = start(&copy).await;
            assert_eq!(objects(&server.client()).await, *before, "{end} of {} bytes", file.len());
        }
    }
    let (end, last) = states.last().unwrap();
    assert_eq!(*end, file.len(), "a record is in the file before the reply");
    assert_eq!(objects(&start(&path).await.client()).await, *last);
}

#[tokio::test(start_paused = true)]
async fn objects_of_kinds_that_are_not_served_stay_in_the_file() {
    use homeostat_apiserver::Kind;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let with_widgets = async || {
        let kind = Kind::custom("example.com", "v1", "Widget", "widgets");
        ApiServer::builder().kind(kind).state(open(&path).await).build()
    };
    let server = with_widgets().await;
    let made = widgets(&server.client()).create(&PostParams::default(), &widget("a", "red")).await;
    drop(server);
    let server = start(&path).await;
    assert!(widgets(&server.client()).get("a").await.is_err());
    maps(&server.client()).create(&PostParams::default(), &map("a")).await.unwrap();
    // A restored backup replaces the file.
    server.restore(&server.backup());
    drop(server);
    let server = with_widgets().await;
    let found = widgets(&server.client()).get("a").await.unwrap();
    assert_eq!(found.uid(), made.unwrap().uid());
    assert!(maps(&server.client()).get("a").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn kept_objects_are_served_once_their_kind_is_defined() {
    use homeostat_apiserver::Kind;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets");
    let server = ApiServer::builder().kind(kind).state(open(&path).await).build();
    let post = PostParams::default();
    for name in ["a", "b"] {
        widgets(&server.client()).create(&post, &widget(name, "red")).await.unwrap();
    }
    drop(server);
    let server = start(&path).await;
    define(&server.client()).await;
    let client = server.client();
    let selector = ListParams::default().fields("spec.color=red");
    assert_eq!(widgets(&client).list(&selector).await.unwrap().items.len(), 2);
    let mut changed = widgets(&client).get("a").await.unwrap();
    changed.data["spec"]["color"] = json!("blue");
    widgets(&client).replace("a", &post, &changed).await.unwrap();
    widgets(&client).delete("b", &DeleteParams::default()).await.unwrap();
    // A snapshot replaces the file.
    server.restore(&server.backup());
    let before = objects(&client).await;
    drop((server, client));
    let server = start(&path).await;
    assert_eq!(objects(&server.client()).await, before);
    let found = widgets(&server.client()).list(&ListParams::default()).await.unwrap();
    let colors: Vec<_> = found.iter().map(|widget| &widget.data["spec"]["color"]).collect();
    assert_eq!(colors, ["blue"]);
}

#[tokio::test(start_paused = true)]
async fn revision_that_advances_by_nothing_leaves_the_file_valid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let server = start(&path).await;
    server.advance_revision(3);
    server.advance_revision(0);
    maps(&server.client()).create(&PostParams::default(), &map("a")).await.unwrap();
    drop(server);
    assert!(maps(&start(&path).await.client()).get("a").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn restored_backup_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let server = start(&path).await;
    let post = PostParams::default();
    maps(&server.client()).create(&post, &map("a")).await.unwrap();
    let backup = server.backup();
    maps(&server.client()).create(&post, &map("b")).await.unwrap();
    server.restore(&backup);
    maps(&server.client()).create(&post, &map("c")).await.unwrap();
    let before = objects(&server.client()).await;
    drop(server);
    assert_eq!(objects(&start(&path).await.client()).await, before);
}

#[tokio::test(start_paused = true)]
async fn large_log_is_replaced_by_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let server = start(&path).await;
    let mut large = map("a");
    maps(&server.client()).create(&PostParams::default(), &large).await.unwrap();
    let mut largest = 0;
    for round in 0..40 {
        large.data = Some([("a".to_owned(), format!("{round}{}", "x".repeat(100_000)))].into());
        maps(&server.client()).replace("a", &PostParams::default(), &large).await.unwrap();
        largest = largest.max(fs::metadata(&path).unwrap().len());
    }
    assert!(largest < 2_000_000, "the file has grown to {largest} bytes");
    let before = objects(&server.client()).await;
    drop(server);
    assert_eq!(objects(&start(&path).await.client()).await, before);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn server_stops_when_the_file_cannot_be_written() {
    // Writes to this file fail as on a full disk.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    drop(start(&path).await);
    let state = open(&path).await;
    let server = ApiServer::builder().state(state).build();
    // The next snapshot cannot be written: its name is that of a folder.
    fs::create_dir(folder.path().join("state.new")).unwrap();
    server.restore(&server.backup());
    server.wait_for_failure().await;
    let error = maps(&server.client()).create(&PostParams::default(), &map("a")).await;
    assert!(error.is_err(), "{error:?}");
    assert!(!matches!(error, Err(Error::SerdeError(_))), "{error:?}");
}
