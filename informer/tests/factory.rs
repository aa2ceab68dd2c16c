//! Several informers over one client: one for each kind and scope, started and stopped together or
//! alone.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use homeostat_informer::list_watch::KubeListWatch;
use homeostat_informer::{
    Dynamic, Event, Metadata, Scope, SharedIndexInformer, SharedInformerFactory, WaitError,
};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_client::Client;
use kube_client::client::Body;
use kube_core::GroupVersionResource;
use parking_lot::Mutex;

type OpenWatches = Arc<Mutex<Vec<String>>>;

/// A server with one object of each kind. It refuses secrets with 403 and deployments with 404, and
/// records the open watches.
fn server() -> (Client, OpenWatches) {
    let open = OpenWatches::default();
    let watches = Arc::clone(&open);
    let service = tower::service_fn(move |request: Request<Body>| {
        let uri = request.uri().to_string();
        let (status, first) = if uri.contains("/secrets") {
            (403, api_error(403, "Forbidden", "secrets is forbidden"))
        } else if uri.contains("/deployments") {
            (404, api_error(404, "NotFound", "the server could not find the requested resource"))
        } else {
            (200, initial_events())
        };
        let guard = (status == 200).then(|| Open::new(uri, &watches));
        let first = Frame::data(Bytes::from(first));
        let rest = futures::stream::once(async move {
            if guard.is_some() {
                std::future::pending::<()>().await;
            }
            Frame::data(Bytes::new())
        });
        let frames = futures::stream::iter([first]).chain(rest).map(Ok::<_, Infallible>);
        let response = Response::builder()
            .status(status)
            .body(StreamBody::new(frames))
            .expect("a status and a body make a response");
        async move { Ok::<_, Infallible>(response) }
    });
    (Client::new(service, "default"), open)
}

/// An entry in the list of open watches, removed on drop.
struct Open {
    uri: String,
    watches: OpenWatches,
}

impl Open {
    fn new(uri: String, watches: &OpenWatches) -> Self {
        watches.lock().push(uri.clone());
        Self { uri, watches: Arc::clone(watches) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.watches.lock().retain(|open| *open != self.uri);
    }
}

fn api_error(code: u16, reason: &str, message: &str) -> String {
    serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
    .to_string()
}

fn initial_events() -> String {
    let metadata = serde_json::json!({
        "name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "1",
        "labels": {"app": "web"}, "annotations": {"long": "text"},
    });
    let end = serde_json::json!({
        "resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"},
    });
    let added = serde_json::json!({"type": "ADDED", "object": {"metadata": metadata}});
    let bookmark = serde_json::json!({"type": "BOOKMARK", "object": {"metadata": end}});
    format!("{added}\n{bookmark}\n")
}

/// Returns the number of tasks. The client has one of its own.
fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn each_kind_and_scope_has_one_informer() {
    let (client, open) = server();
    let factory =
        SharedInformerFactory::builder(client).scope(Scope::namespace("shop")).seed(1).build();
    let web = Scope::namespace("shop").labels("app=web").fields("status.phase!=Failed");
    let pods = factory.informer::<Pod>();
    let _same = factory.informer_in::<Pod>(&Scope::namespace("shop"));
    let some = factory.informer_in::<Pod>(&web);
    let _again = factory.informer_in::<Pod>(&web);
    let other_weight = factory.informer::<Metadata<Pod>>();
    let maps = factory.informer_in::<ConfigMap>(&Scope::all());
    factory.start();
    assert!(factory.wait_for_sync().await);
    assert_eq!(pods.lister().len() + some.lister().len() + maps.lister().len(), 3);
    assert_eq!(other_weight.lister().len(), 1);
    let mut paths: Vec<_> =
        open.lock().iter().map(|uri| uri.split("&timeout").next().unwrap().to_owned()).collect();
    paths.sort();
    assert_eq!(paths.len(), 4, "{paths:?}");
    assert!(paths[0].starts_with("/api/v1/configmaps?"));
    assert!(paths.iter().any(|path| path.contains("app%3Dweb")));
    assert_eq!(
        &**some.name(),
        "pods in namespace shop with labels app=web with fields status.phase!=Failed"
    );
    factory.stop().await;
    assert_eq!((open.lock().len(), tasks()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn stopped_informer_is_replaced_while_others_keep_running() {
    let (client, open) = server();
    let factory = SharedInformerFactory::new(&client);
    let (pods, maps) = (factory.informer::<Pod>(), factory.informer::<ConfigMap>());
    let pod_lister = pods.lister();
    factory.start();
    assert!(factory.wait_for_sync().await);
    pods.stop().await;
    assert!(pods.is_stopped() && !maps.is_stopped());
    assert_eq!((open.lock().len(), pod_lister.len()), (1, 1), "the cache stays readable");
    let again = factory.informer::<Pod>();
    assert!(!again.is_stopped() && !again.has_synced());
    again.start();
    assert!(factory.wait_for_sync().await);
    assert_eq!((open.lock().len(), again.lister().len()), (2, 1));
    factory.stop().await;
    let third = factory.informer::<ConfigMap>();
    factory.start();
    assert!(third.wait_for_sync().await && maps.is_stopped());
    factory.stop().await;
    assert_eq!((open.lock().len(), tasks()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn unsynced_informers_are_reported_with_their_reason() {
    let (client, _open) = server();
    let factory = SharedInformerFactory::new(&client);
    let (pods, secrets) = (factory.informer::<Pod>(), factory.informer::<Secret>());
    let _deployments = factory.informer::<Deployment>();
    let before: Vec<_> = factory.unsynced().iter().map(ToString::to_string).collect();
    assert_eq!(before[0], "pods: waiting for the server");
    factory.start();
    let waited = tokio::time::timeout(Duration::from_secs(60), factory.wait_for_sync()).await;
    assert!(waited.is_err());
    let why: Vec<_> = factory.unsynced().iter().map(ToString::to_string).collect();
    assert_eq!(why.len(), 2, "{why:?}");
    assert!(why[0].starts_with("secrets: cannot") && why[0].contains("secrets is forbidden"));
    assert!(why[1].starts_with("deployments.apps: cannot") && why[1].contains("could not find"));
    let deadline = Duration::from_secs(5);
    let error =
        secrets.wait_until(|secrets| secrets.get(("shop", "a")), deadline).await.unwrap_err();
    assert!(matches!(error, WaitError::NotSynced { .. }), "{error}");
    assert!(error.to_string().contains("secrets is forbidden"), "{error}");
    let pod = pods.wait_until(|pods| pods.get(("shop", "a")), deadline).await.unwrap();
    assert_eq!(pod.metadata.uid.as_deref(), Some("u"));
    factory.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_watch_with_custom_settings_is_shared() {
    let (client, open) = server();
    let factory = SharedInformerFactory::builder(client.clone()).seed(1).build();
    let lean = KubeListWatch::<Pod>::new(client.clone(), None).decoders(2);
    let pods = factory.informer_of(lean);
    let same = factory.informer::<Pod>();
    let maps = GroupVersionResource::gvr("", "v1", "configmaps");
    let of_maps = || KubeListWatch::<Dynamic>::of_resource(client.clone(), &maps, Some("shop"));
    let dynamic = factory.informer_of(of_maps().label_selector("app=web"));
    let again = factory.informer_of(of_maps().label_selector("app=web"));
    let unselected = factory.informer_of(of_maps());
    factory.start();
    assert!(factory.wait_for_sync().await);
    assert!(same.has_synced() && again.has_synced() && unselected.has_synced());
    assert_eq!((open.lock().len(), pods.lister().len(), dynamic.lister().len()), (3, 1, 1));
    assert_eq!(&**dynamic.name(), "configmaps in namespace shop with labels app=web");
    factory.stop().await;
    assert!(same.is_stopped() && again.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn adopted_informer_starts_and_stops_with_the_factory() {
    let (client, _open) = server();
    let factory = SharedInformerFactory::new(&client);
    let list_watch = KubeListWatch::<Pod>::new(client, None);
    let own = SharedIndexInformer::builder(list_watch)
        .transform(|pod: &mut Pod| pod.metadata.annotations = None)
        .transform(|pod: &mut Pod| pod.metadata.labels = None)
        .build();
    factory.adopt(&own);
    let received = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&received);
    let handler = own.add_handler("receive", move |event: Event<Pod>| {
        let object = event.object().cloned().unwrap();
        log.lock().push((object.metadata.annotations.is_none(), object.metadata.labels.is_none()));
    });
    factory.start();
    assert!(factory.wait_for_sync().await && handler.wait_for_sync().await);
    assert_eq!(*received.lock(), [(true, true)]);
    assert!(
        !own.has_synced() || own.lister().get(("shop", "a")).unwrap().metadata.labels.is_none()
    );
    factory.stop().await;
    assert!(own.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn informer_that_stops_ends_the_wait_for_one_that_never_syncs() {
    let factory = SharedInformerFactory::new(&server().0);
    let _refused = factory.informer::<Secret>();
    let stopped = factory.informer::<Deployment>();
    factory.start();
    let wait = async {
        let within = factory.wait_for_sync_within(Duration::MAX);
        (factory.wait_for_sync().await, within.await.is_err())
    };
    let mut wait = std::pin::pin!(wait);
    let at_most = Duration::from_secs(10);
    assert!(tokio::time::timeout(at_most, &mut wait).await.is_err(), "nothing has stopped");
    stopped.stop().await;
    assert_eq!(tokio::time::timeout(at_most, wait).await.expect("it ends"), (false, true));
    factory.stop().await;
}
