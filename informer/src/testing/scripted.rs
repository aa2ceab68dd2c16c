//! A server that a test plays itself.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use futures::StreamExt;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::{
    list_watch::{
        Decoded, ListError, ListRequest, ListWatch, Page, Refusal, WatchError, WatchEvent,
        WatchRequest, WatchStream,
    },
    object::{Object, ObjectMeta},
};

/// A [`ListWatch`] whose every request waits until the test answers it.
///
/// A clone is one more handle: one goes to the informer, the test keeps the other.
pub struct ScriptedListWatch<K: Object> {
    sender: mpsc::Sender<ScriptedRequest<K>>,
    requests: Arc<Mutex<mpsc::Receiver<ScriptedRequest<K>>>>,
}

/// What the informer asks.
#[derive(Debug)]
pub enum ScriptedRequest<K> {
    /// A page of a list.
    List(PendingList<K>),
    /// A watch.
    Watch(PendingWatch<K>),
}

/// A list that waits for its answer. If it is dropped, the connection broke.
pub struct PendingList<K> {
    request: ListRequest,
    reply: oneshot::Sender<Result<Page<K>, ListError>>,
}

/// A watch that waits for its answer. If it is dropped, the connection broke.
pub struct PendingWatch<K> {
    request: WatchRequest,
    reply: oneshot::Sender<Result<WatchStream<K>, WatchError>>,
}

/// An open watch. If it is dropped, the server closes it.
#[must_use = "dropping it closes the watch"]
pub struct ScriptedWatch<K> {
    batches: mpsc::UnboundedSender<Result<Vec<WatchEvent<K>>, WatchError>>,
}

/// More requests than this are never open at once: an informer asks one at a time.
const OPEN: usize = 16;

const TARGET: &str = "scripted objects";

// === impl ScriptedListWatch ===

impl<K: Object> ScriptedListWatch<K> {
    /// A server that has been asked nothing.
    pub fn new() -> Self {
        let (sender, requests) = mpsc::channel(OPEN);
        Self { sender, requests: Arc::new(Mutex::new(requests)) }
    }

    /// Waits for the next request that the informer has not given up.
    ///
    /// # Cancel safety
    /// Safe: a request is taken in the same step in which this completes.
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
    /// If it is a watch.
    pub async fn expect_list(&self) -> PendingList<K> {
        match self.next_request().await {
            ScriptedRequest::List(list) => list,
            ScriptedRequest::Watch(watch) => panic!("expected a list, got {watch:?}"),
        }
    }

    /// Waits for the next request, which must be a watch.
    ///
    /// # Panics
    /// If it is a list.
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
    fn is_given_up(&self) -> bool {
        match self {
            Self::List(list) => list.reply.is_closed(),
            Self::Watch(watch) => watch.reply.is_closed(),
        }
    }
}

// === impl PendingList ===

impl<K> PendingList<K> {
    /// What was asked.
    pub fn request(&self) -> &ListRequest {
        &self.request
    }

    /// Answers with a page.
    pub fn reply(self, page: Page<K>) {
        self.answer(Ok(page));
    }

    /// Answers with all there is, in one page.
    pub fn serve(self, objects: impl IntoIterator<Item = K>, resource_version: &str) {
        let items = objects.into_iter().map(|object| Decoded::Fits(Arc::new(object))).collect();
        self.reply(Page::new(items, resource_version));
    }

    /// Refuses.
    pub fn refuse(self, refusal: Refusal) {
        self.answer(Err(ListError::Refused { target: TARGET.into(), refusal }));
    }

    fn answer(self, answer: Result<Page<K>, ListError>) {
        // Nobody listens if the informer has stopped meanwhile.
        let _unheard = self.reply.send(answer).is_err();
    }
}

impl<K> fmt::Debug for PendingList<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.request, f)
    }
}

// === impl PendingWatch ===

impl<K> PendingWatch<K> {
    /// What was asked.
    pub fn request(&self) -> &WatchRequest {
        &self.request
    }

    /// Opens the watch.
    pub fn open(self) -> ScriptedWatch<K>
    where
        K: Object,
    {
        #[expect(
            clippy::disallowed_methods,
            reason = "it holds what one test sends, and the test must not have to wait"
        )]
        let (batches, receiver) = mpsc::unbounded_channel();
        let stream = futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|batch| (batch, receiver))
        });
        // Nobody listens if the informer has stopped meanwhile.
        let _unheard = self.reply.send(Ok(stream.boxed())).is_err();
        ScriptedWatch { batches }
    }

    /// Opens a watch that was asked with `initial_events`, and sends the whole state.
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

    /// Refuses.
    pub fn refuse(self, refusal: Refusal) {
        self.fail(WatchError::Refused { target: TARGET.into(), refusal });
    }

    /// Fails.
    pub fn fail(self, error: WatchError) {
        // Nobody listens if the informer has stopped meanwhile.
        let _unheard = self.reply.send(Err(error)).is_err();
    }
}

impl<K> fmt::Debug for PendingWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.request, f)
    }
}

// === impl ScriptedWatch ===

impl<K> ScriptedWatch<K> {
    /// Sends a batch of events.
    pub fn send(&self, events: Vec<WatchEvent<K>>) {
        if !events.is_empty() {
            self.put(Ok(events));
        }
    }

    /// Says that an object was made or changed.
    pub fn apply(&self, object: impl Into<Arc<K>>) {
        self.send(vec![WatchEvent::Applied(Decoded::Fits(object.into()))]);
    }

    /// Says that an object was made or changed, and does not fit its Rust type.
    pub fn apply_opaque(&self, metadata: impl Into<Arc<ObjectMeta>>) {
        let error = "made opaque by a test".into();
        let object = Decoded::Opaque { metadata: metadata.into(), error };
        self.send(vec![WatchEvent::Applied(object)]);
    }

    /// Says that an object is gone.
    pub fn delete(&self, object: impl Into<Arc<K>>) {
        self.send(vec![WatchEvent::Deleted(Decoded::Fits(object.into()))]);
    }

    /// Sends a bookmark.
    pub fn bookmark(&self, resource_version: &str) {
        let resource_version = resource_version.into();
        self.send(vec![WatchEvent::Bookmark { resource_version, initial_events_end: false }]);
    }

    /// Ends the watch with an error event.
    pub fn end_with(self, refusal: Refusal) {
        self.fail(WatchError::Ended { target: TARGET.into(), refusal });
    }

    /// Breaks the connection.
    pub fn tear(self) {
        self.fail(WatchError::Torn { target: TARGET.into(), source: "connection reset".into() });
    }

    /// Ends the watch with any error.
    pub fn fail(self, error: WatchError) {
        self.put(Err(error));
    }

    /// Closes the watch, as a server does when its time is over.
    pub fn close(self) {}

    fn put(&self, batch: Result<Vec<WatchEvent<K>>, WatchError>) {
        // Nobody listens if the informer has stopped meanwhile.
        let _unheard = self.batches.send(batch).is_err();
    }
}

impl<K> fmt::Debug for ScriptedWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedWatch").finish_non_exhaustive()
    }
}
