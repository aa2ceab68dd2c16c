//! What client-go 0.37 and kube-runtime 5 do wrong: each test fails on an implementation with that fault.

use std::{sync::Arc, time::Duration};

use homeostat_informer::{Refusal, WatchError};
use tokio::time::Instant;

use crate::server::*;

/// client-go: a watch for the whole state that ends without its last bookmark is opened again at once, for ever
/// (kubernetes#140890).
#[tokio::test(start_paused = true)]
async fn whole_state_by_watch_that_never_completes_ends_in_a_list() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.apply(pod("a", "1"));
    settle().await;
    watch.close();
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
    list_of(request).serve([pod("a", "1")], "5");
    assert!(informer.synced().await);
}

/// client-go: a server that never says that the state is complete is waited for, for ever (k9s#4186).
#[tokio::test(start_paused = true)]
async fn missing_bookmark_costs_half_a_minute() {
    let (server, informer) = start(1);
    let _watch = server.expect_watch().await.open();
    let begin = Instant::now();
    server.expect_list().await.serve([pod("a", "1")], "5");
    assert!(informer.synced().await);
    assert!(begin.elapsed() <= Duration::from_secs(31));
}

/// client-go: an object that was deleted and made again while nobody watched is told as an update (kubernetes#133565).
#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name_is_no_update() {
    let (server, informer, watch) = following().await;
    let log = Log::of(&informer);
    watch.end_with(Refusal::new(410, "Expired", ""));
    let mut remade = pod("a", "9");
    remade.metadata.uid = Some("another".into());
    let _watch = watch_of(asked(&server).await.2).serve([remade], "10");
    settle().await;
    let told = [r#"Added("n/a")"#, r#"Deleted("n/a") certain false"#, r#"Added("n/a")"#];
    assert_eq!(log.told(), told);
}

/// kube-runtime: what cannot be decoded is skipped, and the next good event moves the place past it.
#[tokio::test(start_paused = true)]
async fn event_that_cannot_be_read_is_not_skipped() {
    let (server, informer, watch) = following().await;
    watch.fail(WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() });
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, r#"watch Some("5")"#);
    let watch = open(request);
    watch.apply(pod("b", "6"));
    watch.apply(pod("c", "7"));
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b6", "c7"]);
}

/// kube-runtime: what vanished between two lists is never told as deleted. client-go does tell it (kubernetes#83810 was
/// that it did not).
#[tokio::test(start_paused = true)]
async fn what_vanished_between_two_lists_is_told() {
    let (server, informer, watch) = following().await;
    let log = Log::of(&informer);
    // One that only the queue may have seen (kubernetes#115658).
    watch.apply(pod("b", "6"));
    watch.end_with(Refusal::new(410, "Expired", ""));
    let _watch = watch_of(asked(&server).await.2).serve([], "10");
    settle().await;
    let gone = [r#"Deleted("n/a") certain false"#, r#"Deleted("n/b") certain false"#];
    let mut told = log.told();
    told[2..].sort();
    assert_eq!(told[2..], gone);
}

/// kube-runtime: a list that fails page by page starts its back-off over with each first page, and asks 496 times in
/// ten minutes. client-go since 1.36: the back-off starts over every two minutes, although nothing has gone well.
#[tokio::test(start_paused = true)]
async fn server_that_keeps_failing_is_asked_ever_less_often() {
    let (server, _informer) = start(1);
    let begin = Instant::now();
    let mut turns = 0;
    while begin.elapsed() < Duration::from_secs(3600) {
        watch_of(asked(&server).await.2).refuse(Refusal::new(500, "InternalError", ""));
        list_of(asked(&server).await.2).refuse(Refusal::new(500, "InternalError", ""));
        turns += 1;
    }
    assert!((60..130).contains(&turns), "{turns}: with the fault it is about 190");
}

/// client-go: a watch that was closed within a second and without an event causes a new list (kubernetes#138552).
#[tokio::test(start_paused = true)]
async fn short_watch_causes_no_list() {
    let (server, _informer, watch) = following().await;
    watch.close();
    assert_eq!(asked(&server).await.0, r#"watch Some("5")"#);
}

/// client-go: a watch that cannot be opened for another reason than a refused connection causes a new list.
#[tokio::test(start_paused = true)]
async fn server_that_restarts_is_not_listed_by_everybody() {
    let (server, _informer, watch) = following().await;
    watch.tear();
    for code in [500, 503, 504] {
        let (text, _, request) = asked(&server).await;
        assert_eq!(text, r#"watch Some("5")"#);
        watch_of(request).refuse(Refusal::new(code, "", "starting"));
    }
    for _ in 0..10 {
        let (text, _, request) = asked(&server).await;
        assert_eq!(text, r#"watch Some("5")"#);
        drop(request);
    }
}

/// client-go and kube-runtime: while the whole state comes anew, two copies of it are held.
#[tokio::test(start_paused = true)]
async fn whole_state_anew_makes_no_second_copy() {
    let (server, informer, watch) = following().await;
    let cache = informer.lister().get(("n", "a")).unwrap();
    watch.end_with(Refusal::new(410, "Expired", ""));
    let watch = watch_of(asked(&server).await.2).open();
    let again = Arc::new(pod("a", "4"));
    watch.apply(Arc::clone(&again));
    settle().await;
    assert_eq!(Arc::strong_count(&again), 1, "gone before the state is complete");
    watch.send(vec![initial_end("9")]);
    settle().await;
    assert!(Arc::ptr_eq(&cache, &informer.lister().get(("n", "a")).unwrap()));
}
