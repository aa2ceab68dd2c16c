use std::collections::VecDeque;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::client::Body;
use serde_json::Value;
use tower::{BoxError, service_fn};

use super::*;

#[derive(Clone, Default)]
struct Server {
    inner: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    /// What the next requests are answered; `None` loses the connection. Afterwards everything is fine.
    answers: VecDeque<Option<u16>>,
    seen: Vec<(Method, String, Value)>,
}

impl Server {
    fn answering(answers: impl IntoIterator<Item = Option<u16>>) -> Self {
        let server = Self::default();
        server.inner.lock().answers.extend(answers);
        server
    }

    fn recorder(&self) -> EventRecorder {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = serde_json::from_slice(&body.collect_bytes().await?)?;
                let mut script = server.inner.lock();
                script.seen.push((parts.method, parts.uri.path().to_owned(), body));
                let status = script.answers.pop_front().unwrap_or(Some(201));
                let status = status.ok_or_else(|| BoxError::from("connection lost"))?;
                let response = Response::builder().status(status);
                Ok::<_, BoxError>(response.body(Full::new(Bytes::from_static(b"{}")))?)
            }
        });
        EventRecorder::builder(Client::new(service, "default"), "tester").seed(7).build()
    }

    fn seen(&self) -> Vec<(Method, String, Value)> {
        self.inner.lock().seen.clone()
    }

    fn methods(&self) -> Vec<Method> {
        self.seen().into_iter().map(|(method, ..)| method).collect()
    }
}

fn object() -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("web".into());
    map.metadata.namespace = Some("ns".into());
    map.metadata.uid = Some("1".into());
    map
}

#[tokio::test(start_paused = true)]
async fn an_event_is_created_and_the_next_of_its_like_patches_it() {
    let server = Server::default();
    let recorder = server.recorder();
    recorder.normal(&object(), "Scaled", "up");
    recorder.normal(&object(), "Scaled", "up");
    recorder.shut_down().await;
    let seen = server.seen();
    let (method, path, body) = &seen[0];
    assert_eq!((method, path.as_str()), (&Method::POST, "/api/v1/namespaces/ns/events"));
    assert_eq!(body["involvedObject"]["kind"], "ConfigMap");
    let name = body["metadata"]["name"].as_str().unwrap();
    let (method, path, body) = &seen[1];
    assert_eq!(method, Method::PATCH);
    assert_eq!(*path, format!("/api/v1/namespaces/ns/events/{name}"));
    assert_eq!((&body["count"], &body["message"]), (&Value::from(2), &Value::from("up")));
    assert_eq!(seen.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_has_expired_is_created_again() {
    let server = Server::answering([Some(201), Some(404)]);
    let recorder = server.recorder();
    recorder.warning(&object(), "Failed", "no");
    recorder.warning(&object(), "Failed", "no");
    recorder.shut_down().await;
    assert_eq!(server.methods(), [Method::POST, Method::PATCH, Method::POST]);
    assert_eq!(server.seen()[2].2["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_not_sent_again() {
    let server = Server::answering([Some(403), Some(409), Some(500)]);
    let recorder = server.recorder();
    for message in ["a", "b", "c"] {
        recorder.normal(&object(), "Tried", message);
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(server.methods().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_asked_twelve_times() {
    let server = Server::answering(std::iter::repeat_n(None, 100));
    let recorder = server.recorder();
    let start = Instant::now();
    recorder.normal(&object(), "Tried", "a");
    while server.methods().len() < 12 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(100) && took <= Duration::from_secs(111), "{took:?}");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(server.methods().len(), 12);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_sends_what_waits_and_does_not_wait_for_a_server_that_is_away() {
    let server = Server::answering(std::iter::repeat_n(None, 100));
    let recorder = server.recorder();
    for message in ["a", "b", "c"] {
        recorder.normal(&object(), "Tried", message);
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let start = Instant::now();
    recorder.shut_down().await;
    assert!(start.elapsed() < Duration::from_secs(1));
    let messages: Vec<_> =
        server.seen().into_iter().map(|(.., body)| body["message"].clone()).collect();
    assert_eq!(messages, ["a", "b", "c"]);
    recorder.normal(&object(), "Tried", "too late");
    assert_eq!(server.methods().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn recording_never_waits_and_drops_are_counted() {
    let server = Server::default();
    let recorder = server.recorder();
    for n in 0..1500 {
        recorder.normal(&object(), "Flood", n.to_string());
    }
    assert_eq!(recorder.dropped(), 500);
    recorder.shut_down().await;
    assert_eq!(server.methods().len(), 25);
}
