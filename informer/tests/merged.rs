//! Several collections behind one informer, under a paused clock.

use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::list_watch::{ApiError, MergedListWatch};
use homeostat_informer::testing::{ScriptedListWatch, ScriptedWatch};
use homeostat_informer::{Event, ResourceVersion, SharedIndexInformer};
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};

type Server = ScriptedListWatch<Pod>;

fn pod(namespace: &str, name: &str, version: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(name.into());
    pod.metadata.namespace = Some(namespace.into());
    pod.metadata.resource_version = Some(version.into());
    pod
}

async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

fn cached(informer: &SharedIndexInformer<Pod>) -> Vec<String> {
    let text = |pod: &Arc<Pod>| {
        let metadata = &pod.metadata;
        let parts = [&metadata.namespace, &metadata.name, &metadata.resource_version];
        parts.map(|part| part.clone().unwrap_or_default()).join(" ")
    };
    let mut all: Vec<_> = informer.lister().list().iter().map(text).collect();
    all.sort();
    all
}

fn version(informer: &SharedIndexInformer<Pod>) -> String {
    informer.store_resource_version().map(|version| version.to_string()).unwrap_or_default()
}

/// Returns an informer of two namespaces with one pod each, at the versions 10 and 12.
async fn following(
    one: &Server,
    two: &Server,
) -> (SharedIndexInformer<Pod>, ScriptedWatch<Pod>, ScriptedWatch<Pod>) {
    let merged = MergedListWatch::new([one.clone(), two.clone()]);
    let informer = SharedIndexInformer::builder(merged).name("pods").build();
    informer.start();
    let first = one.expect_watch().await.serve([pod("one", "a", "3")], "10");
    settle().await;
    assert!(!informer.has_synced(), "the second namespace is missing");
    let second = two.expect_watch().await.serve([pod("two", "a", "4")], "12");
    assert!(informer.wait_for_sync().await);
    (informer, first, second)
}

/// Expects the watch of the first namespace to stay open while only the second one sends bookmarks,
/// for longer than a watch of a single collection may be silent.
async fn assert_stays_open(
    informer: &SharedIndexInformer<Pod>,
    one: &Server,
    second: &ScriptedWatch<Pod>,
) {
    let deliver = async {
        for version in 30..57 {
            sleep(Duration::from_secs(10)).await;
            second.bookmark(&version.to_string());
        }
    };
    tokio::select! {
        _again = one.expect_watch() => panic!("the watch was closed: {:?}", informer.last_error()),
        () = deliver => {}
    }
}

/// Expects the version of the first namespace to stay, and its watch to resume there after that of
/// the second namespace has broken off.
async fn assert_resumes_at_10(
    informer: &SharedIndexInformer<Pod>,
    one: &Server,
    second: ScriptedWatch<Pod>,
) {
    settle().await;
    assert_eq!(version(informer), "10", "an event of the first namespace may be on its way");
    second.tear();
    let again = one.expect_watch().await;
    let since = again.request().resource_version.as_ref();
    assert_eq!(since.map(ResourceVersion::as_str), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn version_is_that_of_the_namespace_that_is_behind() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, first, second) = following(&one, &two).await;
    assert_eq!(
        (cached(&informer), version(&informer)),
        (vec!["one a 3".into(), "two a 4".into()], "10".into())
    );
    second.apply(pod("two", "b", "20"));
    settle().await;
    assert_eq!(cached(&informer), ["one a 3", "two a 4", "two b 20"], "it arrives at once");
    assert_eq!(version(&informer), "10", "an event of the first namespace may be on its way");
    first.apply(pod("one", "b", "15"));
    settle().await;
    assert_eq!(version(&informer), "15");
    first.bookmark("30");
    settle().await;
    assert_eq!(version(&informer), "20");
}

#[tokio::test(start_paused = true)]
async fn all_parts_resume_after_a_version_that_all_have_reached() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, first, second) = following(&one, &two).await;
    let log = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&log);
    let subscription = informer.add_handler("log", move |event: Event<Pod>| {
        events.lock().push(format!("{event:?}"));
    });
    second.apply(pod("two", "b", "20"));
    settle().await;
    first.tear();
    let first = one.expect_watch().await;
    assert_eq!(first.request().resource_version.as_ref().unwrap().as_str(), "10");
    let first = first.open();
    let again = two.expect_watch().await;
    assert_eq!(again.request().resource_version.as_ref().unwrap().as_str(), "10");
    let again = again.open();
    first.apply(pod("one", "b", "11"));
    again.apply(pod("two", "b", "20"));
    settle().await;
    assert_eq!(version(&informer), "11");
    assert_eq!(cached(&informer), ["one a 3", "one b 11", "two a 4", "two b 20"]);
    let added = ["one/a", "two/a", "two/b", "one/b"].map(|key| format!("Added({key:?})"));
    let mut seen = log.lock().clone();
    seen[..2].sort();
    assert_eq!(seen, added, "a repeated event is delivered once");
    subscription.remove().await;
}

#[tokio::test(start_paused = true)]
async fn parts_are_listed_one_after_the_other() {
    let (one, two) = (Server::new(), Server::new());
    let merged = MergedListWatch::new([one.clone(), two.clone()]);
    let informer = SharedIndexInformer::builder(merged).watch_list(false).build();
    assert_eq!(&**informer.name(), "scripted objects, scripted objects");
    informer.start();
    one.expect_list().await.serve([pod("one", "a", "3")], "10");
    let expired = ApiError::new(410, "Expired", "").with_continue_token("later");
    let list = two.expect_list().await;
    assert_eq!(list.request().continue_token, None);
    let mut page = homeostat_informer::list_watch::Page::new(vec![], "12");
    page.continue_token = Some("more".into());
    list.reply(page);
    two.expect_list().await.refuse(expired);
    let list = two.expect_list().await;
    assert_eq!(list.request().continue_token.as_deref(), Some("later"));
    list.serve([pod("two", "a", "4")], "14");
    assert!(informer.wait_for_sync().await);
    assert_eq!(cached(&informer), ["one a 3", "two a 4"]);
    let watch = one.expect_watch().await;
    assert_eq!(watch.request().resource_version.as_ref().unwrap().as_str(), "10");
}

#[tokio::test(start_paused = true)]
async fn events_of_an_unordered_part_carry_no_version() {
    let (one, two) = (Server::new(), Server::new());
    let inner = MergedListWatch::new([one.clone(), two.clone()]);
    let informer = SharedIndexInformer::builder(MergedListWatch::new([inner])).build();
    informer.start();
    let first = one.expect_watch().await.serve([pod("one", "a", "3")], "10");
    let second = two.expect_watch().await.serve([pod("two", "a", "4")], "12");
    assert!(informer.wait_for_sync().await);
    second.apply(pod("two", "b", "20"));
    assert_resumes_at_10(&informer, &one, second).await;
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn nameless_object_of_one_part_does_not_advance_the_others() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, first, second) = following(&one, &two).await;
    second.apply(pod("two", "", "20"));
    assert_resumes_at_10(&informer, &one, second).await;
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn more_than_a_hundred_empty_collections_are_listed() {
    let servers: Vec<_> = (0..150).map(|_| Server::new()).collect();
    let merged = MergedListWatch::new(servers.iter().cloned());
    let informer = SharedIndexInformer::builder(merged).watch_list(false).build();
    informer.start();
    for (server, version) in servers.iter().zip(10..) {
        server.expect_list().await.serve([], &version.to_string());
    }
    assert!(informer.wait_for_sync().await);
    assert_eq!(version(&informer), "10");
}

#[tokio::test(start_paused = true)]
async fn watches_of_all_parts_are_opened_at_the_same_time() {
    let servers: Vec<_> = (0..100).map(|_| Server::new()).collect();
    let merged = MergedListWatch::new(servers.iter().cloned());
    let informer = SharedIndexInformer::builder(merged).build();
    informer.start();
    // Each server answers after a second; together they would exceed the limit of 75 s.
    let mut watches = Vec::new();
    for server in &servers {
        watches.push(timeout(Duration::from_millis(1), server.expect_watch()).await.unwrap());
    }
    sleep(Duration::from_secs(1)).await;
    let _watches: Vec<_> = watches.into_iter().map(|watch| watch.serve([], "10")).collect();
    assert!(timeout(Duration::from_secs(1), informer.wait_for_sync()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn bookmarks_that_repeat_a_version_keep_a_quiet_watch_open() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, first, second) = following(&one, &two).await;
    for _ in 0..5 {
        sleep(Duration::from_secs(50)).await;
        first.bookmark("12");
        second.bookmark("12");
    }
    settle().await;
    assert!(informer.last_error().is_none(), "{:?}", informer.last_error());
    assert_eq!(version(&informer), "12");
}

#[tokio::test(start_paused = true)]
async fn part_without_bookmarks_is_silent_although_another_part_sends_some() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, first, second) = following(&one, &two).await;
    first.bookmark("12");
    second.bookmark("12");
    for _ in 0..3 {
        sleep(Duration::from_secs(50)).await;
        second.bookmark("12");
    }
    sleep(Duration::from_secs(31)).await;
    let error = informer.last_error().expect("the watch has ended");
    assert!(error.to_string().contains("silent for 180s"), "{error}");
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn silent_part_is_noticed_while_another_delivers() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, first, second) = following(&one, &two).await;
    first.bookmark("20");
    second.bookmark("20");
    let silent = Instant::now();
    let deliver = async {
        for version in 21.. {
            sleep(Duration::from_secs(10)).await;
            second.apply(pod("two", "b", &version.to_string()));
        }
    };
    let again = tokio::select! {
        again = one.expect_watch() => again,
        () = deliver => unreachable!("it never ends"),
    };
    assert_eq!(silent.elapsed().as_secs(), 180, "three bookmarks are missing");
    assert_eq!(again.request().resource_version.as_ref().unwrap().as_str(), "20");
    let error = informer.last_error().unwrap().to_string();
    assert!(error.contains("180s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn part_without_bookmarks_may_be_silent_after_an_event() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, first, second) = following(&one, &two).await;
    first.apply(pod("one", "b", "20"));
    assert_stays_open(&informer, &one, &second).await;
    assert_eq!(version(&informer), "20");
}

#[tokio::test(start_paused = true)]
async fn replay_of_one_part_is_continued_after_a_break() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, first, second) = following(&one, &two).await;
    first.bookmark("30");
    second.bookmark("30");
    settle().await;
    assert_eq!(version(&informer), "30");
    first.apply(pod("one", "deleted", "20"));
    second.bookmark("30");
    settle().await;
    assert!(cached(&informer).contains(&"one deleted 20".to_owned()), "{:?}", cached(&informer));
    first.tear();
    let first = one.expect_watch().await;
    assert_eq!(first.request().resource_version.as_ref().unwrap().as_str(), "20");
    let first = first.open();
    let _second = two.expect_watch().await.open();
    first.delete(pod("one", "deleted", "25"));
    settle().await;
    assert_eq!(cached(&informer), ["one a 3", "two a 4"]);
}

#[tokio::test(start_paused = true)]
async fn part_without_bookmarks_may_be_silent() {
    let (one, two) = (Server::new(), Server::new());
    let (informer, _first, second) = following(&one, &two).await;
    assert_stays_open(&informer, &one, &second).await;
}
