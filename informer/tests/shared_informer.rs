//! The promises of handlers and informer handles, under a paused clock.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use homeostat_informer::list_watch::ApiError;
use homeostat_informer::testing::{ScriptedListWatch, ScriptedRequest, ScriptedWatch};
use homeostat_informer::{
    Event, HandlerOptions, Object, ObjectMeta, SharedIndexInformer, Subscription, WaitError,
};
use k8s_openapi::api::core::v1::Pod;

type Informer = SharedIndexInformer<Pod>;

fn pod(name: &str, uid: &str, version: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("n".into()),
            uid: Some(uid.into()),
            resource_version: Some(version.into()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}

/// Returns a synced informer of `objects` and its open watch.
async fn following(objects: Vec<Pod>) -> (Informer, ScriptedWatch<Pod>) {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    informer.start();
    let watch = server.expect_watch().await.serve(objects, "100");
    assert!(informer.wait_for_sync().await);
    (informer, watch)
}

/// Adds a handler that records each event as text.
fn listen(informer: &Informer) -> (Subscription, mpsc::Receiver<String>) {
    let (sender, events) = mpsc::channel();
    let subscription = informer.add_handler("listen", move |event: Event<Pod>| {
        let extra = match &event {
            Event::Added { initial: true, .. } => " initial",
            Event::Deleted { certain: false, .. } => " uncertain",
            _ => "",
        };
        let name = event.metadata().name.as_deref().unwrap_or_default();
        let kind = format!("{event:?}");
        let kind = kind.split('(').next().unwrap_or_default();
        // The test may have ended, and the receiver with it.
        let _receiver_gone = sender.send(format!("{kind} {name}{extra}")).is_err();
    });
    (subscription, events)
}

/// Lets everything happen that needs no time.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Takes the events recorded so far.
fn all(events: &mpsc::Receiver<String>) -> Vec<String> {
    events.try_iter().collect()
}

#[test]
fn start_outside_of_a_runtime_says_so_and_harms_nothing() {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone()).name("pods").build();
    let start = std::panic::AssertUnwindSafe(|| informer.start());
    let panic = std::panic::catch_unwind(start).unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.starts_with("informer pods cannot start outside of a tokio runtime"));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        informer.start();
        let _watch = server.expect_watch().await.serve(vec![pod("a", "u", "7")], "7");
        assert!(informer.wait_for_sync().await);
        assert_eq!(informer.lister().len(), 1);
    });
}

fn refuse(request: ScriptedRequest<Pod>) {
    let error = ApiError::new(500, "InternalError", "");
    match request {
        ScriptedRequest::List(request) => request.refuse(error),
        ScriptedRequest::Watch(request) => request.refuse(error),
    }
}

/// Returns the pauses of a new informer between requests that all fail.
async fn pauses(seed: Option<u64>) -> Vec<Duration> {
    let server = ScriptedListWatch::<Pod>::new();
    let mut builder = SharedIndexInformer::builder(server.clone());
    if let Some(seed) = seed {
        builder = builder.seed(seed);
    }
    let informer = builder.build();
    informer.start();
    let mut pauses = Vec::new();
    for _ in 0..4 {
        let before = tokio::time::Instant::now();
        refuse(server.next_request().await);
        refuse(server.next_request().await);
        pauses.push(before.elapsed());
    }
    informer.stop().await;
    pauses
}

#[tokio::test(start_paused = true)]
async fn jitter_differs_in_each_informer_unless_seeded() {
    assert_ne!(pauses(None).await, pauses(None).await);
    assert_eq!(pauses(Some(3)).await, pauses(Some(3)).await);
}

#[tokio::test(start_paused = true)]
async fn late_handler_receives_current_objects_then_each_change_once() {
    let (informer, watch) = following(vec![pod("a", "u", "1"), pod("b", "v", "2")]).await;
    watch.apply(pod("c", "w", "101"));
    let (subscription, events) = listen(&informer);
    watch.apply(pod("a", "u", "102"));
    assert!(subscription.wait_for_sync().await);
    settle().await;
    let received = all(&events);
    assert_eq!(received.len(), 4, "{received:?}");
    assert_eq!(received.iter().filter(|event| event.contains("initial")).count(), 2);
    assert_eq!(received[2..], ["Added c", "Updated a"]);
}

#[tokio::test(start_paused = true)]
async fn handler_added_before_start_receives_initial_list_as_initial() {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    let (subscription, events) = listen(&informer);
    informer.start();
    let pending = server.expect_watch().await;
    settle().await;
    assert!(!subscription.has_synced());
    let _watch = pending.serve([pod("a", "u", "1")], "5");
    assert!(subscription.wait_for_sync().await);
    assert_eq!(all(&events), ["Added a initial"]);
}

#[tokio::test(start_paused = true)]
async fn handler_syncs_when_initial_list_is_empty() {
    let (informer, _watch) = following(vec![]).await;
    let (subscription, events) = listen(&informer);
    assert!(subscription.wait_for_sync().await);
    assert_eq!(all(&events), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn removed_handler_is_not_called_and_others_are() {
    let (informer, watch) = following(vec![]).await;
    let (removed, gone) = listen(&informer);
    let (_kept, kept) = listen(&informer);
    watch.apply(pod("a", "u", "101"));
    settle().await;
    removed.remove().await;
    watch.apply(pod("b", "v", "102"));
    settle().await;
    assert_eq!(all(&gone), ["Added a"]);
    assert!(
        matches!(gone.try_recv(), Err(mpsc::TryRecvError::Disconnected)),
        "its sender is dropped"
    );
    assert_eq!(all(&kept), ["Added a", "Added b"]);
}

#[tokio::test(start_paused = true)]
async fn dropped_subscription_removes_its_handler() {
    let (informer, watch) = following(vec![]).await;
    let (subscription, events) = listen(&informer);
    drop(subscription);
    watch.apply(pod("a", "u", "101"));
    settle().await;
    assert_eq!(all(&events), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remove_waits_for_running_callback() {
    let (informer, watch) = following(vec![]).await;
    let (entered_sender, entered) = tokio::sync::oneshot::channel();
    let (release, wait) = mpsc::channel::<()>();
    let mut entered_sender = Some(entered_sender);
    let subscription = informer.add_handler("slow", move |_| {
        entered_sender.take().unwrap().send(()).unwrap();
        wait.recv().unwrap();
    });
    watch.apply(pod("a", "u", "101"));
    entered.await.unwrap();
    let mut removal = Box::pin(subscription.remove());
    assert!(futures::poll!(&mut removal).is_pending());
    release.send(()).unwrap();
    removal.await;
}

#[tokio::test(start_paused = true)]
async fn panicking_handler_loses_one_event_and_others_lose_none() {
    let (informer, watch) = following(vec![]).await;
    let (sender, calls) = mpsc::channel();
    let subscription = informer.add_handler("bomb", move |event: Event<Pod>| {
        let name = event.metadata().name.clone().unwrap();
        assert_ne!(name, "a");
        sender.send(name).unwrap();
    });
    let (_kept, events) = listen(&informer);
    watch.apply(pod("a", "u", "101"));
    watch.apply(pod("b", "v", "102"));
    settle().await;
    assert_eq!((all(&calls), subscription.panics()), (vec!["b".to_owned()], 1));
    assert_eq!((all(&events).len(), subscription.queued()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn recreated_object_is_deleted_then_added() {
    let (informer, watch) = following(vec![pod("a", "u", "1")]).await;
    let (_subscription, events) = listen(&informer);
    watch.apply(pod("a", "v", "101"));
    settle().await;
    assert_eq!(all(&events), ["Added a initial", "Deleted a uncertain", "Added a"]);
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_is_opaque_and_not_deleted() {
    let (informer, watch) = following(vec![pod("a", "u", "1")]).await;
    let (_subscription, events) = listen(&informer);
    watch.apply_opaque(pod("a", "u", "101").metadata);
    settle().await;
    let lister = informer.lister();
    assert!(lister.get(("n", "a")).is_none() && lister.opaque(("n", "a")).is_some());
    watch.apply(pod("a", "u", "102"));
    watch.delete(pod("a", "u", "103"));
    settle().await;
    assert_eq!(all(&events), ["Added a initial", "Opaque a", "Updated a", "Deleted a"]);
}

#[tokio::test(start_paused = true)]
async fn cache_holds_object_before_handler_receives_its_event() {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    let (lister, by_uid) =
        (informer.lister(), informer.index(|pod: &Pod| pod.metadata.uid.clone()));
    let subscription = informer.add_handler("look", move |event: Event<Pod>| {
        let object = event.object().unwrap();
        assert!(lister.get(&event.key()).is_some());
        assert_eq!(by_uid.get(object.metadata.uid.as_ref().unwrap()).len(), 1);
    });
    informer.start();
    let watch = server.expect_watch().await.serve([pod("a", "u", "1")], "5");
    watch.apply(pod("b", "v", "6"));
    assert!(subscription.wait_for_sync().await);
    settle().await;
    assert_eq!((subscription.panics(), subscription.queued()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn initial_sync_wakes_every_waiter() {
    let server = ScriptedListWatch::<Pod>::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    informer.start();
    let waiting = futures::future::join_all((0..5).map(|_| informer.wait_for_sync()));
    let serve = async { server.expect_watch().await.serve([], "1") };
    let (woken, _watch) = tokio::join!(waiting, serve);
    assert_eq!(woken, [true; 5]);
}

#[tokio::test(start_paused = true)]
async fn stop_ends_every_task_and_every_wait() {
    let server = ScriptedListWatch::<Pod>::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    let (subscription, events) = listen(&informer);
    informer.start();
    let waiting = informer.clone();
    let (synced, received, ()) = tokio::join!(
        async move { waiting.wait_for_sync().await },
        subscription.wait_for_sync(),
        async {
            settle().await;
            informer.stop().await;
        }
    );
    assert!(!synced && !received);
    assert!(matches!(events.try_recv(), Err(mpsc::TryRecvError::Disconnected)));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    informer.stop().await;
    informer.start();
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropping_last_handle_ends_every_task_and_cache_stays_readable() {
    let (informer, watch) = following(vec![pod("a", "u", "1")]).await;
    let (_subscription, _events) = listen(&informer);
    let (second, lister) = (informer.clone(), informer.lister());
    drop(informer);
    settle().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 3);
    drop(second);
    settle().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    drop(watch);
    assert_eq!(lister.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn unstarted_informer_can_be_stopped() {
    let informer = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    let (early, _events) = listen(&informer);
    let (removed, _events) = listen(&informer);
    removed.remove().await;
    informer.stop().await;
    assert!(!early.wait_for_sync().await && !informer.wait_for_sync().await);
    let (late, _events) = listen(&informer);
    assert!(!late.wait_for_sync().await);
    late.remove().await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_shared_and_never_copied() {
    let (informer, watch) = following(vec![]).await;
    let (sender, objects) = mpsc::channel();
    let _subscription = informer.add_handler("keep", move |event: Event<Pod>| {
        sender.send(Arc::clone(event.object().unwrap())).unwrap();
    });
    let object = Arc::new(pod("a", "u", "101"));
    watch.apply(Arc::clone(&object));
    settle().await;
    assert!(Arc::ptr_eq(&objects.recv().unwrap(), &object));
    assert!(Arc::ptr_eq(&informer.lister().get(("n", "a")).unwrap(), &object));
}

#[tokio::test(start_paused = true)]
async fn namespace_list_follows_the_cache() {
    let (informer, watch) = following(vec![pod("a", "u", "1")]).await;
    let lister = informer.lister();
    assert_eq!((lister.list_in("n").len(), lister.list_in("m").len()), (1, 0));
    let snapshot = lister.list();
    watch.delete(pod("a", "u", "101"));
    settle().await;
    assert_eq!((lister.list_in("n").len(), lister.len(), snapshot.len()), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn handler_whose_drop_panics_can_be_removed() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let (informer, _watch) = following(vec![pod("a", "u", "1")]).await;
    let bomb = Bomb;
    let subscription = informer.add_handler("bomb", move |_: Event<Pod>| {
        let _held = &bomb;
    });
    assert!(subscription.wait_for_sync().await);
    let removed = tokio::time::timeout(Duration::from_secs(1), subscription.remove()).await;
    assert!(removed.is_ok(), "remove() hangs");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn version_handler_runs_after_each_version_is_applied() {
    let (informer, watch) = following(vec![pod("a", "1", "90")]).await;
    let (sender, versions) = mpsc::channel();
    let lister = informer.lister();
    let subscription = informer.add_version_handler("versions", move |version| {
        let _receiver_gone = sender.send(format!("{version}: {}", lister.len())).is_err();
    });
    settle().await;
    assert!(subscription.has_synced());
    assert_eq!(all(&versions), ["100: 1"], "the version reached before");
    watch.apply(pod("b", "2", "101"));
    settle().await;
    watch.delete(pod("b", "2", "102"));
    settle().await;
    watch.bookmark("110");
    settle().await;
    assert_eq!(all(&versions), ["101: 2", "102: 1", "110: 1"]);
    watch.apply(pod("a", "1", "105"));
    settle().await;
    assert_eq!(all(&versions), Vec::<String>::new(), "a watch event does not lower the version");
    subscription.remove().await;
    watch.bookmark("120");
    settle().await;
    assert_eq!(all(&versions), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn version_handler_receives_lower_version_after_relist() {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::<Pod>::builder(server.clone()).build();
    let (sender, versions) = mpsc::channel();
    let subscription = informer.add_version_handler("versions", move |version| {
        let _receiver_gone = sender.send(version.to_string()).is_err();
    });
    informer.start();
    let watch = server.expect_watch().await.serve(vec![], "100");
    settle().await;
    watch.end_with(ApiError::new(410, "Expired", "restored"));
    let lagging = ApiError::new(504, "Timeout", "Too large resource version: 100, current: 50");
    server.expect_watch().await.refuse(lagging);
    let again = server.expect_watch().await;
    let watch = again.serve(vec![pod("a", "1", "40")], "50");
    watch.bookmark("120");
    settle().await;
    assert_eq!(all(&versions), ["100", "50", "120"], "no version is skipped");
    subscription.remove().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_version_wakes_when_cache_reaches_it() {
    let (informer, watch) = following(vec![]).await;
    assert!(
        informer.wait_for_version(&"100".into()).await
            && informer.wait_for_version(&"99".into()).await
    );
    let version = "103".into();
    let mut waiting = tokio_test::task::spawn(informer.wait_for_version(&version));
    assert!(waiting.poll().is_pending());
    watch.apply(pod("a", "u", "101"));
    settle().await;
    assert!(!waiting.is_woken() || waiting.poll().is_pending());
    watch.bookmark("110");
    settle().await;
    assert!(waiting.is_woken());
    tokio_test::assert_ready_eq!(waiting.poll(), true);
    let stopping = informer.clone();
    let never = "999".into();
    let (reached, ()) = tokio::join!(informer.wait_for_version(&never), stopping.stop());
    assert!(!reached);
}

#[tokio::test(start_paused = true)]
async fn label_selector_filters_one_namespace_or_all() {
    let labelled = |name: &str, namespace: &str, app: &str| {
        let mut pod = pod(name, name, "1");
        pod.metadata.namespace = Some(namespace.into());
        pod.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
        pod
    };
    let (informer, _watch) = following(vec![
        labelled("a", "n", "web"),
        labelled("b", "m", "web"),
        labelled("c", "n", "db"),
        pod("d", "d", "1"),
    ])
    .await;
    let lister = informer.lister();
    let names = |namespace, selector: &kube_core::Selector| {
        let found = lister.list_matching(namespace, selector);
        found.iter().filter_map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>()
    };
    let web = [("app", "web")].into_iter().collect();
    assert_eq!(names(None, &web), ["a", "b"]);
    assert_eq!(names(Some("n"), &web), ["a"]);
    let others = kube_core::Expression::NotEqual("app".into(), "web".into()).into();
    assert_eq!(names(Some("n"), &others), ["c", "d"]);
    assert_eq!(names(None, &kube_core::Selector::default()).len(), 4);
    assert_eq!(lister.get_with(("n", "a"), |pod| pod.metadata.uid.clone()), Some(Some("a".into())));
}

#[tokio::test(start_paused = true)]
async fn handler_can_remove_itself_during_its_callback() {
    let (informer, watch) = following(vec![]).await;
    let own = Arc::new(parking_lot::Mutex::new(None::<Subscription>));
    let (sender, calls) = mpsc::channel();
    let slot = Arc::clone(&own);
    let subscription = informer.add_handler("once", move |event: Event<Pod>| {
        let subscription = slot.lock().take().unwrap();
        let removed = tokio_test::task::spawn(subscription.remove()).poll();
        assert!(removed.is_ready(), "it waits for itself");
        sender.send(event.key().to_string()).unwrap();
    });
    *own.lock() = Some(subscription);
    watch.apply(pod("a", "u", "101"));
    watch.apply(pod("b", "v", "102"));
    settle().await;
    assert_eq!(all(&calls), ["n/a"], "no call after the removal");
}

/// Stops an informer from inside one of its own callbacks, or when the callback is dropped.
struct Stopper {
    informer: Informer,
    where_from: &'static str,
    on_drop: bool,
    log: mpsc::Sender<&'static str>,
}

impl Stopper {
    fn stop(&self) {
        let stopped = tokio_test::task::spawn(self.informer.stop()).poll();
        assert!(stopped.is_ready(), "it waits for itself");
        // The test may have ended, and the receiver with it.
        let _receiver_gone = self.log.send(self.where_from).is_err();
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        if self.on_drop {
            self.stop();
        }
    }
}

/// Returns a handler that only owns `stopper`.
fn owner_of(stopper: Stopper) -> impl FnMut(Event<Pod>) + Send {
    let all = [stopper];
    move |_| assert_eq!(all.iter().len(), 1)
}

#[tokio::test(start_paused = true)]
async fn informer_can_be_stopped_from_any_callback() {
    for place in ["handler", "other informer", "drop", "index", "error"] {
        let (log, calls) = mpsc::channel();
        let late = Arc::new(parking_lot::Mutex::new(None::<Stopper>));
        let at_error = Arc::clone(&late);
        let server = ScriptedListWatch::<Pod>::new();
        let informer = SharedIndexInformer::builder(server.clone())
            .error_handler(move |_| at_error.lock().iter().for_each(Stopper::stop))
            .build();
        let (others, other_watch) = following(vec![]).await;
        let waiting = informer.add_handler("bystander", |_: Event<Pod>| {});
        let stopper =
            Stopper { informer: informer.clone(), where_from: place, on_drop: false, log };
        let on_event = |stopper: Stopper| move |_: Event<Pod>| stopper.stop();
        let (mut subscriptions, mut index) = (Vec::new(), None);
        match place {
            "handler" => subscriptions.push(informer.add_handler(place, on_event(stopper))),
            "other informer" => subscriptions.push(others.add_handler(place, on_event(stopper))),
            "drop" => {
                let mut stopper = stopper;
                stopper.on_drop = true;
                subscriptions.push(informer.add_handler(place, owner_of(stopper)));
            }
            "index" => index = Some(informer.index(move |_: &Pod| [stopper.stop()])),
            _ => *late.lock() = Some(stopper),
        }
        informer.start();
        let watch = server.expect_watch().await.serve(vec![pod("a", "u", "99")], "100");
        other_watch.apply(pod("b", "v", "101"));
        settle().await;
        match place {
            "drop" => subscriptions.clear(),
            "error" => watch.tear(),
            _ => {}
        }
        settle().await;
        assert_eq!(calls.try_recv().ok(), Some(place));
        informer.stop().await;
        others.stop().await;
        drop(index);
        *late.lock() = None;
        drop(waiting);
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, 0, "{place}: tasks are left");
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_can_remove_each_other_during_callbacks() {
    let (informer, watch) = following(vec![]).await;
    let slots = [0, 1].map(|_| Arc::new(parking_lot::Mutex::new(None::<Subscription>)));
    let (sender, calls) = mpsc::channel();
    for (own, other) in [(0, 1), (1, 0)] {
        let (slot, sender) = (Arc::clone(&slots[other]), sender.clone());
        let remove = move |other: Subscription| {
            assert!(tokio_test::task::spawn(other.remove()).poll().is_ready());
            sender.send(own).unwrap();
        };
        let subscription =
            informer.add_handler("remover", move |_| slot.lock().take().map_or((), &remove));
        *slots[own].lock() = Some(subscription);
    }
    watch.apply(pod("a", "u", "101"));
    settle().await;
    assert_eq!(calls.try_iter().count(), 1, "the first one called removes the other");
    let left = slots.iter().find_map(|slot| slot.lock().take()).unwrap();
    left.remove().await;
    assert!(informer.status().handlers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn resync_redelivers_every_object_each_period() {
    let (informer, watch) = following(vec![pod("a", "u", "1"), pod("b", "v", "2")]).await;
    let (sender, events) = mpsc::channel();
    let options = HandlerOptions::new("again").resync(Duration::from_secs(60));
    let started = tokio::time::Instant::now();
    let _again = informer.add_handler(options, move |event: Event<Pod>| {
        if let Event::Updated { old, new } = &event {
            let same = Arc::ptr_eq(old, new);
            let line = format!("{} {same} {}", event.key().name(), started.elapsed().as_secs());
            sender.send(line).unwrap();
        }
    });
    let (_once, others) = listen(&informer);
    tokio::time::sleep(Duration::from_secs(90)).await;
    watch.apply(pod("a", "u", "101"));
    watch.delete(pod("b", "v", "102"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(all(&events), ["a true 60", "b true 60", "a false 90", "a true 120"]);
    assert_eq!(all(&others).len(), 4, "a handler without a period gets no redelivery");
}

#[tokio::test(start_paused = true)]
async fn filtered_handler_receives_added_and_deleted_as_objects_pass() {
    let pods = vec![pod("a", "u", "1"), pod("b", "v", "2"), pod("d", "x", "3")];
    let (informer, watch) = following(pods).await;
    let (sender, events) = mpsc::channel();
    // Passes while its version ends in 0 or 2.
    let options = HandlerOptions::new("even")
        .filter(|pod: &Pod| pod.metadata.resource_version.as_ref().unwrap().ends_with(['0', '2']));
    let _even = informer.add_handler(options, move |event: Event<Pod>| {
        let certain = matches!(event, Event::Deleted { certain: true, .. });
        sender.send(format!("{event:?} {certain}")).unwrap();
    });
    for version in ["100", "101", "102", "110"] {
        watch.apply(pod("a", "u", version));
    }
    watch.apply_opaque(pod("a", "u", "111").metadata);
    watch.apply_opaque(pod("c", "w", "112").metadata);
    watch.apply(pod("c", "w", "113"));
    watch.delete(pod("a", "u", "115"));
    watch.apply_opaque(pod("d", "x", "116").metadata);
    settle().await;
    let received = [
        r#"Added("n/b") false"#,
        r#"Added("n/a") false"#,
        r#"Deleted("n/a") true"#,
        r#"Added("n/a") false"#,
        r#"Updated("n/a") false"#,
        r#"Opaque("n/a") false"#,
        r#"Opaque("n/c") false"#,
        r#"OpaqueDeleted("n/c") false"#,
        r#"Deleted("n/a") true"#,
        r#"Opaque("n/d") false"#,
    ];
    assert_eq!(all(&events), received);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_coalescing_handler_receives_last_state_of_each_object_lifetime() {
    let (informer, watch) = following(vec![]).await;
    let (sender, events) = mpsc::channel();
    let (release, wait) = mpsc::channel::<()>();
    let (entered_sender, entered) = mpsc::channel();
    let slow = HandlerOptions::new("slow").coalesce();
    let subscription = informer.add_handler(slow, move |event: Event<Pod>| {
        entered_sender.send(()).unwrap();
        wait.recv().unwrap();
        let version = event.metadata().resource_version.clone().unwrap();
        sender.send(format!("{event:?} {version}")).unwrap();
    });
    watch.apply(pod("a", "u", "101"));
    entered.recv().unwrap();
    for version in 102..150 {
        watch.apply(pod("a", "u", &version.to_string()));
    }
    for (name, version) in [("b", "150"), ("b", "151"), ("c", "152")] {
        watch.apply(pod(name, name, version));
    }
    watch.delete(pod("b", "b", "153"));
    // The cache has an event before the handlers' queues have it.
    let changed_added_added_deleted = async {
        while subscription.queued() != 4 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), changed_added_added_deleted).await.unwrap();
    for _ in 0..5 {
        release.send(()).unwrap();
    }
    let received: Vec<_> = (0..5).map(|_| events.recv().unwrap()).collect();
    let expected = [
        r#"Added("n/a") 101"#,
        r#"Updated("n/a") 149"#,
        r#"Added("n/b") 151"#,
        r#"Added("n/c") 152"#,
        r#"Deleted("n/b") 153"#,
    ];
    assert_eq!(received, expected);
    subscription.remove().await;
}

#[tokio::test(start_paused = true)]
async fn wait_until_returns_condition_result_or_error() {
    let (informer, watch) = following(vec![]).await;
    let deadline = Duration::from_secs(10);
    let named =
        |name: &'static str| move |pods: &homeostat_informer::Lister<Pod>| pods.get(("n", name));
    let mut waiting = tokio_test::task::spawn(informer.wait_until(named("a"), deadline));
    assert!(waiting.poll().is_pending());
    watch.apply(pod("a", "u", "101"));
    settle().await;
    assert!(waiting.is_woken());
    let found = tokio_test::assert_ready!(waiting.poll()).unwrap();
    assert_eq!(found.metadata.uid.as_deref(), Some("u"));
    let error = informer.wait_until(named("b"), deadline).await.unwrap_err();
    assert_eq!(error.to_string(), "scripted objects: not seen within 10s");
    let stopping = informer.clone();
    let (never, ()) = tokio::join!(informer.wait_until(named("b"), deadline), stopping.stop());
    assert!(matches!(never, Err(WaitError::Stopped { .. })));
    let server = ScriptedListWatch::<Pod>::new();
    let new = SharedIndexInformer::builder(server.clone()).build();
    let empty = |pods: &homeostat_informer::Lister<Pod>| pods.is_empty().then_some(());
    let error = new.wait_until(empty, deadline).await.unwrap_err();
    assert!(matches!(error, WaitError::NotSynced { .. }), "an empty cache may not be synced");
    new.start();
    let serve = async { server.expect_watch().await.serve([], "1") };
    let (found, _watch) = tokio::join!(new.wait_until(empty, deadline), serve);
    assert!(found.is_ok());
}

#[tokio::test(start_paused = true)]
async fn object_is_opaque_when_its_transform_panics() {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone())
        .transform(|pod: &mut Pod| {
            assert_ne!(pod.metadata.name.as_deref(), Some("bomb"));
            pod.metadata.generation = Some(7);
        })
        .build();
    informer.start();
    let objects = [pod("a", "u", "1"), pod("bomb", "v", "2")];
    let watch = server.expect_watch().await.serve(objects, "5");
    watch.apply(pod("c", "w", "6"));
    watch.apply(pod("bomb", "v", "8"));
    assert!(informer.wait_for_version(&"8".into()).await);
    let lister = informer.lister();
    assert_eq!((lister.len(), lister.opaque_len()), (2, 1));
    assert!(lister.opaque(("n", "bomb")).is_some());
    assert!(lister.list().iter().all(|pod| pod.metadata.generation == Some(7)));
}

/// An object type whose `metadata` panics for one uid.
struct Bomb(ObjectMeta);

impl Object for Bomb {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        assert_ne!(self.0.uid.as_deref(), Some("bomb"));
        &self.0
    }
}

#[tokio::test(start_paused = true)]
async fn object_is_skipped_when_its_metadata_panics() {
    let bomb = |name, uid, version| Bomb(pod(name, uid, version).metadata);
    let server = ScriptedListWatch::<Bomb>::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    informer.start();
    let first = vec![bomb("a", "u", "1"), bomb("b", "bomb", "2")];
    let watch = server.expect_watch().await.serve(first, "100");
    assert!(informer.wait_for_sync().await);
    watch.apply(bomb("c", "bomb", "101"));
    watch.apply(bomb("d", "v", "102"));
    settle().await;
    let status = informer.status();
    assert_eq!((status.objects, status.reflector.skipped_nameless), (2, 2));
    assert!(status.reflector.last_error.is_none());
    assert_eq!(informer.store_resource_version(), Some("102".into()));
    informer.stop().await;
}
