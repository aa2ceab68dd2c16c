//! A fault that counts as injected was injected.

use std::future;

use super::*;

/// Returns a client whose requests get the answers of a function.
fn serving<A>(faults: &Faults, answer: impl Fn() -> A + Clone + Send + 'static) -> Api<ConfigMap>
where
    A: Future<Output = Result<Response<Full<Bytes>>, BoxError>> + Send + 'static,
{
    let server = service_fn(move |_: Request<Body>| answer());
    Api::default_namespaced(Client::new(faults.layer().layer(server), "default"))
}

#[tokio::test(start_paused = true)]
async fn client_crashes_after_a_call_that_the_transport_fails() {
    let faults = Faults::new();
    let crash = faults.crash_at("", CrashPoint::After(1));
    let maps = serving(&faults, || async { Err("the server restarts".into()) });
    let (params, map) = (PostParams::default(), ConfigMap::default());
    timeout(Duration::from_secs(60), maps.create(&params, &map)).await.unwrap_err();
    assert!(crash.is_reached());
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "crash of  after mutating call 1 (1 mutating calls so far)")]
async fn crash_at_a_call_that_was_given_up_is_reported() {
    let faults = Faults::new();
    let crash = faults.crash_at("", CrashPoint::After(1));
    let maps = serving(&faults, future::pending);
    let (params, map) = (PostParams::default(), ConfigMap::default());
    timeout(Duration::from_secs(60), maps.create(&params, &map)).await.unwrap_err();
    assert!(!crash.is_reached());
    faults.assert_all_hit();
}

#[tokio::test(start_paused = true)]
async fn late_reply_does_not_reach_a_client_that_has_crashed_meanwhile() {
    let faults = Faults::new();
    faults.delay_reply(Calls::get("configmaps"), Duration::from_secs(10));
    let crash = faults.crash_at("", CrashPoint::Before(1));
    let (maps, _) = answering(&faults);
    let (params, map) = (PostParams::default(), ConfigMap::default());
    let create = timeout(Duration::from_secs(60), maps.create(&params, &map));
    let (read, write) = futures::join!(timeout(Duration::from_secs(60), maps.get("m")), create);
    write.unwrap_err();
    assert!(crash.is_reached());
    read.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn several_faults_of_one_kind_hit_one_watch() {
    let faults = Faults::new();
    faults.hold_event("configmaps", 1, Duration::from_secs(10));
    faults.hold_event("configmaps", 2, Duration::from_secs(15));
    let (text, time) = three_lines(&faults).await;
    assert_eq!((text.lines().count(), time), (3, Duration::from_secs(15)));

    let faults = Faults::new();
    faults.corrupt_watches("configmaps", 9);
    faults.corrupt_watches("configmaps", 1);
    let (client, events) = watching(&faults);
    let body = watch(&client).await;
    events.unbounded_send(Bytes::from_static(b"{\"a\":1}\n{\"b\":2}\n")).unwrap();
    drop(events);
    let bytes = body.collect().await.unwrap().to_bytes();
    assert_eq!((bytes[1], bytes[9]), (0xff, 0xff));

    let faults = Faults::new();
    faults.break_watches("configmaps", Cut::Events(3), Break::Reset);
    faults.break_watches("configmaps", Cut::Events(1), Break::End);
    let (client, events) = watching(&faults);
    let body = watch(&client).await;
    events.unbounded_send(Bytes::from_static(b"one\ntwo\nthree\n")).unwrap();
    assert_eq!(drain(body).await, ("one\n".to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn fault_of_a_watch_that_the_server_refuses_counts_no_hit() {
    let faults = Faults::new();
    let (client, _events) = watching(&faults);
    let refused = faults.refuse(Calls::watch("configmaps"), ApiError::expired());
    let broken = faults.break_watches("configmaps", Cut::Events(0), Break::End);
    watch(&client).await;
    assert_eq!((refused.hits(), broken.hits(), broken.matches()), (1, 0, 1));
    let broken = faults.break_watches("configmaps", Cut::Events(0), Break::End);
    drain(watch(&client).await).await;
    assert_eq!(broken.hits(), 1);
}

#[tokio::test(start_paused = true)]
async fn fault_at_a_position_of_a_watch_counts_once_the_watch_is_there() {
    let faults = Faults::new();
    let rules = [
        faults.corrupt_watches("configmaps", 5),
        faults.hold_event("configmaps", 3, Duration::from_secs(1)),
        faults.break_watches("configmaps", Cut::Bytes(14), Break::Reset),
        // The watch breaks before.
        faults.corrupt_watches("configmaps", 15),
        faults.break_watches("configmaps", Cut::Events(4), Break::End),
    ];
    let hits = || rules.each_ref().map(FaultRule::hits);
    let (client, sender) = watching(&faults);
    let mut events = watch(&client).await.into_data_stream();
    assert_eq!(hits(), [0, 0, 0, 0, 0]);
    sender.unbounded_send(Bytes::from_static(b"one\n")).unwrap();
    events.next().await.unwrap().unwrap();
    assert_eq!(hits(), [0, 0, 0, 0, 0]);
    sender.unbounded_send(Bytes::from_static(b"two\n")).unwrap();
    events.next().await.unwrap().unwrap();
    assert_eq!(hits(), [1, 0, 0, 0, 0]);
    sender.unbounded_send(Bytes::from_static(b"three, and more\n")).unwrap();
    assert_eq!(events.next().await.unwrap().unwrap(), "three,");
    events.next().await.unwrap().unwrap_err();
    assert_eq!(hits(), [1, 1, 1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn fault_of_a_reply_that_does_not_arrive_counts_no_hit() {
    let faults = Faults::new();
    let maps = serving(&faults, || async { Err("the server restarts".into()) });
    let rules = [
        faults.lose_reply(Calls::get("configmaps")),
        faults.delay_reply(Calls::get("configmaps").nth(2), Duration::from_secs(1)),
    ];
    for _ in &rules {
        maps.get("m").await.unwrap_err();
    }
    assert_eq!(rules.map(|rule| (rule.matches(), rule.hits())), [(1, 0), (2, 0)]);
}

#[tokio::test(start_paused = true)]
async fn failure_of_the_transport_does_not_pass_a_partition() {
    let faults = Faults::new();
    let maps = serving(&faults, || async { Err("the server restarts".into()) });
    let _partition = faults.partition("", Lost::Replies);
    timeout(Duration::from_secs(60), maps.get("m")).await.unwrap_err();
    faults.assert_all_hit();
    let message = "get configmaps default/m: reply withheld (the server restarts)";
    assert_eq!(faults.trace().messages()[1..], [message]);
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_stalled_is_not_hit_by_later_faults() {
    let faults = Faults::new();
    let stalled = faults.break_watches("configmaps", Cut::Events(0), Break::Stall);
    let (client, _sender) = watching(&faults);
    let mut events = watch(&client).await.into_data_stream();
    timeout(Duration::from_secs(60), events.next()).await.unwrap_err();
    stalled.assert_hit();
    assert_eq!((faults.open_watches("*"), faults.tear_watches("*")), (1, 0));
    drop(faults.hold_watches("*"));
    let held = "events held, for watch * (0 watches matched)";
    assert_eq!(faults.shared.state.lock().unhit(), [held]);
}

#[tokio::test(start_paused = true)]
async fn watch_of_a_crashed_client_is_not_torn_instead_of_that_of_its_successor() {
    let faults = Faults::new();
    let crash = faults.crash_at("", CrashPoint::AtEvent(1));
    let (client, sender) = watching(&faults);
    let mut left = watch(&client).await.into_data_stream();
    sender.unbounded_send(Bytes::from_static(b"one\n")).unwrap();
    timeout(Duration::from_secs(60), left.next()).await.unwrap_err();
    assert!(crash.is_reached());
    let (successor, _sender) = watching(&faults);
    let body = watch(&successor).await;
    assert_eq!(faults.tear_watches(Calls::watch("configmaps").times(1)), 1);
    assert!(!drain(body).await.1);
    assert_eq!(faults.tear_watches("*"), 0);
}

#[tokio::test(start_paused = true)]
async fn conflicting_write_that_fails_is_no_conflict() {
    let faults = Faults::new();
    let (maps, _) = answering(&faults);
    let writer = Faults::new();
    let (others_maps, _) = answering(&writer);
    writer.refuse(Calls::patch("configmaps"), ApiError::not_found());
    let rule = faults.write_first(Calls::delete("configmaps").always(), others_maps.into_client());
    for _ in 0..2 {
        drop(maps.delete("m", &kube_client::api::DeleteParams::default()).await);
    }
    assert_eq!((rule.matches(), rule.hits()), (2, 1));
    assert_eq!(
        faults.trace().messages(),
        [
            "delete configmaps default/m: another client could not write first (404 Not Found)",
            "delete configmaps default/m: another client wrote first",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn log_that_is_followed_is_read_while_it_grows() {
    for disturb in [
        |faults: &Faults| faults.trace_traffic(),
        |faults: &Faults| {
            drop(faults.delay_reply(Calls::any(), Duration::from_secs(1)));
        },
    ] {
        let faults = Faults::new();
        disturb(&faults);
        let (client, lines) = watching(&faults);
        let request = Request::get("/api/v1/namespaces/default/pods/p/log?&f%6Fllow=True");
        let request = request.body(Body::empty()).unwrap();
        let reply = timeout(Duration::from_secs(60), client.send(request)).await.unwrap().unwrap();
        lines.unbounded_send(Bytes::from_static(b"one\n")).unwrap();
        let first = reply.into_body().into_data_stream().next().await.unwrap().unwrap();
        assert_eq!(first, "one\n");
    }
}

#[tokio::test(start_paused = true)]
async fn client_crashes_after_it_has_begun_to_follow_a_log() {
    let faults = Faults::new();
    let crash = faults.crash_at("", CrashPoint::AfterRead(1));
    let (client, _lines) = watching(&faults);
    let request = Request::get("/api/v1/namespaces/default/pods/p/log?follow=true");
    let request = request.body(Body::empty()).unwrap();
    timeout(Duration::from_secs(60), client.send(request)).await.unwrap_err();
    assert!(crash.is_reached());
}

#[tokio::test(start_paused = true)]
async fn two_rewinds_that_go_too_far_together_count_once() {
    let faults = Faults::new();
    let (client, _lines) = watching(&faults);
    let rules = [(); 2].map(|()| faults.rewind_watches("configmaps", 4));
    let uri = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=7";
    client.send(Request::get(uri).body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(rules.map(|rule| rule.hits()), [1, 0]);
    let message = "watch configmaps in default: watch starts 4 revisions earlier";
    assert_eq!(faults.trace().messages(), [message]);
}
