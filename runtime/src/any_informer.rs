//! An informer of whatever type: what a manager needs of it.

use std::sync::Arc;

use futures::future::BoxFuture;
use homeostat_informer::{Object, SharedIndexInformer};

/// Starts, waits for and stops an informer whose type is not known.
pub(crate) trait AnyInformer: Send + Sync {
    fn name(&self) -> &Arc<str>;
    fn start(&self);
    fn has_synced(&self) -> bool;
    /// False if it was stopped before that.
    fn synced(&self) -> BoxFuture<'_, bool>;
    /// What keeps it from being synced, in words.
    fn trouble(&self) -> Option<String>;
    fn stop(&self) -> BoxFuture<'_, ()>;
}

impl<K: Object> AnyInformer for SharedIndexInformer<K> {
    fn name(&self) -> &Arc<str> {
        self.name()
    }

    fn start(&self) {
        self.start();
    }

    fn has_synced(&self) -> bool {
        self.has_synced()
    }

    fn synced(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.synced())
    }

    fn trouble(&self) -> Option<String> {
        self.last_error().map(|error| error.to_string())
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.stop())
    }
}
