//! Protobuf over HTTP, in process: bodies, replies, and the events of a watch under faults.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use bytes::Bytes;
use homeostat_apiserver::{ApiServer, Kind};
use homeostat_faults::{ApiError, Break, Calls, Cut};
use homeostat_schema::{Envelope, ProtobufEvent, built_in};
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use kube_client::client::Body;
use serde_json::{Value, json};
use tower::ServiceExt;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn send(server: &ApiServer, method: Method, path: &str, body: Vec<u8>) -> Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, PROTOBUF)
        .header(header::CONTENT_TYPE, PROTOBUF)
        .body(Body::from(body))
        .unwrap();
    server.client().send(request).await.unwrap()
}

fn config_map(name: &str) -> Vec<u8> {
    let schema = built_in::schema_of("", "v1", "ConfigMap").unwrap();
    let raw = schema.encode_protobuf(&json!({"metadata": {"name": name}})).unwrap();
    Envelope::new("v1", "ConfigMap", raw).to_bytes()
}

async fn create(server: &ApiServer, name: &str) {
    let reply = send(server, Method::POST, CONFIG_MAPS, config_map(name)).await;
    assert_eq!(reply.status(), 201);
}

/// Returns the kind and the content of an object.
fn decode(body: &[u8]) -> (String, Value) {
    let envelope = Envelope::read(body).unwrap();
    let schema = built_in::schema_of("", &envelope.api_version, &envelope.kind);
    let schema = schema.or_else(|| built_in::meta_schema_of(&envelope.kind)).unwrap();
    (envelope.kind, schema.decode_protobuf(&envelope.raw).unwrap())
}

/// Reads a watch up to its end: the types of its events, each with its object's name or code.
async fn events(response: Response<Body>) -> Vec<String> {
    assert_eq!(response.headers()[header::CONTENT_TYPE], format!("{PROTOBUF};stream=watch"));
    let stream = response.into_body().collect().await.unwrap().to_bytes();
    let (mut events, mut rest) = (Vec::new(), &stream[..]);
    while let Some((event, after)) = ProtobufEvent::read_frame(rest).unwrap() {
        let object = decode(&event.object).1;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        events.push(format!("{} {name}{}", event.event_type, object["code"]));
        rest = after;
    }
    assert_eq!(rest, b"");
    events
}

#[tokio::test(start_paused = true)]
async fn watch_in_protobuf_reports_an_injected_error_as_an_event() {
    let server = ApiServer::new();
    create(&server, "a").await;
    create(&server, "b").await;
    let rule = Calls::watch("configmaps").always();
    server.faults().break_watches(rule, Cut::Events(1), Break::Error(ApiError::internal_error()));
    let path = format!("{CONFIG_MAPS}?watch=1");
    let watch = send(&server, Method::GET, &path, Vec::new()).await;
    assert_eq!(events(watch).await, ["ADDED anull", "ERROR 500"]);
}

#[tokio::test(start_paused = true)]
async fn watch_in_protobuf_from_a_version_that_is_gone_reports_expired() {
    let server = ApiServer::new();
    create(&server, "a").await;
    server.expire_history();
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion=1");
    let watch = send(&server, Method::GET, &path, Vec::new()).await;
    assert_eq!(events(watch).await, ["ERROR 410"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_removed_from_a_watch_in_protobuf() {
    let server = ApiServer::new();
    create(&server, "a").await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
         &allowWatchBookmarks=true&timeoutSeconds=5"
    );
    let watch = send(&server, Method::GET, &path, Vec::new()).await;
    assert_eq!(events(watch).await, ["ADDED anull", "BOOKMARK null"]);
    server.faults().drop_bookmarks(Calls::watch("configmaps").always());
    let watch = send(&server, Method::GET, &path, Vec::new()).await;
    assert_eq!(events(watch).await, ["ADDED anull"]);
}

#[tokio::test(start_paused = true)]
async fn body_with_more_than_the_limit_is_refused_in_protobuf() {
    let server = ApiServer::new();
    let reply = send(&server, Method::POST, CONFIG_MAPS, vec![0; 3 * 1024 * 1024 + 1]).await;
    assert_eq!(reply.status(), 413);
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    let (kind, status) = decode(&body);
    assert_eq!((kind.as_str(), &status["reason"]), ("Status", &json!("RequestEntityTooLarge")));
}

#[tokio::test(start_paused = true)]
async fn object_with_20000_invalid_fields_is_refused() {
    let server = ApiServer::new();
    // 20,000 finalizers without a letter: 2 bytes each.
    let metadata = [&b"\x0a\x01a"[..], &b"\x72\x00".repeat(20_000)].concat();
    let mut raw = vec![0x0a];
    let mut length = metadata.len();
    while length >= 0x80 {
        raw.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    raw.push(u8::try_from(length).unwrap());
    raw.extend(metadata);
    let body = Envelope::new("v1", "ConfigMap", raw).to_bytes();
    let reply = send(&server, Method::POST, CONFIG_MAPS, body).await;
    assert!(reply.status().is_client_error(), "{}", reply.status());
}

#[tokio::test]
async fn custom_object_in_a_protobuf_body_is_refused() {
    let widget = Kind::custom("example.com", "v1", "Widget", "widgets");
    let server = ApiServer::builder().kind(widget).build();
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, PROTOBUF)
        .body(Full::new(Bytes::from(config_map("a"))))
        .unwrap();
    let reply = server.service().oneshot(request).await.unwrap();
    assert_eq!(reply.status(), 415);
}

#[tokio::test(start_paused = true)]
async fn hostile_yaml_is_refused_with_a_status() {
    let server = ApiServer::new();
    let line = |level: usize| {
        let before = format!("*a{}, ", level - 1).repeat(10);
        format!("a{level}: &a{level} [{before}]\n")
    };
    let aliases: String = (1..12).map(line).collect();
    for body in [
        format!("metadata:\n  name: a\n  annotations: {{k: v}}\na0: &a0 [x]\n{aliases}"),
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        "&a [*a]".to_owned(),
        "data: {k: !!binary '%'}".to_owned(),
        "\u{0}".repeat(1000),
    ] {
        let request = Request::post(CONFIG_MAPS)
            .header(header::CONTENT_TYPE, "application/yaml")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let reply = server.service().oneshot(request).await.unwrap();
        assert!(reply.status().is_client_error(), "{}", reply.status());
        let status = reply.into_body().collect().await.unwrap().to_bytes();
        let status: Value = serde_json::from_slice(&status).unwrap();
        assert_eq!(status["kind"], "Status");
    }
}

/// Sends a GET as this program, and returns the media type and the text of the reply.
async fn read(server: &ApiServer, path: &str, agent: &str) -> (String, String) {
    let request = Request::get(path).header(header::USER_AGENT, agent);
    let request = request.body(Body::from(Vec::new())).unwrap();
    let reply = server.client().send(request).await.unwrap();
    assert_eq!(reply.status(), 200, "{path}");
    let media_type = reply.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    let text = reply.into_body().collect().await.unwrap().to_bytes();
    (media_type, String::from_utf8(text.to_vec()).unwrap())
}

#[tokio::test]
async fn metrics_count_the_objects_of_each_kind() {
    let server = ApiServer::builder().seed(1).build();
    create(&server, "a").await;
    create(&server, "b").await;
    let (media_type, text) = read(&server, "/metrics", "prometheus").await;
    assert_eq!(media_type, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    for line in [
        "# TYPE apiserver_resource_objects gauge",
        "apiserver_resource_objects{group=\"\",resource=\"configmaps\"} 2",
        "apiserver_resource_objects{group=\"apps\",resource=\"replicasets\"} 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn reply_to_a_person_has_line_breaks() {
    let server = ApiServer::builder().seed(1).build();
    let path = "/api/v1/namespaces/default";
    let (_, for_programs) = read(&server, path, "kubectl/v1.37.1").await;
    let (_, for_people) = read(&server, path, "curl/8.5.0").await;
    assert!(!for_programs.contains("\n "), "{for_programs}");
    assert!(for_people.contains("\n    \"name\": \"default\""), "{for_people}");
    let [programs, people]: [Value; 2] =
        [for_programs, for_people].map(|text| serde_json::from_str(&text).unwrap());
    assert_eq!(programs, people);
    let (_, asked) = read(&server, "/api?pretty=true", "kubectl/v1.37.1").await;
    assert!(asked.starts_with("{\n  \""), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn eviction_in_the_older_version_deletes_the_pod_in_protobuf() {
    let server = ApiServer::builder().seed(1).build();
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let schema = built_in::schema_of("", "v1", "Pod").unwrap();
    let body = Envelope::new("v1", "Pod", schema.encode_protobuf(&pod).unwrap()).to_bytes();
    let pods = "/api/v1/namespaces/default/pods";
    assert_eq!(send(&server, Method::POST, pods, body).await.status(), 201);

    let schema = built_in::schema_of("policy", "v1", "Eviction").unwrap();
    let raw = schema.encode_protobuf(&json!({"metadata": {"name": "a"}})).unwrap();
    let body = Envelope::new("policy/v1beta1", "Eviction", raw).to_bytes();
    let reply = send(&server, Method::POST, &format!("{pods}/a/eviction"), body).await;
    assert_eq!(reply.status(), 201);
    let reply = send(&server, Method::GET, &format!("{pods}/a"), Vec::new()).await;
    assert_eq!(reply.status(), 404);
}
