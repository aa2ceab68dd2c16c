//! Each fault of a server, played by a script under a paused clock: what is asked next, when, and what the cache says.

mod known_faults;
mod rows;
mod server;

use std::{sync::Arc, time::Duration};

use homeostat_informer::{
    Decoded, Event, Page, Refusal, SharedIndexInformer, WatchError, WatchEvent,
    testing::ScriptedRequest,
};
use tokio::sync::mpsc;

use self::server::*;

#[tokio::test(start_paused = true)]
async fn first_state_comes_by_watch_and_goes_on_in_the_same_stream() {
    let (server, informer) = start(1);
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("watch-list None", Duration::ZERO));
    let watch = open(request);
    watch.apply(pod("a", "1"));
    settle().await;
    assert!(!informer.has_synced() && informer.lister().is_empty(), "half a state is none");
    let end = WatchEvent::Bookmark { resource_version: "5".into(), initial_events_end: true };
    watch.send(vec![end, WatchEvent::Applied(Decoded::Fits(Arc::new(pod("b", "6"))))]);
    assert!(informer.synced().await);
    settle().await;
    assert_eq!(
        (cached(&informer.lister()), version(&informer)),
        (vec!["a1".into(), "b6".into()], "6".into())
    );
}

#[tokio::test(start_paused = true)]
async fn torn_watch_goes_on_after_the_last_good_version_without_a_list() {
    let (server, informer, watch) = following().await;
    watch.apply(pod("b", "7"));
    settle().await;
    watch.tear();
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), (r#"watch Some("7")"#, Duration::ZERO));
    open(request).delete(pod("a", "8"));
    settle().await;
    assert_eq!(
        (cached(&informer.lister()), version(&informer)),
        (vec!["b7".to_owned()], "8".into())
    );
}

#[tokio::test(start_paused = true)]
async fn closed_watch_is_opened_again_at_once_if_it_lived() {
    let (server, _informer, watch) = following().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    watch.close();
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), (r#"watch Some("5")"#, Duration::ZERO));
    open(request).close();
    let (text, waited, _) = asked(&server).await;
    assert_eq!(text, r#"watch Some("5")"#);
    assert!(waited >= Duration::from_millis(800), "{waited:?}: no hot loop");
}

#[tokio::test(start_paused = true)]
async fn bookmark_moves_the_place_and_calls_nobody() {
    let (server, informer, watch) = following().await;
    let subscription = informer.add_handler("count", |event| match event {
        Event::Added { initial: true, .. } => {}
        other => panic!("{other:?}"),
    });
    watch.bookmark("50");
    settle().await;
    assert_eq!((version(&informer), subscription.panics()), ("50".to_owned(), 0));
    watch.tear();
    assert_eq!(asked(&server).await.0, r#"watch Some("50")"#);
}

#[tokio::test(start_paused = true)]
async fn expired_version_is_listed_again_and_what_was_missed_is_told() {
    let (server, informer, watch) = following().await;
    let (sender, mut events) = mpsc::channel(100);
    let subscription = informer.add_handler("log", move |event| sender.try_send(event).unwrap());
    let before = informer.lister().get(("n", "a")).unwrap();
    watch.apply(pod("b", "7"));
    settle().await;
    watch.end_with(Refusal::new(410, "Expired", "too old"));
    let (text, waited, request) = asked(&server).await;
    assert_eq!(text, r#"watch-list Some("7")"#);
    assert!(waited >= Duration::from_millis(800), "{waited:?}");
    assert!(informer.last_error().unwrap().to_string().contains("expired: too old"));
    let request = watch_of(request);
    request.refuse(Refusal::new(410, "Expired", "still"));
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("watch-list None", Duration::ZERO));
    let request = watch_of(request);
    let _watch = request.serve([pod("a", "4"), pod("c", "9")], "10");
    settle().await;
    assert_eq!(cached(&informer.lister()), ["a4", "c9"]);
    assert!(Arc::ptr_eq(&before, &informer.lister().get(("n", "a")).unwrap()), "not decoded anew");
    assert!(informer.last_error().is_none());
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        told.push(format!("{event:?}"));
        if let Event::Deleted { certain, .. } = event {
            assert!(!certain, "nobody saw it go");
        }
    }
    let expected = [r#"Added("n/a")"#, r#"Added("n/b")"#, r#"Deleted("n/b")"#, r#"Added("n/c")"#];
    assert_eq!(told, expected);
    subscription.remove().await;
}

#[tokio::test(start_paused = true)]
async fn refused_watch_keeps_the_cache_and_backs_off_without_a_list() {
    for code in [401, 403, 404, 500] {
        let (server, informer, watch) = following().await;
        watch.tear();
        let mut waits = Vec::new();
        for _ in 0..6 {
            let (text, waited, request) = asked(&server).await;
            assert_eq!(text, r#"watch Some("5")"#);
            waits.push(waited);
            let request = watch_of(request);
            request.refuse(Refusal::new(code, "", "no"));
        }
        assert!((0..).zip(&waits).all(|(step, waited)| is_step(*waited, step)), "{waits:?}");
        assert_eq!(cached(&informer.lister()), ["a4"]);
    }
}

#[tokio::test(start_paused = true)]
async fn forbidden_kind_never_syncs_and_says_why() {
    let (server, informer) = start(1);
    let refusal = || Refusal::new(403, "Forbidden", "pods is forbidden");
    for _ in 0..3 {
        server.expect_watch().await.refuse(refusal());
        server.expect_list().await.refuse(refusal());
    }
    settle().await;
    assert!(!informer.has_synced());
    assert_eq!(
        informer.last_error().unwrap().to_string(),
        "cannot list scripted objects: forbidden: pods is forbidden"
    );
    let _watch = server.expect_watch().await.serve([], "1");
    assert!(informer.synced().await && informer.last_error().is_none());
}

#[tokio::test(start_paused = true)]
async fn busy_server_is_left_alone_as_long_as_it_asks() {
    let (server, _informer, watch) = following().await;
    let busy =
        || Refusal::new(429, "TooManyRequests", "").with_retry_after(Duration::from_secs(20));
    watch.end_with(busy());
    let (text, waited, request) = asked(&server).await;
    assert!(text == r#"watch Some("5")"# && waited >= Duration::from_secs(20), "{text} {waited:?}");
    let request = watch_of(request);
    request.refuse(busy());
    assert!(asked(&server).await.1 >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn silent_watch_is_given_up_soon_after_its_time() {
    let (server, _informer, _watch) = following().await;
    let (text, waited, request) = asked(&server).await;
    // Not a bookmark in all the time: nobody knows whether that version is still of this server.
    assert_eq!(text, r#"watch-list Some("5")"#);
    let range = Duration::from_secs(305)..Duration::from_secs(606);
    assert!(range.contains(&waited), "{waited:?}");
    let request = watch_of(request);
    let asked_for = request.request().timeout;
    let _watch = request.serve([pod("a", "4")], "5");
    let waited = asked(&server).await.1;
    assert_eq!(waited.as_secs(), (asked_for + Duration::from_secs(5)).as_secs());
}

#[tokio::test(start_paused = true)]
async fn request_without_an_answer_is_given_up() {
    let (server, _informer) = start(1);
    let unanswered = server.expect_watch().await;
    let (text, waited, _) = asked(&server).await;
    assert_eq!((text.as_str(), waited.as_secs()), ("list None Some(500) None", 75));
    drop(unanswered);
}

#[tokio::test(start_paused = true)]
async fn server_that_never_completes_the_state_is_listed_instead() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.apply(pod("a", "1"));
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited.as_secs()), ("list None Some(500) None", 30));
    let ScriptedRequest::List(list) = request else { panic!() };
    list.serve([pod("a", "1")], "5");
    assert!(informer.synced().await);
    assert_eq!(asked(&server).await.0, r#"watch Some("5")"#);
}

#[tokio::test(start_paused = true)]
async fn chatty_server_that_never_completes_the_state_is_listed_too() {
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
        (text, waited, _) = asked(&server) => {
            assert_eq!((text.as_str(), waited.as_secs()), ("list None Some(500) None", 120));
        }
        () = chat => {}
    }
}

#[tokio::test(start_paused = true)]
async fn list_goes_page_by_page_and_is_one_step() {
    let (server, informer) = start(1);
    server.expect_watch().await.refuse(Refusal::new(422, "Invalid", "sendInitialEvents"));
    let page = |name: &str, token: Option<&str>| {
        let mut page = Page::new(vec![Decoded::Fits(Arc::new(pod(name, "1")))], "5");
        page.continue_token = token.map(Into::into);
        page
    };
    server.expect_list().await.reply(page("a", Some("more")));
    let (text, _, request) = asked(&server).await;
    assert_eq!(text, r#"list None Some(500) Some("more")"#);
    assert!(informer.lister().is_empty());
    let ScriptedRequest::List(list) = request else { panic!() };
    list.refuse(Refusal::new(410, "Expired", "continue token"));
    let (text, waited, request) = asked(&server).await;
    assert_eq!((text.as_str(), waited), ("list None None None", Duration::ZERO));
    let ScriptedRequest::List(list) = request else { panic!() };
    list.serve([pod("a", "1"), pod("b", "2")], "6");
    assert!(informer.synced().await);
    assert_eq!(cached(&informer.lister()), ["a1", "b2"]);
}

#[tokio::test(start_paused = true)]
async fn corrupt_stream_is_read_again_and_listed_after_three_times() {
    let (server, _informer, watch) = following().await;
    let corrupt = || WatchError::Corrupt { target: "pods".into(), error: "no JSON".into() };
    watch.fail(corrupt());
    for _ in 0..2 {
        let (text, waited, request) = asked(&server).await;
        assert!(text == r#"watch Some("5")"# && !waited.is_zero(), "{text} {waited:?}");
        open(request).fail(corrupt());
    }
    assert_eq!(asked(&server).await.0, r#"watch-list Some("5")"#);
}

#[tokio::test(start_paused = true)]
async fn deletion_during_the_first_state_leaves_no_object() {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.open();
    watch.apply(pod("a", "1"));
    watch.apply(pod("b", "2"));
    watch.delete(pod("a", "3"));
    watch.apply(pod("b", "4"));
    let end = WatchEvent::Bookmark { resource_version: "5".into(), initial_events_end: true };
    watch.send(vec![end]);
    assert!(informer.synced().await);
    assert_eq!(cached(&informer.lister()), ["b4"]);
}

#[tokio::test(start_paused = true)]
async fn same_seed_waits_the_same_and_another_one_differently() {
    async fn waits(seed: u64) -> Vec<Duration> {
        let (server, informer) = start(seed);
        let mut waits = Vec::new();
        for _ in 0..6 {
            let (_, waited, request) = asked(&server).await;
            waits.push(waited);
            let request = watch_of(request);
            request.refuse(Refusal::new(429, "", ""));
        }
        informer.stop().await;
        waits
    }
    assert_eq!(waits(3).await, waits(3).await);
    assert_ne!(waits(3).await, waits(4).await);
}

#[tokio::test(start_paused = true)]
async fn unchanged_object_is_not_held_twice_while_a_list_goes_on() {
    let server = Server::new();
    let informer = SharedIndexInformer::builder(server.clone()).watch_list(false).build();
    informer.start();
    server.expect_list().await.serve([pod("a", "4")], "5");
    server.expect_watch().await.open().end_with(Refusal::new(410, "Expired", ""));
    let again = Arc::new(pod("a", "4"));
    let mut page = Page::new(vec![Decoded::Fits(Arc::clone(&again))], "9");
    page.continue_token = Some("more".into());
    server.expect_list().await.reply(page);
    let _unanswered = server.expect_list().await;
    assert_eq!(Arc::strong_count(&again), 1, "the cached one took its place at once");
}
