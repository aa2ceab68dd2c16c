//! Heap bytes of one cached pod in each representation. The pod belongs to a Deployment, as
//! kubelets and controllers leave it.

use std::alloc::System;
use std::convert::Infallible;

use bytes::Bytes;
use homeostat_informer::list_watch::{KubeListWatch, ListRequest, ListWatch};
use homeostat_informer::{Dynamic, Lazy, Metadata, Object};
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::client::Body;
use kube_core::GroupVersionResource;
use serde::de::DeserializeOwned;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const POD: &str = include_str!("fixtures/pod.json");
const PODS: usize = 200;

fn client() -> Client {
    let items = vec![POD.trim_end(); PODS].join(",");
    let list =
        Bytes::from(format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#));
    let service = tower::service_fn(move |_: Request<Body>| {
        let list = list.clone();
        async move { Ok::<_, Infallible>(Response::new(Full::new(list))) }
    });
    Client::new(service, "default")
}

/// Returns the bytes requested from the allocator per object, without the allocator's overhead.
async fn weight<K: Object + DeserializeOwned>(list_watch: KubeListWatch<K>) -> usize {
    // The first round pays for what is allocated only once.
    drop(list_watch.list(&ListRequest::new()).await.expect("a list"));
    let region = Region::new(ALLOCATOR);
    let page = list_watch.list(&ListRequest::new()).await.expect("a list");
    let change = region.change();
    assert_eq!(page.items.len(), PODS);
    (change.bytes_allocated - change.bytes_deallocated) / PODS
}

/// One test only, so that nothing else allocates at the same time.
#[tokio::test]
async fn cached_pod_sizes_stay_within_documented_bounds() {
    let client = client();
    let pods = || KubeListWatch::<Pod>::new(client.clone(), None);
    let resource = GroupVersionResource::gvr("", "v1", "pods");
    let full = weight(pods().managed_fields(true)).await;
    let typed = weight(pods()).await;
    let lazy = weight(KubeListWatch::<Lazy<Pod>>::new(client.clone(), None)).await;
    let metadata = weight(KubeListWatch::<Metadata<Pod>>::new(client.clone(), None)).await;
    let dynamic =
        weight(KubeListWatch::<Dynamic>::of_resource(client.clone(), &resource, None)).await;
    let all = [full, typed, lazy, metadata, dynamic];
    let json = POD.len();
    assert!(typed < full * 2 / 3, "{json} {all:?}");
    assert!(lazy < json * 8 / 10, "{json} {all:?}");
    assert!(dynamic < lazy && metadata < 3000, "{json} {all:?}");
    assert!(typed > 3 * lazy, "{json} {all:?}");
}
