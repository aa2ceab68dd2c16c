//! Handlers that are detached, picky, hostile, or added and removed while events flow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat_informer::testing::{ScriptedListWatch, ScriptedWatch, Store};
use homeostat_informer::{
    Event, HandlerOptions, LabelSelector, Object, ObjectKey, ObjectMeta, SharedIndexInformer,
    predicate,
};
use k8s_openapi::api::core::v1::Pod;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

const TIMEOUT: Duration = Duration::from_secs(60);

/// An object whose drop panics on request.
struct Bomb {
    metadata: ObjectMeta,
    explodes: bool,
}

impl Object for Bomb {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.explodes, "bomb");
    }
}

/// An object whose type has a key of its own, the same for all objects.
struct Keyed(ObjectMeta);

impl Object for Keyed {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.0
    }

    fn key(&self) -> ObjectKey<Pod> {
        ObjectKey::namespaced("n", "all")
    }
}

fn metadata(name: &str, version: usize) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: Some("n".into()),
        uid: Some(name.into()),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    }
}

fn bomb(name: &str, version: usize, explodes: bool) -> Bomb {
    Bomb { metadata: metadata(name, version), explodes }
}

fn pod(name: &str, version: usize) -> Pod {
    Pod { metadata: metadata(name, version), ..Pod::default() }
}

/// Returns a synced informer of one pod, and its watch.
async fn following() -> (SharedIndexInformer<Pod>, ScriptedWatch<Pod>) {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    informer.start();
    let watch = server.expect_watch().await.serve([pod("a", 1)], "1");
    assert!(informer.wait_for_sync().await);
    (informer, watch)
}

/// Waits until `condition` holds.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(TIMEOUT, wait).await.unwrap_or_else(|_| panic!("not reached: {what}"));
}

fn counter() -> (Arc<AtomicUsize>, impl FnMut(Event<Pod>) + Send + 'static) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let handler = move |_: Event<Pod>| {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    (count, handler)
}

#[tokio::test(start_paused = true)]
async fn detached_handler_lives_until_its_informer_stops() {
    let (informer, watch) = following().await;
    let ((detached, one), (dropped, other)) = (counter(), counter());
    informer.add_handler("detached", one).detach();
    drop(informer.add_handler("dropped", other));
    watch.apply(pod("a", 2));
    until("both states", || detached.load(Ordering::Relaxed) == 2).await;
    assert_eq!(dropped.load(Ordering::Relaxed), 0);
    informer.stop().await;
    assert_eq!(Arc::strong_count(&detached), 1, "the handler is dropped");
}

#[tokio::test(start_paused = true)]
async fn update_that_does_not_matter_is_not_delivered() {
    let (informer, watch) = following().await;
    let (seen, handler) = counter();
    let options = HandlerOptions::new("generation")
        .updates(predicate::generation_changed)
        .updates(|_, new: &Pod| new.metadata.resource_version.as_deref() != Some("5"));
    let subscription = informer.add_handler(options, handler);
    assert!(subscription.wait_for_sync().await);
    let generation = |version: usize, generation: i64| {
        let mut pod = pod("a", version);
        pod.metadata.generation = Some(generation);
        pod
    };
    watch.apply(generation(2, 1)); // delivered
    watch.apply(generation(3, 1));
    watch.apply(generation(4, 2)); // delivered
    watch.apply(generation(5, 3));
    watch.delete(generation(6, 3)); // delivered
    until("the deletion", || informer.lister().is_empty()).await;
    until("all events", || subscription.queued() == 0).await;
    assert_eq!(seen.load(Ordering::Relaxed), 4, "added, updated twice, deleted");
}

#[tokio::test]
async fn slow_calls_are_counted_from_the_threshold_on() {
    let (informer, watch) = following().await;
    let options = HandlerOptions::new("slow").slow_after(Duration::from_millis(20));
    let slow = informer.add_handler(options, |event: Event<Pod>| {
        if event.metadata().resource_version.as_deref() == Some("2") {
            #[expect(clippy::disallowed_methods, reason = "the handler blocks its thread")]
            std::thread::sleep(Duration::from_millis(30));
        }
    });
    let options = HandlerOptions::new("patient").slow_after(Duration::from_secs(600));
    let patient = informer.add_handler(options, |_: Event<Pod>| {});
    assert!(slow.wait_for_sync().await && patient.wait_for_sync().await);
    assert_eq!(slow.slow_calls(), 0);
    watch.apply(pod("a", 2));
    until("the slow call", || slow.slow_calls() == 1).await;
    watch.apply(pod("a", 3));
    until("the last event", || informer.lister().resource_version() == Some("3".into())).await;
    until("all events", || slow.queued() == 0 && patient.queued() == 0).await;
    assert!(
        informer.status().to_string().contains("handler slow: synced, 0 queued, 0 panics, 1 slow")
    );
    assert_eq!((slow.slow_calls(), patient.slow_calls()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn resync_is_delivered_despite_the_predicate() {
    let (informer, _watch) = following().await;
    let (seen, handler) = counter();
    let options =
        HandlerOptions::new("resync").updates(|_, _| false).resync(Duration::from_secs(5));
    let _subscription = informer.add_handler(options, handler);
    until("a resync", || seen.load(Ordering::Relaxed) >= 2).await;
}

#[tokio::test(start_paused = true)]
async fn joined_key_finds_its_object() {
    let (informer, _watch) = following().await;
    let pods = informer.lister();
    assert!(pods.get("n/a").is_some() && pods.contains("n/a") && !pods.contains("a"));
    assert_eq!(pods.keys(), ["n/a".parse().unwrap()]);
    let labels = LabelSelector::parse("app notin (web)").unwrap();
    assert_eq!(pods.list_matching(Some("n"), &labels).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn weak_handle_does_not_keep_its_informer() {
    let (informer, _watch) = following().await;
    let weak = informer.downgrade();
    let (in_handler, in_index) = (weak.clone(), weak.clone());
    informer.add_handler("weak", move |_: Event<Pod>| drop(in_handler.upgrade())).detach();
    let _index = informer.index(move |_: &Pod| in_index.upgrade().map(|_| ()));
    assert!(weak.upgrade().is_some());
    drop(informer);
    until("the informer is gone", || weak.upgrade().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn panic_in_drop_of_a_delivered_object_does_not_end_the_handler() {
    let server = ScriptedListWatch::<Bomb>::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    informer.start();
    let watch = server.expect_watch().await.serve([bomb("a", 1, true)], "1");
    assert!(informer.wait_for_sync().await);
    let names = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&names);
    // The snapshot of this handler is the last owner of the object: it is deleted before the
    // handler's task runs.
    let subscription = informer.add_handler("late", move |event: Event<Bomb>| {
        seen.lock().push(event.key().name().to_owned());
    });
    watch.delete(bomb("a", 2, false));
    watch.apply(bomb("b", 3, false));
    until("the last event", || names.lock().last().is_some_and(|name| name == "b")).await;
    assert_eq!(*names.lock(), ["a", "a", "b"]);
    subscription.remove().await;
    informer.stop().await;
}

#[test]
fn panic_in_drop_of_an_ignored_object_costs_no_later_object_its_index_value() {
    let store = Store::<Bomb>::new();
    let by_name = store.index(|bomb: &Bomb| bomb.metadata.name.clone());
    store.apply(bomb("a", 5, false));
    // Older than the cached state: it is dropped at once.
    store.apply(bomb("a", 3, true));
    store.apply(bomb("b", 6, false));
    assert_eq!((by_name.get("a").len(), by_name.get("b").len()), (1, 1));
    assert!(!by_name.has_opaque("b"), "the values of an object are not known");
}

/// Handlers come and go, panic and block on other threads while changes flow, at least 2,000; one
/// handler stays and must receive each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_come_go_panic_and_block_disturb_no_other() {
    const CHANGES: usize = 2000;
    let (informer, watch) = following().await;
    let (steady, handler) = counter();
    let subscription = informer.add_handler("steady", handler);
    assert!(subscription.wait_for_sync().await);
    let mut abusers = JoinSet::new();
    for number in 0..4 {
        abusers.spawn(abuse_repeatedly(informer.clone(), number));
    }
    let mut version = 1;
    let deadline = Instant::now() + TIMEOUT;
    // A slow machine gets more changes, not fewer handlers.
    while version <= CHANGES || !abusers.is_empty() {
        version += 1;
        watch.apply(pod("a", version));
        if version % 64 == 0 {
            assert!(Instant::now() < deadline, "deadlock");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if let Some(ended) = abusers.try_join_next() {
            ended.expect("no assertion failed");
        }
    }
    until("every change", || steady.load(Ordering::Relaxed) == version).await;
    assert_eq!((subscription.queued(), subscription.panics()), (0, 0));
    timeout(TIMEOUT, informer.stop()).await.expect("every task ends");
    assert_eq!(informer.status().handlers.len(), 0);
}

/// Ten rounds, which contain each way to remove a handler; those of all numbers contain each kind
/// of handler with each of these ways.
async fn abuse_repeatedly(informer: SharedIndexInformer<Pod>, number: usize) {
    for round in number..number + 10 {
        abuse(&informer, round).await;
    }
}

/// Adds a handler that records, panics or blocks its thread, and removes it in one of two ways.
#[expect(clippy::disallowed_methods, reason = "a handler that blocks its thread is the point")]
async fn abuse(informer: &SharedIndexInformer<Pod>, round: usize) {
    let calls = Arc::new(AtomicUsize::new(0));
    let called = Arc::clone(&calls);
    let handler = move |event: Event<Pod>| {
        called.fetch_add(1, Ordering::SeqCst);
        match round % 3 {
            0 => drop(event),
            1 => panic!("round {round}"),
            _ => std::thread::sleep(Duration::from_micros(200)),
        }
    };
    let mut options = HandlerOptions::new("abuser");
    if round.is_multiple_of(2) {
        options = options.coalesce();
    }
    let subscription = informer.add_handler(options, handler);
    if round.is_multiple_of(5) {
        // Removed before its task has started, or while it starts.
        drop(subscription);
        return;
    }
    until("a call", || calls.load(Ordering::SeqCst) > 0).await;
    timeout(TIMEOUT, subscription.remove()).await.expect("the running call ends");
    let after = calls.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(calls.load(Ordering::SeqCst), after, "called after `remove` had returned");
    assert_eq!(Arc::strong_count(&calls), 1, "the handler is dropped");
}

#[test]
fn handler_is_added_to_a_running_informer_outside_of_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (informer, _watch) = runtime.block_on(following());
    let (sender, events) = std::sync::mpsc::channel();
    let subscription = informer.add_handler("late", move |event: Event<Pod>| {
        let _received = sender.send(format!("{event:?}"));
    });
    assert!(runtime.block_on(subscription.wait_for_sync()));
    assert_eq!(events.try_recv().as_deref(), Ok(r#"Added("n/a")"#));
}

#[tokio::test(start_paused = true)]
async fn handlers_that_are_removed_before_the_start_take_no_memory() {
    let informer = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    let state = Arc::new(());
    for _ in 0..10 {
        let used = Arc::clone(&state);
        let keep = move |_: Event<Pod>| drop(Arc::clone(&used));
        informer.add_handler("short", keep).remove().await;
    }
    assert!(Arc::strong_count(&state) <= 2, "{} handlers remain", Arc::strong_count(&state) - 1);
}

#[tokio::test(start_paused = true)]
async fn filtered_handler_knows_objects_by_name_if_their_type_has_other_keys() {
    let server = ScriptedListWatch::<Keyed>::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    let deleted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&deleted);
    let options = HandlerOptions::new("all").filter(|_: &Keyed| true);
    let _handler = informer.add_handler(options, move |event: Event<Keyed>| {
        counted.fetch_add(usize::from(matches!(event, Event::Deleted { .. })), Ordering::Relaxed);
    });
    informer.start();
    let listed = ["a", "b"].map(|name| Keyed(metadata(name, 1)));
    let watch = server.expect_watch().await.serve(listed, "1");
    watch.delete(Keyed(metadata("a", 2)));
    watch.delete(Keyed(metadata("b", 3)));
    until("both deletions", || deleted.load(Ordering::Relaxed) == 2).await;
    assert!(informer.lister().is_empty());
}
