//! [`ScriptedRequest`]: a request of the informer that waits for the test.

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::TARGET;
use super::watch::ScriptedWatch;
use crate::list_watch::{
    ApiError, Decoded, ListError, ListRequest, Page, WatchError, WatchEvent, WatchRequest,
    WatchStream,
};
use crate::object::Object;

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
    pub(super) request: ListRequest,
    pub(super) reply: oneshot::Sender<Result<Page<K>, ListError>>,
}

/// A watch request that waits for its answer. Dropping it breaks the connection
/// ([`WatchError::Unreachable`]).
pub struct PendingWatch<K> {
    pub(super) request: WatchRequest,
    pub(super) reply: oneshot::Sender<Result<WatchStream<K>, WatchError>>,
}

// === impl ScriptedRequest ===

impl<K> ScriptedRequest<K> {
    /// Returns true if the informer has dropped the request.
    pub(super) fn is_given_up(&self) -> bool {
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
        let (watch, stream) = ScriptedWatch::open();
        // The informer may have stopped; then the message has no receiver.
        let _receiver_gone = self.reply.send(Ok(stream)).is_err();
        watch
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
