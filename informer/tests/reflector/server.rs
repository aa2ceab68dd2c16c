//! What the tests share: a server played by a script, an informer of it, and short words for what is asked.

use std::{sync::Arc, time::Duration};

use homeostat_informer::{
    BackoffConfig, Event, Lister, ObjectMeta, Page, SharedIndexInformer, Subscription, WatchEvent,
    testing::{PendingList, PendingWatch, ScriptedListWatch, ScriptedRequest, ScriptedWatch},
};
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

pub(crate) type Server = ScriptedListWatch<Pod>;

/// Everything that a handler is told.
pub(crate) struct Log {
    told: Arc<Mutex<Vec<String>>>,
    _subscription: Subscription,
}

impl Log {
    pub(crate) fn of(informer: &SharedIndexInformer<Pod>) -> Self {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&told);
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
        Self { told, _subscription: subscription }
    }

    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().clone()
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

pub(crate) fn start(seed: u64) -> (Server, SharedIndexInformer<Pod>) {
    let server = Server::new();
    let informer = SharedIndexInformer::builder(server.clone()).seed(seed).build();
    informer.start();
    (server, informer)
}

/// An informer that has `a` at version 5 and follows.
pub(crate) async fn following() -> (Server, SharedIndexInformer<Pod>, ScriptedWatch<Pod>) {
    let (server, informer) = start(1);
    let watch = server.expect_watch().await.serve([pod("a", "4")], "5");
    assert!(informer.synced().await);
    (server, informer, watch)
}

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

/// What is asked next, in short, and how long that took.
pub(crate) async fn asked(server: &Server) -> (String, Duration, ScriptedRequest<Pod>) {
    let before = Instant::now();
    let request = timeout(Duration::from_secs(3600), server.next_request()).await;
    let request = request.expect("an informer asks again within the hour");
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

pub(crate) fn open(request: ScriptedRequest<Pod>) -> ScriptedWatch<Pod> {
    watch_of(request).open()
}

pub(crate) fn watch_of(request: ScriptedRequest<Pod>) -> PendingWatch<Pod> {
    match request {
        ScriptedRequest::Watch(watch) => watch,
        ScriptedRequest::List(list) => panic!("expected a watch, got {list:?}"),
    }
}

pub(crate) fn version(informer: &SharedIndexInformer<Pod>) -> String {
    informer.store_resource_version().map(|version| version.to_string()).unwrap_or_default()
}

/// Lets all that can happen without time happen.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

pub(crate) fn list_of(request: ScriptedRequest<Pod>) -> PendingList<Pod> {
    match request {
        ScriptedRequest::List(list) => list,
        ScriptedRequest::Watch(watch) => panic!("expected a list, got {watch:?}"),
    }
}

/// An informer that has `a` at version 5, got by list, and follows.
pub(crate) async fn following_by_list() -> (Server, SharedIndexInformer<Pod>, ScriptedWatch<Pod>) {
    let server = Server::new();
    let informer = SharedIndexInformer::builder(server.clone()).seed(1).watch_list(false).build();
    informer.start();
    server.expect_list().await.serve([pod("a", "4")], "5");
    let watch = server.expect_watch().await.open();
    assert!(informer.synced().await);
    (server, informer, watch)
}

/// A page of a list.
pub(crate) fn page(
    pods: impl IntoIterator<Item = Pod>,
    version: &str,
    token: Option<&str>,
) -> Page<Pod> {
    let mut page = Page::new(pods.into_iter().map(|pod| Arc::new(pod).into()).collect(), version);
    page.continue_token = token.map(Into::into);
    page
}

/// What says that the initial state is complete.
pub(crate) fn initial_end(version: &str) -> WatchEvent<Pod> {
    WatchEvent::Bookmark { resource_version: version.into(), initial_events_end: true }
}

/// Whether a wait is one of the back-off's at this step.
pub(crate) fn is_step(waited: Duration, step: u32) -> bool {
    let config = BackoffConfig::default();
    let least = config.initial.saturating_mul(1 << step).min(config.max);
    // The clock of a test ticks in milliseconds.
    (least..2 * least + Duration::from_millis(2)).contains(&waited)
}
