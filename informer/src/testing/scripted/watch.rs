//! [`ScriptedWatch`]: an open watch to which the test sends events.

use std::fmt;
use std::sync::Arc;

use futures::StreamExt;
use tokio::sync::mpsc;

use super::TARGET;
use crate::list_watch::{ApiError, Decoded, WatchError, WatchEvent, WatchStream};
use crate::object::{Object, ObjectMeta};

/// An open watch. Dropping it closes the watch regularly, like [`close`](Self::close).
///
/// # Examples
///
/// ```
/// # use homeostat_informer::SharedIndexInformer;
/// # use homeostat_informer::testing::ScriptedListWatch;
/// # use k8s_openapi::api::core::v1::Pod;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let server = ScriptedListWatch::<Pod>::new();
/// # let pods = SharedIndexInformer::builder(server.clone()).build();
/// # pods.start();
/// let watch = server.expect_watch().await.serve([], "5");
/// let mut pod = Pod::default();
/// pod.metadata.name = Some("a".into());
/// pod.metadata.resource_version = Some("6".into());
/// watch.apply(pod.clone());
/// watch.bookmark("9");
/// assert!(pods.wait_for_version(&"9".into()).await);
/// assert_eq!(pods.lister().len(), 1);
/// # }
/// ```
#[must_use = "dropping it closes the watch"]
pub struct ScriptedWatch<K> {
    batches: mpsc::UnboundedSender<Result<Vec<WatchEvent<K>>, WatchError>>,
}

// === impl ScriptedWatch ===

impl<K: Object> ScriptedWatch<K> {
    /// Returns an open watch and the stream that gives its events to the informer.
    pub(super) fn open() -> (Self, WatchStream<K>) {
        #[expect(
            clippy::disallowed_methods,
            reason = "holds the events of one test, which must be able to send without waiting"
        )]
        let (batches, receiver) = mpsc::unbounded_channel();
        let stream = futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|batch| (batch, receiver))
        });
        (Self { batches }, stream.boxed())
    }
}

impl<K> ScriptedWatch<K> {
    /// Sends a batch of events. An empty batch is ignored.
    pub fn send(&self, events: Vec<WatchEvent<K>>) {
        if !events.is_empty() {
            self.put(Ok(events));
        }
    }

    /// Sends an event: the object was created or changed.
    pub fn apply(&self, object: impl Into<Arc<K>>) {
        self.send(vec![WatchEvent::Applied(Decoded::Fits(object.into()))]);
    }

    /// Sends an event: the object was created or changed, and does not fit its Rust type.
    pub fn apply_opaque(&self, metadata: impl Into<Arc<ObjectMeta>>) {
        let error = "opaque by test".into();
        let object = Decoded::Opaque { metadata: metadata.into(), error };
        self.send(vec![WatchEvent::Applied(object)]);
    }

    /// Sends an event: the object was deleted, and this is its final state.
    pub fn delete(&self, object: impl Into<Arc<K>>) {
        self.send(vec![WatchEvent::Deleted(Decoded::Fits(object.into()))]);
    }

    /// Sends a bookmark at `resource_version`. It does not complete an initial list;
    /// [`serve`](super::PendingWatch::serve) does.
    pub fn bookmark(&self, resource_version: &str) {
        let resource_version = resource_version.into();
        self.send(vec![WatchEvent::Bookmark { resource_version, initial_events_end: false }]);
    }

    /// Ends the watch with an `ERROR` event, such as 410 `Expired`.
    ///
    /// # Examples
    ///
    /// An expired version makes the informer request a new full state:
    ///
    /// ```
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::list_watch::ApiError;
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ScriptedListWatch::<Pod>::new();
    /// let pods = SharedIndexInformer::builder(server.clone()).build();
    /// pods.start();
    /// let watch = server.expect_watch().await.serve([], "5");
    /// assert!(pods.wait_for_sync().await);
    /// watch.end_with(ApiError::new(410, "Expired", "too old resource version"));
    /// assert!(server.expect_watch().await.request().initial_events);
    /// # }
    /// ```
    pub fn end_with(self, error: ApiError) {
        self.fail(WatchError::Ended { target: TARGET.into(), error });
    }

    /// Breaks the connection in the middle of the stream.
    ///
    /// The informer opens the next watch after the last version that it received.
    pub fn tear(self) {
        self.fail(WatchError::Torn { target: TARGET.into(), source: "connection reset".into() });
    }

    /// Ends the watch with `error`.
    pub fn fail(self, error: WatchError) {
        self.put(Err(error));
    }

    /// Closes the watch regularly, as a server does after the request's timeout.
    pub fn close(self) {}

    /// Sends a batch or the final error to the informer.
    fn put(&self, batch: Result<Vec<WatchEvent<K>>, WatchError>) {
        // The informer may have stopped; then the message has no receiver.
        let _receiver_gone = self.batches.send(batch).is_err();
    }
}

impl<K> fmt::Debug for ScriptedWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedWatch").finish_non_exhaustive()
    }
}
