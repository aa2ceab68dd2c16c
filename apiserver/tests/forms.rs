//! Tables and partial metadata, the representations for kubectl and metadata informers.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use bytes::Bytes;
use homeostat_apiserver::{ApiServer, Body, Kind};
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIALS: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> ApiServer {
    let widget = Kind::custom("example.com", "v1", "Widget", "widgets");
    ApiServer::builder().epoch("2026-01-01T00:00:00Z".parse().unwrap()).kind(widget).build()
}

async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    accept: &str,
    body: &str,
) -> Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, accept)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap();
    server.service().oneshot(request).await.unwrap()
}

async fn get(server: &ApiServer, path: &str, accept: &str) -> (u16, Value) {
    let response = send(server, Method::GET, path, accept, "").await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

async fn create(server: &ApiServer, path: &str, body: &Value) {
    let reply = send(server, Method::POST, path, "", &body.to_string()).await;
    assert_eq!(reply.status(), 201);
}

async fn two_config_maps(server: &ApiServer) {
    for name in ["a", "b"] {
        let body = json!({"metadata": {"name": name}, "data": {"x": "1", "y": "2"}});
        create(server, CONFIG_MAPS, &body).await;
    }
}

#[tokio::test(start_paused = true)]
async fn list_is_a_table_with_columns_cells_and_metadata() {
    let server = server();
    two_config_maps(&server).await;
    tokio::time::advance(std::time::Duration::from_secs(300)).await;
    let (_, table) = get(&server, CONFIG_MAPS, TABLE).await;
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let names: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["Name", "Data", "Age"]);
    assert_eq!(table["rows"][1]["cells"], json!(["b", 2, "5m"]));
    let object = &table["rows"][0]["object"];
    assert_eq!(object["kind"], "PartialObjectMetadata");
    assert_eq!(object["metadata"]["name"], "a");
    assert_eq!(object.get("data"), None);
    assert!(table["metadata"]["resourceVersion"].is_string());
}

#[tokio::test(start_paused = true)]
async fn table_row_has_the_requested_part_of_the_object() {
    let server = server();
    two_config_maps(&server).await;
    let (_, table) = get(&server, &format!("{CONFIG_MAPS}?includeObject=None"), TABLE).await;
    assert_eq!(table["rows"][0]["object"], Value::Null);
    let (_, table) = get(&server, &format!("{CONFIG_MAPS}?includeObject=Object"), TABLE).await;
    assert_eq!(table["rows"][0]["object"]["data"]["x"], "1");
    assert_eq!(table["rows"][0]["object"]["kind"], "ConfigMap");
    let (code, error) = get(&server, &format!("{CONFIG_MAPS}?includeObject=Some"), TABLE).await;
    assert_eq!(code, 400);
    assert_eq!(
        error["message"],
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Some\": must be \
         'Metadata', 'Object', 'None', or empty"
    );
}

#[tokio::test(start_paused = true)]
async fn custom_object_has_name_and_age_columns() {
    let server = server();
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    create(
        &server,
        widgets,
        &json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}),
    )
    .await;
    let (_, table) = get(&server, &format!("{widgets}/w"), TABLE).await;
    assert_eq!(table["rows"][0]["cells"], json!(["w", "0s"]));
}

#[tokio::test(start_paused = true)]
async fn metadata_is_served_if_list_or_object_matches() {
    let server = server();
    two_config_maps(&server).await;
    let (_, list) = get(&server, &format!("{CONFIG_MAPS}?limit=1"), PARTIALS).await;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(list["metadata"]["remainingItemCount"], 1);
    let (_, object) = get(&server, &format!("{CONFIG_MAPS}/a"), PARTIAL).await;
    assert_eq!(
        (object["kind"].as_str(), object.get("data")),
        (Some("PartialObjectMetadata"), None)
    );
    let (code, error) = get(&server, CONFIG_MAPS, PARTIAL).await;
    assert_eq!(code, 406);
    assert_eq!(
        error["message"],
        "you requested PartialObjectMetadata, but the requested object is a list \
         (*core.ConfigMapList)"
    );
    let (code, error) = get(&server, "/api/v1/namespaces/default", PARTIALS).await;
    assert_eq!(code, 406);
    assert_eq!(
        error["message"],
        "you requested PartialObjectMetadataList, but the requested object is not a list \
         (*core.Namespace)"
    );
}

#[tokio::test(start_paused = true)]
async fn first_event_of_a_table_watch_has_the_columns() {
    let server = server();
    two_config_maps(&server).await;
    let path = format!(
        "{CONFIG_MAPS}?watch&timeoutSeconds=1&allowWatchBookmarks=true&sendInitialEvents=true\
         &resourceVersionMatch=NotOlderThan"
    );
    let body =
        send(&server, Method::GET, &path, TABLE, "").await.into_body().collect().await.unwrap();
    let events: Vec<Value> = String::from_utf8(body.to_bytes().to_vec())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    assert_eq!(kinds, ["ADDED", "ADDED", "BOOKMARK"]);
    assert!(events[0]["object"]["columnDefinitions"].is_array());
    assert!(events[1]["object"]["columnDefinitions"].is_null());
    assert_eq!(events[1]["object"]["rows"][0]["cells"], json!(["b", 2, "0s"]));
    let mark = &events[2]["object"];
    assert_eq!(
        mark["rows"][0]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
}

#[tokio::test(start_paused = true)]
async fn create_and_delete_replies_have_the_requested_representation() {
    let server = server();
    let body = json!({"metadata": {"name": "a"}}).to_string();
    let reply = send(&server, Method::POST, CONFIG_MAPS, TABLE, &body).await;
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    let table: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(table["rows"][0]["cells"], json!(["a", 0, "0s"]));
    let reply = send(&server, Method::DELETE, &format!("{CONFIG_MAPS}/a"), TABLE, "").await;
    let bytes = reply.into_body().collect().await.unwrap().to_bytes();
    let status: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(status["kind"], "Status");
}

#[tokio::test(start_paused = true)]
async fn issuer_of_tokens_publishes_its_key() {
    let server = server();
    let keys = send(&server, Method::GET, "/openid/v1/jwks", "", "").await;
    let header = |name: &str| keys.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/jwk-set+json");
    assert_eq!(header("cache-control"), "public, max-age=3600");
    let bytes = keys.into_body().collect().await.unwrap().to_bytes();
    let keys: Value = serde_json::from_slice(&bytes).unwrap();
    let [key] = keys["keys"].as_array().unwrap().as_slice() else { panic!("{keys}") };
    assert_eq!((&key["alg"], &key["crv"]), (&json!("ES256"), &json!("P-256")));
    let (code, issuer) = get(&server, "/.well-known/openid-configuration", "").await;
    assert_eq!((code, &issuer["issuer"]), (200, &json!("https://kubernetes.default.svc")));
    assert_eq!(issuer["id_token_signing_alg_values_supported"], json!(["ES256"]));
}
