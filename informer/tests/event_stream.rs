//! The events of an informer as a bounded stream.

use futures::StreamExt;
use homeostat_informer::testing::{ScriptedListWatch, ScriptedWatch};
use homeostat_informer::{EventStream, Overflow, SharedIndexInformer};
use k8s_openapi::api::core::v1::Pod;

fn pod(name: &str, version: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(name.into());
    pod.metadata.resource_version = Some(version.into());
    pod
}

/// Lets everything happen that needs no time.
async fn settle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

/// Returns a synced informer of the pod `a`, and a stream of its events with room for 3.
async fn following(
    overflow: Overflow,
) -> (SharedIndexInformer<Pod>, ScriptedWatch<Pod>, EventStream<Pod>) {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    let events = informer.events("read", 3, overflow);
    informer.start();
    let watch = server.expect_watch().await.serve([pod("a", "1")], "5");
    assert!(informer.wait_for_sync().await);
    (informer, watch, events)
}

/// Takes what is in the stream, as text.
async fn take(events: &mut EventStream<Pod>, items: usize) -> Vec<String> {
    let text = |item| match item {
        Ok(event) => format!("{event:?}"),
        Err(lagged) => format!("{lagged}"),
    };
    events.take(items).map(text).collect().await
}

#[tokio::test(start_paused = true)]
async fn stream_has_each_object_then_each_change_and_ends_with_the_informer() {
    let (informer, watch, mut events) = following(Overflow::End).await;
    watch.apply(pod("a", "6"));
    watch.delete(pod("a", "7"));
    let all = [r#"Added("a")"#, r#"Updated("a")"#, r#"Deleted("a")"#];
    assert_eq!(take(&mut events, 3).await, all);
    watch.apply(pod("b", "8"));
    settle().await;
    informer.stop().await;
    assert_eq!(take(&mut events, 9).await, [r#"Added("b")"#]);
}

#[tokio::test(start_paused = true)]
async fn overflow_ends_the_stream_after_the_buffered_events() {
    let (_informer, watch, mut events) = following(Overflow::End).await;
    for version in 6..20 {
        watch.apply(pod("a", &version.to_string()));
    }
    settle().await;
    let lagged = "1 events were dropped because the stream was read too slowly";
    let all = [r#"Added("a")"#, r#"Updated("a")"#, r#"Updated("a")"#, lagged];
    assert_eq!(take(&mut events, 9).await, all);
}

#[tokio::test(start_paused = true)]
async fn overflow_drops_the_oldest_events_and_counts_them() {
    let (_informer, watch, mut events) = following(Overflow::DropOldest).await;
    for name in ["b", "c", "d", "e"] {
        watch.apply(pod(name, "6"));
    }
    settle().await;
    let lagged = "2 events were dropped because the stream was read too slowly";
    let all = [lagged, r#"Added("c")"#, r#"Added("d")"#, r#"Added("e")"#];
    assert_eq!(take(&mut events, 4).await, all);
    watch.apply(pod("f", "7"));
    assert_eq!(take(&mut events, 1).await, [r#"Added("f")"#]);
}
