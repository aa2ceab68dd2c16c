//! [`ScriptedListWatch`]: a server whose answers a test gives.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::list_watch::{
    ApiError, Decoded, ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent,
    WatchRequest, WatchStream,
};
use crate::object::{Object, ObjectMeta};

/// A [`ListWatch`] whose requests wait until the test answers them.
///
/// A clone is another handle: one goes to the informer, the test keeps the other. With tokio's
/// paused clock a test of back-off and timeouts takes no time.
///
/// # Examples
///
/// ```
/// use homeostat_informer::SharedIndexInformer;
/// use homeostat_informer::testing::ScriptedListWatch;
/// use k8s_openapi::api::core::v1::Pod;
///
/// fn pod(name: &str, version: &str) -> Pod {
///     let mut pod = Pod::default();
///     pod.metadata.name = Some(name.into());
///     pod.metadata.resource_version = Some(version.into());
///     pod
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = ScriptedListWatch::<Pod>::new();
/// let pods = SharedIndexInformer::builder(server.clone()).build();
/// pods.start();
///
/// // The informer asks for the initial list as a watch (WatchList).
/// let watch = server.expect_watch().await.serve([pod("a", "1")], "5");
/// assert!(pods.wait_for_sync().await);
///
/// // The connection breaks: the informer resumes after the last version that it has seen.
/// watch.tear();
/// let watch = server.expect_watch().await;
/// assert_eq!(watch.request().resource_version.as_ref().unwrap().as_str(), "5");
/// # }
/// ```
pub struct ScriptedListWatch<K: Object> {
    sender: mpsc::Sender<ScriptedRequest<K>>,
    requests: Arc<Mutex<mpsc::Receiver<ScriptedRequest<K>>>>,
}

/// A request of the informer.
#[derive(Debug)]
pub enum ScriptedRequest<K> {
    /// A request for one page of a list.
    List(PendingList<K>),
    /// A request to open a watch.
    Watch(PendingWatch<K>),
}

/// A list request that waits for its answer. Dropping it breaks the connection
/// ([`ListError::Unreachable`]).
///
/// The informer's own timeouts run while the request waits.
pub struct PendingList<K> {
    request: ListRequest,
    reply: oneshot::Sender<Result<Page<K>, ListError>>,
}

/// A watch request that waits for its answer. Dropping it breaks the connection
/// ([`WatchError::Unreachable`]).
pub struct PendingWatch<K> {
    request: WatchRequest,
    reply: oneshot::Sender<Result<WatchStream<K>, WatchError>>,
}

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

/// The number of requests that can be pending. An informer sends one at a time.
const OPEN: usize = 16;

/// The target in the errors that this server sends.
const TARGET: &str = "scripted objects";

// === impl ScriptedListWatch ===

impl<K: Object> ScriptedListWatch<K> {
    /// Returns a server that has received no request.
    pub fn new() -> Self {
        let (sender, requests) = mpsc::channel(OPEN);
        Self { sender, requests: Arc::new(Mutex::new(requests)) }
    }

    /// Waits for the next request that the informer has not cancelled.
    ///
    /// It waits as long as the informer sends none. A paused clock skips the back-off of the
    /// informer.
    ///
    /// # Cancel safety
    /// Cancel safe: a request is taken in the same step in which this completes.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::testing::{ScriptedListWatch, ScriptedRequest};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ScriptedListWatch::<Pod>::new();
    /// let pods = SharedIndexInformer::builder(server.clone()).watch_list(false).build();
    /// pods.start();
    /// let ScriptedRequest::List(list) = server.next_request().await else { panic!("no list") };
    /// assert_eq!(list.request().limit, Some(500));
    /// list.serve([], "5");
    /// assert!(pods.wait_for_sync().await);
    /// # }
    /// ```
    pub async fn next_request(&self) -> ScriptedRequest<K> {
        loop {
            let next = self.requests.lock().await.recv().await;
            match next {
                Some(request) if !request.is_given_up() => return request,
                Some(_) => {}
                // `self` holds a sender, so the channel stays open.
                None => std::future::pending().await,
            }
        }
    }

    /// Waits for the next request, which must be a list.
    ///
    /// # Panics
    /// Panics if the request is a watch.
    ///
    /// # Cancel safety
    /// Cancel safe, as [`next_request`](Self::next_request).
    pub async fn expect_list(&self) -> PendingList<K> {
        match self.next_request().await {
            ScriptedRequest::List(list) => list,
            ScriptedRequest::Watch(watch) => panic!("expected a list, got {watch:?}"),
        }
    }

    /// Waits for the next request, which must be a watch.
    ///
    /// # Panics
    /// Panics if the request is a list.
    ///
    /// # Cancel safety
    /// Cancel safe, as [`next_request`](Self::next_request).
    pub async fn expect_watch(&self) -> PendingWatch<K> {
        match self.next_request().await {
            ScriptedRequest::Watch(watch) => watch,
            ScriptedRequest::List(list) => panic!("expected a watch, got {list:?}"),
        }
    }
}

impl<K: Object> Default for ScriptedListWatch<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object> Clone for ScriptedListWatch<K> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), requests: Arc::clone(&self.requests) }
    }
}

impl<K: Object> fmt::Debug for ScriptedListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedListWatch").finish_non_exhaustive()
    }
}

#[async_trait]
impl<K: Object> ListWatch<K> for ScriptedListWatch<K> {
    fn target(&self) -> Arc<str> {
        TARGET.into()
    }

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let (reply, answer) = oneshot::channel();
        let pending = PendingList { request: request.clone(), reply };
        let sent = self.sender.send(ScriptedRequest::List(pending)).await;
        sent.expect("`self` holds the receiver, so the channel is open");
        answer.await.unwrap_or_else(|_| {
            Err(ListError::Unreachable { target: TARGET.into(), source: "dropped".into() })
        })
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let (reply, answer) = oneshot::channel();
        let pending = PendingWatch { request: request.clone(), reply };
        let sent = self.sender.send(ScriptedRequest::Watch(pending)).await;
        sent.expect("`self` holds the receiver, so the channel is open");
        answer.await.unwrap_or_else(|_| {
            Err(WatchError::Unreachable { target: TARGET.into(), source: "dropped".into() })
        })
    }
}

// === impl ScriptedRequest ===

impl<K> ScriptedRequest<K> {
    /// Returns true if the informer has dropped the request.
    fn is_given_up(&self) -> bool {
        match self {
            Self::List(list) => list.reply.is_closed(),
            Self::Watch(watch) => watch.reply.is_closed(),
        }
    }
}

// === impl PendingList ===

impl<K> PendingList<K> {
    /// Returns the parameters of the request.
    pub fn request(&self) -> &ListRequest {
        &self.request
    }

    /// Answers with `page`.
    pub fn reply(self, page: Page<K>) {
        self.answer(Ok(page));
    }

    /// Answers with a complete list in one page, at `resource_version`.
    pub fn serve(self, objects: impl IntoIterator<Item = K>, resource_version: &str) {
        let items = objects.into_iter().map(|object| Decoded::Fits(Arc::new(object))).collect();
        self.reply(Page::new(items, resource_version));
    }

    /// Answers with an error Status.
    pub fn refuse(self, error: ApiError) {
        self.answer(Err(ListError::Refused { target: TARGET.into(), error }));
    }

    fn answer(self, answer: Result<Page<K>, ListError>) {
        // The informer may have stopped; then the message has no receiver.
        let _receiver_gone = self.reply.send(answer).is_err();
    }
}

impl<K> fmt::Debug for PendingList<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.request, f)
    }
}

// === impl PendingWatch ===

impl<K> PendingWatch<K> {
    /// Returns the parameters of the request.
    pub fn request(&self) -> &WatchRequest {
        &self.request
    }

    /// Opens the watch without sending an event.
    pub fn open(self) -> ScriptedWatch<K>
    where
        K: Object,
    {
        #[expect(
            clippy::disallowed_methods,
            reason = "holds the events of one test, which must be able to send without waiting"
        )]
        let (batches, receiver) = mpsc::unbounded_channel();
        let stream = futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|batch| (batch, receiver))
        });
        // The informer may have stopped; then the message has no receiver.
        let _receiver_gone = self.reply.send(Ok(stream.boxed())).is_err();
        ScriptedWatch { batches }
    }

    /// Opens the watch and sends the initial list: `objects`, then the bookmark that completes it,
    /// at `resource_version`.
    ///
    /// For a request with `initial_events`; for another one use [`open`](Self::open).
    pub fn serve(
        self,
        objects: impl IntoIterator<Item = K>,
        resource_version: &str,
    ) -> ScriptedWatch<K>
    where
        K: Object,
    {
        let watch = self.open();
        let mut events: Vec<_> = objects
            .into_iter()
            .map(|object| WatchEvent::Applied(Decoded::Fits(Arc::new(object))))
            .collect();
        events.push(WatchEvent::Bookmark {
            resource_version: resource_version.into(),
            initial_events_end: true,
        });
        watch.send(events);
        watch
    }

    /// Answers with an error Status.
    pub fn refuse(self, error: ApiError) {
        self.fail(WatchError::Refused { target: TARGET.into(), error });
    }

    /// Fails the request with `error`.
    ///
    /// Use it for an error that [`refuse`](Self::refuse) and the drop do not cover, such as
    /// [`WatchError::Silent`].
    pub fn fail(self, error: WatchError) {
        // The informer may have stopped; then the message has no receiver.
        let _receiver_gone = self.reply.send(Err(error)).is_err();
    }
}

impl<K> fmt::Debug for PendingWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.request, f)
    }
}

// === impl ScriptedWatch ===

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
    /// [`serve`](PendingWatch::serve) does.
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
