//! Requests that meet other requests half-way.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::sync::Arc;

use homeostat_apiserver::ApiServer;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
    PostParams,
};
use kube_client::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The number of objects that concurrent clients create.
const OBJECTS: usize = 300;

/// Runs a number of clients at the same time, each in a task of its own.
async fn together<F: Future<Output = ()> + Send + 'static>(client: impl Fn(usize) -> F) {
    let mut clients: JoinSet<()> = (0..4).map(client).collect();
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
}

/// Applies a key of its own to each object.
async fn apply_to_all(maps: Api<ConfigMap>, number: usize) {
    let params = PatchParams::apply(&format!("manager-{number}"));
    for object in 0..OBJECTS {
        let name = format!("map-{object}");
        let key = format!("key-{number}");
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name}, "data": {key: "1"}});
        maps.patch(&name, &params, &Patch::Apply(&config)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_first_applies_of_an_object_all_succeed() {
    let server = ApiServer::new();
    let maps = Api::<ConfigMap>::default_namespaced(server.client());
    together(|number| apply_to_all(maps.clone(), number)).await;
    let all = maps.list(&ListParams::default().labels("!none")).await.unwrap().items;
    let applied = all.iter().filter(|map| map.data.as_ref().is_some_and(|data| data.len() == 4));
    assert_eq!(applied.count(), OBJECTS);
}

/// Updates each object without a version: only the first update may succeed.
async fn update_all(leases: Api<Lease>) {
    for object in 0..OBJECTS {
        let name = format!("lease-{object}");
        let lease = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        match leases.replace(&name, &PostParams::default(), &lease).await {
            Ok(_) => {}
            Err(kube_client::Error::Api(status)) => assert_eq!(status.code, 422),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn update_that_another_create_overtakes_is_no_create() {
    let server = ApiServer::new();
    let leases = Api::<Lease>::default_namespaced(server.client());
    together(|_| update_all(leases.clone())).await;
}

fn definition(fields: &Value) -> Value {
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "selectableFields": fields,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"color": {"type": "string"}}},
                }}},
            }],
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn kind_is_served_before_its_definition_is_seen_as_established() {
    let server = ApiServer::new();
    let definitions = Api::<CustomResourceDefinition>::all(server.client());
    let widgets = widgets(server.client());
    let is_established = |definition: &CustomResourceDefinition| {
        let status = definition.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    for round in 0..10 {
        let mut definition = definition(&Value::Null);
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for number in 1..500 {
            // A kind that takes its time to be made.
            let member = json!({"type": "string", "pattern": format!("^[a-z]{{1,{number}}}$")});
            schema["properties"]["spec"]["properties"][format!("m{round}-{number}")] = member;
        }
        let made = serde_json::from_value(definition).unwrap();
        definitions.create(&PostParams::default(), &made).await.unwrap();
        let name = "widgets.example.com";
        while !is_established(&definitions.get(name).await.unwrap()) {
            tokio::task::yield_now().await;
        }
        widgets.list(&ListParams::default()).await.unwrap();
        definitions.delete(name, &DeleteParams::default()).await.unwrap();
        while definitions.get_opt(name).await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    }
}

fn widgets(client: Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    Api::default_namespaced_with(client, &ApiResource::from_gvk(&kind))
}

fn red() -> ListParams {
    ListParams::default().fields("spec.color=red")
}

/// Makes the color of widgets a selectable field, and waits until it is one.
async fn select_colors(client: Client) {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let change = definition(&json!([{"jsonPath": ".spec.color"}]));
    let (name, params) = ("widgets.example.com", PatchParams::default());
    definitions.patch(name, &params, &Patch::Merge(change)).await.unwrap();
    while widgets(client.clone()).list(&red()).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn object_of_a_definition_that_changes_during_a_review_is_selected() {
    let other: Arc<Mutex<Option<Client>>> = Arc::default();
    let changer = Arc::clone(&other);
    let review = move |_: &str, review: Value| {
        let client = changer.lock().take();
        if let Some(client) = client {
            let change = select_colors(client);
            let runtime = tokio::runtime::Handle::current();
            tokio::task::block_in_place(|| runtime.block_on(change));
        }
        json!({"kind": review["kind"], "apiVersion": review["apiVersion"],
            "response": {"uid": review["request"]["uid"], "allowed": true}})
    };
    let widget = serde_json::from_value(definition(&Value::Null)).unwrap();
    let server =
        ApiServer::builder().definition(widget).webhook_function("shop", "hook", review).build();
    let hooks = json!({
        "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "widgets.example.com", "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "shop", "name": "hook"}},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["widgets"]}],
        }],
    });
    let configurations = Api::<ValidatingWebhookConfiguration>::all(server.client());
    let hooks = serde_json::from_value(hooks).unwrap();
    configurations.create(&PostParams::default(), &hooks).await.unwrap();

    *other.lock() = Some(server.client());
    let object = json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "a"}, "spec": {"color": "red"}});
    let object = serde_json::from_value(object).unwrap();
    let widgets = widgets(server.client());
    widgets.create(&PostParams::default(), &object).await.unwrap();
    assert!(other.lock().is_none(), "the definition has changed during the review");
    assert_eq!(widgets.list(&red()).await.unwrap().items.len(), 1);
}
