//! One test for each fault in the catalogue of server faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use homeostat_informer::list_watch::{
    ApiError, Decoded, ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent,
    WatchRequest, WatchStream,
};
use homeostat_informer::{BackoffConfig, SharedIndexInformer, TimeoutConfig};
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::server::*;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn watch_closed_immediately_is_retried_with_backoff() {
    let (server, _informer, watch) = following().await;
    watch.close();
    let start = Instant::now();
    let mut requests = 0_u32;
    while start.elapsed() < 60 * MINUTE {
        let (text, waited, request) = next_request(&server).await;
        assert_eq!(text, r#"watch Some("5")"#, "no relist");
        assert!(is_step(waited, requests.min(6)), "{waited:?} at {requests}");
        requests += 1;
        open(request).close();
    }
    assert!(requests < 120, "{requests} in an hour");
}

#[tokio::test(start_paused = true)]
async fn short_watch_with_only_bookmarks_is_retried_with_backoff() {
    let (server, _informer, watch) = following().await;
    watch.bookmark("6");
    watch.close();
    let mut version = 6;
    for step in 0..5 {
        let (text, waited, request) = next_request(&server).await;
        assert_eq!(text, format!("watch Some(\"{version}\")"));
        assert!(is_step(waited, step), "{waited:?}");
        version += 1;
        let watch = open(request);
        watch.bookmark(&version.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn torn_connections_cause_no_duplicate_event_and_no_relist() {
    let (server, informer, mut watch) = following().await;
    let log = Log::of(&informer);
    for version in 6..30 {
        watch.apply(pod("a", &version.to_string()));
        watch.tear();
        let (text, waited, request) = next_request(&server).await;
        assert_eq!((text, waited), (format!("watch Some(\"{version}\")"), Duration::ZERO));
        watch = open(request);
        // Events that were already delivered come again, as from a server that has lost a little of
        // its position.
        watch.apply(pod("a", &version.to_string()));
        watch.apply(pod("a", "5"));
    }
    settle().await;
    assert_eq!((cached(&informer.lister()), log.events().len()), (vec!["a29".into()], 25));
    assert_eq!(version(&informer), "29", "the store version does not go back");
}

#[tokio::test(start_paused = true)]
async fn repeated_corrupt_frame_causes_relist_and_object_becomes_opaque() {
    let (server, informer, watch) = following().await;
    let log = Log::of(&informer);
    let corrupt = || WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() };
    watch.apply(pod("b", "6"));
    watch.fail(corrupt());
    for _ in 0..2 {
        let (text, waited, request) = next_request(&server).await;
        assert!(text == r#"watch Some("6")"# && !waited.is_zero(), "{text} {waited:?}");
        open(request).fail(corrupt());
    }
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch-list Some("6")"#);
    let watch = open(request);
    watch.apply(pod("b", "6"));
    watch.apply_opaque(pod("a", "7").metadata);
    watch.send(vec![initial_end("7")]);
    settle().await;
    assert_eq!(cached(&informer.lister()), ["b6"]);
    assert!(informer.lister().opaque(("n", "a")).is_some());
    assert_eq!(log.events(), [r#"Added("n/a")"#, r#"Added("n/b")"#, r#"Opaque("n/a")"#]);
}

#[tokio::test(start_paused = true)]
async fn corrupt_frames_at_different_versions_cause_no_relist() {
    let (server, _informer, mut watch) = following().await;
    for version in 6..20 {
        watch.apply(pod("b", &version.to_string()));
        watch.fail(WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() });
        let (text, waited, request) = next_request(&server).await;
        assert_eq!(text, format!("watch Some(\"{version}\")"));
        assert!(!waited.is_zero());
        watch = open(request);
    }
}

#[tokio::test(start_paused = true)]
async fn corrupt_watch_list_falls_back_to_list_at_once() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.apply(pod("a", "1"));
    watch.fail(WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() });
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
    list_of(request).serve([pod("a", "1")], "5");
    assert!(informer.wait_for_sync().await);
}

#[tokio::test(start_paused = true)]
async fn repeatedly_expired_continue_token_ends_in_unpaged_list_or_backoff() {
    let (server, informer, watch) = following_by_list().await;
    let expired = || ApiError::new(410, "Expired", "the provided continue parameter is too old");
    watch.end_with(expired());
    let (text, waited, request) = next_request(&server).await;
    assert!(text == r#"list Some("5") Some(500) None"# && is_step(waited, 0), "{text} {waited:?}");
    list_of(request).reply(page([pod("a", "4")], "9", Some("more")));
    list_of(next_request(&server).await.2).refuse(expired());
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), (r#"list Some("5") None None"#, Duration::ZERO));
    list_of(request).refuse(expired());
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("list None None None", Duration::ZERO));
    list_of(request).refuse(expired());
    let (text, waited, request) = next_request(&server).await;
    assert!(text == "list None Some(500) None" && is_step(waited, 1), "{text} {waited:?}");
    list_of(request).serve([pod("b", "10")], "11");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["b10"]);
}

#[tokio::test(start_paused = true)]
async fn repeated_continue_token_causes_unpaged_list() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(ApiError::new(410, "Expired", ""));
    list_of(next_request(&server).await.2).reply(page([pod("a", "4")], "9", Some("same")));
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"list None Some(500) Some("same")"#);
    list_of(request).reply(page([pod("b", "4")], "9", Some("same")));
    let (text, waited, request) = next_request(&server).await;
    assert!(text == r#"list Some("5") None None"# && !waited.is_zero(), "{text} {waited:?}");
    let error = informer.last_error().unwrap().to_string();
    assert!(error.contains("its continue token repeats an earlier one"), "{error}");
    assert_eq!(cached(&informer.lister()), ["a4"], "the cache is kept");
    list_of(request).serve([pod("a", "4"), pod("b", "4")], "9");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b4"]);
}

#[tokio::test(start_paused = true)]
async fn pages_at_different_versions_are_watched_from_the_first() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(ApiError::new(410, "Expired", ""));
    list_of(next_request(&server).await.2).reply(page([pod("a", "4")], "10", Some("more")));
    list_of(next_request(&server).await.2).reply(page([pod("b", "15")], "20", None));
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch Some("10")"#, "changes of `a` since the first page are not missed");
    let watch = open(request);
    watch.apply(pod("a", "12"));
    watch.apply(pod("b", "15"));
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a12", "b15"]);
}

#[tokio::test(start_paused = true)]
async fn lagging_server_is_listed_without_version_at_once() {
    let (server, informer, watch) = following_by_list().await;
    let lagging = || ApiError::new(504, "Timeout", "Too large resource version: 5, current: 3");
    watch.close();
    watch_of(next_request(&server).await.2).refuse(lagging());
    let (text, waited, request) = next_request(&server).await;
    assert!(text == r#"list Some("5") Some(500) None"# && !waited.is_zero(), "{text} {waited:?}");
    list_of(request).refuse(lagging());
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
    list_of(request).serve([pod("a", "7")], "8");
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["a7".into()], "8".into()));
}

#[tokio::test(start_paused = true)]
async fn busy_server_is_not_listed_before_retry_after() {
    let busy = |code| ApiError::new(code, "Busy", "").with_retry_after(Duration::from_secs(20));
    for code in [429, 503] {
        let (server, _informer) = start(1);
        watch_of(next_request(&server).await.2).refuse(busy(code));
        let (_, waited, request) = next_request(&server).await;
        assert!(waited >= Duration::from_secs(20), "{code} {waited:?}");
        drop(request);
        let (server, _informer, watch) = following_by_list().await;
        watch.end_with(ApiError::new(410, "Expired", ""));
        list_of(next_request(&server).await.2).refuse(busy(code));
        assert!(next_request(&server).await.1 >= Duration::from_secs(20), "{code}");
    }
    let (server, _informer, watch) = following().await;
    watch.end_with(ApiError::new(429, "", "").with_retry_after(Duration::MAX));
    let waited = next_request(&server).await.1;
    assert!((5 * MINUTE..6 * MINUTE).contains(&waited), "{waited:?}: at most five minutes");
}

#[tokio::test(start_paused = true)]
async fn unauthorized_watch_keeps_cache_and_is_retried() {
    let (server, informer, watch) = following().await;
    watch.tear();
    for step in 0..8 {
        let (text, waited, request) = next_request(&server).await;
        assert_eq!(text, r#"watch Some("5")"#, "a list would fail, too");
        assert!(is_step(waited, step.min(6)), "{waited:?}");
        watch_of(request).refuse(ApiError::new(401, "Unauthorized", ""));
    }
    assert_eq!(cached(&informer.lister()), ["a4"]);
    assert!(informer.last_error().unwrap().to_string().contains("unauthorized"));
    let watch = open(next_request(&server).await.2);
    watch.apply(pod("b", "6"));
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b6"]);
    assert!(informer.last_error().is_none());
}

#[tokio::test(start_paused = true)]
async fn watch_refused_repeatedly_is_replaced_by_lists() {
    for code in [403, 404, 500, 503] {
        let (server, informer, watch) = following().await;
        watch.tear();
        for _ in 0..6 {
            watch_of(next_request(&server).await.2).refuse(ApiError::new(code, "", "no"));
        }
        let (text, waited, request) = next_request(&server).await;
        assert!(text == r#"watch-list Some("5")"# && waited >= Duration::from_secs(25), "{text}");
        watch_of(request).refuse(ApiError::new(code, "", "no"));
        let (text, waited, request) = next_request(&server).await;
        assert_eq!((text.as_str(), waited), (r#"list Some("5") Some(500) None"#, Duration::ZERO));
        list_of(request).serve([pod("b", "6")], "7");
        let (text, _, request) = next_request(&server).await;
        assert_eq!(text, r#"watch Some("7")"#);
        settle().await;
        assert_eq!(cached(&informer.lister()), ["b6"], "the list is applied");
        watch_of(request).refuse(ApiError::new(code, "", "no"));
        let (_, waited, request) = next_request(&server).await;
        assert!(waited >= Duration::from_secs(30), "{waited:?}: hot loop");
        watch_of(request).refuse(ApiError::new(code, "", "no"));
        list_of(next_request(&server).await.2).refuse(ApiError::new(code, "", "no"));
        assert_eq!(next_request(&server).await.0, r#"watch Some("7")"#, "the cycle repeats");
        assert_eq!(cached(&informer.lister()), ["b6"]);
    }
}

#[tokio::test(start_paused = true)]
async fn error_event_in_stream_is_classified_by_its_status() {
    for (code, reason, next) in [
        (410, "Expired", r#"watch-list Some("5")"#),
        (0, "Expired", r#"watch-list Some("5")"#),
        (504, "Timeout", r#"watch-list Some("5")"#),
        (500, "StoreReadError", r#"watch-list Some("5")"#),
        (429, "TooManyRequests", r#"watch Some("5")"#),
        (403, "Forbidden", r#"watch Some("5")"#),
        (500, "InternalError", r#"watch Some("5")"#),
    ] {
        let (server, informer, watch) = following().await;
        watch.end_with(ApiError::new(code, reason, "Too large resource version: 5, current: 3"));
        let (text, waited, _request) = next_request(&server).await;
        assert_eq!(text, next, "{code} {reason}");
        assert!(is_step(waited, 0), "{waited:?}");
        assert_eq!(cached(&informer.lister()), ["a4"]);
    }
}

#[tokio::test(start_paused = true)]
async fn busy_server_that_sends_no_code_is_not_listed() {
    let (server, _informer, mut watch) = following().await;
    for step in 0..4 {
        watch.end_with(ApiError::new(0, "TooManyRequests", "slow down"));
        let (text, waited, request) = next_request(&server).await;
        assert_eq!(text, r#"watch Some("5")"#, "no relist");
        assert!(is_step(waited, step), "{waited:?} at {step}");
        watch = open(request);
    }
}

#[tokio::test(start_paused = true)]
async fn stalled_watch_list_is_retried_at_a_later_sync() {
    let (server, informer) = start(1);
    let stalled = server.expect_watch().await.open();
    list_of(next_request(&server).await.2).serve([pod("a", "4")], "5");
    drop(stalled);
    assert!(informer.wait_for_sync().await);
    open(next_request(&server).await.2).end_with(ApiError::new(410, "Expired", ""));
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch-list Some("5")"#);
    let watch = watch_of(request).serve([pod("a", "4")], "6");
    watch.end_with(ApiError::new(410, "Expired", ""));
    assert_eq!(next_request(&server).await.0, r#"watch-list Some("6")"#);
}

#[tokio::test(start_paused = true)]
async fn repeated_and_unknown_deletions_are_tolerated() {
    let (server, informer, watch) = following().await;
    let log = Log::of(&informer);
    watch.delete(pod("unknown", "6"));
    watch.apply(pod("a", "7"));
    watch.apply(pod("a", "7"));
    watch.apply(pod("b", "8"));
    watch.delete(pod("b", "9"));
    watch.delete(pod("b", "9"));
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["a7".into()], "9".into()));
    let expected_events = [
        r#"Added("n/a")"#,
        r#"Updated("n/a") 4 to 7"#,
        r#"Added("n/b")"#,
        r#"Deleted("n/b") certain true"#,
    ];
    assert_eq!(log.events(), expected_events);
    watch.tear();
    assert_eq!(next_request(&server).await.0, r#"watch Some("9")"#);
}

#[tokio::test(start_paused = true)]
async fn replayed_events_are_followed_to_their_end() {
    let (server, informer, watch) = following().await;
    watch.apply(pod("b", "6"));
    watch.delete(pod("b", "7"));
    watch.tear();
    let watch = watch_of(next_request(&server).await.2).open();
    watch.apply(pod("b", "6"));
    watch.tear();
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch Some("6")"#, "the deletion must be sent again");
    let watch = open(request);
    watch.delete(pod("b", "7"));
    watch.tear();
    assert_eq!(next_request(&server).await.0, r#"watch Some("7")"#);
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["a4".into()], "7".into()));
}

#[tokio::test(start_paused = true)]
async fn invalid_object_versions_do_not_advance_the_watch_and_lose_nothing() {
    let (server, informer, watch) = following().await;
    for (name, version) in [("b", ""), ("c", "0"), ("d", "next")] {
        watch.apply(pod(name, version));
    }
    watch.bookmark("");
    watch.bookmark("0");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b", "c0", "dnext"]);
    assert_eq!(version(&informer), "5");
    watch.tear();
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch Some("5")"#, "later events are requested again");
    let watch = open(request);
    watch.apply(pod("b", ""));
    watch.delete(pod("c", ""));
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b", "dnext"]);
}

#[tokio::test(start_paused = true)]
async fn list_without_a_version_is_rejected() {
    for nothing in ["", "0"] {
        let (server, informer) = start(1);
        let _watch = server.expect_watch().await.serve([pod("a", "4")], nothing);
        let (text, waited, request) = next_request(&server).await;
        assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
        list_of(request).serve([pod("a", "4")], nothing);
        let (text, waited, request) = next_request(&server).await;
        assert!(text == "watch-list None" && is_step(waited, 0), "{text} {waited:?}");
        assert!(!informer.has_synced() && informer.lister().is_empty());
        let error = informer.last_error().unwrap().to_string();
        assert!(error.contains("no point in history"), "{error}");
        let _watch = watch_of(request).serve([pod("a", "4")], "5");
        assert!(informer.wait_for_sync().await);
    }
}

#[tokio::test(start_paused = true)]
async fn non_numeric_versions_are_compared_by_equality() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.serve([pod("a", "x1")], "x2");
    assert!(informer.wait_for_sync().await);
    watch.apply(pod("a", "w9"));
    watch.bookmark("x3");
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["aw9".into()], "x3".into()));
    watch.tear();
    assert_eq!(next_request(&server).await.0, r#"watch Some("x3")"#);
}

#[tokio::test(start_paused = true)]
async fn watch_that_outlives_its_timeout_is_closed() {
    let (server, _informer, watch) = following().await;
    let chat = async {
        let mut version = 6;
        loop {
            watch.bookmark(&version.to_string());
            version += 1;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let cut = async {
        let (text, waited, _request) = next_request(&server).await;
        assert!(text.starts_with("watch Some"), "{text}");
        assert!(waited <= Duration::from_secs(605), "{waited:?}");
    };
    tokio::select! {
        biased;
        () = cut => {}
        () = chat => {}
    }
}

#[tokio::test(start_paused = true)]
async fn restored_server_is_followed_as_a_new_history() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.serve([pod("a", "100"), pod("b", "105")], "120");
    assert!(informer.wait_for_sync().await);
    let log = Log::of(&informer);
    let versions = Arc::new(Mutex::new(Vec::new()));
    let reached = Arc::clone(&versions);
    let _subscription = informer.add_version_handler("versions", move |version| {
        reached.lock().push(version.to_string());
    });
    settle().await;
    let same_version = informer.lister().get(("n", "b")).unwrap();
    watch.end_with(ApiError::new(410, "Expired", ""));
    // For a list not older than 120, the server answers with an older one: it is rejected at first.
    let outdated = watch_of(next_request(&server).await.2).serve([pod("a", "100")], "110");
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("watch-list None", Duration::ZERO));
    assert_eq!(version(&informer), "120");
    drop(outdated);
    // After the restore, the same version is another state.
    let mut other = pod("b", "105");
    other.metadata.labels = Some([("another".to_owned(), "history".to_owned())].into());
    let watch = watch_of(request).serve([other, pod("c", "109")], "110");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["b105", "c109"]);
    let now = informer.lister().get(("n", "b")).unwrap();
    assert!(now.metadata.labels.is_some() && !Arc::ptr_eq(&now, &same_version));
    assert_eq!(version(&informer), "110");
    watch.apply(pod("b", "111"));
    settle().await;
    assert_eq!(*versions.lock(), ["120", "110", "111"]);
    let expected_events = [
        r#"Added("n/a")"#,
        r#"Added("n/b")"#,
        r#"Deleted("n/a") certain false"#,
        r#"Updated("n/b") 105 to 105"#,
        r#"Added("n/c")"#,
        r#"Updated("n/b") 105 to 111"#,
    ];
    assert_eq!(log.events(), expected_events);
    watch.tear();
    assert_eq!(next_request(&server).await.0, r#"watch Some("111")"#);
}

#[tokio::test(start_paused = true)]
async fn list_older_than_requested_is_rejected_once() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(ApiError::new(410, "Expired", ""));
    list_of(next_request(&server).await.2).serve([pod("b", "1")], "2");
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
    list_of(request).serve([pod("c", "2")], "3");
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["c2".into()], "3".into()));
}

#[tokio::test(start_paused = true)]
async fn object_listed_twice_is_stored_once() {
    let (server, informer, watch) = following_by_list().await;
    let log = Log::of(&informer);
    watch.end_with(ApiError::new(410, "Expired", ""));
    let twice = [pod("a", "6"), pod("b", "7"), pod("a", "4"), pod("b", "8")];
    list_of(next_request(&server).await.2).serve(twice, "9");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a6", "b8"]);
    let expected_events = [r#"Added("n/a")"#, r#"Updated("n/a") 4 to 6"#, r#"Added("n/b")"#];
    assert_eq!(log.events(), expected_events);
}

#[tokio::test(start_paused = true)]
async fn error_handler_receives_every_error_and_may_panic() {
    let server = Server::new();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&errors);
    let informer = SharedIndexInformer::builder(server.clone())
        .error_handler(move |error| {
            log.lock().push(error.to_string());
            panic!("fault of the error handler");
        })
        .build();
    informer.start();
    watch_of(next_request(&server).await.2).refuse(ApiError::new(403, "Forbidden", "no"));
    list_of(next_request(&server).await.2).refuse(ApiError::new(500, "InternalError", "oh"));
    let watch = watch_of(next_request(&server).await.2).serve([pod("a", "4")], "5");
    assert!(informer.wait_for_sync().await);
    watch.tear();
    settle().await;
    let expected = [
        "cannot watch scripted objects: forbidden: no",
        "cannot list scripted objects: status 500 (InternalError): oh",
        "watch of scripted objects broke off: connection reset",
    ];
    assert_eq!(*errors.lock(), expected);
}

#[tokio::test(start_paused = true)]
async fn unanswered_list_times_out() {
    let (server, _informer, watch) = following_by_list().await;
    watch.end_with(ApiError::new(410, "Expired", ""));
    let unanswered = next_request(&server).await.2;
    let (_, waited, request) = next_request(&server).await;
    assert!(waited >= Duration::from_secs(75) && waited < Duration::from_secs(80), "{waited:?}");
    drop(unanswered);
    list_of(request).reply(page([pod("a", "4")], "9", Some("more")));
    list_of(next_request(&server).await.2).refuse(ApiError::new(410, "Expired", ""));
    let (text, _, _whole) = next_request(&server).await;
    assert_eq!(text, r#"list Some("5") None None"#);
    let (_, waited, _) = next_request(&server).await;
    assert!(waited >= Duration::from_secs(300), "{waited:?}: an unpaged list may take longer");
}

/// The wait before a request counts from the previous one, so that a network that comes back after
/// 20 s is used soon.
#[tokio::test(start_paused = true)]
async fn time_without_an_answer_is_part_of_the_backoff() {
    let (server, _informer, watch) = following().await;
    watch.tear();
    let mut unanswered = Vec::new();
    for step in 0..6 {
        let (text, waited, request) = next_request(&server).await;
        assert_eq!(text, r#"watch Some("5")"#);
        // The timeout is longer than each step of the back-off.
        assert!(step == 0 || waited == Duration::from_secs(75), "{step}: {waited:?}");
        unanswered.push(request);
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_collection_is_not_relisted() {
    let (server, informer, mut silent) = following().await;
    for version in ["5", "7", "7"] {
        let (text, waited, request) = next_request(&server).await;
        assert!(waited > 3 * MINUTE, "{waited:?}");
        assert_eq!(text, "list None Some(1) None");
        list_of(request).reply(page([pod("a", "4")], version, Some("more")));
        let (text, waited, request) = next_request(&server).await;
        assert_eq!((text.as_str(), waited), (r#"watch Some("5")"#, Duration::ZERO));
        silent = open(request);
    }
    assert_eq!(informer.status().reflector.full_syncs, 1);
    list_of(next_request(&server).await.2).refuse(ApiError::new(500, "", ""));
    let (text, waited, _) = next_request(&server).await;
    assert!(text == r#"watch Some("5")"# && is_step(waited, 0), "{text} {waited:?}");
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn page_size_of_zero_requests_a_list_in_one_piece() {
    let server = Server::new();
    let builder = SharedIndexInformer::builder(server.clone()).watch_list(false).page_size(0);
    let informer = builder.build();
    informer.start();
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, "list None None None");
    list_of(request).serve([pod("a", "4")], "5");
    assert!(informer.wait_for_sync().await);
}

#[tokio::test(start_paused = true)]
async fn probe_without_an_answer_counts_as_part_of_the_wait() {
    let (server, _informer, _silent) = following().await;
    let (text, _, _unanswered) = next_request(&server).await;
    assert_eq!(text, "list None Some(1) None");
    // The timeout of the probe is longer than the first step of the back-off.
    let timeout = TimeoutConfig::default().answer;
    let (text, waited, _) = next_request(&server).await;
    assert_eq!(text, r#"watch Some("5")"#);
    let range = timeout..timeout + Duration::from_millis(10);
    assert!(range.contains(&waited), "{waited:?}: waited after the timeout");
}

#[tokio::test(start_paused = true)]
async fn expired_continue_token_is_replaced_by_the_offered_one() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(ApiError::new(410, "Expired", ""));
    list_of(next_request(&server).await.2).reply(page([pod("a", "8")], "9", Some("more")));
    let expired = ApiError::new(410, "Expired", "the provided continue parameter is too old");
    let expired = expired.with_continue_token("later");
    list_of(next_request(&server).await.2).refuse(expired);
    let (text, waited, request) = next_request(&server).await;
    assert_eq!(text, r#"list None Some(500) Some("later")"#);
    assert_eq!(waited, Duration::ZERO);
    list_of(request).reply(page([pod("b", "15")], "20", None));
    // The versions between the two pages are followed.
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch Some("9")"#);
    assert_eq!(cached(&informer.lister()), ["a8", "b15"]);
    // If they are gone as well, pages would end in the same way.
    watch_of(request).refuse(ApiError::new(410, "Expired", ""));
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"list Some("9") None None"#);
    list_of(request).serve([pod("a", "18"), pod("b", "15")], "20");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a18", "b15"]);
}

#[tokio::test(start_paused = true)]
async fn list_that_replaces_its_token_forever_is_requested_in_one_piece() {
    let (server, _informer, watch) = following_by_list().await;
    watch.end_with(ApiError::new(410, "Expired", ""));
    list_of(next_request(&server).await.2).reply(page([pod("a", "8")], "9", Some("more")));
    let mut requests = 0;
    loop {
        let (text, _, request) = next_request(&server).await;
        if text == r#"list Some("5") None None"# {
            break;
        }
        requests += 1;
        assert!(requests <= 20, "an endless list");
        let expired = ApiError::new(410, "Expired", "");
        list_of(request).refuse(expired.with_continue_token(format!("token {requests}")));
    }
    assert_eq!(requests, 11);
}

#[tokio::test(start_paused = true)]
async fn list_that_repeats_its_objects_forever_fails() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(ApiError::new(410, "Expired", ""));
    let pods = || (0..400).map(|at| pod(&format!("p{at}"), "8"));
    let mut pages = 0;
    loop {
        let (text, _, request) = next_request(&server).await;
        if text == r#"list Some("5") None None"# {
            break;
        }
        pages += 1;
        assert!(pages <= 10, "an endless list");
        list_of(request).reply(page(pods(), "9", Some(&format!("token {pages}"))));
    }
    let error = informer.last_error().unwrap().to_string();
    assert!(error.contains("its pages repeat their objects"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn half_open_watch_is_noticed_after_three_missed_bookmarks() {
    let (server, informer, watch) = following().await;
    tokio::time::sleep(MINUTE).await;
    watch.bookmark("8");
    tokio::time::sleep(MINUTE).await;
    watch.apply(pod("a", "9"));
    settle().await;
    // Nothing arrives any more, and the connection stays open.
    let (text, waited, _) = next_request(&server).await;
    assert_eq!((text.as_str(), waited.as_secs()), (r#"watch Some("9")"#, 179));
    let error = informer.last_error().unwrap().to_string();
    assert_eq!(error, "watch of scripted objects is silent for 180s");
    drop(watch);
}

#[tokio::test(start_paused = true)]
async fn changes_during_a_watch_list_do_not_pile_up() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    let probe = Arc::new(pod("a", "1"));
    watch.send(vec![WatchEvent::Applied(Decoded::Fits(Arc::clone(&probe)))]);
    for version in 2..3000 {
        watch.apply(pod("a", &version.to_string()));
    }
    settle().await;
    assert_eq!(Arc::strong_count(&probe), 1, "a replaced state is dropped");
    watch.send(vec![initial_end("3000")]);
    assert!(informer.wait_for_sync().await);
    assert_eq!(cached(&informer.lister()), ["a2999"]);
}

#[tokio::test(start_paused = true)]
async fn first_list_from_cache_asks_for_version_zero_once() {
    let server = Server::new();
    let builder = SharedIndexInformer::builder(server.clone()).watch_list(false);
    let informer = builder.list_from_cache(true).build();
    informer.start();
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"list Some("0") Some(500) None"#);
    list_of(request).refuse(ApiError::new(410, "Expired", ""));
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, "list None Some(500) None");
    list_of(request).serve([pod("a", "4")], "5");
    open(next_request(&server).await.2).end_with(ApiError::new(410, "Expired", ""));
    assert_eq!(next_request(&server).await.0, r#"list Some("5") Some(500) None"#);
}

#[tokio::test(start_paused = true)]
async fn unreachable_list_keeps_the_cache() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(ApiError::new(410, "Expired", ""));
    drop(next_request(&server).await.2);
    let (_, waited, request) = next_request(&server).await;
    assert!(is_step(waited, 1), "{waited:?}");
    drop(request);
    assert!(matches!(
        *informer.last_error().unwrap(),
        homeostat_informer::status::ReflectorError::List(ListError::Unreachable { .. })
    ));
    assert_eq!(cached(&informer.lister()), ["a4"]);
}

#[tokio::test(start_paused = true)]
async fn event_after_final_bookmark_in_same_batch_is_applied() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.send(vec![
        WatchEvent::Applied(Decoded::Fits(Arc::new(pod("a", "1")))),
        initial_end("5"),
        WatchEvent::Deleted(Decoded::Fits(Arc::new(pod("a", "6")))),
    ]);
    assert!(informer.wait_for_sync().await);
    settle().await;
    assert!(informer.lister().is_empty());
    assert_eq!(version(&informer), "6");
}

#[tokio::test(start_paused = true)]
async fn server_that_went_back_is_noticed_after_a_silent_watch() {
    let (server, informer, silent) = following().await;
    let (text, waited, request) = next_request(&server).await;
    assert!(waited > 3 * MINUTE, "{waited:?}");
    assert_eq!(text, "list None Some(1) None", "only the version is of interest");
    list_of(request).reply(page([pod("b", "2")], "3", None));
    let (text, waited, request) = next_request(&server).await;
    assert_eq!((text.as_str(), waited), (r#"watch-list Some("5")"#, Duration::ZERO));
    drop(silent);
    let not_yet = ApiError::new(504, "Timeout", "Too large resource version: 5, current: 3");
    watch_of(request).refuse(not_yet);
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, "watch-list None");
    let watch = watch_of(request).serve([pod("b", "2")], "3");
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["b2".into()], "3".into()));
    // A watch with a bookmark is not followed by a list.
    watch.bookmark("4");
    let (text, waited, _request) = next_request(&server).await;
    assert!(waited >= 3 * MINUTE, "{waited:?}");
    assert_eq!(text, r#"watch Some("4")"#);
    drop(watch);
}

#[tokio::test(start_paused = true)]
async fn server_that_went_back_is_noticed_although_idle_watches_are_closed() {
    let (server, informer, mut idle) = following().await;
    // A load balancer closes a connection that is idle for a minute.
    for _ in 0..2 {
        tokio::time::sleep(MINUTE).await;
        idle.close();
        let (text, waited, request) = next_request(&server).await;
        assert_eq!((text.as_str(), waited), (r#"watch Some("5")"#, Duration::ZERO));
        idle = open(request);
    }
    tokio::time::sleep(MINUTE).await;
    idle.close();
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, "list None Some(1) None");
    list_of(request).reply(page([pod("b", "2")], "3", None));
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch-list Some("5")"#);
    let _watch = watch_of(request).serve([pod("b", "2")], "3");
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, "watch-list None", "that state is older than requested");
    let _watch = watch_of(request).serve([pod("b", "2")], "3");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["b2"]);
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_never_answered_is_replaced_by_lists() {
    let (server, informer, watch) = following().await;
    watch.tear();
    let mut unanswered = Vec::new();
    for _ in 0..6 {
        let (text, _, request) = next_request(&server).await;
        assert_eq!(text, r#"watch Some("5")"#);
        unanswered.push(request);
    }
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"watch-list Some("5")"#);
    unanswered.push(request);
    let (text, _, request) = next_request(&server).await;
    assert_eq!(text, r#"list Some("5") Some(500) None"#);
    list_of(request).serve([pod("a", "8")], "9");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a8"], "late, but not frozen");
}

/// Refuses each list at once. It counts them, and does not answer the last one.
struct Refusing(Arc<AtomicU32>);

const LAST: u32 = 10_000;

#[async_trait]
impl ListWatch<Pod> for Refusing {
    fn target(&self) -> Arc<str> {
        "pods".into()
    }

    async fn list(&self, _: &ListRequest) -> Result<Page<Pod>, ListError> {
        if self.0.fetch_add(1, Ordering::Relaxed) == LAST {
            std::future::pending::<()>().await;
        }
        Err(ListError::Refused { target: self.target(), error: ApiError::new(500, "", "") })
    }

    async fn watch(&self, _: &WatchRequest) -> Result<WatchStream<Pod>, WatchError> {
        Err(WatchError::Refused { target: self.target(), error: ApiError::new(500, "", "") })
    }
}

#[tokio::test(start_paused = true)]
async fn backoff_of_zero_lets_other_tasks_run() {
    let lists = Arc::new(AtomicU32::new(0));
    let mut backoff = BackoffConfig::default();
    (backoff.initial, backoff.max) = (Duration::ZERO, Duration::ZERO);
    let builder = SharedIndexInformer::builder(Refusing(Arc::clone(&lists))).watch_list(false);
    let informer = builder.backoff(backoff).build();
    informer.start();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    let lists = lists.load(Ordering::Relaxed);
    assert!((1..LAST).contains(&lists), "{lists} lists");
    informer.stop().await;
}
