//! Conversion webhooks in the process of the test: watches, several objects, failures, and changes
//! of a definition.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt};
use homeostat_apiserver::ApiServer;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{
    ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube_client::core::GroupVersionKind;
use kube_client::{Api, Client, Error, ResourceExt};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Longer than the server needs to carry out a change of a definition.
const LATER: Duration = Duration::from_secs(1);

/// The number of objects in each review that the webhook got.
type Seen = Arc<Mutex<Vec<usize>>>;

/// Returns a server with a definition whose objects a webhook converts, and what it gets: version
/// `v1` has the size as `size`, version `v1beta1` as `length`. While it is superstitious it does
/// not convert an object of size 13.
async fn server() -> (ApiServer, Seen, Arc<AtomicBool>) {
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let superstition = Arc::new(AtomicBool::new(true));
    let is_superstitious = Arc::clone(&superstition);
    let convert = move |_path: &str, mut review: Value| {
        let request = review["request"].take();
        let objects = request["objects"].as_array().unwrap();
        kept.lock().push(objects.len());
        let to = &request["desiredAPIVersion"];
        let is_new = to == "example.com/v1";
        let (from, into) = if is_new { ("length", "size") } else { ("size", "length") };
        let mut converted = objects.clone();
        for object in &mut converted {
            object["apiVersion"] = to.clone();
            let spec = object["spec"].as_object_mut().unwrap();
            let size = spec.remove(from).unwrap();
            spec.insert(into.to_owned(), size);
            object["metadata"]["labels"] = json!({"from": from});
        }
        let is_unlucky = converted.iter().any(|object| object["spec"][into] == 13);
        let result = if is_unlucky && !is_new && is_superstitious.load(Ordering::Relaxed) {
            json!({"status": "Failure", "message": "unlucky"})
        } else {
            json!({"status": "Success"})
        };
        review["response"] =
            json!({"uid": request["uid"], "result": result, "convertedObjects": converted});
        review
    };
    let server = ApiServer::builder().seed(1).webhook_function("shop", "hook", convert).build();
    let definitions = Api::<CustomResourceDefinition>::all(server.client());
    definitions.create(&PostParams::default(), &definition()).await.unwrap();
    tokio::time::sleep(LATER).await;
    (server, seen, superstition)
}

fn definition() -> CustomResourceDefinition {
    let version = |name: &str, member: &str| {
        json!({"name": name, "served": true, "storage": name == "v1",
            "selectableFields": [{"jsonPath": format!(".spec.{member}")}],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {member: {"type": "integer"}}}}}}})
    };
    let service = json!({"namespace": "shop", "name": "hook", "path": "/convert"});
    serde_json::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [version("v1", "size"), version("v1beta1", "length")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}},
        },
    }))
    .unwrap()
}

fn widgets(client: Client, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", version, "Widget");
    Api::namespaced_with(client, "default", &ApiResource::from_gvk(&kind))
}

async fn create(client: Client, version: &str, name: &str, size: u32) -> DynamicObject {
    let member = if version == "v1" { "size" } else { "length" };
    let widget = serde_json::from_value(json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Widget",
        "metadata": {"name": name}, "spec": {member: size},
    }));
    widgets(client, version).create(&PostParams::default(), &widget.unwrap()).await.unwrap()
}

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String) {
    match result.unwrap_err() {
        Error::Api(status) => (status.code, status.message.clone()),
        other => panic!("{other}"),
    }
}

/// Returns the next event that is no bookmark as text: its kind, and its object.
async fn next(
    events: &mut (impl Stream<Item = Result<WatchEvent<DynamicObject>, Error>> + Unpin),
) -> Option<String> {
    let (kind, object) = loop {
        match events.next().await?.unwrap() {
            WatchEvent::Added(object) => break ("added", object),
            WatchEvent::Modified(object) => break ("modified", object),
            WatchEvent::Deleted(object) => break ("deleted", object),
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(error) => panic!("{error:?}"),
        }
    };
    let (name, version) = (object.name_any(), object.types.unwrap().api_version);
    Some(format!("{kind} {name} {version} {}", object.data["spec"]))
}

#[tokio::test(start_paused = true)]
async fn list_is_converted_in_one_review() {
    let (server, seen, _) = server().await;
    for (name, size) in [("a", 1), ("b", 2), ("c", 3)] {
        create(server.client(), "v1", name, size).await;
    }
    assert_eq!(*seen.lock(), [0; 0], "the stored version needs no webhook");
    let old = widgets(server.client(), "v1beta1");
    let list = old.list(&ListParams::default()).await.unwrap();
    let lengths: Vec<&Value> = list.iter().map(|widget| &widget.data["spec"]["length"]).collect();
    assert_eq!(lengths, [1, 2, 3]);
    assert_eq!(*seen.lock(), [3]);
    let page = old.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!((page.items.len(), seen.lock().last()), (2, Some(&2)));
}

#[tokio::test(start_paused = true)]
async fn selectors_match_converted_objects() {
    let (server, ..) = server().await;
    create(server.client(), "v1", "a", 1).await;
    create(server.client(), "v1", "b", 2).await;
    let names = async |version: &str, params: ListParams| {
        let list = widgets(server.client(), version).list(&params).await.unwrap();
        list.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    let fields = |text| ListParams::default().fields(text);
    assert_eq!(names("v1beta1", fields("spec.length=2")).await, ["b"]);
    assert_eq!(names("v1", fields("spec.size=2")).await, ["b"]);
    let labels = ListParams::default().labels("from=size");
    assert_eq!(names("v1beta1", labels.clone()).await, ["a", "b"]);
    assert_eq!(names("v1", labels).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn watch_sends_objects_in_its_version() {
    let (server, ..) = server().await;
    create(server.client(), "v1", "a", 1).await;
    let old = widgets(server.client(), "v1beta1");
    let params = WatchParams::default().fields("spec.length!=7");
    let mut events = Box::pin(old.watch(&params, "0").await.unwrap());
    let spec = |size: u32| json!({"length": size});
    let expected = |kind: &str, name: &str, size| {
        Some(format!("{kind} {name} example.com/v1beta1 {}", spec(size)))
    };
    assert_eq!(next(&mut events).await, expected("added", "a", 1));
    create(server.client(), "v1beta1", "b", 2).await;
    assert_eq!(next(&mut events).await, expected("added", "b", 2));
    let grow = async |size: u32| {
        let patch = Patch::Merge(json!({"spec": {"size": size}}));
        let new = widgets(server.client(), "v1");
        new.patch("b", &PatchParams::default(), &patch).await.unwrap();
    };
    grow(3).await;
    assert_eq!(next(&mut events).await, expected("modified", "b", 3));
    grow(7).await;
    assert_eq!(next(&mut events).await, expected("deleted", "b", 3));
    grow(4).await;
    assert_eq!(next(&mut events).await, expected("added", "b", 4));
}

#[tokio::test(start_paused = true)]
async fn watch_waits_until_an_object_is_converted() {
    let (server, _, superstition) = server().await;
    let old = widgets(server.client(), "v1beta1");
    let mut events = Box::pin(old.watch(&WatchParams::default(), "0").await.unwrap());
    create(server.client(), "v1", "a", 1).await;
    assert!(next(&mut events).await.unwrap().starts_with("added a"));
    create(server.client(), "v1", "b", 13).await;
    create(server.client(), "v1", "c", 2).await;
    let later = Duration::from_secs(90);
    assert!(tokio::time::timeout(later, next(&mut events)).await.is_err());
    superstition.store(false, Ordering::Relaxed);
    assert!(next(&mut events).await.unwrap().starts_with("added b"));
    assert!(next(&mut events).await.unwrap().starts_with("added c"));
}

#[tokio::test(start_paused = true)]
async fn failure_names_the_object_that_is_not_converted() {
    let (server, ..) = server().await;
    create(server.client(), "v1", "b", 13).await;
    let old = widgets(server.client(), "v1beta1");
    let failed = "conversion webhook for example.com/v1, Kind=Widget failed: unlucky";
    let (code, text) = message(old.list(&ListParams::default()).await);
    assert!(code == 500 && text.ends_with(failed), "{text}");
    let start = "failed to read one or more widgets.example.com from the storage: StorageError: \
                 corrupt object, Code: 7, Key: /registry/example.com/widgets/default/b, ";
    assert!(text.starts_with(start), "{text}");
    let (code, text) = message(old.get("b").await);
    assert!(code == 500 && text.ends_with(failed), "{text}");
}

#[tokio::test(start_paused = true)]
async fn object_is_stored_even_if_the_reply_is_not_converted() {
    let (server, ..) = server().await;
    let widget = json!({"apiVersion": "example.com/v1beta1", "kind": "Widget",
        "metadata": {"name": "a"}, "spec": {"length": 13}});
    let widget = serde_json::from_value(widget).unwrap();
    let old = widgets(server.client(), "v1beta1");
    let made = old.create(&PostParams::default(), &widget).await;
    let failed = "conversion webhook for example.com/v1, Kind=Widget failed: unlucky";
    let (code, text) = message(made);
    assert!(code == 500 && text.ends_with(failed), "{text}");
    let stored = widgets(server.client(), "v1").get("a").await.unwrap();
    assert_eq!(stored.data["spec"], json!({"size": 13}));
}

#[tokio::test(start_paused = true)]
async fn strategy_of_a_definition_can_change() {
    let (server, seen, _) = server().await;
    create(server.client(), "v1", "a", 1).await;
    let old = widgets(server.client(), "v1beta1");
    assert_eq!(old.get("a").await.unwrap().data["spec"], json!({"length": 1}));
    let definitions = Api::<CustomResourceDefinition>::all(server.client());
    let none = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let change = async |patch: Value| {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        definitions.patch("widgets.example.com", &params, &patch).await.unwrap();
        tokio::time::sleep(LATER).await;
    };
    change(none).await;
    seen.lock().clear();
    assert_eq!(old.get("a").await.unwrap().data["spec"], json!({}), "pruned");
    assert_eq!(*seen.lock(), [0; 0]);
    change(serde_json::to_value(definition()).unwrap()).await;
    assert_eq!(old.get("a").await.unwrap().data["spec"], json!({"length": 1}));
    assert_eq!(*seen.lock(), [1]);
}

#[tokio::test(start_paused = true)]
async fn only_objects_of_another_version_are_sent() {
    let (server, seen, _) = server().await;
    create(server.client(), "v1", "a", 1).await;
    let mut changed = serde_json::to_value(definition()).unwrap();
    changed["spec"]["versions"][0]["storage"] = json!(false);
    changed["spec"]["versions"][1]["storage"] = json!(true);
    let definitions = Api::<CustomResourceDefinition>::all(server.client());
    let patch = Patch::Merge(changed);
    definitions.patch("widgets.example.com", &PatchParams::default(), &patch).await.unwrap();
    tokio::time::sleep(LATER).await;
    create(server.client(), "v1beta1", "b", 2).await;
    assert_eq!(*seen.lock(), [0; 0]);
    for version in ["v1", "v1beta1"] {
        let list = widgets(server.client(), version).list(&ListParams::default()).await.unwrap();
        assert_eq!(list.items.len(), 2);
    }
    assert_eq!(*seen.lock(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn generated_names_and_uids_stay_while_a_create_waits() {
    let (server, seen, _) = server().await;
    let widget = json!({"apiVersion": "example.com/v1beta1", "kind": "Widget",
        "metadata": {"generateName": "a-"}, "spec": {"length": 1}});
    let widget = serde_json::from_value(widget).unwrap();
    let made = widgets(server.client(), "v1beta1").create(&PostParams::default(), &widget).await;
    let made = made.unwrap();
    assert_eq!(*seen.lock(), [1, 1], "to the stored version, and back");
    let stored = widgets(server.client(), "v1").get(&made.name_any()).await.unwrap();
    assert_eq!((stored.uid(), stored.resource_version()), (made.uid(), made.resource_version()));
}
