//! The memory of custom resources and of their definitions, in bytes that are allocated.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::alloc::System;
use std::time::Duration;

use homeostat_apiserver::ApiServer;
use http::Request;
use kube_client::Client;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns the bytes that are allocated now and were not at the start of `region`.
fn held(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

/// Creates an object. Returns the length of its JSON.
async fn create(client: &Client, path: &str, object: &Value) -> usize {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    client.request_text(request).await.unwrap().len()
}

fn definition(group: usize) -> Value {
    let field = |at: usize| (format!("field{at}"), json!({"type": "string", "maxLength": 100}));
    let fields: serde_json::Map<String, Value> = (0..40).map(field).collect();
    let spec = json!({"type": "object", "properties": fields});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "metadata": {"name": format!("widgets.g{group}.example.com")},
        "spec": {
            "group": format!("g{group}.example.com"), "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn widget(name: usize) -> Value {
    let field = |at: usize| (format!("field{at}"), json!("some text of thirty characters"));
    let fields: serde_json::Map<String, Value> = (0..20).map(field).collect();
    json!({
        "apiVersion": "g0.example.com/v1", "kind": "Widget",
        "metadata": {"name": format!("w{name}"), "labels": {"app": "web"}}, "spec": fields,
    })
}

/// One test only, so that nothing else allocates at the same time.
#[tokio::test(start_paused = true)]
async fn custom_resource_takes_at_most_twice_its_json() {
    const DEFINED: usize = 100;
    const WIDGETS: usize = 500;
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    create(&client, DEFINITIONS, &definition(0)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;

    let region = Region::new(ALLOCATOR);
    let mut json = 0;
    for group in 1..=DEFINED {
        json += create(&client, DEFINITIONS, &definition(group)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let held_by_definitions = held(&region);
    assert!(
        held_by_definitions < 30 * json,
        "{held_by_definitions} bytes for {json} bytes of JSON"
    );

    let widgets = "/apis/g0.example.com/v1/namespaces/default/widgets";
    create(&client, widgets, &widget(0)).await;
    let region = Region::new(ALLOCATOR);
    let mut json = 0;
    for name in 1..=WIDGETS {
        json += create(&client, widgets, &widget(name)).await;
    }
    let held = held(&region);
    assert!(held <= 2 * json, "{held} bytes for {json} bytes of JSON");
}
