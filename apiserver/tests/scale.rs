//! Many definitions, large ones and deep ones: bounded memory and time, and documents that answer.
//!
//! `HOMEOSTAT_DEFINITIONS=10000` makes the first test a large one.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::alloc::System;
use std::env;
use std::time::Duration;

use homeostat_apiserver::ApiServer;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube_client::Client;
use serde_json::{Map, Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::Mutex;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Held by each test, so that nothing else allocates while one counts.
static ALONE: Mutex<()> = Mutex::const_new(());

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Longer than the server needs to carry out a change of a definition.
const LATER: Duration = Duration::from_secs(1);

/// Sends a request. Returns the status and the body of its reply.
async fn send(client: &Client, method: Method, path: &str, body: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("accept", ACCEPT);
    let request = request.header("content-type", "application/json");
    let request = request.body(body.to_owned().into_bytes().into()).unwrap();
    let response = client.send(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Aggregated discovery where it exists, else any JSON.
const ACCEPT: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

fn definition(group: &str, plural: &str, spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": plural.to_uppercase(), "plural": plural},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// Returns an object of a definition in the body of a request.
fn object(group: &str, plural: &str, name: &str, spec: &Value) -> String {
    json!({
        "apiVersion": format!("{group}/v1"), "kind": plural.to_uppercase(),
        "metadata": {"name": name}, "spec": spec,
    })
    .to_string()
}

/// Returns the bytes that are allocated now and were not at the start of `region`.
fn held(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

/// The number of definitions in each group.
const PER_GROUP: usize = 10;
const WIDGETS: &str = "/apis/g7.example.com/v1/namespaces/default/k77s";

/// Reads the documents that describe the definitions, and creates an object of one of them.
async fn assert_served(client: &Client, count: usize) {
    let (_, groups) = send(client, Method::GET, "/apis", "").await;
    let is_defined = |group: &&Value| {
        group["metadata"]["name"].as_str().is_some_and(|name| name.ends_with(".example.com"))
    };
    let groups: Vec<&Value> =
        groups["items"].as_array().unwrap().iter().filter(is_defined).collect();
    assert_eq!(groups.len(), count / PER_GROUP);
    let resources = |group: &&Value| group["versions"][0]["resources"].as_array().unwrap().len();
    assert_eq!(groups.iter().map(resources).sum::<usize>(), count);
    let (_, index) = send(client, Method::GET, "/openapi/v3", "").await;
    let url = index["paths"]["apis/g7.example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let (_, document) = send(client, Method::GET, url, "").await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.keys().any(|name| name.ends_with("v1.K77S")), "{:?}", schemas.keys());
    let (status, _) = send(client, Method::GET, "/openapi/v2", "").await;
    assert_eq!(status, 200);
    let widget = object("g7.example.com", "k77s", "a", &json!({"field1": "x"}));
    assert_eq!(send(client, Method::POST, WIDGETS, &widget).await.0, 201);
}

/// Requests the documents that the server keeps until the kinds change and one is requested again.
async fn read_documents(client: &Client) {
    for path in ["/apis", "/openapi/v2", "/openapi/v3"] {
        assert_eq!(send(client, Method::GET, path, "").await.0, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn many_definitions_are_served_in_bounded_memory() {
    /// A definition is kept as an object, a schema, and the source of its documents.
    const BYTES_PER_DEFINITION: usize = 60_000;
    /// The name stays, so that a definition that returns finds the storage of its objects.
    const BYTES_PER_DELETED_DEFINITION: usize = 1_000;
    let _alone = ALONE.lock().await;
    let count = env::var("HOMEOSTAT_DEFINITIONS").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(500);
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    let field = |at: usize| (format!("field{at}"), json!({"type": "string", "maxLength": 100}));
    let fields: Map<String, Value> = (0..20).map(field).collect();
    let spec = json!({"type": "object", "properties": fields});
    // The first requests make what stays, such as the table of types.
    read_documents(&client).await;
    server.expire_history();

    let region = Region::new(ALLOCATOR);
    for at in 0..count {
        let (group, plural) = (format!("g{}.example.com", at / PER_GROUP), format!("k{at}s"));
        let definition = definition(&group, &plural, &spec).to_string();
        let (status, reply) = send(&client, Method::POST, DEFINITIONS, &definition).await;
        assert_eq!(status, 201, "{reply}");
    }
    tokio::time::sleep(LATER).await;
    server.expire_history();
    let held_by_definitions = held(&region);
    assert!(
        held_by_definitions < BYTES_PER_DEFINITION * count,
        "{} bytes per definition",
        held_by_definitions / count
    );

    assert_served(&client, count).await;
    let (status, _) = send(&client, Method::DELETE, DEFINITIONS, "").await;
    assert_eq!(status, 200);
    tokio::time::sleep(LATER).await;
    let (_, left) = send(&client, Method::GET, DEFINITIONS, "").await;
    assert_eq!(left["items"], json!([]));
    assert_eq!(send(&client, Method::GET, WIDGETS, "").await.0, 404);

    // Documents are kept until the next request for one, and the history until it is full.
    read_documents(&client).await;
    server.restore(&server.backup());
    let left = held(&region) / count;
    assert!(left < BYTES_PER_DELETED_DEFINITION, "{left} bytes per deleted definition");
}

#[tokio::test(start_paused = true)]
async fn schema_of_a_megabyte_is_accepted_and_used() {
    let _alone = ALONE.lock().await;
    let client = ApiServer::builder().seed(1).build().client();
    let field = |at: usize| {
        (format!("field{at}"), json!({"type": "string", "default": "x", "maxLength": 3}))
    };
    let fields: Map<String, Value> = (0..20_000).map(field).collect();
    let spec = json!({"type": "object", "properties": fields});
    let definition = definition("example.com", "larges", &spec).to_string();
    assert!((1_000_000..1_400_000).contains(&definition.len()), "{}", definition.len());
    let (status, reply) = send(&client, Method::POST, DEFINITIONS, &definition).await;
    assert_eq!(status, 201, "{}", reply["message"]);
    tokio::time::sleep(LATER).await;

    let larges = "/apis/example.com/v1/namespaces/default/larges";
    let given = object("example.com", "larges", "a", &json!({"field7": "y", "unknown": 1}));
    let (status, stored) = send(&client, Method::POST, larges, &given).await;
    assert_eq!(status, 201, "{}", stored["message"]);
    assert_eq!(stored["spec"].as_object().unwrap().len(), 20_000);
    assert_eq!((&stored["spec"]["field7"], &stored["spec"]["field8"]), (&json!("y"), &json!("x")));
    let wrong = object("example.com", "larges", "b", &json!({"field7": "four"}));
    let (status, reply) = send(&client, Method::POST, larges, &wrong).await;
    assert_eq!(status, 422, "{}", reply["message"]);
    let (status, document) =
        send(&client, Method::GET, "/openapi/v3/apis/example.com/v1", "").await;
    assert_eq!((status, document.is_object()), (200, true));
}

#[tokio::test(start_paused = true)]
async fn request_body_over_three_megabytes_is_refused() {
    let _alone = ALONE.lock().await;
    let client = ApiServer::builder().seed(1).build().client();
    let spec = json!({"type": "object", "description": "x".repeat(3 * 1024 * 1024)});
    let definition = definition("example.com", "larges", &spec).to_string();
    let (status, reply) = send(&client, Method::POST, DEFINITIONS, &definition).await;
    assert_eq!((status, &reply["reason"]), (413, &json!("RequestEntityTooLarge")));
}

/// A schema of nested objects, and an object that fills it.
fn nested(levels: usize) -> (Value, Value) {
    let leaf = (json!({"type": "string", "maxLength": 3}), json!("x"));
    (0..levels).fold(leaf, |(schema, value), _| {
        (json!({"type": "object", "properties": {"a": schema}}), json!({"a": value}))
    })
}

#[tokio::test(start_paused = true)]
async fn nested_schema_is_used_to_its_last_level() {
    const LEVELS: usize = 50;
    let _alone = ALONE.lock().await;
    let client = ApiServer::builder().seed(1).build().client();
    let (schema, value) = nested(LEVELS);
    let definition = definition("example.com", "deeps", &schema).to_string();
    let (status, reply) = send(&client, Method::POST, DEFINITIONS, &definition).await;
    assert_eq!(status, 201, "{}", reply["message"]);
    tokio::time::sleep(LATER).await;

    let deeps = "/apis/example.com/v1/namespaces/default/deeps";
    let object = |value: &Value| object("example.com", "deeps", "a", value);
    let wrong = (0..LEVELS).fold(json!("four"), |inner, _| json!({"a": inner}));
    let (status, reply) = send(&client, Method::POST, deeps, &object(&wrong)).await;
    assert_eq!(status, 422, "{}", reply["message"]);
    let field = reply["details"]["causes"][0]["field"].as_str().unwrap();
    assert_eq!(field, format!("spec{}", ".a".repeat(LEVELS)));
    let (status, stored) = send(&client, Method::POST, deeps, &object(&value)).await;
    assert_eq!((status, &stored["spec"]), (201, &value));
    // A value that goes deeper than the schema is pruned.
    let (_, deeper) = nested(LEVELS + 20);
    let (status, _) = send(&client, Method::POST, deeps, &object(&deeper)).await;
    assert_eq!(status, 422, "an object stands where the schema has a text");
}

#[tokio::test(start_paused = true)]
async fn body_that_nests_too_deep_is_refused() {
    let _alone = ALONE.lock().await;
    let client = ApiServer::builder().seed(1).build().client();
    for levels in [200, 10_000] {
        // Written by hand: the types of the test have the same limit.
        let schema = format!(
            "{}{{\"type\":\"string\"}}{}",
            "{\"type\":\"object\",\"properties\":{\"a\":".repeat(levels),
            "}}".repeat(levels)
        );
        let with_mark = definition("example.com", "deeps", &json!("MARK")).to_string();
        let definition = with_mark.replace("\"MARK\"", &schema);
        let (status, reply) = send(&client, Method::POST, DEFINITIONS, &definition).await;
        assert_eq!((status, &reply["reason"]), (400, &json!("BadRequest")), "{levels} levels");
    }
}
