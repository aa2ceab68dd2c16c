//! One schedule for each promise of the consistency store.

#[path = "support/recorder.rs"]
mod recorder;

use std::time::Duration;

use homeostat_expectations::{ConsistencyStore, GroupResource, Missing, Readiness};
use tokio::time::{Instant, advance};

use self::recorder::Recorder;

type Store = ConsistencyStore<&'static str, &'static str>;

const KEY: &str = "default/web";
const UID: &str = "uid-1";
const NOBODY: [&str; 0] = [];

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn sets() -> GroupResource {
    GroupResource::new("apps", "replicasets")
}

/// A store whose caches of pods and sets are at these versions.
fn at(pods_at: &str, sets_at: &str) -> Store {
    let store = Store::new("test", [sets(), pods()]);
    assert_eq!(store.reached(&pods(), pods_at), NOBODY);
    assert_eq!(store.reached(&sets(), sets_at), NOBODY);
    store
}

fn ready(store: &Store) -> bool {
    store.ready(&KEY, &UID) == Readiness::Ready
}

fn missing(store: &Store) -> Missing {
    match store.ready(&KEY, &UID) {
        Readiness::Waiting { missing: Some(missing), .. } => missing,
        other => panic!("{other:?}"),
    }
}

fn empty(store: &Store) -> bool {
    format!("{store:?}").contains("owners: 0")
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

// === what is waited for ===

#[test]
fn who_has_written_nothing_is_ready() {
    let store = at("10", "10");
    assert!(ready(&store) && empty(&store));
}

#[test]
fn key_is_woken_by_the_version_it_waits_for_and_by_none_before() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    let gap = missing(&store);
    assert_eq!(gap.to_string(), "the cache of pods is at 10 and has yet to reach 12");
    assert_eq!(store.reached(&pods(), "11"), NOBODY);
    assert_eq!(missing(&store).read, "11");
    assert_eq!(store.reached(&sets(), "99"), NOBODY, "another resource");
    assert_eq!(store.reached(&pods(), "12"), [KEY]);
    assert!(ready(&store) && empty(&store));
    assert_eq!(store.reached(&pods(), "13"), NOBODY, "once");
}

#[test]
fn version_that_goes_past_what_was_written_wakes_too() {
    let store = at("9", "9");
    store.wrote_at(&KEY, &UID, &pods(), "10");
    assert!(!ready(&store));
    assert_eq!(store.reached(&pods(), "1000"), [KEY]);
}

#[test]
fn who_did_not_ask_is_not_woken_and_takes_no_memory_afterwards() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(!empty(&store));
    assert_eq!(store.reached(&pods(), "12"), NOBODY);
    assert!(empty(&store));
}

#[test]
fn all_resources_must_be_shown_before_a_key_is_woken() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &sets(), "21");
    store.wrote_at(&KEY, &UID, &pods(), "20");
    assert_eq!(missing(&store).resource, sets(), "in the order in which they were named");
    assert_eq!(store.reached(&sets(), "21"), NOBODY);
    assert_eq!(missing(&store).resource, pods());
    assert_eq!(store.reached(&pods(), "20"), [KEY]);
}

#[test]
fn write_that_was_shown_before_its_answer_came_is_not_waited_for() {
    let store = at("10", "10");
    assert_eq!(store.reached(&pods(), "12"), NOBODY);
    store.wrote_at(&KEY, &UID, &pods(), "12");
    store.wrote_at(&KEY, &UID, &pods(), "11");
    assert!(ready(&store) && empty(&store));
}

#[test]
fn of_several_writes_the_highest_counts_in_whatever_order_they_are_told() {
    for order in [["11", "12", "13"], ["13", "12", "11"], ["12", "13", "11"]] {
        let store = at("10", "10");
        for version in order {
            store.wrote_at(&KEY, &UID, &pods(), version);
        }
        assert_eq!(missing(&store).written, "13");
        assert_eq!(store.reached(&pods(), "12"), NOBODY);
        assert_eq!(store.reached(&pods(), "13"), [KEY]);
    }
}

#[test]
fn write_while_waiting_moves_the_goal() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(!ready(&store));
    store.wrote_at(&KEY, &UID, &pods(), "14");
    assert_eq!(store.reached(&pods(), "13"), NOBODY);
    assert_eq!(store.reached(&pods(), "14"), [KEY]);
}

#[test]
fn each_waiter_is_woken_by_its_own_version_in_the_order_of_versions() {
    let store = at("10", "10");
    for (key, version) in [("c", "13"), ("a", "11"), ("b", "12"), ("a2", "11")] {
        store.wrote_at(&key, &UID, &pods(), version);
        assert_ne!(store.ready(&key, &UID), Readiness::Ready);
    }
    assert_eq!(store.reached(&pods(), "11"), ["a", "a2"]);
    assert_eq!(store.reached(&pods(), "13"), ["b", "c"]);
}

// === failing open ===

#[test]
fn what_is_no_version_is_not_waited_for() {
    let store = at("10", "10");
    for odd in ["", "0", "007", "abc", "-5"] {
        store.wrote_at(&KEY, &UID, &pods(), odd);
        assert!(ready(&store), "{odd:?}");
    }
    store.wrote_at(&KEY, &UID, &pods(), "12");
    store.wrote_at(&KEY, &UID, &pods(), "abc");
    assert_eq!(missing(&store).written, "12", "what is known stays known");
    assert_eq!(store.reached(&pods(), "abc"), [KEY]);
    store.wrote_at(&KEY, &UID, &pods(), "13");
    assert!(ready(&store), "as long as nobody can tell how far the cache is");
    assert_eq!(store.reached(&pods(), "12"), NOBODY);
    store.wrote_at(&KEY, &UID, &pods(), "13");
    assert!(!ready(&store));
}

#[test]
fn versions_beyond_all_integers_are_waited_for() {
    let (less, more) = ("9".repeat(39), format!("1{}", "0".repeat(39)));
    let store = at(&less, "10");
    store.wrote_at(&KEY, &UID, &pods(), &more);
    assert!(!ready(&store));
    assert_eq!(store.reached(&pods(), &more), [KEY]);
}

#[test]
fn resource_that_nobody_reports_is_not_waited_for() {
    let store = Store::new("test", [pods()]);
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(ready(&store), "its cache has not listed");
    store.wrote_at(&KEY, &UID, &sets(), "12");
    assert!(ready(&store) && empty(&store), "it was not named");
    assert_eq!(store.reached(&sets(), "12"), NOBODY);
}

// === another history, another owner ===

#[test]
fn server_restored_from_a_backup_wakes_who_waits_for_what_is_lost() {
    let store = at("100", "100");
    store.wrote_at(&KEY, &UID, &pods(), "105");
    store.wrote_at(&"default/other", &UID, &pods(), "106");
    store.wrote_at(&"default/both", &UID, &pods(), "107");
    store.wrote_at(&"default/both", &UID, &sets(), "101");
    for key in [KEY, "default/other", "default/both"] {
        assert_ne!(store.ready(&key, &UID), Readiness::Ready);
    }
    assert_eq!(store.reached(&pods(), "60"), [KEY, "default/other"]);
    assert!(ready(&store));
    assert_ne!(store.ready(&"default/both", &UID), Readiness::Ready, "its set is another matter");
    store.wrote_at(&KEY, &UID, &pods(), "61");
    assert_eq!(missing(&store).read, "60", "from there it counts anew");
    assert_eq!(store.reached(&pods(), "61"), [KEY]);
    assert_eq!(store.reached(&sets(), "50"), ["default/both"]);
    assert!(empty(&store));
}

#[test]
fn owner_made_again_under_the_same_name_starts_clean() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(!ready(&store));
    assert_eq!(store.ready(&KEY, &"uid-2"), Readiness::Ready);
    assert!(empty(&store));
    store.wrote_at(&KEY, &UID, &pods(), "20");
    store.wrote_at(&KEY, &"uid-2", &pods(), "15");
    let readiness = store.ready(&KEY, &"uid-2");
    assert!(
        matches!(&readiness, Readiness::Waiting { missing: Some(it), .. } if it.written == "15"),
        "{readiness:?}"
    );
    assert_eq!(store.reached(&pods(), "15"), [KEY]);
}

#[test]
fn clearing_forgets_this_owner_or_whichever_there_is() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    store.clear(&KEY, Some(&"uid-2"));
    assert!(!ready(&store));
    store.clear(&KEY, Some(&UID));
    assert!(ready(&store) && empty(&store));
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(!ready(&store));
    store.clear(&KEY, None);
    assert!(empty(&store));
    assert_eq!(store.reached(&pods(), "12"), NOBODY);
}

// === deadlines ===

#[tokio::test(start_paused = true)]
async fn cache_that_is_late_is_waited_for_five_seconds_from_the_last_write() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    advance(seconds(3)).await;
    store.wrote_at(&KEY, &UID, &sets(), "11");
    advance(seconds(4)).await;
    let Readiness::Waiting { until, .. } = store.ready(&KEY, &UID) else { panic!("too early") };
    assert_eq!(until, Instant::now() + seconds(1));
    advance(seconds(1)).await;
    let overdue = store.ready(&KEY, &UID);
    assert!(matches!(overdue, Readiness::Overdue { missing: Some(_) }), "{overdue:?}");
    assert_eq!(store.reached(&sets(), "11"), NOBODY);
    assert_eq!(store.reached(&pods(), "12"), [KEY], "it is still woken");
}

#[tokio::test(start_paused = true)]
async fn cache_that_stays_late_is_asked_about_ever_more_seldom() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    for pause in [10, 20, 40, 60, 60] {
        assert_eq!(store.still_late(&KEY, &UID), seconds(pause));
        advance(seconds(pause - 1)).await;
        assert!(matches!(store.ready(&KEY, &UID), Readiness::Waiting { .. }));
        advance(seconds(1)).await;
        assert!(matches!(store.ready(&KEY, &UID), Readiness::Overdue { .. }));
    }
    store.wrote_at(&KEY, &UID, &pods(), "13");
    advance(seconds(5)).await;
    assert!(matches!(store.ready(&KEY, &UID), Readiness::Overdue { .. }), "begins anew");
    store.clear(&KEY, Some(&UID));
    assert!(ready(&store));
}

#[tokio::test(start_paused = true)]
async fn what_has_no_version_is_waited_for_until_it_is_cleared() {
    let store = at("10", "10");
    let until = Instant::now() + seconds(5);
    assert_eq!(store.unseen(&KEY, &UID), Readiness::Waiting { missing: None, until });
    assert!(ready(&store), "no version is missing");
    advance(seconds(5)).await;
    assert_eq!(store.unseen(&KEY, &UID), Readiness::Overdue { missing: None });
    assert_eq!(store.still_late(&KEY, &UID), seconds(10));
    assert!(matches!(store.unseen(&KEY, &UID), Readiness::Waiting { .. }));
    assert_eq!(store.reached(&pods(), "99"), NOBODY);
    assert!(!empty(&store));
    store.clear(&KEY, Some(&UID));
    assert!(empty(&store));
}

#[tokio::test(start_paused = true)]
async fn writes_do_not_put_off_the_look_for_what_has_no_version() {
    let store = at("10", "10");
    let until = Instant::now() + seconds(5);
    for version in ["11", "12"] {
        assert_eq!(store.unseen(&KEY, &UID), Readiness::Waiting { missing: None, until });
        advance(seconds(2)).await;
        store.wrote_at(&KEY, &UID, &sets(), version);
        assert_eq!(store.reached(&sets(), version), NOBODY);
    }
    advance(seconds(1)).await;
    assert_eq!(store.unseen(&KEY, &UID), Readiness::Overdue { missing: None });
    for (pause, version) in [(10, "13"), (20, "14"), (40, "15")] {
        assert_eq!(store.still_late(&KEY, &UID), seconds(pause), "nor sooner again");
        store.wrote_at(&KEY, &UID, &sets(), version);
        assert_eq!(store.reached(&sets(), version), NOBODY);
    }
    store.wrote_at(&KEY, &UID, &sets(), "16");
    assert_eq!(store.still_late(&KEY, &UID), seconds(10), "a version is another matter");
}

#[tokio::test(start_paused = true)]
async fn version_that_is_shown_wakes_also_who_still_awaits_something_unseen() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert_ne!(store.unseen(&KEY, &UID), Readiness::Ready);
    assert!(!ready(&store));
    assert_eq!(store.reached(&pods(), "12"), [KEY]);
    assert!(ready(&store) && !empty(&store));
    assert_eq!(store.ready(&KEY, &"uid-2"), Readiness::Ready);
    assert!(empty(&store), "another owner starts clean");
}

// === the metrics ===

#[tokio::test(start_paused = true)]
async fn waits_and_the_time_they_take_are_measured() {
    let recorder = Recorder::default();
    let store = metrics::with_local_recorder(&recorder, || {
        Store::new("replicaset_controller", [sets(), pods()])
    });
    let skips = |labels| {
        recorder.recorded(&format!("replicaset_controller_stale_sync_skips_total{labels}")).len()
    };
    let (of_pods, of_sets) =
        (r#"{group="",resource="pods"}"#, r#"{group="apps",resource="replicasets"}"#);
    assert_eq!(store.reached(&pods(), "10"), NOBODY);
    assert_eq!(store.reached(&sets(), "10"), NOBODY);
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(!ready(&store) && !ready(&store));
    assert_eq!((skips(of_pods), skips(of_sets)), (2, 0));
    advance(seconds(2)).await;
    assert_eq!(store.reached(&pods(), "12"), [KEY]);
    assert!(ready(&store));
    assert_eq!((skips(of_pods), skips(of_sets)), (2, 0));
    let observed = format!("replicaset_controller_write_observed_seconds{of_pods}");
    assert_eq!(recorder.recorded(&observed), [2.0]);
    store.wrote_at(&KEY, &UID, &pods(), "11");
    assert_eq!(recorder.recorded(&observed), [2.0, 0.0], "it was there before the answer");
    store.wrote_at(&KEY, &UID, &pods(), "20");
    assert_eq!(store.reached(&pods(), "5"), NOBODY);
    assert_eq!(recorder.recorded(&observed).len(), 2, "what is lost was not observed");
}

#[tokio::test(start_paused = true)]
async fn server_that_was_asked_in_vain_counts_as_a_wait() {
    let recorder = Recorder::default();
    let store = metrics::with_local_recorder(&recorder, || Store::new("test", [pods()]));
    assert_eq!(store.reached(&pods(), "10"), NOBODY);
    store.wrote_at(&KEY, &UID, &pods(), "12");
    advance(seconds(5)).await;
    assert!(!ready(&store));
    let name = r#"test_stale_sync_skips_total{group="",resource="pods"}"#;
    assert!(recorder.recorded(name).is_empty(), "nothing is decided yet");
    store.still_late(&KEY, &UID);
    assert_eq!(recorder.recorded(name).len(), 1);
}
