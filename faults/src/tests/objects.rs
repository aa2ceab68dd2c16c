//! Rules that look at objects: at those in request bodies, and at the events of single ones.

use kube_client::api::{Patch, PatchParams};
use serde_json::json;
use tokio::task::yield_now;

use super::*;
use crate::ObjectEvents;

/// Returns an event of a config map. The number makes it recognizable.
fn event(kind: &str, name: &str, number: u32) -> Bytes {
    let object = json!({"metadata": {"name": name, "labels": {"app": name}}, "n": number});
    Bytes::from(format!("{}\n", json!({"type": kind, "object": object})))
}

/// Reads the events that have arrived: names and numbers.
async fn read(stream: &mut (impl futures::Stream<Item = Result<Bytes, Error>> + Unpin)) -> String {
    let mut read = Vec::new();
    while let Ok(Some(piece)) = timeout(Duration::from_millis(1), stream.next()).await {
        for line in piece.unwrap().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: serde_json::Value = serde_json::from_slice(line).unwrap();
            let object = &event["object"];
            read.push(format!("{}{}", object["metadata"]["name"].as_str().unwrap(), object["n"]));
        }
    }
    read.join(" ")
}

fn stream(body: Body) -> impl futures::Stream<Item = Result<Bytes, Error>> + Unpin {
    Box::pin(
        body.into_data_stream().map(|piece| piece.map_err(|error| Error::Service(error.into()))),
    )
}

#[tokio::test(start_paused = true)]
async fn body_of_a_request_selects_it() {
    let faults = Faults::new();
    let (maps, done) = answering(&faults);
    let labelled = faults.refuse(
        Calls::create("configmaps").labelled("app", "web").always(),
        ApiError::unavailable(),
    );
    let patched = faults.lose_reply(Calls::patch("configmaps").with_field("/data/a", "2"));
    let map = |app: &str| serde_json::from_value(json!({"metadata": {"labels": {"app": app}}}));
    maps.create(&PostParams::default(), &map("db").unwrap()).await.unwrap();
    maps.create(&PostParams::default(), &map("web").unwrap()).await.unwrap_err();
    for (value, is_lost) in [("1", false), ("2", true)] {
        let patch = Patch::Merge(json!({"data": {"a": value}}));
        assert_eq!(maps.patch("m", &PatchParams::default(), &patch).await.is_err(), is_lost);
    }
    assert_eq!((labelled.matches(), labelled.hits(), patched.hits()), (1, 1, 1));
    assert_eq!(done.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn delayed_event_of_one_object_is_passed_by_others() {
    let faults = Faults::new();
    let (client, sender) = watching(&faults);
    let mut events = stream(watch(&client).await);
    // The rule also applies to the open watch.
    let pause = Duration::from_secs(10);
    let rule = faults.delay_object_events("configmaps", ObjectEvents::of("a").nth(2), pause);
    let all = [("a", 1), ("a", 2), ("b", 3), ("a", 4)];
    let lines: Vec<Bytes> = all.map(|(name, n)| event("MODIFIED", name, n)).to_vec();
    sender.unbounded_send(lines.concat().into()).unwrap();
    assert_eq!(read(&mut events).await, "a1 b3");
    tokio::time::sleep(pause).await;
    assert_eq!(read(&mut events).await, "a2 a4");
    assert_eq!((rule.matches(), rule.hits()), (2, 1), "counting ends with the last hit");
    assert!(!faults.shared.object_rules.is_active());
    let trace = faults.trace();
    assert_eq!(trace.messages(), ["watch configmaps in default: delay by 10s of MODIFIED a"]);
}

#[tokio::test(start_paused = true)]
async fn held_events_arrive_after_the_guard_is_dropped_even_if_the_watch_ends() {
    let faults = Faults::new();
    let (client, sender) = watching(&faults);
    let mut events = stream(watch(&client).await);
    let held = faults.hold_object_events("configmaps", ObjectEvents::any().labelled("app", "a"));
    for line in [event("ADDED", "a", 1), event("ADDED", "b", 2), event("MODIFIED", "a", 3)] {
        sender.unbounded_send(line).unwrap();
    }
    drop(sender);
    faults.heal();
    assert_eq!(read(&mut events).await, "b2");
    timeout(Duration::from_secs(60), events.next()).await.unwrap_err();
    assert_eq!(held.rule().hits(), 2);
    let release = async {
        yield_now().await;
        drop(held);
    };
    let ((), first) = futures::join!(release, events.next());
    assert_eq!(first.unwrap().unwrap(), event("ADDED", "a", 1));
    assert_eq!(read(&mut events).await, "a3");
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn events_of_one_object_are_repeated_and_swapped() {
    let faults = Faults::new();
    let (client, sender) = watching(&faults);
    let mut events = stream(watch(&client).await);
    faults.repeat_object_events("configmaps", ObjectEvents::of("a").of_type("ADDED"));
    faults.swap_object_events("configmaps", ObjectEvents::of("a").of_type("MODIFIED"));
    let of_a = ["ADDED", "MODIFIED", "DELETED"].into_iter().zip([1, 2, 3]);
    for (kind, number) in of_a {
        sender.unbounded_send(event(kind, "a", number)).unwrap();
        sender.unbounded_send(event(kind, "b", number)).unwrap();
    }
    assert_eq!(read(&mut events).await, "a1 a1 b1 b2 a3 a2 b3");
    faults.assert_all_hit();
}

#[tokio::test(start_paused = true)]
async fn client_crashes_at_a_read() {
    let faults = Faults::new();
    let (maps, done) = answering(&faults);
    maps.create(&PostParams::default(), &ConfigMap::default()).await.unwrap();
    let crash = faults.crash_at("", CrashPoint::BeforeRead(2));
    maps.get("m").await.unwrap();
    timeout(Duration::from_secs(60), maps.get("m")).await.unwrap_err();
    assert!(crash.is_reached());
    assert_eq!(done.load(Ordering::SeqCst), 2);
    let trace = faults.trace();
    assert_eq!(trace.messages(), ["get configmaps default/m: client crashes before this call"]);
}

#[tokio::test(start_paused = true)]
async fn client_crashes_at_an_event_and_does_not_get_it() {
    let faults = Faults::new();
    let (client, sender) = watching(&faults);
    let mut events = stream(watch(&client).await);
    let crash = faults.crash_at("", CrashPoint::AtEvent(3));
    let all = [("a", 1), ("b", 2), ("c", 3), ("d", 4)];
    let lines: Vec<Bytes> = all.map(|(name, n)| event("ADDED", name, n)).to_vec();
    sender.unbounded_send(lines.concat().into()).unwrap();
    assert_eq!(read(&mut events).await, "a1 b2");
    assert!(crash.is_reached());
    timeout(Duration::from_secs(60), events.next()).await.unwrap_err();
    assert_eq!(
        faults.trace().messages(),
        ["watch configmaps in default: client crashes at this event"]
    );
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "3 faults were never injected:
  delay by 1s of events of a, for watch configmaps (0 events matched)
  crash of me after read 2 (0 reads so far)
  crash of me at event 4 (0 events so far)")]
async fn assertion_names_events_and_reads_that_were_not_hit() {
    let faults = Faults::new();
    let pause = Duration::from_secs(1);
    faults.delay_object_events("configmaps", ObjectEvents::of("a"), pause);
    drop(faults.crash_at("me", CrashPoint::AfterRead(2)));
    drop(faults.crash_at("me", CrashPoint::AtEvent(4)));
    faults.assert_all_hit();
}
