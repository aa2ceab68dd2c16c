//! Shared by the tests: a scripted server, an informer of it, and short texts for its requests.

use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::list_watch::{Page, WatchEvent};
use homeostat_informer::testing::{
    PendingList, PendingWatch, ScriptedListWatch, ScriptedRequest, ScriptedWatch,
};
use homeostat_informer::{
    BackoffConfig, Event, Lister, ObjectMeta, SharedIndexInformer, Subscription,
};
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

pub(crate) type Server = ScriptedListWatch<Pod>;

/// A handler that records every event as text.
pub(crate) struct Log {
    events: Arc<Mutex<Vec<String>>>,
    _subscription: Subscription,
}

impl Log {
    pub(crate) fn of(informer: &SharedIndexInformer<Pod>) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&events);
        let version = |pod: &Pod| pod.metadata.resource_version.clone().unwrap_or_default();
        let subscription = informer.add_handler("log", move |event: Event<Pod>| {
            let text = match &event {
                Event::Updated { old, new } => {
                    format!("{event:?} {} to {}", version(old), version(new))
                }
                Event::Deleted { certain, .. } => format!("{event:?} certain {certain}"),
                _ => format!("{event:?}"),
            };
            log.lock().push(text);
        });
        Self { events, _subscription: subscription }
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }
}

pub(crate) fn pod(name: &str, version: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(name.into()),
            namespace: Some("n".into()),
            uid: Some(format!("uid of {name}")),
            resource_version: Some(version.into()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}

/// Starts an informer with this seed.
pub(crate) fn start(seed: u64) -> (Server, SharedIndexInformer<Pod>) {
    let server = Server::new();
    let informer = SharedIndexInformer::builder(server.clone()).seed(seed).build();
    informer.start();
    (server, informer)
}

/// Returns an informer that has synced `a` at version 5 and watches.
pub(crate) async fn following() -> (Server, SharedIndexInformer<Pod>, ScriptedWatch<Pod>) {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.serve([pod("a", "4")], "5");
    assert!(informer.wait_for_sync().await);
    (server, informer, watch)
}

/// Returns name and version of each cached object, sorted.
pub(crate) fn cached(lister: &Lister<Pod>) -> Vec<String> {
    let text = |pod: &Arc<Pod>| {
        let metadata = &pod.metadata;
        format!(
            "{}{}",
            metadata.name.as_deref().unwrap_or_default(),
            metadata.resource_version.as_deref().unwrap_or_default()
        )
    };
    let mut all: Vec<_> = lister.list().iter().map(text).collect();
    all.sort();
    all
}

/// Waits for the next request. Returns it as text, with the time that it took, and the request
/// itself.
pub(crate) async fn next_request(server: &Server) -> (String, Duration, ScriptedRequest<Pod>) {
    let before = Instant::now();
    let request = timeout(Duration::from_secs(3600), server.next_request()).await;
    let request = request.expect("an informer sends its next request within an hour");
    let text = match &request {
        ScriptedRequest::List(list) => format!(
            "list {:?} {:?} {:?}",
            list.request().resource_version.as_ref().map(ToString::to_string),
            list.request().limit,
            list.request().continue_token,
        ),
        ScriptedRequest::Watch(watch) => format!(
            "{} {:?}",
            if watch.request().initial_events { "watch-list" } else { "watch" },
            watch.request().resource_version.as_ref().map(ToString::to_string),
        ),
    };
    (text, before.elapsed(), request)
}

/// Opens the watch of `request`.
pub(crate) fn open(request: ScriptedRequest<Pod>) -> ScriptedWatch<Pod> {
    watch_of(request).open()
}

pub(crate) fn watch_of(request: ScriptedRequest<Pod>) -> PendingWatch<Pod> {
    match request {
        ScriptedRequest::Watch(watch) => watch,
        ScriptedRequest::List(list) => panic!("expected a watch, got {list:?}"),
    }
}

/// Returns the version of the store.
pub(crate) fn version(informer: &SharedIndexInformer<Pod>) -> String {
    informer.store_resource_version().map(|version| version.to_string()).unwrap_or_default()
}

/// Lets everything happen that needs no time.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub(crate) fn list_of(request: ScriptedRequest<Pod>) -> PendingList<Pod> {
    match request {
        ScriptedRequest::List(list) => list,
        ScriptedRequest::Watch(watch) => panic!("expected a list, got {watch:?}"),
    }
}

/// Returns an informer that has listed `a` at version 5 and watches.
pub(crate) async fn following_by_list() -> (Server, SharedIndexInformer<Pod>, ScriptedWatch<Pod>) {
    let server = Server::new();
    let informer = SharedIndexInformer::builder(server.clone()).seed(1).watch_list(false).build();
    informer.start();
    server.expect_list().await.serve([pod("a", "4")], "5");
    let watch = server.expect_watch().await.open();
    assert!(informer.wait_for_sync().await);
    (server, informer, watch)
}

/// Returns a page of a list.
pub(crate) fn page(
    pods: impl IntoIterator<Item = Pod>,
    version: &str,
    token: Option<&str>,
) -> Page<Pod> {
    let mut page = Page::new(pods.into_iter().map(|pod| Arc::new(pod).into()).collect(), version);
    page.continue_token = token.map(Into::into);
    page
}

/// Returns the bookmark that completes an initial list.
pub(crate) fn initial_end(version: &str) -> WatchEvent<Pod> {
    WatchEvent::Bookmark { resource_version: version.into(), initial_events_end: true }
}

/// Returns true if `waited` is the back-off of this step: between once and twice 800 ms × 2^step,
/// at most 30 s.
pub(crate) fn is_step(waited: Duration, step: u32) -> bool {
    let config = BackoffConfig::default();
    let least = config.initial.saturating_mul(1 << step).min(config.max);
    // tokio's paused clock advances in milliseconds.
    (least..2 * least + Duration::from_millis(2)).contains(&waited)
}
