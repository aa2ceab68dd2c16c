//! The metrics and the status of an informer.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use homeostat_informer::list_watch::{ApiError, Page};
use homeostat_informer::status::{InformerPhase, ReflectorPhase};
use homeostat_informer::testing::ScriptedListWatch;
use homeostat_informer::{Event, ObjectMeta, ResourceVersion, SharedIndexInformer, Subscription};
use k8s_openapi::api::core::v1::Pod;
use kube_core::GroupVersionResource;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use parking_lot::Mutex;

/// A recorder that keeps the last value of each series; for a histogram, the number of its samples.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<BTreeMap<String, f64>>>);

struct Series {
    numbers: Numbers,
    name: String,
}

impl Numbers {
    fn series(&self, key: &Key) -> Arc<Series> {
        let labels: Vec<_> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::new(Series { numbers: self.clone(), name })
    }

    fn get(&self, name: &str, more: &str) -> Option<f64> {
        let labels = format!("{{name=test,group=,version=v1,resource=pods{more}}}");
        self.0.lock().get(&(name.to_owned() + &labels)).copied()
    }
}

impl Series {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut numbers = self.numbers.0.lock();
        let number = numbers.entry(self.name.clone()).or_default();
        *number = change(*number);
    }
}

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        self.change(|number| number + f64::from(u32::try_from(value).expect("a small number")));
    }

    fn absolute(&self, value: u64) {
        self.change(|_| f64::from(u32::try_from(value).expect("a small number")));
    }
}

impl GaugeFn for Series {
    fn increment(&self, value: f64) {
        self.change(|number| number + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|number| number - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Series {
    fn record(&self, _: f64) {
        self.change(|number| number + 1.0);
    }
}

impl Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        self.series(key).into()
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        self.series(key).into()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        self.series(key).into()
    }
}

fn pod(name: &str, version: &str) -> Pod {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        namespace: Some("n".into()),
        uid: Some(name.into()),
        resource_version: Some(version.into()),
        ..ObjectMeta::default()
    };
    Pod { metadata, ..Pod::default() }
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn metrics_use_client_go_names_and_labels() {
    let numbers = Numbers::default();
    let server = ScriptedListWatch::<Pod>::new();
    let pods = GroupVersionResource::gvr("", "v1", "pods");
    let (informer, subscription) = metrics::with_local_recorder(&numbers, || {
        let informer = SharedIndexInformer::builder(server.clone())
            .metrics("test", &pods)
            .watch_list(false)
            .build();
        let subscription = informer.add_handler("slow", |event: Event<Pod>| {
            assert_ne!(event.metadata().name.as_deref(), Some("bomb"));
        });
        (informer, subscription)
    });
    let _index = informer.index(|pod: &Pod| -> Option<String> {
        assert_ne!(pod.metadata.name.as_deref(), Some("bomb"));
        None
    });
    informer.start();
    let first = server.expect_list().await;
    let mut page = Page::new(vec![Arc::new(pod("a", "1")).into()], "1234567890123456789");
    page.continue_token = Some("more".into());
    page.skipped_nameless = 2;
    page.items.push(Arc::new(pod("", "3")).into());
    first.reply(page);
    server.expect_list().await.serve([pod("bomb", "2")], "1234567890123456789");
    let watch = server.expect_watch().await.open();
    watch.apply(pod("c", "1234567890123456790"));
    watch.apply_opaque(pod("d", "1234567890123456791").metadata);
    watch.apply_opaque(pod("", "1234567890123456792").metadata);
    watch.apply(Pod::default());
    settle().await;
    watch.end_with(ApiError::new(500, "InternalError", "no"));
    drop(server.expect_watch().await.open());
    settle().await;
    assert!(subscription.has_synced());
    for (name, value) in [
        ("informer_queued_items", 0.0),
        ("informer_store_resource_version", 567_890_123_456_792.0),
        ("informer_opaque_objects", 1.0),
        ("informer_index_panics_total", 1.0),
        ("informer_skipped_nameless_objects_total", 5.0),
        ("reflector_lists_total", 1.0),
        ("reflector_list_duration_seconds", 1.0),
        ("reflector_items_per_list", 1.0),
        ("reflector_watches_total", 2.0),
        ("reflector_watch_duration_seconds", 2.0),
        ("reflector_items_per_watch", 2.0),
        ("reflector_short_watches_total", 1.0),
    ] {
        assert_eq!(numbers.get(name, ""), Some(value), "{name} in {:?}", numbers.0.lock());
    }
    assert!(numbers.get("informer_processing_latency_seconds", "") >= Some(2.0));
    assert_eq!(numbers.get("informer_handler_queued_items", ",handler=slow"), Some(0.0));
    assert_eq!(numbers.get("informer_handler_panics_total", ",handler=slow"), Some(1.0));
    let calls = numbers.get("informer_handler_duration_seconds", ",handler=slow");
    assert!(calls >= Some(2.0), "{calls:?} calls");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn gauges_of_an_informer_that_is_gone_are_zero() {
    let numbers = Numbers::default();
    let server = ScriptedListWatch::<Pod>::new();
    let pods = GroupVersionResource::gvr("", "v1", "pods");
    let informer = metrics::with_local_recorder(&numbers, || {
        SharedIndexInformer::builder(server.clone()).metrics("test", &pods).build()
    });
    informer.start();
    let watch = server.expect_watch().await.serve([pod("a", "4")], "5");
    watch.apply_opaque(pod("b", "6").metadata);
    assert!(informer.wait_for_version(&"6".into()).await);
    settle().await;
    let opaque = || numbers.get("informer_opaque_objects", "");
    assert_eq!(opaque(), Some(1.0));
    informer.stop().await;
    assert_eq!(opaque(), Some(1.0), "the cache is still there");
    drop(informer);
    assert_eq!((opaque(), numbers.get("informer_queued_items", "")), (Some(0.0), Some(0.0)));
}

#[tokio::test(start_paused = true)]
async fn counters_of_an_informer_continue_those_of_its_predecessor() {
    let numbers = Numbers::default();
    let pods = GroupVersionResource::gvr("", "v1", "pods");
    for (skipped, sum) in [(5, 5.0), (3, 8.0)] {
        let server = ScriptedListWatch::<Pod>::new();
        let informer = metrics::with_local_recorder(&numbers, || {
            let builder = SharedIndexInformer::builder(server.clone()).watch_list(false);
            builder.metrics("test", &pods).build()
        });
        informer.start();
        let mut page = Page::new(vec![], "7");
        page.skipped_nameless = skipped;
        server.expect_list().await.reply(page);
        assert!(informer.wait_for_sync().await);
        settle().await;
        let name = "informer_skipped_nameless_objects_total";
        assert_eq!(numbers.get(name, ""), Some(sum));
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_informers_never_record_under_the_same_labels() {
    let numbers = Numbers::default();
    let pods = GroupVersionResource::gvr("", "v1", "pods");
    let lists = |numbers: &Numbers| numbers.get("reflector_lists_total", "");
    let serve = async |version: &str| {
        let server = ScriptedListWatch::<Pod>::new();
        let informer = metrics::with_local_recorder(&numbers, || {
            let builder = SharedIndexInformer::builder(server.clone()).watch_list(false);
            builder.metrics("test", &pods).build()
        });
        informer.start();
        server.expect_list().await.serve([], version);
        let watch = server.expect_watch().await.open();
        assert!(informer.wait_for_sync().await);
        (informer, watch)
    };
    let first = serve("1").await;
    let second = serve("2").await;
    assert_eq!(lists(&numbers), Some(1.0), "the second informer records nothing");
    assert_eq!(numbers.get("informer_store_resource_version", ""), Some(1.0));
    first.0.stop().await;
    let third = serve("3").await;
    assert_eq!(lists(&numbers), Some(2.0), "the labels of a stopped informer are free");
    assert_eq!(numbers.get("informer_store_resource_version", ""), Some(3.0));
    for (informer, _watch) in [second, third] {
        informer.stop().await;
    }
}

/// Adds a handler that blocks its thread from the first event on, until the sender is dropped.
/// Returns when it blocks, in the future.
fn block(
    numbers: &Numbers,
    informer: &SharedIndexInformer<Pod>,
) -> (Subscription, mpsc::Sender<()>, impl Future<Output = ()> + use<>) {
    let (release, blocked) = mpsc::channel::<()>();
    let (entered, mut is_entered) = tokio::sync::mpsc::channel(8);
    let handler = move |_: Event<Pod>| {
        // An error means that the test has ended.
        entered.try_send(()).unwrap_or_default();
        blocked.recv().unwrap_or_default();
    };
    let subscription =
        metrics::with_local_recorder(numbers, || informer.add_handler("slow", handler));
    (subscription, release, async move {
        assert!(is_entered.recv().await.is_some(), "the handler is gone");
    })
}

/// A handler that blocks stalls its thread, so this test takes real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn informer_records_while_its_predecessor_is_still_stopping() {
    let numbers = Numbers::default();
    let pods = GroupVersionResource::gvr("", "v1", "pods");
    let server = ScriptedListWatch::<Pod>::new();
    let build = || {
        let builder = SharedIndexInformer::builder(server.clone()).watch_list(false);
        metrics::with_local_recorder(&numbers, || builder.metrics("test", &pods).build())
    };
    let shown = || {
        let queued = numbers.get("informer_handler_queued_items", ",handler=slow");
        let version = numbers.get("informer_store_resource_version", "");
        (version, numbers.get("reflector_lists_total", ""), queued)
    };
    let first = build();
    let (first_handler, release_first, is_blocked) = block(&numbers, &first);
    first.start();
    server.expect_list().await.serve([pod("a", "1"), pod("b", "2"), pod("c", "3")], "5");
    let _watch = server.expect_watch().await.open();
    is_blocked.await;
    let mut stopping = Box::pin(first.stop());
    assert!(futures::poll!(stopping.as_mut()).is_pending(), "its handler runs");

    let second = build();
    let (_second_handler, release_second, is_blocked) = block(&numbers, &second);
    second.start();
    server.expect_list().await.serve([pod("a", "1"), pod("b", "2")], "7");
    let _watch = server.expect_watch().await.open();
    is_blocked.await;
    let of_second = (Some(7.0), Some(2.0), Some(1.0));
    assert_eq!(shown(), of_second);
    drop(release_first);
    stopping.await;
    drop((first, first_handler));
    assert_eq!(shown(), of_second, "the first one shows nothing any more");

    let third = build();
    third.start();
    server.expect_list().await.serve([], "9");
    let _watch = server.expect_watch().await.open();
    assert!(third.wait_for_sync().await);
    assert_eq!(shown(), of_second, "the labels are those of the second one");
    drop(release_second);
    second.stop().await;
    assert_eq!(shown().2, Some(0.0), "a handler that has ended has no events");
    third.stop().await;
}

#[tokio::test(start_paused = true)]
async fn status_reports_progress_and_no_object_content() {
    let server = ScriptedListWatch::<Pod>::new();
    let informer = SharedIndexInformer::builder(server.clone()).name("pods").build();
    let _index = informer.index_by_metadata(|metadata| metadata.uid.clone());
    let subscription = informer.add_handler("all", |_: Event<Pod>| {});
    assert_eq!(informer.status().phase, InformerPhase::New);
    informer.start();
    server.expect_watch().await.refuse(ApiError::new(403, "Forbidden", "pods is forbidden"));
    settle().await;
    let status = informer.status();
    assert_eq!((&status.phase, status.objects), (&InformerPhase::Syncing, 0));
    let text = status.to_string();
    assert!(text.contains("last error: cannot watch scripted objects"), "{status}");
    assert!(text.contains("reflector: listing, received up to resourceVersion none"), "{status}");
    assert_eq!((status.reflector.phase, status.reflector.failures), (ReflectorPhase::Listing, 1));
    let serve = async {
        server.expect_list().await.serve([pod("secret-name", "1")], "5");
        server.expect_watch().await.open()
    };
    let watch = serve.await;
    settle().await;
    assert!(subscription.wait_for_sync().await);
    let status = informer.status();
    assert_eq!(status.phase, InformerPhase::Following);
    assert_eq!((status.objects, status.opaque), (1, 0));
    let text = "pods: Following, version 5, 1 objects, 0 opaque, 0 queued, 1 indices (0 panics)\n  \
                reflector: watching, received up to resourceVersion 5, full syncs: 1, \
                last at resourceVersion 5\n  \
                handler all: synced, 0 queued, 0 panics";
    assert_eq!(status.to_string(), text);
    watch.bookmark("7");
    settle().await;
    watch.end_with(
        ApiError::new(429, "TooManyRequests", "later").with_retry_after(Duration::from_secs(9)),
    );
    settle().await;
    let status = informer.status();
    let ReflectorPhase::Waiting { until: Some(until) } = status.reflector.phase else {
        panic!("{status}")
    };
    assert!(until > tokio::time::Instant::now() + Duration::from_secs(8));
    let reflector = &status.reflector;
    assert_eq!(reflector.resource_version.as_ref().map(ResourceVersion::as_str), Some("7"));
    assert_eq!(reflector.last_full_sync.as_ref().map(ResourceVersion::as_str), Some("5"));
    assert!(status.to_string().contains("reflector: retries in 9"), "{status}");
    assert!(reflector.last_error.is_some(), "the status names the error");
    informer.stop().await;
    let status = informer.status();
    assert_eq!(status.phase, InformerPhase::Stopped);
    assert_eq!(status.reflector.phase, ReflectorPhase::Idle);
}

/// A recorder that knows no metric. Without a field it would count as none.
struct Broken(#[expect(dead_code, reason = "gives the recorder an address")] u8);

impl Recorder for Broken {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        panic!("no counters")
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        panic!("no gauges")
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("no histograms")
    }
}

#[tokio::test(start_paused = true)]
async fn recorder_that_panics_at_a_registration_costs_only_metrics() {
    let server = ScriptedListWatch::<Pod>::new();
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let (informer, subscription) = metrics::with_local_recorder(&Broken(0), || {
        let resource = GroupVersionResource::gvr("", "v1", "pods");
        let informer =
            SharedIndexInformer::builder(server.clone()).metrics("broken", &resource).build();
        let subscription = informer.add_handler("count", move |_: Event<Pod>| *count.lock() += 1);
        (informer, subscription)
    });
    informer.start();
    let _watch = server.expect_watch().await.serve([pod("a", "3")], "5");
    assert!(subscription.wait_for_sync().await);
    assert_eq!((*seen.lock(), informer.failure()), (1, None));
}

#[tokio::test(start_paused = true)]
async fn labels_of_an_informer_that_has_failed_are_free() {
    /// A panic payload whose destructor panics, so that it crosses the boundary of the handler.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "destructor of a payload");
        }
    }

    let numbers = Numbers::default();
    let server = ScriptedListWatch::<Pod>::new();
    let build = || {
        let pods = GroupVersionResource::gvr("", "v1", "pods");
        let builder = SharedIndexInformer::builder(server.clone()).watch_list(false);
        metrics::with_local_recorder(&numbers, || builder.metrics("test", &pods).build())
    };
    let failed = build();
    let broken = failed.add_handler("broken", |_: Event<Pod>| std::panic::panic_any(Bomb));
    failed.start();
    server.expect_list().await.serve([pod("a", "3")], "5");
    assert!(failed.wait_for_stop().await.is_err());
    let next = build();
    next.start();
    server.expect_list().await.serve([], "6");
    assert!(next.wait_for_sync().await);
    assert_eq!(numbers.get("reflector_lists_total", ""), Some(2.0));
    drop((broken, failed));
    next.stop().await;
}
