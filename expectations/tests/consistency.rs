//! A test for each promise of the consistency store.

#[path = "support/recorder.rs"]
mod recorder;

use std::time::Duration;

use homeostat_expectations::{ConsistencyStore, GroupResource, Missing, Readiness};
use tokio::time::{Instant, advance};

use self::recorder::Recorder;

type Store = ConsistencyStore<&'static str, &'static str>;

const KEY: &str = "default/web";
const UID: &str = "uid-1";
const NO_KEYS: [&str; 0] = [];

fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

fn sets() -> GroupResource {
    GroupResource::new("apps", "replicasets")
}

/// Returns a store whose caches of pods and sets are at these versions.
fn at(pods_at: &str, sets_at: &str) -> Store {
    let store = Store::new("test", [sets(), pods()]);
    assert_eq!(store.reached(&pods(), pods_at), NO_KEYS);
    assert_eq!(store.reached(&sets(), sets_at), NO_KEYS);
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

// === versions ===

#[test]
fn owner_without_writes_is_ready() {
    let store = at("10", "10");
    assert!(ready(&store) && empty(&store));
}

#[test]
fn key_is_woken_by_the_version_it_waits_for_and_not_before() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    let gap = missing(&store);
    assert_eq!(gap.to_string(), "the cache of pods is at 10 and has yet to reach 12");
    assert_eq!(store.reached(&pods(), "11"), NO_KEYS);
    assert_eq!(missing(&store).read, "11");
    assert_eq!(store.reached(&sets(), "99"), NO_KEYS, "another resource");
    assert_eq!(store.reached(&pods(), "12"), [KEY]);
    assert!(ready(&store) && empty(&store));
    assert_eq!(store.reached(&pods(), "13"), NO_KEYS, "once");
}

#[test]
fn version_beyond_the_written_one_wakes_the_key() {
    let store = at("9", "9");
    store.wrote_at(&KEY, &UID, &pods(), "10");
    assert!(!ready(&store));
    assert_eq!(store.reached(&pods(), "1000"), [KEY]);
}

#[test]
fn key_that_did_not_wait_is_not_woken_and_its_record_is_removed() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(!empty(&store));
    assert_eq!(store.reached(&pods(), "12"), NO_KEYS);
    assert!(empty(&store));
}

#[test]
fn key_is_woken_when_all_its_resources_are_shown() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &sets(), "21");
    store.wrote_at(&KEY, &UID, &pods(), "20");
    assert_eq!(missing(&store).resource, sets(), "in the order of `Store::new`");
    assert_eq!(store.reached(&sets(), "21"), NO_KEYS);
    assert_eq!(missing(&store).resource, pods());
    assert_eq!(store.reached(&pods(), "20"), [KEY]);
}

#[test]
fn write_shown_before_its_response_does_not_block() {
    let store = at("10", "10");
    assert_eq!(store.reached(&pods(), "12"), NO_KEYS);
    store.wrote_at(&KEY, &UID, &pods(), "12");
    store.wrote_at(&KEY, &UID, &pods(), "11");
    assert!(ready(&store) && empty(&store));
}

#[test]
fn highest_of_several_writes_counts_in_any_order() {
    for order in [["11", "12", "13"], ["13", "12", "11"], ["12", "13", "11"]] {
        let store = at("10", "10");
        for version in order {
            store.wrote_at(&KEY, &UID, &pods(), version);
        }
        assert_eq!(missing(&store).written, "13");
        assert_eq!(store.reached(&pods(), "12"), NO_KEYS);
        assert_eq!(store.reached(&pods(), "13"), [KEY]);
    }
}

#[test]
fn write_while_waiting_raises_the_awaited_version() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(!ready(&store));
    store.wrote_at(&KEY, &UID, &pods(), "14");
    assert_eq!(store.reached(&pods(), "13"), NO_KEYS);
    assert_eq!(store.reached(&pods(), "14"), [KEY]);
}

#[test]
fn keys_are_woken_in_the_order_of_their_versions() {
    let store = at("10", "10");
    for (key, version) in [("c", "13"), ("a", "11"), ("b", "12"), ("a2", "11")] {
        store.wrote_at(&key, &UID, &pods(), version);
        assert_ne!(store.ready(&key, &UID), Readiness::Ready);
    }
    assert_eq!(store.reached(&pods(), "11"), ["a", "a2"]);
    assert_eq!(store.reached(&pods(), "13"), ["b", "c"]);
}

// === versions and resources that do not block ===

#[test]
fn unordered_version_does_not_block() {
    let store = at("10", "10");
    for odd in ["", "0", "007", "abc", "-5"] {
        store.wrote_at(&KEY, &UID, &pods(), odd);
        assert!(ready(&store), "{odd:?}");
    }
    store.wrote_at(&KEY, &UID, &pods(), "12");
    store.wrote_at(&KEY, &UID, &pods(), "abc");
    assert_eq!(missing(&store).written, "12", "the known version stays awaited");
    assert_eq!(store.reached(&pods(), "abc"), [KEY]);
    store.wrote_at(&KEY, &UID, &pods(), "13");
    assert!(ready(&store), "the version of the cache is unknown");
    assert_eq!(store.reached(&pods(), "12"), NO_KEYS);
    store.wrote_at(&KEY, &UID, &pods(), "13");
    assert!(!ready(&store));
}

#[test]
fn versions_of_any_length_are_compared() {
    let (less, more) = ("9".repeat(39), format!("1{}", "0".repeat(39)));
    let store = at(&less, "10");
    store.wrote_at(&KEY, &UID, &pods(), &more);
    assert!(!ready(&store));
    assert_eq!(store.reached(&pods(), &more), [KEY]);
}

#[test]
fn resource_without_reported_version_does_not_block() {
    let store = Store::new("test", [pods()]);
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert!(ready(&store), "the cache of pods has not listed");
    store.wrote_at(&KEY, &UID, &sets(), "12");
    assert!(ready(&store) && empty(&store), "the store does not track this resource");
    assert_eq!(store.reached(&sets(), "12"), NO_KEYS);
}

// === another history, another owner ===

#[test]
fn restore_from_backup_wakes_keys_that_wait_for_lost_versions() {
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
    assert_ne!(store.ready(&"default/both", &UID), Readiness::Ready, "it still waits for the set");
    store.wrote_at(&KEY, &UID, &pods(), "61");
    assert_eq!(missing(&store).read, "60", "the new history starts at 60");
    assert_eq!(store.reached(&pods(), "61"), [KEY]);
    assert_eq!(store.reached(&sets(), "50"), ["default/both"]);
    assert!(empty(&store));
}

#[test]
fn recreated_owner_has_no_record() {
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
fn clear_removes_the_record_of_this_uid_or_of_any() {
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
    assert_eq!(store.reached(&pods(), "12"), NO_KEYS);
}

// === deadlines ===

#[tokio::test(start_paused = true)]
async fn late_cache_is_overdue_five_seconds_after_the_last_write() {
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
    assert_eq!(store.reached(&sets(), "11"), NO_KEYS);
    assert_eq!(store.reached(&pods(), "12"), [KEY], "an overdue key is still woken");
}

#[tokio::test(start_paused = true)]
async fn wait_for_late_cache_doubles_up_to_one_minute() {
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
    assert!(
        matches!(store.ready(&KEY, &UID), Readiness::Overdue { .. }),
        "a write resets the wait to five seconds"
    );
    store.clear(&KEY, Some(&UID));
    assert!(ready(&store));
}

#[tokio::test(start_paused = true)]
async fn unseen_write_blocks_until_it_is_cleared() {
    let store = at("10", "10");
    let until = Instant::now() + seconds(5);
    assert_eq!(store.unseen(&KEY, &UID), Readiness::Waiting { missing: None, until });
    assert!(ready(&store), "no version is missing");
    advance(seconds(5)).await;
    assert_eq!(store.unseen(&KEY, &UID), Readiness::Overdue { missing: None });
    assert_eq!(store.still_late(&KEY, &UID), seconds(10));
    assert!(matches!(store.unseen(&KEY, &UID), Readiness::Waiting { .. }));
    assert_eq!(store.reached(&pods(), "99"), NO_KEYS);
    assert!(!empty(&store));
    store.clear(&KEY, Some(&UID));
    assert!(empty(&store));
}

#[tokio::test(start_paused = true)]
async fn writes_do_not_delay_the_deadline_of_unseen_write() {
    let store = at("10", "10");
    let until = Instant::now() + seconds(5);
    for version in ["11", "12"] {
        assert_eq!(store.unseen(&KEY, &UID), Readiness::Waiting { missing: None, until });
        advance(seconds(2)).await;
        store.wrote_at(&KEY, &UID, &sets(), version);
        assert_eq!(store.reached(&sets(), version), NO_KEYS);
    }
    advance(seconds(1)).await;
    assert_eq!(store.unseen(&KEY, &UID), Readiness::Overdue { missing: None });
    for (pause, version) in [(10, "13"), (20, "14"), (40, "15")] {
        assert_eq!(store.still_late(&KEY, &UID), seconds(pause), "a write does not reset the wait");
        store.wrote_at(&KEY, &UID, &sets(), version);
        assert_eq!(store.reached(&sets(), version), NO_KEYS);
    }
    store.wrote_at(&KEY, &UID, &sets(), "16");
    assert_eq!(store.still_late(&KEY, &UID), seconds(10), "the wait for a version is separate");
}

#[tokio::test(start_paused = true)]
async fn shown_version_wakes_key_that_still_awaits_unseen_write() {
    let store = at("10", "10");
    store.wrote_at(&KEY, &UID, &pods(), "12");
    assert_ne!(store.unseen(&KEY, &UID), Readiness::Ready);
    assert!(!ready(&store));
    assert_eq!(store.reached(&pods(), "12"), [KEY]);
    assert!(ready(&store) && !empty(&store));
    assert_eq!(store.ready(&KEY, &"uid-2"), Readiness::Ready);
    assert!(empty(&store), "another uid removes the record");
}

// === metrics ===

#[tokio::test(start_paused = true)]
async fn metrics_record_skips_and_times() {
    let recorder = Recorder::default();
    let store = metrics::with_local_recorder(&recorder, || {
        Store::new("replicaset_controller", [sets(), pods()])
    });
    let skips = |labels| {
        recorder.recorded(&format!("replicaset_controller_stale_sync_skips_total{labels}")).len()
    };
    let (of_pods, of_sets) =
        (r#"{group="",resource="pods"}"#, r#"{group="apps",resource="replicasets"}"#);
    assert_eq!(store.reached(&pods(), "10"), NO_KEYS);
    assert_eq!(store.reached(&sets(), "10"), NO_KEYS);
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
    assert_eq!(recorder.recorded(&observed), [2.0, 0.0], "the cache showed it before the response");
    store.wrote_at(&KEY, &UID, &pods(), "20");
    assert_eq!(store.reached(&pods(), "5"), NO_KEYS);
    assert_eq!(recorder.recorded(&observed).len(), 2, "the cache never showed the lost write");
}

#[tokio::test(start_paused = true)]
async fn still_late_counts_as_a_skip() {
    let recorder = Recorder::default();
    let store = metrics::with_local_recorder(&recorder, || Store::new("test", [pods()]));
    assert_eq!(store.reached(&pods(), "10"), NO_KEYS);
    store.wrote_at(&KEY, &UID, &pods(), "12");
    advance(seconds(5)).await;
    assert!(!ready(&store));
    let name = r#"test_stale_sync_skips_total{group="",resource="pods"}"#;
    assert!(recorder.recorded(name).is_empty(), "an overdue check is not a skip");
    store.still_late(&KEY, &UID);
    assert_eq!(recorder.recorded(name).len(), 1);
}
