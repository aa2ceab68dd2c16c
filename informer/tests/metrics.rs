//! What an informer reports of itself.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use homeostat_informer::{
    Event, InformerPhase, ObjectMeta, Page, ReflectorPhase, Refusal, ResourceVersion,
    SharedIndexInformer, testing::ScriptedListWatch,
};
use k8s_openapi::api::core::v1::Pod;
use kube_core::GroupVersionResource;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use parking_lot::Mutex;

/// Keeps the last number of each series, and of histograms how many there were.
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
async fn dashboards_find_the_names_and_labels_of_client_go() {
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
    page.left_out = 2;
    page.items.push(Arc::new(pod("", "3")).into());
    first.reply(page);
    server.expect_list().await.serve([pod("bomb", "2")], "1234567890123456789");
    let watch = server.expect_watch().await.open();
    watch.apply(pod("c", "1234567890123456790"));
    watch.apply_opaque(pod("d", "1234567890123456791").metadata);
    watch.apply_opaque(pod("", "1234567890123456792").metadata);
    watch.apply(Pod::default());
    settle().await;
    watch.end_with(Refusal::new(500, "InternalError", "no"));
    drop(server.expect_watch().await.open());
    settle().await;
    assert!(subscription.has_synced());
    for (name, value) in [
        ("informer_queued_items", 0.0),
        ("informer_store_resource_version", 567_890_123_456_792.0),
        ("informer_opaque_objects", 1.0),
        ("informer_index_panics_total", 1.0),
        ("informer_left_out_objects_total", 5.0),
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
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn status_says_how_the_informer_is_and_nothing_of_its_objects() {
    let server = ScriptedListWatch::<Pod>::new();
    let informer = SharedIndexInformer::builder(server.clone()).name("pods").build();
    let _index = informer.index_by_metadata(|metadata| metadata.uid.clone());
    let subscription = informer.add_handler("all", |_: Event<Pod>| {});
    assert_eq!(informer.status().phase, InformerPhase::New);
    informer.start();
    server.expect_watch().await.refuse(Refusal::new(403, "Forbidden", "pods is forbidden"));
    settle().await;
    let status = informer.status();
    assert_eq!((status.phase, status.objects), (InformerPhase::Syncing, 0));
    let text = status.to_string();
    assert!(text.contains("last error: cannot watch scripted objects"), "{status}");
    assert!(text.contains("reflector: listing, heard of version none"), "{status}");
    assert_eq!((status.reflector.phase, status.reflector.failures), (ReflectorPhase::Listing, 1));
    let serve = async {
        server.expect_list().await.serve([pod("secret-name", "1")], "5");
        server.expect_watch().await.open()
    };
    let watch = serve.await;
    settle().await;
    assert!(subscription.synced().await);
    let status = informer.status();
    assert_eq!((status.phase, status.objects, status.opaque), (InformerPhase::Following, 1, 0));
    let text = "pods: Following, version 5, 1 objects, 0 opaque, 0 queued, 1 indices (0 panics)\n  \
                reflector: watching, heard of version 5, whole states: 1, the last as of 5\n  \
                handler all: synced, 0 queued, 0 panics";
    assert_eq!(status.to_string(), text);
    watch.bookmark("7");
    settle().await;
    watch.end_with(
        Refusal::new(429, "TooManyRequests", "later").with_retry_after(Duration::from_secs(9)),
    );
    settle().await;
    let status = informer.status();
    let ReflectorPhase::Waiting { until: Some(until) } = status.reflector.phase else {
        panic!("{status}")
    };
    assert!(until > tokio::time::Instant::now() + Duration::from_secs(8));
    let reflector = &status.reflector;
    assert_eq!(reflector.resource_version.as_ref().map(ResourceVersion::as_str), Some("7"));
    assert_eq!(reflector.gathered.as_ref().map(ResourceVersion::as_str), Some("5"));
    assert!(status.to_string().contains("reflector: asks again in 9"), "{status}");
    assert!(reflector.last_error.is_some(), "and says why");
    informer.stop().await;
    let status = informer.status();
    assert_eq!(status.phase, InformerPhase::Stopped);
    assert_eq!(status.reflector.phase, ReflectorPhase::Idle);
}
