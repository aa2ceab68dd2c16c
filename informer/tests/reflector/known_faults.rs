//! Faults of client-go 0.37 and kube-runtime 5: each test fails on an implementation with that
//! fault.

use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::list_watch::{ApiError, WatchError};
use tokio::time::Instant;

use crate::server::*;

/// client-go: a `WatchList` that ends without its final bookmark is reopened at once, again and
/// again (kubernetes#140890).
#[tokio::test(start_paused = true)]
async fn watch_list_closed_before_its_bookmark_falls_back_to_list() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.apply(pod("a", "1"));
    settle().await;
    watch.close();
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
    list_of(request).serve([pod("a", "1")], "5");
    assert!(informer.wait_for_sync().await);
}

/// client-go: it has no timeout for a server that never completes the initial list (k9s#4186).
#[tokio::test(start_paused = true)]
async fn missing_final_bookmark_costs_at_most_31_seconds() {
    let (server, informer) = start(1);
    let _watch = server.expect_watch().await.open();
    let start = Instant::now();
    server.expect_list().await.serve([pod("a", "1")], "5");
    assert!(informer.wait_for_sync().await);
    assert!(start.elapsed() <= Duration::from_secs(31));
}

/// client-go: an object that was deleted and recreated between two watches is delivered as an
/// update (kubernetes#133565).
#[tokio::test(start_paused = true)]
async fn recreated_object_is_not_delivered_as_update() {
    let (server, informer, watch) = following().await;
    let log = Log::of(&informer);
    watch.end_with(ApiError::new(410, "Expired", ""));
    let mut remade = pod("a", "9");
    remade.metadata.uid = Some("another".into());
    let _watch = watch_of(next_request(&server).await.2).serve([remade], "10");
    settle().await;
    let events = [r#"Added("n/a")"#, r#"Deleted("n/a") certain false"#, r#"Added("n/a")"#];
    assert_eq!(log.events(), events);
}

/// kube-runtime: an event that does not decode is skipped, and the next event advances the version
/// past it.
#[tokio::test(start_paused = true)]
async fn undecodable_event_is_not_skipped() {
    let (server, informer, watch) = following().await;
    watch.fail(WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() });
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch Some("5")"#);
    let watch = open(request);
    watch.apply(pod("b", "6"));
    watch.apply(pod("c", "7"));
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b6", "c7"]);
}

/// kube-runtime: an object that was deleted between two lists is never delivered as deleted.
/// client-go delivers it (kubernetes#83810 was the bug that it did not).
#[tokio::test(start_paused = true)]
async fn object_deleted_between_two_lists_is_delivered_as_deleted() {
    let (server, informer, watch) = following().await;
    let log = Log::of(&informer);
    // An object that may have been only in the queue (kubernetes#115658).
    watch.apply(pod("b", "6"));
    watch.end_with(ApiError::new(410, "Expired", ""));
    let _watch = watch_of(next_request(&server).await.2).serve([], "10");
    settle().await;
    let gone = [r#"Deleted("n/a") certain false"#, r#"Deleted("n/b") certain false"#];
    let mut events = log.events();
    events[2..].sort();
    assert_eq!(events[2..], gone);
}

/// kube-runtime: each first page resets the back-off, so a server that fails on later pages gets
/// 496 requests in ten minutes. client-go since 1.36: the back-off resets every two minutes, also
/// without a success.
#[tokio::test(start_paused = true)]
async fn failing_server_is_retried_with_growing_backoff() {
    let (server, _informer) = start(1);
    let start = Instant::now();
    let mut turns = 0;
    while start.elapsed() < Duration::from_secs(3600) {
        watch_of(next_request(&server).await.2).refuse(ApiError::new(500, "InternalError", ""));
        list_of(next_request(&server).await.2).refuse(ApiError::new(500, "InternalError", ""));
        turns += 1;
    }
    assert!((60..130).contains(&turns), "{turns}: with the fault about 190");
}

/// client-go: a watch that closes within a second and without an event causes a relist
/// (kubernetes#138552).
#[tokio::test(start_paused = true)]
async fn short_watch_causes_no_relist() {
    let (server, _informer, watch) = following().await;
    watch.close();
    assert_eq!(next_request(&server).await.0, r#"watch Some("5")"#);
}

/// client-go: a watch that cannot be opened for another reason than a refused connection causes a
/// relist.
#[tokio::test(start_paused = true)]
async fn restarting_server_is_not_relisted() {
    let (server, _informer, watch) = following().await;
    watch.tear();
    for code in [500, 503, 504] {
        let (text, _, request) = next_request(&server).await;
        assert_eq!(text, r#"watch Some("5")"#);
        watch_of(request).refuse(ApiError::new(code, "", "starting"));
    }
    for _ in 0..10 {
        let (text, _, request) = next_request(&server).await;
        assert_eq!(text, r#"watch Some("5")"#);
        drop(request);
    }
}

/// client-go and kube-runtime: during a relist, two copies of the objects are held.
#[tokio::test(start_paused = true)]
async fn relist_holds_no_second_copy() {
    let (server, informer, watch) = following().await;
    let cache = informer.lister().get(("n", "a")).unwrap();
    watch.end_with(ApiError::new(410, "Expired", ""));
    let watch = watch_of(next_request(&server).await.2).open();
    let again = Arc::new(pod("a", "4"));
    watch.apply(Arc::clone(&again));
    settle().await;
    assert_eq!(Arc::strong_count(&again), 1, "dropped before the list is complete");
    watch.send(vec![initial_end("9")]);
    settle().await;
    assert!(Arc::ptr_eq(&cache, &informer.lister().get(("n", "a")).unwrap()));
}
