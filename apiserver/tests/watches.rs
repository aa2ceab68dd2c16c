//! The sequences of lists and watches that an informer relies on.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::time::Duration;

use bytes::Bytes;
use homeostat_apiserver::{ApiServer, Body};
use homeostat_faults::ClientName;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn server() -> ApiServer {
    ApiServer::builder().seed(3).epoch("2026-01-01T00:00:00Z".parse().unwrap()).build()
}

async fn send(server: &ApiServer, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut request = Request::builder().method(method).uri(path);
    if method == "PATCH" {
        request = request.header("content-type", "application/merge-patch+json");
    }
    let request = request.body(Full::new(Bytes::from(body))).unwrap();
    let response = server.service().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn create(server: &ApiServer, name: &str, labels: Value) -> String {
    let (code, map) =
        send(server, "POST", MAPS, json!({"metadata": {"name": name, "labels": labels}})).await;
    assert_eq!(code, 201, "{map}");
    map["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

async fn label(server: &ApiServer, name: &str, value: &str) {
    let patch = json!({"metadata": {"labels": {"l": value}}});
    assert_eq!(send(server, "PATCH", &format!("{MAPS}/{name}"), patch).await.0, 200);
}

async fn list(server: &ApiServer, query: &str) -> (u16, Value) {
    send(server, "GET", &format!("{MAPS}?{query}"), Value::Null).await
}

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

/// A watch that is read event by event.
struct Watch {
    body: Body,
    lines: Vec<Value>,
}

impl Watch {
    async fn start(server: &ApiServer, query: &str) -> Self {
        let request = Request::get(format!("{MAPS}?watch=true&{query}"))
            .body(Full::<Bytes>::default())
            .unwrap();
        let response = server.service().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), lines: Vec::new() }
    }

    /// Returns the next event, or `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        while self.lines.is_empty() {
            let chunk = self.body.frame().await?.unwrap().into_data().unwrap();
            let lines = chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            self.lines.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
        }
        Some(self.lines.remove(0))
    }

    /// Returns the next event as `TYPE name`.
    async fn brief(&mut self) -> String {
        let event = self.next().await.unwrap();
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
        format!("{} {name}", event["type"].as_str().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state_despite_later_writes() {
    let server = server();
    for name in ["a", "b", "c", "d"] {
        create(&server, name, json!({})).await;
    }
    let (_, first) = list(&server, "limit=2").await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    assert!(
        first["items"][0].get("kind").is_none(),
        "items of a built-in list do not say what they are"
    );
    create(&server, "bb", json!({})).await;
    send(&server, "DELETE", &format!("{MAPS}/d"), Value::Null).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = list(&server, &format!("limit=2&continue={token}")).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert!(second["metadata"].get("continue").is_none());
}

#[tokio::test(start_paused = true)]
async fn expired_continue_token_comes_with_a_fresh_one() {
    let server = server();
    for name in ["a", "b", "c"] {
        create(&server, name, json!({})).await;
    }
    let (_, first) = list(&server, "limit=1").await;
    create(&server, "bb", json!({})).await;
    server.compact();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (code, expired) = list(&server, &format!("limit=2&continue={token}")).await;
    assert_eq!((code, expired["reason"].as_str().unwrap()), (410, "Expired"));
    let fresh = expired["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = list(&server, &format!("limit=9&continue={fresh}")).await;
    assert_eq!(names(&rest), ["b", "bb", "c"]);
}

#[tokio::test(start_paused = true)]
async fn continue_token_expires_within_ten_minutes() {
    let server = server();
    for name in ["a", "b", "c"] {
        create(&server, name, json!({})).await;
    }
    tokio::time::sleep(Duration::from_secs(4 * 60)).await;
    let (_, first) = list(&server, "limit=1").await;
    create(&server, "bb", json!({})).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let rest = format!("limit=9&continue={token}");
    tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    assert_eq!(names(&list(&server, &rest).await.1), ["b", "c"]);
    create(&server, "d", json!({})).await;
    tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    assert_eq!(list(&server, &rest).await.0, 410);
}

#[tokio::test(start_paused = true)]
async fn resource_version_match_selects_the_state() {
    let server = server();
    let one = create(&server, "a", json!({})).await;
    create(&server, "b", json!({})).await;
    for (query, expected) in [
        (String::new(), vec!["a", "b"]),
        ("resourceVersion=0&limit=1".to_owned(), vec!["a", "b"]),
        ("resourceVersion=0&limit=1&resourceVersionMatch=NotOlderThan".to_owned(), vec!["a"]),
        (format!("resourceVersion={one}"), vec!["a", "b"]),
        (format!("resourceVersion={one}&limit=5"), vec!["a"]),
        (
            format!("resourceVersion={one}&limit=5&resourceVersionMatch=NotOlderThan"),
            vec!["a", "b"],
        ),
        (format!("resourceVersion={one}&resourceVersionMatch=Exact"), vec!["a"]),
    ] {
        assert_eq!(names(&list(&server, &query).await.1), expected, "{query}");
    }
    server.compact();
    let (code, _) =
        list(&server, &format!("resourceVersion={one}&resourceVersionMatch=Exact")).await;
    assert_eq!(code, 410);
}

#[tokio::test(start_paused = true)]
async fn page_with_a_selector_is_full() {
    let server = server();
    for (name, value) in [("a", "1"), ("b", "2"), ("c", "1"), ("d", "1")] {
        create(&server, name, json!({"l": value})).await;
    }
    let (_, first) = list(&server, "limit=2&labelSelector=l%3D1").await;
    assert_eq!(names(&first), ["a", "c"]);
    assert!(first["metadata"].get("remainingItemCount").is_none());
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = list(&server, &format!("limit=2&labelSelector=l%3D1&continue={token}")).await;
    assert_eq!(names(&rest), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn watch_delivers_events_after_its_version() {
    let server = server();
    let version = create(&server, "a", json!({})).await;
    label(&server, "a", "1").await;
    send(&server, "DELETE", &format!("{MAPS}/a"), Value::Null).await;
    let mut watch = Watch::start(&server, &format!("resourceVersion={version}")).await;
    assert_eq!(watch.brief().await, "MODIFIED a");
    let deleted = watch.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    let version: u64 = version.parse().unwrap();
    assert_eq!(deleted["object"]["metadata"]["resourceVersion"], (version + 2).to_string());
    assert_eq!(deleted["object"]["metadata"]["labels"]["l"], "1", "the last state");
    create(&server, "b", json!({})).await;
    assert_eq!(watch.brief().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn watch_with_a_selector_adds_entering_and_deletes_leaving_objects() {
    let server = server();
    let version = create(&server, "a", json!({"l": "1"})).await;
    let mut watch =
        Watch::start(&server, &format!("resourceVersion={version}&labelSelector=l%3D1")).await;
    label(&server, "a", "2").await;
    label(&server, "a", "3").await;
    label(&server, "a", "1").await;
    let left = watch.next().await.unwrap();
    assert_eq!(
        (left["type"].as_str().unwrap(), &left["object"]["metadata"]["labels"]["l"]),
        ("DELETED", &json!("1"))
    );
    assert_eq!(watch.brief().await, "ADDED a");
}

#[tokio::test(start_paused = true)]
async fn watch_list_ends_with_its_bookmark_even_if_empty() {
    let server = server();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for expected in [&[][..], &["ADDED a"][..]] {
        let mut watch = Watch::start(&server, query).await;
        for event in expected {
            assert_eq!(watch.brief().await, *event);
        }
        let bookmark = watch.next().await.unwrap();
        assert_eq!(bookmark["type"], "BOOKMARK");
        assert_eq!(
            bookmark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
            "true"
        );
        create(&server, if expected.is_empty() { "a" } else { "b" }, json!({})).await;
        assert!(watch.brief().await.starts_with("ADDED"));
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let server = server();
    let version = create(&server, "a", json!({})).await;
    let started = Instant::now();
    let query = format!("resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=90");
    let mut watch = Watch::start(&server, &query).await;
    // A write to another resource advances the bookmark, although it does not wake the watch.
    let write = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        send(&server, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await
    };
    let (first, (_, namespace)) = tokio::join!(watch.next(), write);
    let (mut next, mut seen) = (first, Vec::new());
    while let Some(event) = next {
        assert_eq!(event["type"], "BOOKMARK");
        assert_eq!(
            event["object"]["metadata"]["resourceVersion"],
            namespace["metadata"]["resourceVersion"]
        );
        seen.push(started.elapsed().as_secs());
        next = watch.next().await;
    }
    assert_eq!(seen, [60, 88]);
    assert_eq!(started.elapsed().as_secs(), 90, "the end of the watch");
}

#[tokio::test(start_paused = true)]
async fn too_old_version_gets_410_in_the_stream() {
    let server = server();
    let version = create(&server, "a", json!({})).await;
    create(&server, "b", json!({})).await;
    let mut open = Watch::start(&server, &format!("resourceVersion={version}")).await;
    assert_eq!(open.brief().await, "ADDED b");
    server.restart();
    assert_eq!(open.next().await, None, "the watch did not end with the restart");
    let mut old = Watch::start(&server, &format!("resourceVersion={version}")).await;
    let error = old.next().await.unwrap();
    assert_eq!((error["type"].as_str().unwrap(), &error["object"]["code"]), ("ERROR", &json!(410)));
    let newest = version.parse::<u64>().unwrap() + 1;
    assert_eq!(
        error["object"]["message"],
        format!("too old resource version: {version} ({newest})")
    );
    assert_eq!(old.next().await, None);
    assert_eq!(names(&list(&server, "").await.1), ["a", "b"], "objects after the restart");
}

#[tokio::test(start_paused = true)]
async fn slow_watch_is_ended_without_an_error() {
    let server = server();
    let version = create(&server, "a", json!({})).await;
    let mut watch =
        Watch::start(&server, &format!("resourceVersion={version}&timeoutSeconds=100000")).await;
    for n in 0..150 {
        tokio::time::advance(Duration::from_secs(60)).await;
        label(&server, "a", &n.to_string()).await;
    }
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn watch_ends_when_more_events_wait_than_its_buffer_holds() {
    let server = server();
    server.limit_watch_buffer(10);
    let version = create(&server, "a", json!({})).await;
    let mut watch = Watch::start(&server, &format!("resourceVersion={version}")).await;
    // Events that the selector does not match take no place.
    let query = format!("resourceVersion={version}&labelSelector=l%3D7");
    let mut selective = Watch::start(&server, &query).await;
    for n in 0..10 {
        label(&server, "a", &n.to_string()).await;
    }
    for _ in 0..10 {
        assert_eq!(watch.brief().await, "MODIFIED a");
    }
    for n in 10..21 {
        label(&server, "a", &n.to_string()).await;
    }
    assert_eq!(watch.next().await, None);
    assert_eq!(selective.brief().await, "ADDED a");
    assert_eq!(selective.brief().await, "DELETED a");
}

#[tokio::test(start_paused = true)]
async fn restart_keeps_the_states_that_lists_can_show() {
    let server = server();
    let first = create(&server, "a", json!({})).await;
    for name in ["b", "c"] {
        create(&server, name, json!({})).await;
    }
    let (_, page) = list(&server, "limit=2").await;
    let version = page["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let token = page["metadata"]["continue"].as_str().unwrap();
    create(&server, "bb", json!({})).await;
    server.restart();
    let (code, rest) = list(&server, &format!("continue={token}")).await;
    assert_eq!((code, names(&rest)), (200, vec!["c"]));
    for (version, expected) in [(&first, vec!["a"]), (&version, vec!["a", "b", "c"])] {
        let exact = format!("resourceVersion={version}&resourceVersionMatch=Exact");
        let (code, then) = list(&server, &exact).await;
        assert_eq!((code, names(&then)), (200, expected));
    }
    // The watch cache is empty.
    let mut watch = Watch::start(&server, &format!("resourceVersion={version}")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn watch_without_initial_objects_starts_where_its_server_is() {
    let server = server();
    create(&server, "a", json!({})).await;
    let lagging = server.lagging_view();
    server.move_client("me", &lagging);
    create(&server, "b", json!({})).await;
    let query = "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut request =
        Request::get(format!("{MAPS}?{query}")).body(Full::<Bytes>::default()).unwrap();
    request.extensions_mut().insert(ClientName("me".into()));
    let response = server.service().oneshot(request).await.unwrap();
    let mut watch = Watch { body: response.into_body(), lines: Vec::new() };
    lagging.catch_up();
    assert_eq!(watch.brief().await, "ADDED b", "it was unknown to the server of the client");
}

#[tokio::test(start_paused = true)]
async fn list_waits_three_seconds_for_a_future_version() {
    let server = server();
    let now: u64 = create(&server, "a", json!({})).await.parse().unwrap();
    let started = Instant::now();
    let (code, refused) = list(&server, &format!("resourceVersion={}", now + 1)).await;
    assert_eq!((code, started.elapsed()), (504, Duration::from_secs(3)));
    let expected = format!("Timeout: Too large resource version: {}, current: {now}", now + 1);
    assert_eq!(refused["message"], expected);
    let query = format!("resourceVersion={}", now + 1);
    let (answer, _) = tokio::join!(list(&server, &query), create(&server, "b", json!({})));
    assert_eq!(names(&answer.1), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn deletecollection_deletes_and_returns_the_selected_objects() {
    let server = server();
    for (name, value) in [("a", "1"), ("b", "2"), ("c", "1")] {
        create(&server, name, json!({"l": value})).await;
    }
    let (code, deleted) =
        send(&server, "DELETE", &format!("{MAPS}?labelSelector=l%3D1"), Value::Null).await;
    assert_eq!((code, names(&deleted)), (200, vec!["a", "c"]));
    assert_eq!(names(&list(&server, "").await.1), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn error_of_a_watch_is_one_line_for_people_too() {
    let server = server();
    create(&server, "a", json!({})).await;
    server.expire_history();
    for query in ["resourceVersion=1", "resourceVersion=1&pretty=true"] {
        let request = Request::get(format!("{MAPS}?watch=true&{query}"));
        let request = request.header("user-agent", "curl/8.5.0").body(Full::<Bytes>::default());
        let response = server.service().oneshot(request.unwrap()).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let lines: Vec<&[u8]> = body.split_inclusive(|byte| *byte == b'\n').collect();
        let [line] = lines[..] else { panic!("{query}: {} lines", lines.len()) };
        let event: Value = serde_json::from_slice(line).unwrap();
        assert_eq!(event["object"]["code"], 410);
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_requests_get_a_response() {
    let server = server();
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let large = format!("{{\"metadata\":{{\"name\":\"{}\"}}}}", "x".repeat(4 << 20));
    let wrong = json!({"metadata": {"name": "w", "labels": {"a": 1}}}).to_string();
    for (body, expected) in
        [("{bad json", 400), ("[]", 400), ("", 400), (&deep, 400), (&large, 413), (&wrong, 400)]
    {
        let request = Request::post(MAPS).body(Full::new(Bytes::from(body.to_owned()))).unwrap();
        let response = server.service().oneshot(request).await.unwrap();
        assert_eq!(response.status(), expected, "{}", &body[..body.len().min(30)]);
    }
    for (method, path, expected) in [
        ("PUT", MAPS, 405),
        ("POST", "/api/v1/namespaces/default/configmaps/a", 405),
        ("GET", "/api/v1/namespaces/default/configmaps/%zz", 400),
        ("GET", "/api/v1/configmaps?limit=x", 400),
        ("GET", "/api/v1/configmaps?labelSelector=(", 400),
    ] {
        assert_eq!(send(&server, method, path, Value::Null).await.0, expected, "{method} {path}");
    }
}
