//! Faults of a server, played by a script under a paused clock: the next request, its delay, and
//! the cache.
//!
//! `rows.rs` has one test for each fault of the catalogue; `known_faults.rs` has faults of
//! client-go and kube-runtime.

mod known_faults;
mod rows;
mod server;

use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::list_watch::{ApiError, Decoded, Page, WatchError, WatchEvent};
use homeostat_informer::testing::ScriptedRequest;
use homeostat_informer::{Event, SharedIndexInformer};
use tokio::sync::mpsc;

use self::server::*;

#[tokio::test(start_paused = true)]
async fn initial_list_and_changes_arrive_in_one_watch_stream() {
    let (server, informer) = start(1);
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("watch-list None", Duration::ZERO));
    let watch = open(request);
    watch.apply(pod("a", "1"));
    settle().await;
    assert!(
        !informer.has_synced() && informer.lister().is_empty(),
        "an incomplete list is not applied"
    );
    let end = WatchEvent::Bookmark { resource_version: "5".into(), initial_events_end: true };
    watch.send(vec![end, WatchEvent::Applied(Decoded::Fits(Arc::new(pod("b", "6"))))]);
    assert!(informer.wait_for_sync().await);
    settle().await;
    assert_eq!(
        (cached(&informer.lister()), version(&informer)),
        (vec!["a1".into(), "b6".into()], "6".into())
    );
}

#[tokio::test(start_paused = true)]
async fn torn_watch_resumes_after_last_good_version_without_relist() {
    let (server, informer, watch) = following().await;
    watch.apply(pod("b", "7"));
    settle().await;
    watch.tear();
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), (r#"watch Some("7")"#, Duration::ZERO));
    open(request).delete(pod("a", "8"));
    settle().await;
    assert_eq!(
        (cached(&informer.lister()), version(&informer)),
        (vec!["b7".to_owned()], "8".into())
    );
}

#[tokio::test(start_paused = true)]
async fn closed_watch_is_reopened_at_once_if_it_lived_one_second() {
    let (server, _informer, watch) = following().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    watch.close();
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), (r#"watch Some("5")"#, Duration::ZERO));
    open(request).close();
    let (text, waited, _) = next_request(&server).await;
    assert_eq!(text, r#"watch Some("5")"#);
    assert!(waited >= Duration::from_millis(800), "{waited:?}: hot loop");
}

#[tokio::test(start_paused = true)]
async fn bookmark_advances_version_and_calls_no_handler() {
    let (server, informer, watch) = following().await;
    let subscription = informer.add_handler("count", |event| match event {
        Event::Added { initial: true, .. } => {}
        other => panic!("{other:?}"),
    });
    watch.bookmark("50");
    settle().await;
    assert_eq!((version(&informer), subscription.panics()), ("50".to_owned(), 0));
    watch.tear();
    assert_eq!(next_request(&server).await.0, r#"watch Some("50")"#);
}

#[tokio::test(start_paused = true)]
async fn expired_version_causes_relist_and_missed_changes_are_delivered() {
    let (server, informer, watch) = following().await;
    let (sender, mut events) = mpsc::channel(100);
    let subscription = informer.add_handler("log", move |event| sender.try_send(event).unwrap());
    let before = informer.lister().get(("n", "a")).unwrap();
    watch.apply(pod("b", "7"));
    settle().await;
    watch.end_with(ApiError::new(410, "Expired", "too old"));
    let (text, waited, request) = next_request(&server).await;
    assert_eq!(text, r#"watch-list Some("7")"#);
    assert!(waited >= Duration::from_millis(800), "{waited:?}");
    assert!(informer.last_error().unwrap().to_string().contains("expired: too old"));
    let request = watch_of(request);
    request.refuse(ApiError::new(410, "Expired", "still"));
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("watch-list None", Duration::ZERO));
    let request = watch_of(request);
    let _watch = request.serve([pod("a", "4"), pod("c", "9")], "10");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "c9"]);
    assert!(
        Arc::ptr_eq(&before, &informer.lister().get(("n", "a")).unwrap()),
        "the cached object is kept"
    );
    assert!(informer.last_error().is_none());
    let mut received = Vec::new();
    while let Ok(event) = events.try_recv() {
        received.push(format!("{event:?}"));
        if let Event::Deleted { certain, .. } = event {
            assert!(!certain, "the deletion was not observed");
        }
    }
    let expected = [r#"Added("n/a")"#, r#"Added("n/b")"#, r#"Deleted("n/b")"#, r#"Added("n/c")"#];
    assert_eq!(received, expected);
    subscription.remove().await;
}

#[tokio::test(start_paused = true)]
async fn refused_watch_keeps_cache_and_backs_off_without_relist() {
    for code in [401, 403, 404, 500] {
        let (server, informer, watch) = following().await;
        watch.tear();
        let mut waits = Vec::new();
        for _ in 0..6 {
            let (text, waited, request) = next_request(&server).await;
            assert_eq!(text, r#"watch Some("5")"#);
            waits.push(waited);
            let request = watch_of(request);
            request.refuse(ApiError::new(code, "", "no"));
        }
        assert!((0..).zip(&waits).all(|(step, waited)| is_step(*waited, step)), "{waits:?}");
        assert_eq!(cached(&informer.lister()), ["a4"]);
    }
}

#[tokio::test(start_paused = true)]
async fn forbidden_kind_never_syncs_and_reports_its_error() {
    let (server, informer) = start(1);
    let error = || ApiError::new(403, "Forbidden", "pods is forbidden");
    for _ in 0..3 {
        server.expect_watch().await.refuse(error());
        server.expect_list().await.refuse(error());
    }
    settle().await;
    assert!(!informer.has_synced());
    assert_eq!(
        informer.last_error().unwrap().to_string(),
        "cannot list scripted objects: forbidden: pods is forbidden"
    );
    let _watch = server.expect_watch().await.serve([], "1");
    assert!(informer.wait_for_sync().await && informer.last_error().is_none());
}

#[tokio::test(start_paused = true)]
async fn retry_after_of_busy_server_is_honoured() {
    let (server, _informer, watch) = following().await;
    let busy =
        || ApiError::new(429, "TooManyRequests", "").with_retry_after(Duration::from_secs(20));
    watch.end_with(busy());
    let (text, waited, request) = next_request(&server).await;
    assert!(text == r#"watch Some("5")"# && waited >= Duration::from_secs(20), "{text} {waited:?}");
    let request = watch_of(request);
    request.refuse(busy());
    assert!(next_request(&server).await.1 >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn silent_watch_is_closed_soon_after_its_timeout() {
    let (server, _informer, _watch) = following().await;
    let (text, waited, request) = next_request(&server).await;
    // No bookmark arrived in all that time, so it is unknown whether the version still exists on
    // this server.
    assert_eq!(text, "list None Some(1) None");
    let range = Duration::from_secs(305)..Duration::from_secs(606);
    assert!(range.contains(&waited), "{waited:?}");
    list_of(request).serve([], "3");
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch-list Some("5")"#);
    let request = watch_of(request);
    let requested = request.request().timeout;
    let _watch = request.serve([pod("a", "4")], "5");
    let waited = next_request(&server).await.1;
    assert_eq!(waited.as_secs(), (requested + Duration::from_secs(5)).as_secs());
}

#[tokio::test(start_paused = true)]
async fn unanswered_request_times_out() {
    let (server, _informer) = start(1);
    let unanswered = server.expect_watch().await;
    let (text, waited, _) = next_request(&server).await;
    assert_eq!((text.as_str(), waited.as_secs()), ("list None Some(500) None", 75));
    drop(unanswered);
}

#[tokio::test(start_paused = true)]
async fn watch_list_without_final_bookmark_falls_back_to_list() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.apply(pod("a", "1"));
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited.as_secs()), ("list None Some(500) None", 30));
    let ScriptedRequest::List(list) = request else { panic!() };
    list.serve([pod("a", "1")], "5");
    assert!(informer.wait_for_sync().await);
    assert_eq!(next_request(&server).await.0, r#"watch Some("5")"#);
}

#[tokio::test(start_paused = true)]
async fn watch_list_with_endless_bookmarks_falls_back_to_list() {
    let (server, _informer) = start(1);
    let watch = server.expect_watch().await.open();
    let chat = async {
        loop {
            watch.bookmark("1");
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    };
    tokio::select! {
        biased;
        (text, waited, _) = next_request(&server) => {
            assert_eq!((text.as_str(), waited.as_secs()), ("list None Some(500) None", 120));
        }
        () = chat => {}
    }
}

#[tokio::test(start_paused = true)]
async fn paged_list_is_applied_in_one_step() {
    let (server, informer) = start(1);
    server.expect_watch().await.refuse(ApiError::new(422, "Invalid", "sendInitialEvents"));
    let page = |name: &str, token: Option<&str>| {
        let mut page = Page::new(vec![Decoded::Fits(Arc::new(pod(name, "1")))], "5");
        page.continue_token = token.map(Into::into);
        page
    };
    server.expect_list().await.reply(page("a", Some("more")));
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"list None Some(500) Some("more")"#);
    assert!(informer.lister().is_empty());
    let ScriptedRequest::List(list) = request else { panic!() };
    list.refuse(ApiError::new(410, "Expired", "continue token"));
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("list None None None", Duration::ZERO));
    let ScriptedRequest::List(list) = request else { panic!() };
    list.serve([pod("a", "1"), pod("b", "2")], "6");
    assert!(informer.wait_for_sync().await);
    assert_eq!(cached(&informer.lister()), ["a1", "b2"]);
}

#[tokio::test(start_paused = true)]
async fn corrupt_stream_is_retried_and_relisted_after_three_failures() {
    let (server, _informer, watch) = following().await;
    let corrupt = || WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() };
    watch.fail(corrupt());
    for _ in 0..2 {
        let (text, waited, request) = next_request(&server).await;
        assert!(text == r#"watch Some("5")"# && !waited.is_zero(), "{text} {waited:?}");
        open(request).fail(corrupt());
    }
    assert_eq!(next_request(&server).await.0, r#"watch-list Some("5")"#);
}

#[tokio::test(start_paused = true)]
async fn deletion_during_initial_list_leaves_no_object() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.apply(pod("a", "1"));
    watch.apply(pod("b", "2"));
    watch.delete(pod("a", "3"));
    watch.apply(pod("b", "4"));
    let end = WatchEvent::Bookmark { resource_version: "5".into(), initial_events_end: true };
    watch.send(vec![end]);
    assert!(informer.wait_for_sync().await);
    assert_eq!(cached(&informer.lister()), ["b4"]);
}

#[tokio::test(start_paused = true)]
async fn same_seed_gives_same_backoff_and_other_seed_differs() {
    async fn waits(seed: u64) -> Vec<Duration> {
        let (server, informer) = start(seed);
        let mut waits = Vec::new();
        for _ in 0..6 {
            let (_, waited, request) = next_request(&server).await;
            waits.push(waited);
            let request = watch_of(request);
            request.refuse(ApiError::new(429, "", ""));
        }
        informer.stop().await;
        waits
    }
    assert_eq!(waits(3).await, waits(3).await);
    assert_ne!(waits(3).await, waits(4).await);
}

#[tokio::test(start_paused = true)]
async fn unchanged_object_is_not_held_twice_during_relist() {
    let server = Server::new();
    let informer = SharedIndexInformer::builder(server.clone()).watch_list(false).build();
    informer.start();
    server.expect_list().await.serve([pod("a", "4")], "5");
    server.expect_watch().await.open().end_with(ApiError::new(410, "Expired", ""));
    let again = Arc::new(pod("a", "4"));
    let mut page = Page::new(vec![Decoded::Fits(Arc::clone(&again))], "9");
    page.continue_token = Some("more".into());
    server.expect_list().await.reply(page);
    let _unanswered = server.expect_list().await;
    assert_eq!(Arc::strong_count(&again), 1, "the cached object replaces it at once");
}
