use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, channel::mpsc, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Api, Error, api::PostParams};
use kube_core::{WatchEvent, params::WatchParams};
use tokio::time::{Instant, timeout};
use tower::{Service as _, service_fn};

use super::*;

const MAP: &str =
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","resourceVersion":"7"}}"#;

/// A client whose every request is answered with `MAP`, and how many requests were carried out.
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

/// A client whose watches deliver what is sent through the returned channel.
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

/// All that a stream delivers until its end, and whether that end was clean.
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
async fn a_lost_reply_means_a_request_that_was_carried_out() {
    let faults = Faults::new();
    let (maps, done) = answering(&faults);
    faults.lose_reply(Calls::create("configmaps").nth(2));

    maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
    let lost = maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap_err();
    maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();

    assert!(is_io(&lost, std::io::ErrorKind::ConnectionReset), "{lost:?}");
    assert_eq!(done.load(Ordering::SeqCst), 3);
    assert_eq!(faults.trace().words(), ["create configmaps in default: reply lost (200 OK)"]);
    assert_eq!(faults.count(Verb::Create, "configmaps"), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_dropped_refused_or_hangs_is_never_sent() {
    let faults = Faults::new();
    let (maps, done) = answering(&faults);
    faults.drop_request(Calls::get("configmaps"));
    faults.refuse(
        Calls::get("configmaps").nth(2),
        Refusal::too_many_requests(Duration::from_millis(1500)),
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
        faults.trace().words(),
        [
            "get configmaps default/m: request dropped",
            "get configmaps default/m: refused with 429 TooManyRequests",
            "get configmaps default/m: request never answered",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn every_refusal_is_read_by_kube_as_what_it_says() {
    let refusals = [
        (Refusal::unauthorized(), 401),
        (Refusal::forbidden(), 403),
        (Refusal::not_found(), 404),
        (Refusal::conflict(), 409),
        (Refusal::already_exists(), 409),
        (Refusal::expired(), 410),
        (Refusal::invalid(), 422),
        (Refusal::internal_error(), 500),
        (Refusal::unavailable(), 503),
        (Refusal::timeout(), 504),
    ];
    let faults = Faults::new();
    let (maps, _) = answering(&faults);
    for (refusal, code) in refusals {
        let words = refusal.to_string();
        faults.refuse(Calls::any(), refusal);
        let Error::Api(status) = maps.get("m").await.unwrap_err() else { panic!("not a Status") };
        assert_eq!(format!("{} {}", status.code, status.reason), words);
        assert_eq!(status.code, code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_delayed_reply_comes_later_and_healing_ends_it() {
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
async fn a_torn_watch_delivers_half_a_line_and_an_error() {
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
    assert!(events.is_closed(), "the transport's stream is dropped");
    assert_eq!(
        faults.trace().words(),
        ["watch configmaps in default: reset in the middle of a line"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_waits_is_woken_to_end() {
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
async fn an_expired_watch_is_told_so_in_the_stream_between_two_events() {
    let faults = Faults::new();
    let (client, events) = watching(&faults);
    let mut body = watch(&client).await.into_data_stream();
    // The second event is not complete yet, and never will be.
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
async fn an_injected_line_comes_between_events_and_loses_none() {
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
async fn held_watches_deliver_everything_once_released() {
    let faults = Faults::new();
    let (client, events) = watching(&faults);
    let held = faults.hold_watches("configmaps");
    let again = faults.hold_watches("*");
    // Opened while held.
    let mut body = watch(&client).await.into_data_stream();
    events.unbounded_send(Bytes::from_static(b"one\n")).unwrap();
    timeout(Duration::from_secs(60), body.next()).await.unwrap_err();
    drop(held);
    timeout(Duration::from_secs(60), body.next()).await.unwrap_err();
    let ((), next) = tokio::join!(async { drop(again) }, body.next());
    assert_eq!(next.unwrap().unwrap(), "one\n");
}

#[tokio::test(start_paused = true)]
async fn kubes_own_watch_reads_a_tear_as_an_error_and_the_next_open_can_be_refused() {
    let faults = Faults::new();
    let (client, events) = watching(&faults);
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let mut stream = maps.watch(&WatchParams::default(), "7").await.unwrap().boxed();
    let event = format!("{{\"type\":\"ADDED\",\"object\":{MAP}}}\n");
    events.unbounded_send(Bytes::from(event)).unwrap();
    assert!(matches!(stream.next().await, Some(Ok(WatchEvent::Added(_)))));
    faults.tear_watches("configmaps");
    assert!(matches!(stream.next().await, Some(Err(Error::ReadEvents(_)))));

    faults.refuse(Calls::watch("configmaps"), Refusal::expired());
    let Err(refused) = maps.watch(&WatchParams::default(), "7").await else { panic!("opened") };
    assert!(matches!(&refused, Error::Api(status) if status.code == 410), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_client_over_a_client_keeps_errors_what_they_are() {
    let inner = Faults::new();
    let (client, _) = {
        let (maps, done) = answering(&inner);
        (maps.into_client(), done)
    };
    let outer = Faults::new();
    let maps = Api::<ConfigMap>::default_namespaced(outer.client(client));
    inner.refuse(Calls::get("configmaps"), Refusal::forbidden());
    let refused = maps.get("m").await.unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.is_forbidden()), "{refused}");
    maps.get("m").await.unwrap();
    assert_eq!(outer.count(Verb::Get, "configmaps"), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_ever_anew_by_ever_new_clients_is_not_kept_for_ever() {
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
