//! Webhooks in the process of the test: their order, retries, and equal runs.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeostat_apiserver::{AdmissionPlugin, ApiServer, Builder};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The reviews that a webhook got.
type Seen = Arc<Mutex<Vec<Value>>>;

/// Returns a server whose webhooks of the service `shop/hook` are answered by `respond`, and what
/// they got.
fn server(
    builder: Builder,
    respond: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> (ApiServer, Seen) {
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let function = move |_path: &str, mut review: Value| {
        let request = review["request"].take();
        kept.lock().push(request.clone());
        let mut response = respond(&request);
        response["uid"] = request["uid"].clone();
        json!({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response})
    };
    (builder.webhook_function("shop", "hook", function).build(), seen)
}

fn configuration(operations: &[&str]) -> Value {
    json!({
        "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "maps.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "shop", "name": "hook"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": operations,
                "resources": ["configmaps"]}],
        }],
    })
}

async fn validate(client: Client, operations: &[&str]) {
    let configuration = serde_json::from_value(configuration(operations)).unwrap();
    let api = Api::<ValidatingWebhookConfiguration>::all(client);
    api.create(&PostParams::default(), &configuration).await.unwrap();
}

async fn mutate(client: Client, operations: &[&str]) {
    let configuration = serde_json::from_value(configuration(operations)).unwrap();
    let api = Api::<MutatingWebhookConfiguration>::all(client);
    api.create(&PostParams::default(), &configuration).await.unwrap();
}

fn allow(_: &Value) -> Value {
    json!({"allowed": true})
}

async fn create(client: Client, object: Value) -> Result<ConfigMap, kube_client::Error> {
    let maps = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await
}

fn merge(data: &Value) -> Patch<Value> {
    Patch::Merge(json!({"data": data}))
}

#[tokio::test(start_paused = true)]
async fn validating_webhook_sees_the_uid_and_name_that_are_stored() {
    let (server, seen) = server(ApiServer::builder().seed(1), allow);
    validate(server.client(), &["CREATE"]).await;
    let made = create(server.client(), json!({"metadata": {"generateName": "a-"}})).await.unwrap();
    let seen = seen.lock();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0]["object"]["metadata"]["uid"], json!(made.uid().unwrap()));
    assert_eq!(seen[0]["name"], json!(made.name_any()));
}

#[tokio::test(start_paused = true)]
async fn mutating_webhook_sees_an_object_without_uid_and_generated_name() {
    let (server, seen) = server(ApiServer::builder().seed(1), allow);
    mutate(server.client(), &["CREATE"]).await;
    create(server.client(), json!({"metadata": {"generateName": "a-"}})).await.unwrap();
    let seen = seen.lock();
    assert_eq!(seen[0]["object"]["metadata"]["uid"], Value::Null);
    assert_eq!(seen[0]["object"]["metadata"]["name"], Value::Null);
}

/// Changes the object `m`, and waits for the reply.
fn write_now(client: Client) {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let data = merge(&json!({"other": "1"}));
    let write = async { maps.patch("m", &PatchParams::default(), &data).await };
    tokio::runtime::Handle::current().block_on(write).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn change_during_a_review_leads_to_another_review() {
    let other: Arc<Mutex<Option<Client>>> = Arc::default();
    let writer = Arc::clone(&other);
    let (server, seen) = server(ApiServer::builder(), move |_| {
        // The first review takes long enough for another client's write.
        let client = writer.lock().take();
        if let Some(client) = client {
            tokio::task::block_in_place(|| write_now(client));
        }
        json!({"allowed": true})
    });
    create(server.client(), json!({"metadata": {"name": "m"}})).await.unwrap();
    validate(server.client(), &["UPDATE"]).await;
    *other.lock() = Some(server.client());
    let maps = Api::<ConfigMap>::default_namespaced(server.client());
    let data = merge(&json!({"own": "1"}));
    let made = maps.patch("m", &PatchParams::default(), &data).await.unwrap();
    assert_eq!(json!(made.data), json!({"other": "1", "own": "1"}));
    let seen = seen.lock();
    let data: Vec<&Value> = seen.iter().map(|request| &request["oldObject"]["data"]).collect();
    assert_eq!(data, [&Value::Null, &Value::Null, &json!({"other": "1"})]);
}

#[tokio::test(start_paused = true)]
async fn client_does_not_own_what_a_webhook_adds_in_an_update() {
    let patch = json!([{"op": "add", "path": "/data/hook", "value": "1"}]);
    let patch = STANDARD.encode(patch.to_string());
    let (server, _) = server(
        ApiServer::builder().seed(1),
        move |_| json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"}),
    );
    create(server.client(), json!({"metadata": {"name": "m"}, "data": {"a": "1"}})).await.unwrap();
    mutate(server.client(), &["UPDATE"]).await;
    let maps = Api::<ConfigMap>::default_namespaced(server.client());
    let params = PatchParams { field_manager: Some("me".to_owned()), ..PatchParams::default() };
    let made = maps.patch("m", &params, &merge(&json!({"b": "1"}))).await.unwrap();
    assert_eq!(json!(made.data), json!({"a": "1", "b": "1", "hook": "1"}));
    let mine = made.managed_fields().iter().find(|entry| entry.manager.as_deref() == Some("me"));
    assert_eq!(json!(mine.unwrap().fields_v1), json!({"f:data": {"f:b": {}}}));
}

#[tokio::test(start_paused = true)]
async fn equal_seeds_give_equal_reviews() {
    let run = async || {
        let (server, seen) = server(ApiServer::builder().seed(3), allow);
        mutate(server.client(), &["*"]).await;
        create(server.client(), json!({"metadata": {"generateName": "a-"}})).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        create(server.client(), json!({"metadata": {"generateName": "a-"}})).await.unwrap();
        seen.lock().clone()
    };
    let (one, other) = (run().await, run().await);
    assert_eq!(one.len(), 2);
    assert_eq!(one, other);
}

#[tokio::test(start_paused = true)]
async fn plugins_that_are_off_call_no_webhook() {
    let builder = ApiServer::builder()
        .without_plugin(AdmissionPlugin::MutatingAdmissionWebhook)
        .without_plugin(AdmissionPlugin::ValidatingAdmissionWebhook);
    let (server, seen) = server(builder, |_| json!({"allowed": false}));
    mutate(server.client(), &["*"]).await;
    validate(server.client(), &["*"]).await;
    create(server.client(), json!({"metadata": {"name": "m"}})).await.unwrap();
    assert_eq!(seen.lock().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn only_the_plugin_that_is_on_calls_webhooks() {
    let builder = ApiServer::builder().without_plugin(AdmissionPlugin::MutatingAdmissionWebhook);
    let (server, seen) = server(builder, allow);
    mutate(server.client(), &["*"]).await;
    create(server.client(), json!({"metadata": {"name": "m"}})).await.unwrap();
    assert_eq!(seen.lock().len(), 0);
    validate(server.client(), &["*"]).await;
    create(server.client(), json!({"metadata": {"name": "n"}})).await.unwrap();
    assert_eq!(seen.lock().len(), 1);
}
