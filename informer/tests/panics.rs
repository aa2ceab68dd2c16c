//! A panic in any task of an informer is contained, names its cause, and ends every wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use homeostat_informer::list_watch::{
    Decoded, ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest,
    WatchStream,
};
use homeostat_informer::status::{InformerFailure, InformerPhase, InformerTask};
use homeostat_informer::testing::ScriptedListWatch;
use homeostat_informer::{Event, Object, ObjectMeta, SharedIndexInformer, WaitError};
use k8s_openapi::api::core::v1::Pod;

const HOUR: Duration = Duration::from_secs(3600);

/// A panic payload whose destructor panics, so that it crosses the boundary that catches it.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "destructor of a payload");
    }
}

/// A pod whose metadata panics at the n-th call, once.
struct Fuse {
    metadata: ObjectMeta,
    calls_left: Arc<AtomicI64>,
}

impl Object for Fuse {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        assert!(self.calls_left.fetch_sub(1, Ordering::Relaxed) != 1, "metadata is unavailable");
        &self.metadata
    }
}

/// Lists nothing at version 5; each watch after it delivers the fuse at version 9.
struct OneFuse(Arc<AtomicI64>);

#[async_trait]
impl ListWatch<Fuse> for OneFuse {
    fn target(&self) -> Arc<str> {
        "fuses".into()
    }

    async fn list(&self, _: &ListRequest) -> Result<Page<Fuse>, ListError> {
        Ok(Page::new(vec![], "5"))
    }

    async fn watch(&self, _: &WatchRequest) -> Result<WatchStream<Fuse>, WatchError> {
        let metadata = ObjectMeta {
            name: Some("a".into()),
            resource_version: Some("9".into()),
            ..ObjectMeta::default()
        };
        let fuse = Fuse { metadata, calls_left: Arc::clone(&self.0) };
        let event = WatchEvent::Applied(Decoded::Fits(Arc::new(fuse)));
        let event = futures::stream::once(async { Ok(vec![event]) });
        Ok(event.chain(futures::stream::pending()).boxed())
    }
}

/// Panics in its first lists, with a target that panics as well.
struct Broken {
    panics_left: AtomicI64,
    has_bomb: bool,
}

#[async_trait]
impl ListWatch<Pod> for Broken {
    fn target(&self) -> Arc<str> {
        assert!(self.panics_left.load(Ordering::Relaxed) <= 0, "no target");
        "pods".into()
    }

    async fn list(&self, _: &ListRequest) -> Result<Page<Pod>, ListError> {
        if self.panics_left.fetch_sub(1, Ordering::Relaxed) > 0 {
            if self.has_bomb {
                std::panic::panic_any(Bomb);
            }
            panic!("no list");
        }
        Ok(Page::new(vec![], "5"))
    }

    async fn watch(&self, _: &WatchRequest) -> Result<WatchStream<Pod>, WatchError> {
        Ok(futures::stream::pending().boxed())
    }
}

/// Asserts that every wait returns the failure, and that the status names it.
async fn assert_failed<K: Object>(informer: &SharedIndexInformer<K>) -> InformerFailure {
    let failure = tokio::time::timeout(HOUR, informer.wait_for_stop()).await;
    let failure = failure.expect("the informer stops").expect_err("a task has panicked");
    assert!(informer.is_stopped());
    assert_eq!(informer.failure().as_ref(), Some(&failure));
    assert_eq!(informer.status().phase, InformerPhase::Failed(failure.clone()));
    assert!(informer.status().to_string().contains("Failed ("), "{}", informer.status());
    assert!(!informer.wait_for_version(&"1000".into()).await);
    let never = informer.wait_until(|_| None::<()>, HOUR).await;
    assert!(matches!(never, Err(WaitError::Failed(found)) if found == failure));
    informer.stop().await;
    failure
}

#[tokio::test(start_paused = true)]
async fn panic_of_metadata_at_any_call_costs_a_retry_or_ends_the_informer() {
    let (mut applied, mut skipped, mut failed) = (0, 0, 0);
    for calls in 1..=12 {
        let fuses = OneFuse(Arc::new(AtomicI64::new(calls)));
        let informer = SharedIndexInformer::builder(fuses).name("fuses").watch_list(false).build();
        let by_name = informer.index_by_metadata(|metadata| metadata.name.clone());
        let subscription = informer.add_handler("read", |event: Event<Fuse>| {
            let _version = event.metadata().resource_version.clone();
        });
        informer.start();
        let version = "9".into();
        let reached = tokio::time::timeout(2 * HOUR, informer.wait_for_version(&version)).await;
        if reached.expect("the wait returns") {
            // A nameless object is skipped; its version is reached.
            skipped += usize::from(informer.status().reflector.skipped_nameless > 0);
            applied += usize::from(!informer.lister().is_empty());
        } else {
            let failure = assert_failed(&informer).await;
            assert_eq!(failure.task, InformerTask::Apply);
            let text = "informer fuses has failed: apply task panicked: metadata is unavailable";
            assert_eq!(failure.to_string(), text);
            failed += 1;
        }
        drop((by_name, subscription));
    }
    assert!(applied > 0 && skipped > 0 && failed > 0, "{applied} {skipped} {failed}");
}

#[tokio::test(start_paused = true)]
async fn panic_of_target_is_a_failure_of_one_request() {
    let broken = Broken { panics_left: AtomicI64::new(2), has_bomb: false };
    let informer = SharedIndexInformer::builder(broken).name("pods").watch_list(false).build();
    informer.start();
    assert!(tokio::time::timeout(HOUR, informer.wait_for_sync()).await.expect("it recovers"));
    assert_eq!(informer.failure(), None);
}

#[tokio::test(start_paused = true)]
async fn panic_of_reflector_ends_every_wait() {
    let broken = Broken { panics_left: AtomicI64::new(1), has_bomb: true };
    let informer = SharedIndexInformer::builder(broken).name("pods").watch_list(false).build();
    informer.start();
    assert!(!tokio::time::timeout(HOUR, informer.wait_for_sync()).await.expect("the wait returns"));
    let error = informer.wait_for_sync_within(HOUR).await;
    assert!(matches!(error, Err(WaitError::Failed(_))), "{error:?}");
    assert_eq!(assert_failed(&informer).await.task, InformerTask::Reflector);
}

#[tokio::test(start_paused = true)]
async fn panic_of_handler_task_ends_the_informer() {
    let server = ScriptedListWatch::<Pod>::new();
    let informer = SharedIndexInformer::builder(server.clone()).build();
    let subscription = informer.add_handler("broken", |_: Event<Pod>| std::panic::panic_any(Bomb));
    let other = informer.add_handler("other", |_: Event<Pod>| {});
    informer.start();
    let mut pod = Pod::default();
    pod.metadata.name = Some("a".into());
    let _watch = server.expect_watch().await.serve([pod], "5");
    let failure = assert_failed(&informer).await;
    assert_eq!(failure.task, InformerTask::Handler { name: "broken".into() });
    assert!(!subscription.wait_for_sync().await);
    other.remove().await;
}

/// A list-watch whose drop panics.
struct Fragile;

#[async_trait]
impl ListWatch<Pod> for Fragile {
    fn target(&self) -> Arc<str> {
        "pods".into()
    }

    async fn list(&self, _: &ListRequest) -> Result<Page<Pod>, ListError> {
        std::future::pending().await
    }

    async fn watch(&self, _: &WatchRequest) -> Result<WatchStream<Pod>, WatchError> {
        std::future::pending().await
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a panic of the list-watch's drop");
    }
}

#[tokio::test(start_paused = true)]
async fn informer_that_was_not_started_stops_although_its_list_watch_panics() {
    let informer = SharedIndexInformer::builder(Fragile).build();
    informer.stop().await;
    assert_eq!(informer.status().phase, InformerPhase::Stopped);
}
