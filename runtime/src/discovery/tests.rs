use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::GroupResource;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// An answer of the server: content type, tag, body.
type Answer = (u16, &'static str, Option<&'static str>, Value);
/// A request: path, and the tag that it names.
type Seen = Arc<Mutex<Vec<(String, Option<String>)>>>;

fn server(answer: impl Fn(&str, Option<&str>) -> Answer + Send + Sync + 'static) -> (Client, Seen) {
    let (seen, answer) = (Seen::default(), Arc::new(answer));
    let log = Arc::clone(&seen);
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let tag = request.headers().get(header::IF_NONE_MATCH);
        let tag = tag.map(|value| value.to_str().unwrap().to_owned());
        let (status, kind, new, body) = answer(&path, tag.as_deref());
        log.lock().push((path, tag));
        let mut response = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
        if let Some(new) = new {
            response = response.header(header::ETAG, new);
        }
        let response = response.body(Full::new(Bytes::from(body.to_string())));
        async move { response }
    });
    (Client::new(service, "default"), seen)
}

fn resource(name: &str, scope: &str, verbs: &[&str]) -> Value {
    json!({"resource": name, "responseKind": {"kind": "K"}, "scope": scope, "verbs": verbs,
           "subresources": [{"subresource": "status"}]})
}

fn version(version: &str, freshness: &str, resources: &Value) -> Value {
    json!({"version": version, "freshness": freshness, "resources": resources})
}

fn aggregated(groups: &Value) -> Answer {
    (200, AGGREGATED, Some("\"1\""), json!({"kind": "APIGroupDiscoveryList", "items": groups}))
}

fn names(discovered: &Discovered) -> Vec<String> {
    let name = |it: &ServedResource| format!("{} {}", it.group_resource(), it.resource.version);
    discovered.preferred().map(name).collect()
}

fn core() -> Answer {
    let pods = resource("pods", "Namespaced", &["list", "watch", "create"]);
    aggregated(&json!([{"metadata": {}, "versions": [version("v1", "Current", &json!([pods]))]}]))
}

#[tokio::test]
async fn aggregated_answers_give_the_preferred_versions_without_subresources() {
    let (client, seen) = server(|path, _| {
        if path == "/api" {
            core()
        } else {
            let (foos, bars) =
                (resource("foos", "Namespaced", &["list"]), resource("bars", "Cluster", &[]));
            aggregated(&json!([{"metadata": {"name": "example.com"}, "versions": [
                version("v2", "Current", &json!([foos])),
                version("v1", "Current", &json!([foos, bars])),
            ]}]))
        }
    });
    let discovered = Discovery::new(client).discover().await.unwrap();
    assert_eq!(names(&discovered), ["pods v1", "bars.example.com v1", "foos.example.com v2"]);
    assert_eq!(discovered.resources.len(), 4);
    let pods = discovered.get(&GroupResource::new("", "pods")).unwrap();
    assert!(pods.is_namespaced && pods.supports(&["list", "watch"]) && !pods.supports(&["delete"]));
    assert!(discovered.failed.is_empty());
    assert_eq!(seen.lock().len(), 2);
}

#[tokio::test]
async fn unchanged_answer_is_not_read_again() {
    let (client, seen) = server(|path, tag| match (path, tag) {
        (_, Some("\"1\"")) => (304, AGGREGATED, None, Value::Null),
        ("/api", _) => core(),
        _ => aggregated(&json!([])),
    });
    let discovery = Discovery::new(client);
    let first = discovery.discover().await.unwrap();
    assert_eq!(discovery.discover().await.unwrap(), first);
    let tag = Some("\"1\"".to_owned());
    let expected = [("/api", None), ("/apis", None), ("/api", tag.clone()), ("/apis", tag)];
    assert_eq!(*seen.lock(), expected.map(|(path, tag)| (path.to_owned(), tag)));
}

#[tokio::test]
async fn stale_version_is_failed_and_the_next_one_is_preferred() {
    let (client, _) = server(|path, _| {
        if path == "/api" {
            core()
        } else {
            let foos = resource("foos", "Namespaced", &["list"]);
            aggregated(&json!([{"metadata": {"name": "example.com"}, "versions": [
                version("v2", "Stale", &json!([foos])), version("v1", "Current", &json!([foos])),
            ]}]))
        }
    });
    let discovered = Discovery::new(client).discover().await.unwrap();
    assert_eq!(names(&discovered), ["pods v1", "foos.example.com v1"]);
    assert_eq!(discovered.failed["example.com/v2"], "stale GroupVersion discovery");
    assert!(discovered.is_incomplete("example.com") && !discovered.is_incomplete(""));
}

#[tokio::test]
async fn server_without_aggregated_answers_is_read_version_by_version() {
    const JSON: &str = "application/json";
    let list = |names: &[&str]| {
        let resources: Vec<_> = names
            .iter()
            .map(|name| json!({"name": name, "kind": "K", "namespaced": true, "verbs": ["list"]}))
            .collect();
        json!({"kind": "APIResourceList", "resources": resources})
    };
    let (client, seen) = server(move |path, _| match path {
        "/api" => (200, JSON, None, json!({"versions": ["v1"]})),
        "/api/v1" => (200, JSON, None, list(&["pods", "pods/status"])),
        "/apis" => (
            200,
            JSON,
            None,
            json!({"groups": [{
            "name": "example.com", "versions": [{"version": "v1"}, {"version": "v2"}],
            "preferredVersion": {"version": "v2"},
        }, {"name": "broken.io", "versions": [{"version": "v1"}]}]}),
        ),
        "/apis/example.com/v1" => (200, JSON, None, list(&["bars", "foos"])),
        "/apis/example.com/v2" => (200, JSON, None, list(&["foos"])),
        _ => (503, JSON, None, json!({})),
    });
    let discovered = Discovery::new(client).discover().await.unwrap();
    assert_eq!(names(&discovered), ["pods v1", "bars.example.com v1", "foos.example.com v2"]);
    let text = "failed to discover resources: GET /apis/broken.io/v1: the server answers 503 \
                Service Unavailable";
    assert_eq!(discovered.failed["broken.io/v1"], text);
    assert_eq!(seen.lock().len(), 6);
}

/// Go encodes an empty list as `null` unless its author takes care.
#[tokio::test]
async fn members_that_are_null_count_as_empty() {
    const JSON: &str = "application/json";
    let (client, _) = server(|path, _| match path {
        "/api" => (200, JSON, None, json!({"versions": ["v1"]})),
        "/api/v1" => {
            let pods = json!({"name": "pods", "kind": "Pod", "namespaced": true, "verbs": null});
            (200, JSON, None, json!({"resources": [pods]}))
        }
        "/apis" => (
            200,
            JSON,
            None,
            json!({"groups": [
                {"name": "a.io", "versions": [{"version": "v1"}], "preferredVersion": null},
                {"name": "b.io", "versions": null},
            ]}),
        ),
        _ => (200, JSON, None, json!({"resources": null})),
    });
    let discovered = Discovery::new(client).discover().await.unwrap();
    assert_eq!((names(&discovered), discovered.failed), (vec!["pods v1".to_owned()], [].into()));
    let (client, _) = server(|path, _| match path {
        "/api" => aggregated(&json!([{"metadata": null, "versions": null}])),
        _ => aggregated(&json!([{"metadata": {"name": "a.io"}, "versions": [
            {"version": "v1", "resources": [
                {"resource": "foos", "responseKind": null, "verbs": null}]},
            {"version": "v2", "resources": null},
        ]}])),
    });
    let discovered = Discovery::new(client).discover().await.unwrap();
    assert_eq!(names(&discovered), ["foos.a.io v1"]);
}

#[tokio::test]
async fn refused_root_is_an_error() {
    let text = "failed to discover resources: GET /api: the server answers 403 Forbidden";
    for (body, reason) in [
        (json!("not a status"), ""),
        (
            json!({"message": "User \"bob\" cannot get path \"/api\"", "code": 403}),
            ": User \"bob\" cannot get path \"/api\"",
        ),
    ] {
        let (client, _) = server(move |_, _| (403, "application/json", None, body.clone()));
        let error = Discovery::new(client).discover().await.unwrap_err();
        assert_eq!(error.to_string(), format!("{text}{reason}"));
    }
}

#[tokio::test]
async fn malformed_answer_is_an_error_and_keeps_no_tag() {
    let (client, seen) = server(|_, _| (200, AGGREGATED, Some("\"1\""), json!({"items": "none"})));
    let discovery = Discovery::new(client);
    assert!(matches!(discovery.discover().await, Err(DiscoveryError::Malformed { .. })));
    assert!(discovery.discover().await.is_err());
    assert_eq!(seen.lock()[1].1, None, "the second request names no tag");
}
