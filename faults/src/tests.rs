mod injected;
mod objects;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::PostParams;
use kube_client::client::Body;
use kube_client::{Api, Client, Error};
use kube_core::WatchEvent;
use kube_core::params::WatchParams;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};
use tower::{BoxError, Layer as _, Service as _, service_fn};

use crate::{
    ApiError, Break, Calls, Chaos, ClientName, CrashPoint, Cut, FaultClass, FaultRule, Faults, Hit,
    Lost, ObjectEvents, RequestInfo, Verb,
};

const MAP: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","resourceVersion":"7"}}"#;

/// Returns a client whose requests are all answered with `MAP`, and the number of processed
/// requests.
fn answering(faults: &Faults) -> (Api<ConfigMap>, Arc<AtomicUsize>) {
    let done = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&done);
    let server = service_fn(move |_: Request<Body>| {
        counter.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, BoxError>(Response::new(Full::new(Bytes::from_static(MAP.as_bytes())))) }
    });
    let client = Client::new(faults.layer().layer(server), "default");
    (Api::default_namespaced(client), done)
}

/// Returns a client whose watches deliver the lines sent through the returned channel.
fn watching(faults: &Faults) -> (Client, mpsc::UnboundedSender<Bytes>) {
    let (sender, receiver) = mpsc::unbounded();
    let receiver = Mutex::new(Some(receiver));
    let receiver = Arc::new(receiver);
    let server = service_fn(move |_: Request<Body>| {
        let lines = receiver.lock().take().map_or_else(|| stream::empty().boxed(), |r| r.boxed());
        let body = StreamBody::new(lines.map(|line| Ok::<_, BoxError>(Frame::data(line))));
        async move { Ok::<_, BoxError>(Response::new(body)) }
    });
    (Client::new(faults.layer().layer(server), "default"), sender)
}

async fn watch(client: &Client) -> Body {
    let request = Request::get("/api/v1/namespaces/default/configmaps?watch=true");
    client.send(request.body(Body::empty()).unwrap()).await.unwrap().into_body()
}

/// Reads a stream to its end. Returns the text, and true if the stream ended without an error.
async fn drain(body: Body) -> (String, bool) {
    let mut text = String::new();
    let mut body = body.into_data_stream();
    loop {
        match body.next().await {
            None => return (text, true),
            Some(Err(_)) => return (text, false),
            Some(Ok(data)) => text.push_str(std::str::from_utf8(&data).unwrap()),
        }
    }
}

fn is_io(error: &Error, kind: std::io::ErrorKind) -> bool {
    matches!(error, Error::Service(source)
        if source.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == kind))
}

#[tokio::test(start_paused = true)]
async fn request_is_processed_when_its_reply_is_lost() {
    let faults = Faults::new();
    let (maps, done) = answering(&faults);
    faults.lose_reply(Calls::create("configmaps").nth(2));

    maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
    let lost = maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap_err();
    maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();

    assert!(is_io(&lost, std::io::ErrorKind::ConnectionReset), "{lost:?}");
    assert_eq!(done.load(Ordering::SeqCst), 3);
    assert_eq!(faults.trace().messages(), ["create configmaps in default: reply lost (200 OK)"]);
    assert_eq!(faults.count(Verb::Create, "configmaps"), 3);
}

#[tokio::test(start_paused = true)]
async fn dropped_refused_and_hanging_requests_are_not_sent() {
    let faults = Faults::new();
    let (maps, done) = answering(&faults);
    faults.drop_request(Calls::get("configmaps"));
    faults.refuse(
        Calls::get("configmaps").nth(2),
        ApiError::too_many_requests(Duration::from_millis(1500)),
    );
    faults.hang(Calls::get("configmaps").nth(3));

    let dropped = maps.get("m").await.unwrap_err();
    assert!(is_io(&dropped, std::io::ErrorKind::ConnectionRefused), "{dropped:?}");
    let Error::Api(status) = maps.get("m").await.unwrap_err() else { panic!("not a Status") };
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.details.unwrap().retry_after_seconds, 2);
    timeout(Duration::from_secs(3600), maps.get("m")).await.unwrap_err();
    assert_eq!(done.load(Ordering::SeqCst), 0);

    maps.get("m").await.unwrap();
    assert_eq!(
        faults.trace().messages(),
        [
            "get configmaps default/m: request dropped",
            "get configmaps default/m: refused with 429 TooManyRequests",
            "get configmaps default/m: request never answered",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn kube_reads_code_and_reason_of_every_api_error() {
    let errors = [
        (ApiError::unauthorized(), 401),
        (ApiError::forbidden(), 403),
        (ApiError::not_found(), 404),
        (ApiError::conflict(), 409),
        (ApiError::already_exists(), 409),
        (ApiError::expired(), 410),
        (ApiError::invalid(), 422),
        (ApiError::internal_error(), 500),
        (ApiError::unavailable(), 503),
        (ApiError::timeout(), 504),
    ];
    let faults = Faults::new();
    let (maps, _) = answering(&faults);
    for (error, code) in errors {
        let text = error.to_string();
        faults.refuse(Calls::any(), error);
        let Error::Api(status) = maps.get("m").await.unwrap_err() else { panic!("not a Status") };
        assert_eq!(format!("{} {}", status.code, status.reason), text);
        assert_eq!(status.code, code);
    }
}

#[tokio::test(start_paused = true)]
async fn reply_is_delayed_until_faults_heal() {
    let faults = Faults::new();
    let (maps, _) = answering(&faults);
    faults.delay_reply(Calls::on("configmaps").always(), Duration::from_secs(5));

    let start = Instant::now();
    maps.get("m").await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    faults.heal();
    maps.get("m").await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn partition_outlasts_heal() {
    let faults = Faults::new();
    let (maps, done) = answering(&faults);
    let partition = faults.partition("", Lost::Requests);
    faults.heal();
    timeout(Duration::from_secs(3600), maps.get("m")).await.unwrap_err();
    assert_eq!(done.load(Ordering::SeqCst), 0);
    drop(partition);
    maps.get("m").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fault_that_cannot_be_injected_into_a_watch_counts_no_hit() {
    let faults = Faults::new();
    let (client, _events) = watching(&faults);
    let rules = [
        faults.truncate_reply(Calls::on("configmaps"), 3),
        faults.corrupt_reply(Calls::on("configmaps").nth(2), 3),
        // The watch has no version at which it could start earlier.
        faults.rewind_watches(Calls::watch("configmaps").nth(3), 5),
    ];
    for _ in &rules {
        watch(&client).await;
    }
    assert_eq!(rules.map(|rule| (rule.matches(), rule.hits())), [(1, 0), (2, 0), (3, 0)]);
    assert_eq!(faults.trace().messages(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn longest_delay_of_an_event_does_not_end() {
    let delays: [fn(&Faults); 3] = [
        |faults| drop(faults.delay_events("configmaps", Duration::MAX)),
        |faults| drop(faults.hold_event("configmaps", 1, Duration::MAX)),
        |faults| drop(faults.delay_object_events("configmaps", ObjectEvents::any(), Duration::MAX)),
    ];
    for delay in delays {
        let faults = Faults::new();
        delay(&faults);
        let (client, events) = watching(&faults);
        let mut body = watch(&client).await.into_data_stream();
        let event = r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#;
        events.unbounded_send(Bytes::from(format!("{event}\n"))).unwrap();
        timeout(Duration::from_secs(3600), body.next()).await.unwrap_err();
        faults.assert_all_hit();
    }
}

#[tokio::test(start_paused = true)]
async fn torn_watch_delivers_half_a_line_and_an_error() {
    let faults = Faults::new();
    let (client, events) = watching(&faults);
    let body = watch(&client).await;
    events.unbounded_send(Bytes::from_static(b"one\n")).unwrap();
    let mut body = body.into_data_stream();
    assert_eq!(body.next().await.unwrap().unwrap(), "one\n");

    assert_eq!(faults.tear_watches("pods"), 0);
    assert_eq!(faults.tear_watches("configmaps"), 1);
    let half = body.next().await.unwrap().unwrap();
    assert!(half.starts_with(b"{\"type\":") && !half.ends_with(b"\n"));
    body.next().await.unwrap().unwrap_err();
    assert!(body.next().await.is_none());
    assert_eq!(faults.open_watches("*"), 0);
    assert!(events.is_closed(), "stream of the transport is open");
    assert_eq!(
        faults.trace().messages(),
        ["watch configmaps in default: reset in the middle of a line"]
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_watch_is_woken_by_its_end() {
    let faults = Faults::new();
    let (client, _events) = watching(&faults);
    let body = watch(&client).await;
    let end = async {
        tokio::task::yield_now().await;
        faults.end_watches("*")
    };
    let ((text, clean), hit) = tokio::join!(drain(body), end);
    assert_eq!((text.as_str(), clean, hit), ("", true, 1));
}

#[tokio::test(start_paused = true)]
async fn expired_watch_gets_an_error_event_between_two_events() {
    let faults = Faults::new();
    let (client, events) = watching(&faults);
    let mut body = watch(&client).await.into_data_stream();
    // The second event stays incomplete.
    events.unbounded_send(Bytes::from_static(b"one\ntw")).unwrap();
    assert_eq!(body.next().await.unwrap().unwrap(), "one\n");
    assert_eq!(faults.expire_watches("configmaps"), 1);
    events.unbounded_send(Bytes::from_static(b"o\nthree\n")).unwrap();

    let line = body.next().await.unwrap().unwrap();
    let event: WatchEvent<ConfigMap> = serde_json::from_slice(&line).unwrap();
    assert!(matches!(event, WatchEvent::Error(status) if status.code == 410));
    assert!(body.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn injected_line_comes_between_events_and_loses_none() {
    let faults = Faults::new();
    let (client, events) = watching(&faults);
    let mut stream = watch(&client).await.into_data_stream();
    events.unbounded_send(Bytes::from_static(b"one\ntw")).unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "one\n");
    assert_eq!(faults.inject_line("configmaps", "garbage"), 1);
    events.unbounded_send(Bytes::from_static(b"o\n")).unwrap();
    drop(events);
    let rest: Vec<Bytes> = stream.try_collect().await.unwrap();
    assert_eq!(rest.concat(), b"garbage\ntwo\n");
}

#[tokio::test(start_paused = true)]
async fn held_watches_deliver_every_event_after_release() {
    let faults = Faults::new();
    let (client, events) = watching(&faults);
    let held = faults.hold_watches("configmaps");
    let second = faults.hold_watches("*");
    // The watch opens while it is held.
    let mut body = watch(&client).await.into_data_stream();
    events.unbounded_send(Bytes::from_static(b"one\n")).unwrap();
    timeout(Duration::from_secs(60), body.next()).await.unwrap_err();
    drop(held);
    timeout(Duration::from_secs(60), body.next()).await.unwrap_err();
    let ((), next) = tokio::join!(async { drop(second) }, body.next());
    assert_eq!(next.unwrap().unwrap(), "one\n");
}

#[tokio::test(start_paused = true)]
async fn kube_watch_reads_a_tear_as_an_error_and_its_reopening_is_refused() {
    let faults = Faults::new();
    let (client, events) = watching(&faults);
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let mut stream = maps.watch(&WatchParams::default(), "7").await.unwrap().boxed();
    let event = format!("{{\"type\":\"ADDED\",\"object\":{MAP}}}\n");
    events.unbounded_send(Bytes::from(event)).unwrap();
    assert!(matches!(stream.next().await, Some(Ok(WatchEvent::Added(_)))));
    faults.tear_watches("configmaps");
    assert!(matches!(stream.next().await, Some(Err(Error::ReadEvents(_)))));

    faults.refuse(Calls::watch("configmaps"), ApiError::expired());
    let Err(refused) = maps.watch(&WatchParams::default(), "7").await else { panic!("opened") };
    assert!(matches!(&refused, Error::Api(status) if status.code == 410), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn error_passes_unchanged_through_a_client_over_a_client() {
    let inner = Faults::new();
    let (client, _) = {
        let (maps, done) = answering(&inner);
        (maps.into_client(), done)
    };
    let outer = Faults::new();
    let maps = Api::<ConfigMap>::default_namespaced(outer.client(client));
    inner.refuse(Calls::get("configmaps"), ApiError::forbidden());
    let refused = maps.get("m").await.unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.is_forbidden()), "{refused}");
    maps.get("m").await.unwrap();
    assert_eq!(outer.count(Verb::Get, "configmaps"), 2);
}

#[tokio::test(start_paused = true)]
async fn request_counts_of_many_clients_and_resources_are_bounded() {
    let faults = Faults::seeded(1);
    let answer = |_: Request<Full<Bytes>>| async {
        Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::default()))
    };
    let mut service = faults.layer().layer(service_fn(answer));
    for n in 0..10_000 {
        let request = Request::get(format!("/api/v1/r{n}")).header("user-agent", format!("c{n}/1"));
        service.call(request.body(Full::default()).unwrap()).await.unwrap();
    }
    let long = Request::get(format!("/api/v1/{}", "x".repeat(60_000)));
    service.call(long.body(Full::default()).unwrap()).await.unwrap();
    let requests = faults.requests();
    assert_eq!(requests.len(), 4097);
    assert_eq!(requests[&(Verb::Other, "others".to_owned())], 10_000 - 4096 + 1);
    assert_eq!(faults.count(Verb::List, "r7"), 1);
}

#[tokio::test(start_paused = true)]
async fn rule_counts_hits_and_not_faults_that_an_older_rule_prevents() {
    let faults = Faults::new();
    let (maps, _) = answering(&faults);
    let first = faults.refuse(Calls::get("configmaps"), ApiError::unavailable());
    let prevented = faults.lose_reply(Calls::get("configmaps"));
    let second = faults.lose_reply(Calls::get("configmaps").nth(2));
    let unsuitable = faults.drop_bookmarks(Calls::on("configmaps").always());
    maps.get("m").await.unwrap_err();
    assert_eq!((first.hits(), second.hits(), second.matches()), (1, 0, 1));
    maps.get("m").await.unwrap_err();
    assert_eq!((first.hits(), prevented.hits(), second.hits()), (1, 0, 1));
    assert_eq!((unsuitable.hits(), unsuitable.matches()), (0, 2));
    second.assert_hit();
}

#[tokio::test(start_paused = true)]
async fn chaos_rule_is_hit_when_a_fault_takes_effect() {
    let faults = Faults::new();
    let (maps, _) = answering(&faults);
    let never = faults.chaos(Calls::any(), Chaos::of(0.0));
    let always = faults.chaos(Calls::any(), Chaos::of(0.0).with(FaultClass::Refused, 1.0));
    maps.get("m").await.unwrap_err();
    assert_eq!((never.hits(), always.hits()), (0, 1));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "2 faults were never injected:
  reply lost, for create configmaps by controller, from number 3 (0 requests matched)
  crash of controller before mutating call 5 (0 mutating calls so far)")]
async fn assertion_names_every_fault_that_was_not_injected() {
    let faults = Faults::new();
    let (maps, _) = answering(&faults);
    faults.refuse(Calls::get("configmaps"), ApiError::unavailable());
    faults.lose_reply(Calls::create("configmaps").by("controller").nth(3));
    drop(faults.crash_at("controller", CrashPoint::Before(5)));
    maps.get("m").await.unwrap_err();
    faults.heal();
    faults.assert_all_hit();
}

/// Sends three lines, the last one later. Returns the text of a watch, and the time that it took.
async fn three_lines(faults: &Faults) -> (String, Duration) {
    let (client, sender) = watching(faults);
    let body = watch(&client).await;
    let send = async {
        sender.unbounded_send(Bytes::from_static(b"{\"a\":1}\n{\"b\":2}\n")).unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        sender.unbounded_send(Bytes::from_static(b"{\"c\":3}\n")).unwrap();
        drop(sender);
    };
    let start = Instant::now();
    let ((text, is_complete), ()) = futures::join!(drain(body), send);
    assert!(is_complete);
    (text, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn held_event_arrives_late_with_those_behind_it() {
    for (nth, expected) in [(1, 10), (2, 10), (3, 14), (4, 4)] {
        let faults = Faults::new();
        faults.hold_event("configmaps", nth, Duration::from_secs(10));
        let (text, time) = three_lines(&faults).await;
        assert_eq!(text, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
        assert_eq!(time, Duration::from_secs(expected), "event {nth}");
        assert_eq!(faults.trace().faults(), usize::from(nth < 4));
    }
}

#[tokio::test(start_paused = true)]
async fn lost_event_ends_the_watch_with_410_after_the_pause() {
    let faults = Faults::new();
    faults.trace_traffic();
    faults.lose_events("configmaps", 2, Duration::from_secs(10));
    let (text, time) = three_lines(&faults).await;
    let (first, rest) = text.split_once('\n').unwrap();
    assert_eq!(first, "{\"a\":1}");
    assert!(rest.starts_with("{\"type\":\"ERROR\"") && rest.contains("410"), "{rest}");
    assert_eq!(time, Duration::from_secs(10));
    assert_eq!(faults.trace().events_by("").get("configmaps"), Some(&1));
    let fault = "watch configmaps in default: loses event 2 and those of the next 10s";
    assert!(faults.trace().messages().contains(&fault), "{}", faults.trace());
}

#[test]
fn assertion_holds_when_every_rule_has_hit() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let faults = Faults::new();
        let (maps, _) = answering(&faults);
        faults.assert_all_hit();
        for _ in 0..100 {
            faults.refuse(Calls::get("configmaps"), ApiError::unavailable());
            maps.get("m").await.unwrap_err();
        }
        faults.assert_all_hit();
        assert!(faults.shared.state.lock().unhit().is_empty());
    });
}

#[tokio::test(start_paused = true)]
async fn held_watches_and_partitions_that_affect_nothing_are_reported() {
    let faults = Faults::new();
    let (maps, _) = answering(&faults);
    let unhit = || faults.shared.state.lock().unhit();
    let held = faults.hold_watches(Calls::watch("configmaps").by("controler"));
    drop(held);
    drop(faults.partition("controler", Lost::Requests));
    let of_holds = "events held, for watch configmaps by controler (0 watches matched)";
    let of_partition = "partitioned: requests are lost, for controler (0 requests matched)";
    assert_eq!(unhit(), [of_holds, of_partition]);

    let _partition = faults.partition("", Lost::Replies);
    timeout(Duration::from_secs(1), maps.get("m")).await.unwrap_err();
    assert_eq!(unhit().len(), 2, "this one has hit");
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_open_or_opens_is_a_hit_of_a_hold_and_of_a_partition() {
    for is_open in [true, false] {
        let faults = Faults::new();
        let (client, _events) = watching(&faults);
        let mut bodies = Vec::new();
        if is_open {
            bodies.push(watch(&client).await);
        }
        let held = faults.hold_watches("configmaps");
        if is_open {
            drop(faults.partition("", Lost::Requests));
        } else {
            bodies.push(watch(&client).await);
        }
        drop(held);
        faults.assert_all_hit();
    }
}

#[test]
#[should_panic(expected = "no resource \"configmap\": use the plural \"configmaps\"")]
fn rule_for_a_singular_resource_is_refused() {
    Faults::new().lose_reply(Calls::create("configmap"));
}

#[test]
#[should_panic(expected = "no resource \"pod\": use the plural \"pods\"")]
fn command_for_a_singular_resource_is_refused() {
    Faults::new().tear_watches("pod");
}

#[test]
#[should_panic(expected = "no resource \"cm\": use the plural \"configmaps\"")]
fn selector_that_excludes_a_short_name_is_refused() {
    Faults::new().hang(Calls::mutating().except("cm"));
}

#[test]
#[should_panic(expected = "the server has no resource \"widgets\"")]
fn rule_for_a_resource_that_the_server_does_not_serve_is_refused() {
    let faults = Faults::new();
    faults.hang(Calls::on("widgets"));
    faults.restrict_resources([("pods", vec!["pod"])]);
    faults.hang(Calls::on("widgets"));
}

#[test]
fn heal_clears_the_rules_of_a_rule_set() {
    let faults = Faults::new();
    let rules = faults.rule_set::<&str>();
    rules.add(Calls::create("pods").always(), "fault");
    let hits = || {
        let info = RequestInfo::parse(&Method::POST, "/api/v1/namespaces/a/pods", "");
        rules.hits(|| (ClientName::default(), info, None)).iter().map(Hit::count).count()
    };
    assert_eq!(hits(), 1);
    faults.heal();
    assert_eq!(hits(), 0);
    rules.add(Calls::create("pods"), "fault");
    assert_eq!(hits(), 1);
    faults.assert_all_hit();
}
