//! One script, played to an informer with each queue design.

use std::sync::Arc;

use homeostat_informer::fifo::DeltaFifo;
use homeostat_informer::list_watch::ApiError;
use homeostat_informer::testing::ScriptedListWatch;
use homeostat_informer::{Event, ObjectMeta, SharedIndexInformer};
use k8s_openapi::api::core::v1::Pod;
use parking_lot::Mutex;
use tokio::time::{Duration, sleep};

fn pod(name: &str, uid: &str, version: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(name.into()),
            uid: Some(uid.into()),
            resource_version: Some(version.into()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}

/// The events and versions that the handlers have received.
#[derive(Default)]
struct Received {
    events: Mutex<Vec<String>>,
    versions: Mutex<Vec<String>>,
}

impl Received {
    /// Waits until pending events are handled, and takes them.
    async fn events(&self) -> Vec<String> {
        sleep(Duration::from_millis(1)).await;
        std::mem::take(&mut self.events.lock())
    }
}

/// Plays the script to an informer with this queue. Returns the events of each burst, and the
/// versions.
async fn play(fifo: DeltaFifo<Pod>) -> (Vec<Vec<String>>, Vec<String>) {
    let server = ScriptedListWatch::new();
    let informer = SharedIndexInformer::builder(server.clone()).delta_fifo(fifo).build();
    let received = Arc::new(Received::default());
    let (log, versions) = (Arc::clone(&received), Arc::clone(&received));
    let _subscription = informer.add_handler("log", move |event: Event<Pod>| {
        let initial = matches!(event, Event::Added { initial: true, .. });
        let text = format!("{event:?}{}", if initial { " initial" } else { "" });
        log.events.lock().push(text);
    });
    let _versions = informer.add_version_handler("versions", move |version| {
        versions.versions.lock().push(version.to_string());
    });
    informer.start();
    let mut bursts = Vec::new();
    let initial = [pod("a", "1", "1"), pod("b", "2", "2")];
    let watch = server.expect_watch().await.serve(initial, "5");
    assert!(informer.wait_for_sync().await);
    bursts.push(received.events().await);
    watch.apply(pod("b", "2", "6"));
    watch.apply(pod("a", "1", "7"));
    watch.apply(pod("b", "2", "8"));
    watch.delete(pod("c", "3", "9"));
    bursts.push(received.events().await);
    watch.end_with(ApiError::new(410, "Expired", ""));
    let watch = server.expect_watch().await;
    let watch = watch.serve([pod("a", "another", "20"), pod("d", "4", "21")], "30");
    bursts.push(received.events().await);
    watch.bookmark("40");
    watch.apply_opaque(pod("d", "4", "41").metadata);
    bursts.push(received.events().await);
    // A restored server: the same versions are other states.
    watch.end_with(ApiError::new(410, "Expired", ""));
    let lagging = ApiError::new(504, "Timeout", "Too large resource version: 41, current: 25");
    server.expect_watch().await.refuse(lagging);
    let _watch = server.expect_watch().await.serve([pod("a", "another", "20")], "25");
    bursts.push(received.events().await);
    assert_eq!(informer.lister().len(), 1);
    assert_eq!(informer.store_resource_version(), Some("25".into()));
    informer.stop().await;
    let versions = received.versions.lock().clone();
    (bursts, versions)
}

#[tokio::test(start_paused = true)]
async fn in_order_delivers_events_in_server_order() {
    let (bursts, versions) = play(DeltaFifo::in_order()).await;
    let expected: [&[&str]; 5] = [
        &[r#"Added("a") initial"#, r#"Added("b") initial"#],
        &[r#"Updated("b")"#, r#"Updated("a")"#, r#"Updated("b")"#],
        &[r#"Deleted("b")"#, r#"Deleted("a")"#, r#"Added("a")"#, r#"Added("d")"#],
        &[r#"Opaque("d")"#],
        &[r#"Deleted("d")"#, r#"Updated("a")"#],
    ];
    assert_eq!(bursts, expected);
    assert_eq!(versions.last().map(String::as_str), Some("25"));
}

#[tokio::test(start_paused = true)]
async fn coalescing_reaches_the_same_state_in_per_object_order() {
    let (bursts, versions) = play(DeltaFifo::coalescing()).await;
    let expected: [&[&str]; 5] = [
        &[r#"Added("a") initial"#, r#"Added("b") initial"#],
        &[r#"Updated("b")"#, r#"Updated("b")"#, r#"Updated("a")"#],
        &[r#"Deleted("a")"#, r#"Added("a")"#, r#"Added("d")"#, r#"Deleted("b")"#],
        &[r#"Opaque("d")"#],
        &[r#"Updated("a")"#, r#"Deleted("d")"#],
    ];
    assert_eq!(bursts, expected);
    assert_eq!(versions, ["5", "9", "30", "41", "25"], "only when the queue was empty");
}
