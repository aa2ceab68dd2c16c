//! [`FullState`]: the request for the initial list.

use std::sync::Arc;

use async_trait::async_trait;
use clap::ValueEnum;
use futures::StreamExt as _;
use homeostat_informer::Object;
use homeostat_informer::list_watch::{
    ListError, ListRequest, ListWatch, Page, WatchError, WatchRequest, WatchStream,
};

/// Request for the initial list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FullState {
    /// A watch that begins with all objects.
    WatchList,
    /// The same, which breaks off after half of the objects; then a list in one piece.
    Interrupted,
    /// Lists of 500 objects.
    Pages,
    /// One list of all objects.
    OnePiece,
}

/// A list-watch whose initial lists by watch break off.
#[derive(Debug)]
pub(super) struct Interrupted<L> {
    pub(super) list_watch: L,
    /// Number of objects before the error.
    pub(super) objects: usize,
}

// === impl FullState ===

impl FullState {
    /// Returns true if the first request is a watch.
    pub(super) fn is_watch(self) -> bool {
        matches!(self, Self::WatchList | Self::Interrupted)
    }

    /// Returns the number of objects per page, 0 for a list in one piece.
    pub(super) fn page_size(self) -> u32 {
        if matches!(self, Self::OnePiece | Self::Interrupted) { 0 } else { 500 }
    }
}

// === impl Interrupted ===

#[async_trait]
impl<K: Object, L: ListWatch<K>> ListWatch<K> for Interrupted<L> {
    fn target(&self) -> Arc<str> {
        self.list_watch.target()
    }

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        self.list_watch.list(request).await
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let watch = self.list_watch.watch(request).await?;
        if !request.initial_events {
            return Ok(watch);
        }
        let (target, mut rest) = (self.target(), self.objects);
        #[expect(clippy::result_large_err, reason = "the items of the stream have this type")]
        let batches = watch.map(move |batch| {
            let batch = batch?;
            let left = rest.checked_sub(batch.len());
            rest = left.ok_or_else(|| WatchError::Torn {
                target: Arc::clone(&target),
                source: "interrupted by the bench".into(),
            })?;
            Ok(batch)
        });
        Ok(batches.boxed())
    }
}
