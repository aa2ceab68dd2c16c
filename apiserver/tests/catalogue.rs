//! Every fault of the catalogue, on the embedded server under a paused clock.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use homeostat_apiserver::{ApiServer, Lag, ServerFault};
use homeostat_faults::{ApiError, Break, Calls, Chaos, CrashPoint, Cut, Faults, Lost, Verb};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_client::api::{ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube_client::{Api, Client, Error};
use kube_core::WatchEvent;
use kube_core::params::{GetParams, VersionMatch};
use serde_json::json;
use tokio::time::{Instant, timeout};

type Maps = Api<ConfigMap>;
type Events = BoxStream<'static, Result<WatchEvent<ConfigMap>, Error>>;

/// Shorter than the bookmark period.
const SHORT: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(3600);

fn setup() -> (ApiServer, Faults, Maps, Maps) {
    let server = ApiServer::builder().seed(1).build();
    let (me, user) = (server.client_as("me"), server.client());
    let faults = server.faults();
    (server, faults, Api::default_namespaced(me), Api::default_namespaced(user))
}

fn map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

async fn create(maps: &Maps, name: &str) -> Result<ConfigMap, Error> {
    maps.create(&PostParams::default(), &map(name)).await
}

async fn version(maps: &Maps) -> String {
    maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap()
}

async fn watch(maps: &Maps, from: &str) -> Events {
    maps.watch(&WatchParams::default(), from).await.unwrap().boxed()
}

fn describe(event: Option<Result<WatchEvent<ConfigMap>, Error>>) -> String {
    let name = |map: ConfigMap| map.metadata.name.unwrap();
    match event {
        None => "end".to_owned(),
        Some(Err(error)) => format!("broken: {}", error.to_string().split(':').next().unwrap()),
        Some(Ok(WatchEvent::Added(map))) => format!("added {}", name(map)),
        Some(Ok(WatchEvent::Modified(map))) => format!("modified {}", name(map)),
        Some(Ok(WatchEvent::Deleted(map))) => format!("deleted {}", name(map)),
        Some(Ok(WatchEvent::Bookmark(mark))) => format!("at {}", mark.metadata.resource_version),
        Some(Ok(WatchEvent::Error(status))) => format!("error {}", status.code),
    }
}

fn code(error: &Error) -> u16 {
    match error {
        Error::Api(status) => status.code,
        _ => 0,
    }
}

#[tokio::test(start_paused = true)]
async fn lost_request_and_lost_reply_give_the_same_error() {
    let (_server, faults, mine, all) = setup();
    faults.lose_request(Calls::create("configmaps").by("me"));
    faults.lose_reply(Calls::create("configmaps").by("me").nth(2));
    let before = create(&mine, "a").await.unwrap_err();
    let after = create(&mine, "b").await.unwrap_err();
    assert_eq!(before.to_string(), after.to_string());
    assert!(all.get_opt("a").await.unwrap().is_none());
    assert!(all.get_opt("b").await.unwrap().is_some());
    let trace = faults.trace();
    let lines: Vec<String> = trace.entries().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "    0.000000 me#1 create configmaps in default: request lost",
            "    0.000000 me#2 create configmaps in default: reply lost (201 Created)",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn rule_hits_only_the_client_that_it_names() {
    let (server, faults, mine, _) = setup();
    let yours = Maps::default_namespaced(server.client_as("you"));
    faults.refuse(Calls::create("configmaps").by("you").always(), ApiError::unavailable());
    create(&mine, "a").await.unwrap();
    assert_eq!(code(&create(&yours, "b").await.unwrap_err()), 503);
}

#[tokio::test(start_paused = true)]
async fn request_is_processed_when_its_reply_is_replaced_cut_corrupted_or_withheld() {
    let (_server, faults, mine, all) = setup();
    faults.replace_reply(Calls::create("configmaps"), ApiError::timeout());
    faults.truncate_reply(Calls::create("configmaps").nth(2), 10);
    faults.corrupt_reply(Calls::create("configmaps").nth(3), 50);
    faults.withhold_reply(Calls::create("configmaps").nth(4));
    assert_eq!(code(&create(&mine, "a").await.unwrap_err()), 504);
    create(&mine, "b").await.unwrap_err();
    create(&mine, "c").await.unwrap_err();
    timeout(LONG, create(&mine, "d")).await.unwrap_err();
    for name in ["a", "b", "c", "d"] {
        all.get(name).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn write_first_causes_a_conflict_that_a_new_read_resolves() {
    let (server, faults, mine, _) = setup();
    faults.write_first(Calls::update("configmaps").by("me"), server.client());
    let read = create(&mine, "a").await.unwrap();
    let conflict = mine.replace("a", &PostParams::default(), &read).await.unwrap_err();
    assert_eq!(code(&conflict), 409);
    let mut again = mine.get("a").await.unwrap();
    assert_ne!(again.metadata.resource_version, read.metadata.resource_version);
    again.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
    mine.replace("a", &PostParams::default(), &again).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stale_reads_return_an_older_state() {
    let (server, _, mine, _) = setup();
    create(&mine, "a").await.unwrap();
    let old = version(&mine).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    create(&mine, "b").await.unwrap();
    server.stale_reads(Calls::list("configmaps").by("me"), Lag::Revisions(1));
    server
        .stale_reads(Calls::list("configmaps").by("me").nth(2), Lag::Time(Duration::from_secs(5)));
    server.stale_reads(Calls::get("configmaps").by("me"), Lag::Revisions(1));
    for _ in 0..2 {
        let stale = mine.list(&ListParams::default()).await.unwrap();
        assert_eq!(stale.metadata.resource_version.as_ref(), Some(&old));
        assert_eq!(stale.items.len(), 1);
    }
    assert!(mine.get_opt("b").await.unwrap().is_none());
    assert_eq!(mine.list(&ListParams::default()).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn client_of_a_lagging_server_sees_an_older_state_until_it_catches_up() {
    let (server, _, mine, all) = setup();
    create(&all, "a").await.unwrap();
    let view = server.lagging_view();
    let mut before = watch(&mine, &version(&mine).await).await;
    server.move_client("me", &view);
    assert_eq!(describe(before.next().await), "end");
    create(&all, "b").await.unwrap();
    let now = version(&all).await;

    let any = ListParams { resource_version: Some("0".to_owned()), ..ListParams::default() };
    assert_eq!(mine.list(&any).await.unwrap().items.len(), 1, "the cache");
    assert_eq!(version(&mine).await, now, "the store");
    let strict = ListParams::default().at(&now).matching(VersionMatch::NotOlderThan);
    let late = mine.list(&strict).await.unwrap_err();
    assert_eq!(code(&late), 504);
    assert!(mine.get_with("b", &GetParams::any()).await.is_err());
    let mut events = watch(&mine, "0").await;
    assert_eq!(describe(events.next().await), "added a");
    // The end of the initial objects.
    assert_eq!(describe(events.next().await), format!("at {}", view.revision()));
    timeout(SHORT, events.next()).await.unwrap_err();

    view.advance_to(now.parse().unwrap());
    assert_eq!(describe(events.next().await), "added b");
    server.move_back("me");
    assert_eq!(describe(events.next().await), "end");
    assert_eq!(mine.list(&any).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn lagging_server_shows_the_present_once_its_state_is_compacted() {
    let (server, _, mine, all) = setup();
    let view = server.lagging_view();
    server.move_client("me", &view);
    create(&all, "a").await.unwrap();
    let any = ListParams { resource_version: Some("0".to_owned()), ..ListParams::default() };
    assert!(mine.list(&any).await.unwrap().items.is_empty());
    server.compact();
    assert_eq!(mine.list(&any).await.unwrap().items.len(), 1);
    mine.get_with("a", &GetParams::any()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watch_ends_after_every_second_event() {
    let (_server, faults, mine, _) = setup();
    faults.break_watches(Calls::watch("configmaps").always(), Cut::Events(2), Break::End);
    let from = version(&mine).await;
    for name in ["a", "b", "c"] {
        create(&mine, name).await.unwrap();
    }
    for _ in 0..2 {
        let seen: Vec<_> =
            watch(&mine, &from).await.map(|event| describe(Some(event))).collect().await;
        assert_eq!(seen, ["added a", "added b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn watch_that_breaks_at_any_byte_delivers_all_events_before() {
    let (_server, faults, mine, _) = setup();
    let from = version(&mine).await;
    for name in ["a", "b"] {
        create(&mine, name).await.unwrap();
    }
    let stream_bytes = 700;
    let mut counts = Vec::new();
    for at in (0..stream_bytes).step_by(7) {
        faults.break_watches("configmaps", Cut::Bytes(at), Break::Reset);
        let mut events = watch(&mine, &from).await;
        let mut good = 0;
        loop {
            match timeout(Duration::from_secs(1), events.next()).await {
                Ok(Some(Ok(_))) => good += 1,
                // The watch breaks. If the byte is after the last event, nothing arrives.
                Ok(Some(Err(_))) => break,
                Err(_) if good == 2 => break,
                other => panic!("at byte {at}: {other:?}"),
            }
        }
        counts.push(good);
        if good == 2 {
            break;
        }
    }
    assert!(counts.is_sorted() && counts[0] == 0 && counts.contains(&1), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn watch_is_refused_corrupted_stalled_or_delayed() {
    let (_server, faults, mine, _) = setup();
    let from = version(&mine).await;
    create(&mine, "a").await.unwrap();
    let rule = Calls::watch("configmaps");
    faults.break_watches(rule.clone(), Cut::Events(1), Break::Error(ApiError::internal_error()));
    faults.corrupt_watches(rule.clone().nth(2), 30);
    faults.break_watches(rule.clone().nth(3), Cut::Events(0), Break::Stall);
    faults.delay_events(rule.clone().nth(4), Duration::from_secs(7));
    faults.refuse(rule.clone().nth(5), ApiError::cache_not_ready());

    let mut events = watch(&mine, &from).await;
    assert_eq!(describe(events.next().await), "added a");
    assert_eq!(describe(events.next().await), "error 500");
    assert!(watch(&mine, &from).await.next().await.unwrap().is_err());
    let mut silent = watch(&mine, &from).await;
    timeout(LONG, silent.next()).await.unwrap_err();
    let start = Instant::now();
    assert_eq!(describe(watch(&mine, &from).await.next().await), "added a");
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    let Err(refused) = mine.watch(&WatchParams::default(), &from).await else { panic!("open") };
    assert_eq!(code(&refused), 429);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_dropped_or_run_ahead() {
    let (server, faults, mine, _) = setup();
    let from = version(&mine).await;
    faults.drop_bookmarks("configmaps");
    let mut without = watch(&mine, &from).await;
    let mut with = watch(&mine, &from).await;
    server.advance_revision(1000);
    server.bookmark_watches();
    let ahead = from.parse::<u64>().unwrap() + 1000;
    assert_eq!(describe(with.next().await), format!("at {ahead}"));
    timeout(Duration::from_secs(200), without.next()).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn rewound_watch_repeats_events() {
    let (_server, faults, mine, _) = setup();
    create(&mine, "a").await.unwrap();
    create(&mine, "b").await.unwrap();
    faults.rewind_watches("configmaps", 1);
    assert_eq!(describe(watch(&mine, &version(&mine).await).await.next().await), "added b");
}

#[tokio::test(start_paused = true)]
async fn compaction_and_restart_happen_at_the_selected_request() {
    let (server, faults, mine, _) = setup();
    let from = version(&mine).await;
    let open = watch(&mine, &from).await;
    server.fault_after(Calls::create("configmaps"), ServerFault::Restart);
    server.fault_before(Calls::create("configmaps").nth(2), ServerFault::ExpireHistory);
    create(&mine, "a").await.unwrap();
    let ended: Vec<_> = timeout(SHORT, open.collect()).await.unwrap();
    assert!(ended.len() <= 1, "more than the event of the create");
    assert_eq!(describe(watch(&mine, &from).await.next().await), "error 410");
    let between = version(&mine).await;
    create(&mine, "b").await.unwrap();
    assert_eq!(describe(watch(&mine, &between).await.next().await), "added b");
    assert_eq!(faults.trace().messages().len(), 2, "{}", faults.trace());
}

#[tokio::test(start_paused = true)]
async fn restarting_server_refuses_watches_and_serves_consistent_lists() {
    let (server, _, mine, _) = setup();
    server.restart_slowly(Duration::from_secs(5));
    let Err(refused) = mine.watch(&WatchParams::default(), "0").await else { panic!("open") };
    assert_eq!(code(&refused), 429);
    version(&mine).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(mine.watch(&WatchParams::default(), "0").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn longest_times_are_later_and_earlier_than_all_others() {
    let (server, _, mine, _) = setup();
    create(&mine, "a").await.unwrap();
    server.stale_reads(Calls::list("configmaps").by("me"), Lag::Time(Duration::MAX));
    assert!(mine.list(&ListParams::default()).await.unwrap().items.is_empty());
    server.restart_slowly(Duration::MAX);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let Err(refused) = mine.watch(&WatchParams::default(), "0").await else { panic!("open") };
    assert_eq!(code(&refused), 429);
}

#[tokio::test(start_paused = true)]
async fn restored_server_reuses_resource_versions() {
    let (server, _, mine, _) = setup();
    create(&mine, "a").await.unwrap();
    let backup = server.backup();
    create(&mine, "b").await.unwrap();
    let from = version(&mine).await;
    let mut open = watch(&mine, &from).await;
    server.restore(&backup);
    assert_eq!(describe(open.next().await), "end");
    assert_eq!(version(&mine).await, backup.revision().to_string());
    assert!(mine.get_opt("b").await.unwrap().is_none());
    // A watch that continues at its old version misses the objects that reuse earlier versions.
    let mut blind = watch(&mine, &from).await;
    create(&mine, "c").await.unwrap();
    create(&mine, "d").await.unwrap();
    assert_eq!(describe(blind.next().await), "added d");
}

#[tokio::test(start_paused = true)]
async fn partition_loses_requests_or_replies_until_it_ends() {
    let (_server, faults, mine, all) = setup();
    let mut open = watch(&mine, &version(&mine).await).await;
    let cut = faults.partition("me", Lost::Requests);
    timeout(SHORT, create(&mine, "a")).await.unwrap_err();
    drop(cut);
    let cut = faults.partition("me", Lost::Replies);
    timeout(SHORT, create(&mine, "b")).await.unwrap_err();
    timeout(Duration::from_secs(9), open.next()).await.unwrap_err();
    drop(cut);
    assert_eq!(describe(open.next().await), "added b");
    assert_eq!(all.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn crash_freezes_the_client_and_not_its_successor() {
    for point in CrashPoint::all(2) {
        let (server, faults, mine, all) = setup();
        let mut open = watch(&mine, &version(&mine).await).await;
        let crash = faults.crash_at("me", point);
        let work = async {
            create(&mine, "a").await.unwrap();
            create(&mine, "b").await.unwrap();
        };
        tokio::select! {
            biased;
            () = work => panic!("the client did not crash"),
            () = crash.reached() => {}
        }
        let done = all.list(&ListParams::default()).await.unwrap().items.len();
        let expected =
            [(CrashPoint::Before(1), 0), (CrashPoint::After(1), 1), (CrashPoint::Before(2), 1)];
        let expected = expected.iter().find(|(known, _)| *known == point).map_or(2, |(_, n)| *n);
        assert_eq!(done, expected, "{point}");
        timeout(SHORT, mine.get("a")).await.unwrap_err();
        create(&all, "z").await.unwrap();
        timeout(Duration::from_secs(9), open.next()).await.unwrap_err();

        let successor = Maps::default_namespaced(server.client_as("me"));
        create(&successor, "y").await.unwrap();
        assert_eq!(faults.mutations("me"), point.call() + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn chaos_depends_on_the_seed_only() {
    let run = async |seed| {
        let server = ApiServer::builder().seed(seed).build();
        let faults = server.faults();
        faults.trace_traffic();
        faults.chaos(Calls::any().by("me"), Chaos::of(0.5));
        let maps = Maps::default_namespaced(server.client_as("me"));
        for n in 0..40 {
            drop(create(&maps, &format!("m{n}")).await);
            let label = json!({ "metadata": { "labels": { "n": n.to_string() } } });
            drop(maps.patch("m0", &PatchParams::default(), &Patch::Merge(label)).await);
        }
        if let Ok(events) = maps.watch(&WatchParams::default(), "0").await {
            drop(timeout(LONG, events.try_for_each(async |_| Ok(()))).await);
        }
        (faults.trace().to_string(), faults.trace().faults())
    };
    let (first, faults) = run(1).await;
    assert_eq!(first, run(1).await.0);
    assert_ne!(first, run(2).await.0);
    assert!((20..60).contains(&faults), "{faults} of 81 requests:\n{first}");
}

#[tokio::test(start_paused = true)]
async fn faults_over_a_pipe_break_the_http_framing_in_paused_time() {
    let server = ApiServer::builder().seed(1).build();
    let faults = server.faults();
    let pipes = server.duplex();
    let maps = Maps::default_namespaced(pipes.client_as("me"));
    let from = version(&maps).await;
    create(&maps, "a").await.unwrap();
    faults.lose_reply(Calls::create("configmaps").by("me"));
    create(&maps, "b").await.unwrap_err();
    faults.truncate_reply(Calls::get("configmaps").by("me"), 20);
    maps.get("a").await.unwrap_err();

    faults.break_watches("configmaps", Cut::Bytes(100), Break::Reset);
    let torn = watch(&maps, &from).await.next().await;
    // kube reads an incomplete chunk as the end of the stream.
    assert!(torn.is_none_or(|event| event.is_err()));
    let start = Instant::now();
    let mut events = watch(&maps, &from).await;
    assert_eq!(describe(events.next().await), "added a");
    assert_eq!(describe(events.next().await), "added b");
    let marks = events.take(2).count().await;
    assert_eq!(
        (marks, start.elapsed() > Duration::from_secs(100)),
        (2, true),
        "two bookmarks, a minute apart"
    );
    assert_eq!(faults.count(Verb::Watch, "configmaps"), 2);
    drop(pipes);
    maps.get("a").await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn faults_work_around_the_client_of_any_server() {
    // The faults wrap the client, as for a foreign server.
    let server = ApiServer::builder().seed(1).build();
    let faults = Faults::seeded(3);
    let client: Client = faults.client_as("me", server.client());
    let maps = Maps::default_namespaced(client);
    faults.chaos(Calls::create("configmaps").by("me"), Chaos::of(0.0));
    faults.lose_reply(Calls::create("configmaps").by("me").nth(2));
    create(&maps, "a").await.unwrap();
    create(&maps, "b").await.unwrap_err();
    assert_eq!(faults.trace().faults(), 1);
    assert_eq!(server.faults().count(Verb::Create, "configmaps"), 2);
}
