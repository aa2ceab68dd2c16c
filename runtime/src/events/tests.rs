use std::collections::VecDeque;

use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::client::Body;
use metrics::{Key, KeyName, Metadata, SharedString, Unit};
use parking_lot::Mutex;
use serde_json::Value;
use tower::{BoxError, service_fn};

use super::*;

#[derive(Clone, Default)]
struct Server {
    inner: Arc<Mutex<Script>>,
    api: EventsApi,
}

#[derive(Default)]
struct Script {
    /// The answers to the next requests; `None` loses the connection. Later requests get 201.
    answers: VecDeque<Option<u16>>,
    seen: Vec<(Method, String, Value)>,
}

impl Server {
    fn answering(answers: impl IntoIterator<Item = Option<u16>>) -> Self {
        let server = Self::default();
        server.inner.lock().answers.extend(answers);
        server
    }

    /// Returns a server whose recorder writes to `events.k8s.io/v1`.
    fn of_series(answers: impl IntoIterator<Item = Option<u16>>) -> Self {
        Self { api: EventsApi::Series, ..Self::answering(answers) }
    }

    fn recorder(&self) -> EventRecorder {
        self.recorder_at(Timestamp::UNIX_EPOCH)
    }

    fn recorder_at(&self, epoch: Timestamp) -> EventRecorder {
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
        EventRecorder::builder(Client::new(service, "default"), "tester")
            .api(self.api)
            .instance("tester-0")
            .epoch(epoch)
            .seed(7)
            .build()
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
async fn repeated_event_patches_the_first_one() {
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
async fn expired_event_is_created_again() {
    let server = Server::answering([Some(201), Some(404)]);
    let recorder = server.recorder();
    recorder.warning(&object(), "Failed", "no");
    recorder.warning(&object(), "Failed", "no");
    recorder.shut_down().await;
    assert_eq!(server.methods(), [Method::POST, Method::PATCH, Method::POST]);
    assert_eq!(server.seen()[2].2["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn refused_event_is_not_sent_again() {
    let server = Server::answering([Some(403), Some(409), Some(500)]);
    let recorder = server.recorder();
    for message in ["a", "b", "c"] {
        recorder.normal(&object(), "Tried", message);
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(server.methods().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn event_without_an_answer_is_sent_twelve_times() {
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
async fn shut_down_sends_each_waiting_event_once() {
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
async fn second_shut_down_waits_for_the_events_too() {
    let server = Server::default();
    let recorder = server.recorder();
    recorder.normal(&object(), "Scaled", "up");
    let second = async {
        recorder.shut_down().await;
        server.methods()
    };
    let ((), methods) = tokio::join!(recorder.shut_down(), second);
    assert_eq!(methods, [Method::POST]);
}

#[tokio::test(start_paused = true)]
async fn shut_down_that_is_dropped_loses_no_event() {
    let server = Server::default();
    let recorder = server.recorder();
    recorder.normal(&object(), "Scaled", "up");
    assert_eq!(recorder.shut_down().now_or_never(), None);
    recorder.shut_down().await;
    assert_eq!(server.methods(), [Method::POST]);
}

#[tokio::test(start_paused = true)]
async fn full_queue_drops_and_counts_events() {
    let server = Server::default();
    let recorder = server.recorder();
    for n in 0..1500 {
        recorder.normal(&object(), "Flood", n.to_string());
    }
    assert_eq!(recorder.dropped(), 500);
    recorder.shut_down().await;
    assert_eq!(server.methods().len(), 25);
}

#[tokio::test(start_paused = true)]
async fn event_that_waits_has_the_time_of_its_call() {
    let server = Server::answering([None]);
    let epoch: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let recorder = server.recorder_at(epoch);
    recorder.normal(&object(), "Tried", "a");
    tokio::time::sleep(Duration::from_millis(1)).await;
    recorder.normal(&object(), "Tried", "b"); // Waits for the pause of the first one.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[2].2["message"], "b");
    assert_eq!(seen[2].2["lastTimestamp"], "2026-01-01T00:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn unanswered_request_does_not_stop_later_events() {
    let service = service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Full<Bytes>>, BoxError>>()
    });
    let recorder = EventRecorder::new(Client::new(service, "default"), "tester");
    recorder.normal(&object(), "Tried", "a");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(recorder.counts(), EventCounts { recorded: 1, unsent: 1, ..EventCounts::default() });
}

#[tokio::test(start_paused = true)]
async fn fates_of_events_are_counted() {
    let server = Server::answering([Some(201), Some(403), Some(201), Some(404), Some(403)]);
    let recorder = server.recorder();
    let object = Arc::new(object());
    recorder.normal(&object, "Tried", "a");
    recorder.normal(&object, "Tried", "b");
    recorder.normal(&object, "Tried", "c");
    recorder.normal(&object, "Tried", "c"); // Expired on the server; its second create is refused.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let expected = EventCounts { recorded: 4, sent: 2, refused: 2, ..EventCounts::default() };
    assert_eq!(recorder.counts(), expected);
}

#[tokio::test(start_paused = true)]
async fn event_has_its_action_related_object_and_annotations() {
    let server = Server::default();
    let recorder = server.recorder();
    let event = NewEvent::normal(reference(&object()), "Scaled", "up")
        .action("Scaling")
        .related(reference(&object()))
        .annotation("a/b", "c");
    recorder.publish(event);
    recorder.shut_down().await;
    let event = &server.seen()[0].2;
    assert_eq!(event["action"], "Scaling");
    assert_eq!(event["related"]["name"], "web");
    assert_eq!(event["metadata"]["annotations"]["a/b"], "c");
}

#[tokio::test(start_paused = true)]
async fn series_is_created_patched_and_finished() {
    let server = Server::of_series([]);
    let recorder = server.recorder_at("2026-01-01T00:00:00Z".parse().unwrap());
    for _ in 0..4 {
        recorder.publish(NewEvent::warning(reference(&object()), "Failed", "no").action("Scaling"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(server.methods(), [Method::POST, Method::PATCH]);
    tokio::time::sleep(Duration::from_secs(358)).await;
    assert_eq!(server.methods().len(), 2, "the series is not over");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let seen = server.seen();
    let (_, path, created) = &seen[0];
    assert_eq!(path, "/apis/events.k8s.io/v1/namespaces/ns/events");
    let name = created["metadata"]["name"].as_str().unwrap();
    let expected = serde_json::json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": name, "namespace": "ns"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Warning", "reason": "Failed",
        "action": "Scaling", "note": "no", "reportingController": "tester",
        "reportingInstance": "tester-0",
        "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "web",
                      "uid": "1"},
    });
    assert_eq!(*created, expected);
    let repetition = |seconds: u32, count: u32| {
        let time = format!("2026-01-01T00:00:0{seconds}.000000Z");
        serde_json::json!({"series": {"count": count, "lastObservedTime": time}})
    };
    assert_eq!((&seen[1].2, &seen[2].2), (&repetition(1, 2), &repetition(3, 4)));
    assert_eq!(seen[2].1, format!("{path}/{name}"));
    let expected = EventCounts { recorded: 4, sent: 2, counted: 2, ..EventCounts::default() };
    assert_eq!(recorder.counts(), expected);
}

#[tokio::test(start_paused = true)]
async fn shut_down_sends_the_last_count_of_a_series() {
    let server = Server::of_series([]);
    let recorder = server.recorder();
    for _ in 0..5 {
        recorder.normal(&object(), "Scaled", "up");
    }
    recorder.shut_down().await;
    let seen = server.seen();
    assert_eq!(server.methods(), [Method::POST, Method::PATCH, Method::PATCH]);
    assert_eq!(seen[2].2["series"]["count"], 5);
}

#[tokio::test(start_paused = true)]
async fn expired_series_is_created_again_with_its_count() {
    let server = Server::of_series([Some(201), Some(404)]);
    let recorder = server.recorder();
    recorder.normal(&object(), "Scaled", "up");
    recorder.normal(&object(), "Scaled", "up");
    recorder.shut_down().await;
    assert_eq!(server.methods(), [Method::POST, Method::PATCH, Method::POST]);
    assert_eq!(server.seen()[2].2["series"]["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn unanswered_patch_of_a_series_does_not_stop_other_events() {
    let server =
        Server::of_series([Some(201), Some(201)].into_iter().chain(std::iter::repeat_n(None, 12)));
    let recorder = server.recorder();
    for _ in 0..3 {
        recorder.normal(&object(), "Scaled", "up");
    }
    tokio::time::sleep(Duration::from_secs(361)).await; // The last patch has no answer.
    recorder.normal(&object(), "Stopped", "down");
    tokio::time::sleep(Duration::from_secs(120)).await;
    let seen = server.seen();
    assert_eq!(seen.last().unwrap().2["reason"], "Stopped");
    let expected = EventCounts { recorded: 4, sent: 3, counted: 1, ..EventCounts::default() };
    assert_eq!(recorder.counts(), expected);
}

#[tokio::test(start_paused = true)]
async fn refused_patch_of_a_series_is_repeated_at_its_end() {
    let server = Server::of_series([Some(201), Some(503)]);
    let recorder = server.recorder();
    for _ in 0..2 {
        recorder.normal(&object(), "Scaled", "up");
    }
    tokio::time::sleep(Duration::from_secs(359)).await;
    assert_eq!(server.methods(), [Method::POST, Method::PATCH]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let seen = server.seen();
    assert_eq!(server.methods(), [Method::POST, Method::PATCH, Method::PATCH]);
    assert_eq!((&seen[2].1, &seen[2].2), (&seen[1].1, &seen[1].2));
    let expected = EventCounts { recorded: 2, sent: 1, refused: 1, ..EventCounts::default() };
    assert_eq!(recorder.counts(), expected, "each event has one fate");
}

/// The case of upstream's `TestEventfNoNamespace`.
#[tokio::test(start_paused = true)]
async fn event_about_object_without_a_namespace_goes_to_default() {
    for server in [Server::default(), Server::of_series([])] {
        let recorder = server.recorder();
        let involved = ObjectReference {
            kind: Some("Pod".into()),
            name: Some("foo".into()),
            uid: Some("bar".into()),
            api_version: Some("v1".into()),
            field_path: Some("spec.containers[2]".into()),
            ..ObjectReference::default()
        };
        let message = "some verbose message: 1";
        recorder.record(involved.clone(), EventType::Normal, "Started", message);
        recorder.shut_down().await;
        let (_, path, event) = server.seen().remove(0);
        assert!(path.ends_with("/namespaces/default/events"), "{path}");
        assert_eq!(event["metadata"]["namespace"], "default");
        assert!(event["metadata"]["name"].as_str().unwrap().starts_with("foo."));
        let reference = event.get("involvedObject").or_else(|| event.get("regarding")).unwrap();
        assert_eq!(*reference, serde_json::to_value(involved).unwrap());
    }
}

/// Upstream's `TestLotsOfEvents`: a full queue is sent although four answers to each event are
/// lost.
#[tokio::test(start_paused = true)]
async fn thousand_events_are_sent_despite_lost_answers() {
    let answers = [None, None, None, None, Some(201)];
    let server = Server::answering(std::iter::repeat_n(answers, 1000).flatten());
    let recorder = server.recorder();
    for number in 0..1000 {
        let mut pod = object();
        pod.metadata.name = Some(format!("foo-{number}"));
        recorder.normal(&pod, format!("Reason-{number}"), number.to_string());
    }
    while recorder.counts().sent < 1000 {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let expected = EventCounts { recorded: 1000, sent: 1000, ..EventCounts::default() };
    assert_eq!((recorder.counts(), server.methods().len()), (expected, 5000));
}

#[test]
fn default_instance_is_the_component_with_the_machine() {
    assert!(builder::default_instance("shop-controller").starts_with("shop-controller-"));
    assert_eq!(builder::default_instance(&"a".repeat(200)).len(), 128);
}

#[tokio::test(start_paused = true)]
async fn events_that_the_shutdown_drops_are_counted_as_unsent() {
    let service = service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Full<Bytes>>, BoxError>>()
    });
    for api in [EventsApi::Core, EventsApi::Series] {
        let builder = EventRecorder::builder(Client::new(service, "default"), "tester").api(api);
        let recorder = builder.instance("tester-0").seed(7).build();
        for number in 0..3 {
            recorder.normal(&ConfigMap::default(), format!("Reason{number}"), "no answer");
        }
        recorder.shut_down().await;
        let expected = EventCounts { recorded: 3, unsent: 3, ..EventCounts::default() };
        assert_eq!(recorder.counts(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn log_names_the_shutdown_that_drops_an_event() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(file.reopen().unwrap());
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
    let _guard = tracing::subscriber::set_default(log);
    let recorder = Server::answering([None, None]).recorder();
    recorder.normal(&object(), "Lost", "no answer");
    recorder.shut_down().await;
    let lines = std::fs::read_to_string(file.path()).unwrap();
    assert!(lines.contains("Unable to write event (shutting down) attempt=1"), "{lines}");
    assert!(!lines.contains("retry limit exceeded"), "{lines}");
}

#[tokio::test(start_paused = true)]
async fn request_that_panics_costs_one_event() {
    let requests = Arc::new(Mutex::new(0));
    let count = Arc::clone(&requests);
    let service = service_fn(move |_: Request<Body>| {
        let number = {
            let mut requests = count.lock();
            *requests += 1;
            *requests
        };
        async move {
            assert_ne!(number, 1, "a layer of the client panics");
            Ok::<_, BoxError>(Response::new(Full::new(Bytes::from_static(b"{}"))))
        }
    });
    let events = EventRecorder::new(Client::new(service, "default"), "tester");
    events.normal(&object(), "First", "one");
    events.normal(&object(), "Second", "two");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let counts = events.counts();
    assert_eq!((counts.recorded, counts.sent, counts.unsent), (2, 1, 1), "{counts:?}");
    events.shut_down().await;
}

/// A recorder that knows no metric.
struct Broken;

impl metrics::Recorder for Broken {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> metrics::Counter {
        panic!("no counters")
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> metrics::Gauge {
        panic!("no gauges")
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> metrics::Histogram {
        panic!("no histograms")
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_recorder_that_panics_costs_no_event() {
    let server = Server::default();
    let events = metrics::with_local_recorder(&Broken, || server.recorder());
    events.normal(&object(), "Greeted", "hello");
    events.shut_down().await;
    assert_eq!((events.counts().sent, server.seen().len()), (1, 1));
}
