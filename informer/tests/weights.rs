//! Each object representation sends the request, decodes and is read as its type documents.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its test does")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use homeostat_informer::list_watch::{
    KubeListWatch, ListRequest, ListWatch, WatchEvent, WatchRequest,
};
use homeostat_informer::{
    Dynamic, Event, Lazy, Metadata, Object, ObjectMeta, SharedIndexInformer, SharedInformerFactory,
};
use http::{Request, Response, header};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_client::Client;
use kube_client::client::Body;
use kube_core::GroupVersionResource;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;

const FITS: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"fits","namespace":"b",
    "uid":"1","resourceVersion":"5","labels":{"app":"web"},"finalizers":["f"],
    "managedFields":[{"manager":"m"}]},"spec":{"nodeName":"n","containers":[{"name":"c"}]}}"#;
const UNDECODABLE: &str = r#"{"metadata":{"name":"undecodable","namespace":"b","uid":"2",
    "resourceVersion":"6","labels":{"app":"web"}},"spec":{"nodeName":7}}"#;
const BOOKMARK: &str = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7",
    "annotations":{"k8s.io/initial-events-end":"true"}}}}"#;

/// Each request: path with query, and `Accept`.
type Requests = Arc<Mutex<Vec<(String, String)>>>;

/// A server of these two pods: it lists them, or sends them as the initial list of a watch that
/// stays open.
fn server() -> (Client, Requests) {
    let requests = Requests::default();
    let log = Arc::clone(&requests);
    let service = tower::service_fn(move |request: Request<Body>| {
        let query = request.uri().to_string();
        let accept = request.headers()[header::ACCEPT].to_str().unwrap().to_owned();
        let watch = query.contains("watch=true");
        log.lock().push((query, accept));
        let body = if watch {
            let added =
                |object: &str| format!(r#"{{"type":"ADDED","object":{object}}}"#).replace('\n', "");
            let bookmark = BOOKMARK.replace('\n', "");
            [added(FITS), added(UNDECODABLE), bookmark].map(|line| line + "\n").concat()
        } else {
            format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{FITS},{UNDECODABLE}]}}"#)
        };
        let chunk = Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(body)));
        let open = futures::stream::pending().take_until(async move {
            if watch {
                std::future::pending::<()>().await;
            }
        });
        let body = StreamBody::new(futures::stream::iter([chunk]).chain(open));
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    (Client::new(service, "default"), requests)
}

/// Lists and watches; returns the decoded objects of both and the number of opaque ones.
async fn listed<K: Object>(list_watch: &KubeListWatch<K>) -> (Vec<Arc<K>>, usize)
where
    KubeListWatch<K>: ListWatch<K>,
{
    let page = list_watch.list(&ListRequest::new()).await.unwrap();
    let request = WatchRequest::with_initial_events(None, Duration::from_secs(300));
    let mut watch = list_watch.watch(&request).await.unwrap();
    let batch = watch.next().await.unwrap().unwrap();
    let watched = batch.into_iter().filter_map(|event| match event {
        WatchEvent::Applied(object) => Some(object),
        _ => None,
    });
    let all: Vec<_> = page.items.into_iter().chain(watched).collect();
    assert_eq!(all.len(), 4);
    let fitting = all.iter().filter_map(|object| match object {
        homeostat_informer::list_watch::Decoded::Fits(object) => Some(Arc::clone(object)),
        homeostat_informer::list_watch::Decoded::Opaque { .. } => None,
    });
    let fitting: Vec<_> = fitting.collect();
    let opaque = all.len() - fitting.len();
    (fitting, opaque)
}

#[tokio::test(start_paused = true)]
async fn lazy_object_is_not_decoded_for_metadata_reads() {
    let (client, _) = server();
    let pods = SharedIndexInformer::builder(KubeListWatch::<Lazy<Pod>>::new(client, None)).build();
    let app = |metadata: &ObjectMeta| metadata.labels.as_ref()?.get("app").cloned();
    let by_app = pods.index_by_metadata(app);
    let by_label = pods.index(move |pod: &Lazy<Pod>| app(pod.metadata()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let subscription = pods.add_handler("names", move |event: Event<Lazy<Pod>>| {
        log.lock().push(event.key().to_string());
    });
    pods.start();
    assert!(subscription.wait_for_sync().await);

    let lister = pods.lister();
    assert_eq!(
        (lister.len(), lister.opaque_len()),
        (2, 0),
        "an object that would not decode is listed, too"
    );
    assert_eq!((by_app.get("web").len(), by_label.get("web").len()), (2, 2));
    assert_eq!(lister.list_in("b").len(), 2);
    assert_eq!(*seen.lock(), ["b/fits", "b/undecodable"]);
    let decodes = || lister.list().iter().map(|pod| pod.decodes()).sum::<u32>();
    assert_eq!(decodes(), 0);

    let fits = lister.get(("b", "fits")).unwrap().decode().unwrap();
    assert_eq!(fits.spec.as_ref().unwrap().node_name.as_deref(), Some("n"));
    assert_eq!(fits.metadata.managed_fields, None);
    assert!(lister.get(("b", "undecodable")).unwrap().decode().is_err());
    assert_eq!(decodes(), 2);
    subscription.remove().await;
    pods.stop().await;
}

#[tokio::test]
async fn metadata_informer_requests_only_partial_object_metadata() {
    let (client, requests) = server();
    let (secrets, opaque) =
        listed(&KubeListWatch::<Metadata<Secret>>::new(client, Some("b"))).await;
    assert_eq!((secrets.len(), opaque), (4, 0));
    assert_eq!(secrets[0].key().to_string(), "b/fits");
    assert_eq!(secrets[0].metadata().managed_fields, None);
    let requests = requests.lock();
    assert_eq!(requests[0].0, "/api/v1/namespaces/b/secrets?");
    assert_eq!(
        [&*requests[0].1, &*requests[1].1],
        [
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        ]
    );
}

#[tokio::test]
async fn dynamic_resource_has_path_and_target_at_run_time() {
    let sets = GroupVersionResource::gvr("apps", "v1", "replicasets");
    let pods = GroupVersionResource::gvr("", "v1", "pods");
    let odd = GroupVersionResource::gvr("a/../b", "v1?x", "c d");
    for (resource, namespace, path, target) in [
        (
            &sets,
            Some("b"),
            "/apis/apps/v1/namespaces/b/replicasets?",
            "replicasets.apps in namespace b",
        ),
        (&sets, None, "/apis/apps/v1/replicasets?", "replicasets.apps"),
        (&pods, Some("b"), "/api/v1/namespaces/b/pods?", "pods in namespace b"),
        (&odd, None, "/apis/a%2F..%2Fb/v1%3Fx/c%20d?", "c d.a/../b"),
    ] {
        let (client, requests) = server();
        let list_watch = KubeListWatch::<Dynamic>::of_resource(client, resource, namespace);
        assert_eq!(&*list_watch.target(), target);
        let (objects, opaque) = listed(&list_watch).await;
        assert_eq!((objects.len(), opaque), (4, 0));
        assert_eq!(objects[0].get::<String>(&["spec", "nodeName"]).unwrap().as_deref(), Some("n"));
        assert_eq!(requests.lock()[0], (path.to_owned(), "application/json".to_owned()));
    }
    let (client, requests) = server();
    let list_watch = KubeListWatch::<Metadata<Dynamic>>::of_resource(client, &sets, None);
    assert_eq!(listed(&list_watch).await.0.len(), 4);
    assert!(requests.lock()[0].1.contains("PartialObjectMetadataList"));
}

#[derive(Deserialize)]
struct Placed {
    metadata: ObjectMeta,
    spec: PlacedSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlacedSpec {
    node_name: Option<String>,
}

impl Object for Placed {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

#[tokio::test(start_paused = true)]
async fn each_representation_of_a_kind_has_its_own_informer_and_the_same_keys() {
    async fn keys<K>(factory: &SharedInformerFactory) -> Vec<homeostat_informer::ObjectKey<Pod>>
    where
        K: Object<Kind = Pod> + DeserializeOwned,
    {
        let informer = factory.informer::<K>();
        factory.start();
        assert!(informer.wait_for_sync().await);
        let mut keys: Vec<_> = informer.lister().list().iter().map(|object| object.key()).collect();
        keys.sort();
        keys
    }
    let (client, requests) = server();
    let factory = SharedInformerFactory::new(&client);
    let typed = keys::<Pod>(&factory).await;
    assert_eq!(typed.len(), 1);
    assert_eq!(keys::<Placed>(&factory).await, typed);
    let placed = factory.informer::<Placed>().lister().get(("b", "fits")).unwrap();
    assert_eq!(placed.spec.node_name.as_deref(), Some("n"));
    assert_eq!(keys::<Lazy<Placed>>(&factory).await.len(), 2);
    assert_eq!(keys::<Lazy<Pod>>(&factory).await.len(), 2);
    assert_eq!(keys::<Metadata<Pod>>(&factory).await.len(), 2);
    assert_eq!(requests.lock().len(), 5);
    factory.stop().await;
}

#[tokio::test]
async fn managed_fields_are_kept_on_request() {
    let (client, _) = server();
    let pods = KubeListWatch::<Pod>::new(client, None);
    assert_eq!(listed(&pods).await.0[0].metadata.managed_fields, None);
    let pods = pods.managed_fields(true);
    for pod in listed(&pods).await.0 {
        assert_eq!(pod.metadata.managed_fields.as_ref().map(Vec::len), Some(1));
    }
}

#[tokio::test]
async fn objects_have_no_spare_capacity() {
    let (client, _) = server();
    let (pods, _) = listed(&KubeListWatch::<Pod>::new(client, None)).await;
    let capacity = |pod: &Pod| pod.metadata.finalizers.as_ref().unwrap().capacity();
    assert!(pods.iter().all(|pod| capacity(pod) == 1));
}
