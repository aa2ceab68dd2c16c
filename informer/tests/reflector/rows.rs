//! What a server may do to us, one test for each row of the catalogue.

use std::{sync::Arc, time::Duration};

use homeostat_informer::{
    Decoded, ListError, Refusal, SharedIndexInformer, WatchError, WatchEvent,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::server::*;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn watch_that_is_closed_at_once_again_and_again_is_no_hot_loop() {
    let (server, _informer, watch) = following().await;
    watch.close();
    let begin = Instant::now();
    let mut requests = 0_u32;
    while begin.elapsed() < 60 * MINUTE {
        let (text, waited, request) = asked(&server).await;
        assert_eq!(text, r#"watch Some("5")"#, "never a new list");
        assert!(is_step(waited, requests.min(6)), "{waited:?} at {requests}");
        requests += 1;
        open(request).close();
    }
    assert!(requests < 120, "{requests} in an hour");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_alone_do_not_make_a_short_watch_a_good_one() {
    let (server, _informer, watch) = following().await;
    watch.bookmark("6");
    watch.close();
    let mut version = 6;
    for step in 0..5 {
        let (text, waited, request) = asked(&server).await;
        assert_eq!(text, format!("watch Some(\"{version}\")"));
        assert!(is_step(waited, step), "{waited:?}");
        version += 1;
        let watch = open(request);
        watch.bookmark(&version.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn torn_connections_never_bring_an_event_twice_or_a_list() {
    let (server, informer, mut watch) = following().await;
    let log = Log::of(&informer);
    for version in 6..30 {
        watch.apply(pod("a", &version.to_string()));
        watch.tear();
        let (text, waited, request) = asked(&server).await;
        assert_eq!((text, waited), (format!("watch Some(\"{version}\")"), Duration::ZERO));
        watch = open(request);
        // What was there already comes again: from a server that has lost its place a little.
        watch.apply(pod("a", &version.to_string()));
        watch.apply(pod("a", "5"));
    }
    settle().await;
    assert_eq!((cached(&informer.lister()), log.told().len()), (vec!["a29".into()], 25));
    assert_eq!(version(&informer), "29", "the version does not go back either");
}

#[tokio::test(start_paused = true)]
async fn corrupt_frame_at_one_place_is_listed_around_and_the_object_is_opaque_then() {
    let (server, informer, watch) = following().await;
    let log = Log::of(&informer);
    let corrupt = || WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() };
    watch.apply(pod("b", "6"));
    watch.fail(corrupt());
    for _ in 0..2 {
        let (text, waited, request) = asked(&server).await;
        assert!(text == r#"watch Some("6")"# && !waited.is_zero(), "{text} {waited:?}");
        open(request).fail(corrupt());
    }
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, r#"watch-list Some("6")"#);
    let watch = open(request);
    watch.apply(pod("b", "6"));
    watch.apply_opaque(pod("a", "7").metadata);
    watch.send(vec![initial_end("7")]);
    settle().await;
    assert_eq!(cached(&informer.lister()), ["b6"]);
    assert!(informer.lister().opaque(("n", "a")).is_some());
    assert_eq!(log.told(), [r#"Added("n/a")"#, r#"Added("n/b")"#, r#"Opaque("n/a")"#]);
}

#[tokio::test(start_paused = true)]
async fn corrupt_frames_at_different_places_never_cause_a_list() {
    let (server, _informer, mut watch) = following().await;
    for version in 6..20 {
        watch.apply(pod("b", &version.to_string()));
        watch.fail(WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() });
        let (text, waited, request) = asked(&server).await;
        assert_eq!(text, format!("watch Some(\"{version}\")"));
        assert!(!waited.is_zero());
        watch = open(request);
    }
}

#[tokio::test(start_paused = true)]
async fn corrupt_whole_state_by_watch_is_listed_at_once() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.apply(pod("a", "1"));
    watch.fail(WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() });
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
    list_of(request).serve([pod("a", "1")], "5");
    assert!(informer.synced().await);
}

#[tokio::test(start_paused = true)]
async fn place_in_a_list_that_expires_again_and_again_ends_in_one_piece_or_waits() {
    let (server, informer, watch) = following_by_list().await;
    let expired = || Refusal::new(410, "Expired", "the provided continue parameter is too old");
    watch.end_with(expired());
    let (text, waited, request) = asked(&server).await;
    assert!(text == r#"list Some("5") Some(500) None"# && is_step(waited, 0), "{text} {waited:?}");
    list_of(request).reply(page([pod("a", "4")], "9", Some("more")));
    list_of(asked(&server).await.2).refuse(expired());
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), (r#"list Some("5") None None"#, Duration::ZERO));
    list_of(request).refuse(expired());
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("list None None None", Duration::ZERO));
    list_of(request).refuse(expired());
    let (text, waited, request) = asked(&server).await;
    assert!(text == "list None Some(500) None" && is_step(waited, 1), "{text} {waited:?}");
    list_of(request).serve([pod("b", "10")], "11");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["b10"]);
}

#[tokio::test(start_paused = true)]
async fn server_that_repeats_a_continue_token_is_asked_for_one_piece() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(Refusal::new(410, "Expired", ""));
    list_of(asked(&server).await.2).reply(page([pod("a", "4")], "9", Some("same")));
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, r#"list None Some(500) Some("same")"#);
    list_of(request).reply(page([pod("b", "4")], "9", Some("same")));
    let (text, waited, request) = asked(&server).await;
    assert!(text == r#"list Some("5") None None"# && !waited.is_zero(), "{text} {waited:?}");
    let error = informer.last_error().unwrap().to_string();
    assert!(error.contains("it goes on at a place where it has been"), "{error}");
    assert_eq!(cached(&informer.lister()), ["a4"], "what was known stays");
    list_of(request).serve([pod("a", "4"), pod("b", "4")], "9");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b4"]);
}

#[tokio::test(start_paused = true)]
async fn pages_of_different_states_are_watched_from_the_first() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(Refusal::new(410, "Expired", ""));
    list_of(asked(&server).await.2).reply(page([pod("a", "4")], "10", Some("more")));
    list_of(asked(&server).await.2).reply(page([pod("b", "15")], "20", None));
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, r#"watch Some("10")"#, "what happened to `a` since is not missed");
    let watch = open(request);
    watch.apply(pod("a", "12"));
    watch.apply(pod("b", "15"));
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a12", "b15"]);
}

#[tokio::test(start_paused = true)]
async fn lagging_server_is_asked_for_its_newest_state_at_once() {
    let (server, informer, watch) = following_by_list().await;
    let lagging = || Refusal::new(504, "Timeout", "Too large resource version: 5, current: 3");
    watch.close();
    watch_of(asked(&server).await.2).refuse(lagging());
    let (text, waited, request) = asked(&server).await;
    assert!(text == r#"list Some("5") Some(500) None"# && !waited.is_zero(), "{text} {waited:?}");
    list_of(request).refuse(lagging());
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
    list_of(request).serve([pod("a", "7")], "8");
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["a7".into()], "8".into()));
}

#[tokio::test(start_paused = true)]
async fn busy_server_is_not_listed_before_it_allows_it() {
    let busy = |code| Refusal::new(code, "Busy", "").with_retry_after(Duration::from_secs(20));
    for code in [429, 503] {
        let (server, _informer) = start(1);
        watch_of(asked(&server).await.2).refuse(busy(code));
        let (_, waited, request) = asked(&server).await;
        assert!(waited >= Duration::from_secs(20), "{code} {waited:?}");
        drop(request);
        let (server, _informer, watch) = following_by_list().await;
        watch.end_with(Refusal::new(410, "Expired", ""));
        list_of(asked(&server).await.2).refuse(busy(code));
        assert!(asked(&server).await.1 >= Duration::from_secs(20), "{code}");
    }
    let (server, _informer, watch) = following().await;
    watch.end_with(Refusal::new(429, "", "").with_retry_after(Duration::MAX));
    let waited = asked(&server).await.1;
    assert!((5 * MINUTE..6 * MINUTE).contains(&waited), "{waited:?}: within reason");
}

#[tokio::test(start_paused = true)]
async fn expired_token_of_ours_costs_no_cache_and_is_tried_again() {
    let (server, informer, watch) = following().await;
    watch.tear();
    for step in 0..8 {
        let (text, waited, request) = asked(&server).await;
        assert_eq!(text, r#"watch Some("5")"#, "a list would fare no better");
        assert!(is_step(waited, step.min(6)), "{waited:?}");
        watch_of(request).refuse(Refusal::new(401, "Unauthorized", ""));
    }
    assert_eq!(cached(&informer.lister()), ["a4"]);
    assert!(informer.last_error().unwrap().to_string().contains("unauthorized"));
    let watch = open(asked(&server).await.2);
    watch.apply(pod("b", "6"));
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b6"]);
    assert!(informer.last_error().is_none());
}

#[tokio::test(start_paused = true)]
async fn watch_that_stays_refused_is_replaced_by_a_list_each_turn() {
    for code in [403, 404, 500, 503] {
        let (server, informer, watch) = following().await;
        watch.tear();
        for _ in 0..6 {
            watch_of(asked(&server).await.2).refuse(Refusal::new(code, "", "no"));
        }
        let (text, waited, request) = asked(&server).await;
        assert!(text == r#"watch-list Some("5")"# && waited >= Duration::from_secs(25), "{text}");
        watch_of(request).refuse(Refusal::new(code, "", "no"));
        let (text, waited, request) = asked(&server).await;
        assert_eq!((text.as_str(), waited), (r#"list Some("5") Some(500) None"#, Duration::ZERO));
        list_of(request).serve([pod("b", "6")], "7");
        let (text, _, request) = asked(&server).await;
        assert_eq!(text, r#"watch Some("7")"#);
        settle().await;
        assert_eq!(cached(&informer.lister()), ["b6"], "late, but there");
        watch_of(request).refuse(Refusal::new(code, "", "no"));
        let (_, waited, request) = asked(&server).await;
        assert!(waited >= Duration::from_secs(30), "{waited:?}: no hot loop");
        watch_of(request).refuse(Refusal::new(code, "", "no"));
        list_of(asked(&server).await.2).refuse(Refusal::new(code, "", "no"));
        assert_eq!(asked(&server).await.0, r#"watch Some("7")"#, "and so on");
        assert_eq!(cached(&informer.lister()), ["b6"]);
    }
}

#[tokio::test(start_paused = true)]
async fn error_inside_a_stream_is_classified_by_what_it_says() {
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
        watch.end_with(Refusal::new(code, reason, "Too large resource version: 5, current: 3"));
        let (text, waited, _request) = asked(&server).await;
        assert_eq!(text, next, "{code} {reason}");
        assert!(is_step(waited, 0), "{waited:?}");
        assert_eq!(cached(&informer.lister()), ["a4"]);
    }
}

#[tokio::test(start_paused = true)]
async fn watch_that_stalled_is_tried_again_at_a_later_whole_state() {
    let (server, informer) = start(1);
    let stalled = server.expect_watch().await.open();
    list_of(asked(&server).await.2).serve([pod("a", "4")], "5");
    drop(stalled);
    assert!(informer.synced().await);
    open(asked(&server).await.2).end_with(Refusal::new(410, "Expired", ""));
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, r#"watch-list Some("5")"#);
    let watch = watch_of(request).serve([pod("a", "4")], "6");
    watch.end_with(Refusal::new(410, "Expired", ""));
    assert_eq!(asked(&server).await.0, r#"watch-list Some("6")"#);
}

#[tokio::test(start_paused = true)]
async fn odd_events_are_tolerated() {
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
    let told = [
        r#"Added("n/a")"#,
        r#"Updated("n/a") 4 to 7"#,
        r#"Added("n/b")"#,
        r#"Deleted("n/b") certain true"#,
    ];
    assert_eq!(log.told(), told);
    watch.tear();
    assert_eq!(asked(&server).await.0, r#"watch Some("9")"#);
}

#[tokio::test(start_paused = true)]
async fn what_a_watch_tells_again_is_heard_to_its_end() {
    let (server, informer, watch) = following().await;
    watch.apply(pod("b", "6"));
    watch.delete(pod("b", "7"));
    watch.tear();
    let watch = watch_of(asked(&server).await.2).open();
    watch.apply(pod("b", "6"));
    watch.tear();
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, r#"watch Some("6")"#, "or nobody hears again that it was deleted");
    let watch = open(request);
    watch.delete(pod("b", "7"));
    watch.tear();
    assert_eq!(asked(&server).await.0, r#"watch Some("7")"#);
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["a4".into()], "7".into()));
}

#[tokio::test(start_paused = true)]
async fn odd_versions_of_objects_do_not_move_the_place_and_lose_nothing() {
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
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, r#"watch Some("5")"#, "so that they come again if they were not the end");
    let watch = open(request);
    watch.apply(pod("b", ""));
    watch.delete(pod("c", ""));
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "b", "dnext"]);
}

#[tokio::test(start_paused = true)]
async fn whole_state_without_a_version_is_none() {
    for nothing in ["", "0"] {
        let (server, informer) = start(1);
        let _watch = server.expect_watch().await.serve([pod("a", "4")], nothing);
        let (text, waited, request) = asked(&server).await;
        assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
        list_of(request).serve([pod("a", "4")], nothing);
        let (text, waited, request) = asked(&server).await;
        assert!(text == "watch-list None" && is_step(waited, 0), "{text} {waited:?}");
        assert!(!informer.has_synced() && informer.lister().is_empty());
        let error = informer.last_error().unwrap().to_string();
        assert!(error.contains("no point in history"), "{error}");
        let _watch = watch_of(request).serve([pod("a", "4")], "5");
        assert!(informer.synced().await);
    }
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_followed_by_equality() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.serve([pod("a", "x1")], "x2");
    assert!(informer.synced().await);
    watch.apply(pod("a", "w9"));
    watch.bookmark("x3");
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["aw9".into()], "x3".into()));
    watch.tear();
    assert_eq!(asked(&server).await.0, r#"watch Some("x3")"#);
}

#[tokio::test(start_paused = true)]
async fn server_that_ignores_the_time_it_was_given_is_cut_off() {
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
        let (text, waited, _request) = asked(&server).await;
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
async fn server_restored_from_a_backup_is_another_history() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.serve([pod("a", "100"), pod("b", "105")], "120");
    assert!(informer.synced().await);
    let log = Log::of(&informer);
    let versions = Arc::new(Mutex::new(Vec::new()));
    let reached = Arc::clone(&versions);
    let _subscription = informer.add_version_handler("versions", move |version| {
        reached.lock().push(version.to_string());
    });
    settle().await;
    let same_version = informer.lister().get(("n", "b")).unwrap();
    watch.end_with(Refusal::new(410, "Expired", ""));
    // Asked for a state not older than 120, it answers with an older one: not believed at once.
    let early = watch_of(asked(&server).await.2).serve([pod("a", "100")], "110");
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("watch-list None", Duration::ZERO));
    assert_eq!(version(&informer), "120");
    drop(early);
    // The same version is another state now.
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
    let told = [
        r#"Added("n/a")"#,
        r#"Added("n/b")"#,
        r#"Deleted("n/a") certain false"#,
        r#"Updated("n/b") 105 to 105"#,
        r#"Added("n/c")"#,
        r#"Updated("n/b") 105 to 111"#,
    ];
    assert_eq!(log.told(), told);
    watch.tear();
    assert_eq!(asked(&server).await.0, r#"watch Some("111")"#);
}

#[tokio::test(start_paused = true)]
async fn list_older_than_asked_for_is_not_believed_either() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(Refusal::new(410, "Expired", ""));
    list_of(asked(&server).await.2).serve([pod("b", "1")], "2");
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("list None Some(500) None", Duration::ZERO));
    list_of(request).serve([pod("c", "2")], "3");
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["c2".into()], "3".into()));
}

#[tokio::test(start_paused = true)]
async fn object_that_a_list_shows_twice_is_there_once() {
    let (server, informer, watch) = following_by_list().await;
    let log = Log::of(&informer);
    watch.end_with(Refusal::new(410, "Expired", ""));
    let twice = [pod("a", "6"), pod("b", "7"), pod("a", "4"), pod("b", "8")];
    list_of(asked(&server).await.2).serve(twice, "9");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a6", "b8"]);
    let told = [r#"Added("n/a")"#, r#"Updated("n/a") 4 to 6"#, r#"Added("n/b")"#];
    assert_eq!(log.told(), told);
}

#[tokio::test(start_paused = true)]
async fn error_handler_hears_of_every_error_and_may_panic() {
    let server = Server::new();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    let informer = SharedIndexInformer::builder(server.clone())
        .error_handler(move |error| {
            log.lock().push(error.to_string());
            panic!("a handler's fault");
        })
        .build();
    informer.start();
    watch_of(asked(&server).await.2).refuse(Refusal::new(403, "Forbidden", "no"));
    list_of(asked(&server).await.2).refuse(Refusal::new(500, "InternalError", "oh"));
    let watch = watch_of(asked(&server).await.2).serve([pod("a", "4")], "5");
    assert!(informer.synced().await);
    watch.tear();
    settle().await;
    let expected = [
        "cannot watch scripted objects: forbidden: no",
        "cannot list scripted objects: status 500 (InternalError): oh",
        "watch of scripted objects broke off: connection reset",
    ];
    assert_eq!(*heard.lock(), expected);
}

#[tokio::test(start_paused = true)]
async fn list_without_an_end_is_given_up() {
    let (server, _informer, watch) = following_by_list().await;
    watch.end_with(Refusal::new(410, "Expired", ""));
    let unanswered = asked(&server).await.2;
    let (_, waited, request) = asked(&server).await;
    assert!(waited >= Duration::from_secs(75) && waited < Duration::from_secs(80), "{waited:?}");
    drop(unanswered);
    list_of(request).reply(page([pod("a", "4")], "9", Some("more")));
    list_of(asked(&server).await.2).refuse(Refusal::new(410, "Expired", ""));
    let (text, _, _whole) = asked(&server).await;
    assert_eq!(text, r#"list Some("5") None None"#);
    let (_, waited, _) = asked(&server).await;
    assert!(waited >= Duration::from_secs(300), "{waited:?}: a whole list takes longer");
}

#[tokio::test(start_paused = true)]
async fn list_that_is_none_keeps_the_cache() {
    let (server, informer, watch) = following_by_list().await;
    watch.end_with(Refusal::new(410, "Expired", ""));
    drop(asked(&server).await.2);
    let (_, waited, request) = asked(&server).await;
    assert!(is_step(waited, 1), "{waited:?}");
    drop(request);
    assert!(matches!(
        *informer.last_error().unwrap(),
        homeostat_informer::ReflectorError::List(ListError::Unreachable { .. })
    ));
    assert_eq!(cached(&informer.lister()), ["a4"]);
}

#[tokio::test(start_paused = true)]
async fn state_after_the_end_of_the_initial_one_in_one_batch_is_kept() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.send(vec![
        WatchEvent::Applied(Decoded::Fits(Arc::new(pod("a", "1")))),
        initial_end("5"),
        WatchEvent::Deleted(Decoded::Fits(Arc::new(pod("a", "6")))),
    ]);
    assert!(informer.synced().await);
    settle().await;
    assert!(informer.lister().is_empty());
    assert_eq!(version(&informer), "6");
}

#[tokio::test(start_paused = true)]
async fn watch_without_a_word_is_asked_about_because_the_server_may_have_been_set_back() {
    let (server, informer, silent) = following().await;
    let (text, waited, request) = asked(&server).await;
    assert!(waited > 3 * MINUTE, "{waited:?}");
    assert_eq!(text, r#"watch-list Some("5")"#);
    drop(silent);
    let not_yet = Refusal::new(504, "Timeout", "Too large resource version: 5, current: 3");
    watch_of(request).refuse(not_yet);
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, "watch-list None");
    let watch = watch_of(request).serve([pod("b", "2")], "3");
    settle().await;
    assert_eq!((cached(&informer.lister()), version(&informer)), (vec!["b2".into()], "3".into()));
    // One that says anything is none of these.
    watch.bookmark("4");
    let (text, waited, _request) = asked(&server).await;
    assert!(waited > 3 * MINUTE, "{waited:?}");
    assert_eq!(text, r#"watch Some("4")"#);
    drop(watch);
}
