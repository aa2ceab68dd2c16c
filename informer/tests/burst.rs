//! The memory of a burst of objects is freed when the objects are gone.

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::list_watch::{Decoded, WatchEvent};
use homeostat_informer::testing::{ScriptedListWatch, ScriptedWatch};
use homeostat_informer::{Event, Lister, ObjectMeta, SharedIndexInformer, Subscription};
use k8s_openapi::api::core::v1::Pod;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Objects of the burst, and the objects that are there before and after it.
const BURST: usize = 20_000;
const REST: usize = 10;

fn pod(number: usize, version: usize) -> Pod {
    let metadata = ObjectMeta {
        name: Some(format!("pod-{number}")),
        namespace: Some(format!("team-{}", number % 20)),
        uid: Some(format!("uid-{number}")),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    };
    Pod { metadata, ..Pod::default() }
}

/// Sends an event for each pod of the burst, and waits until the handler has received all.
async fn send(
    watch: &ScriptedWatch<Pod>,
    handler: &Subscription,
    informer: &SharedIndexInformer<Pod>,
    event: impl Fn(usize) -> WatchEvent<Pod>,
) {
    let pods: Vec<_> = (REST..BURST).collect();
    for pods in pods.chunks(1000) {
        watch.send(pods.iter().map(|number| event(*number)).collect());
        tokio::task::yield_now().await;
    }
    let last = event(BURST - 1);
    let (WatchEvent::Applied(last) | WatchEvent::Deleted(last)) = last else { return };
    let version = last.metadata().resource_version.clone().unwrap_or_default();
    assert!(informer.wait_for_version(&version.as_str().into()).await);
    while handler.queued() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Returns the bytes that are allocated now and were not at the start of `region`.
fn held(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

/// Returns the bytes that a list allocates.
fn bytes_of_list(lister: &Lister<Pod>) -> usize {
    let region = Region::new(ALLOCATOR);
    assert_eq!(lister.list().len(), REST);
    region.change().bytes_allocated
}

/// One test only, so that nothing else allocates at the same time.
#[tokio::test]
async fn memory_of_a_burst_is_freed() {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    let lister = informer.lister();
    let by_name = informer.index(|pod: &Pod| pod.metadata.name.clone());
    lister.index_by_namespace();
    let handler = informer.add_handler("read", |event: Event<Pod>| drop(event));
    informer.start();
    let first = (0..REST).map(|number| pod(number, 1));
    let watch = server.expect_watch().await.serve(first, "1");
    assert!(handler.wait_for_sync().await);
    let fresh = bytes_of_list(&lister);

    let region = Region::new(ALLOCATOR);
    let state = |number, version| Decoded::Fits(Arc::new(pod(number, version)));
    let added = |number| WatchEvent::Applied(state(number, 10 + number));
    send(&watch, &handler, &informer, added).await;
    assert_eq!((lister.len(), by_name.values().len()), (BURST, BURST));
    let growth = held(&region);
    let deleted = |number| WatchEvent::Deleted(state(number, 10 + BURST + number));
    send(&watch, &handler, &informer, deleted).await;
    assert_eq!((lister.len(), by_name.values().len()), (REST, REST));
    let kept = held(&region);
    assert!(growth > BURST * size_of::<Pod>(), "{growth} bytes are not those of the pods");
    assert!(kept * 5 <= growth, "{kept} of {growth} bytes are kept");
    assert!(bytes_of_list(&lister) <= fresh, "a list is larger than before the burst");
}
