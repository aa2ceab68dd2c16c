//! An informer whose object type is erased, as a manager uses it.
//!
//! A manager waits for the informers of all kinds, and names those that are late. It needs none of
//! their objects.

use std::sync::Arc;

use futures::future::BoxFuture;
use homeostat_informer::status::{InformerFailure, InformerStatus};
use homeostat_informer::{Object, SharedIndexInformer};

/// The part of an informer that does not depend on its object type.
///
/// The methods are those of [`SharedIndexInformer`] with boxed futures. A value is a handle: it
/// keeps the informer alive.
pub(crate) trait AnyInformer: Send + Sync {
    /// Returns the informer's name, which logs, metrics and errors show.
    fn name(&self) -> &Arc<str>;
    /// Starts the informer. A second start has no effect.
    fn start(&self);
    /// Returns true if the cache has its initial list.
    fn has_synced(&self) -> bool;
    /// Waits for the initial list. Returns false if the informer is stopped before.
    fn wait_for_sync(&self) -> BoxFuture<'_, bool>;
    /// Waits until the informer has stopped. Returns the panic that stopped it, if there was one.
    fn wait_for_stop(&self) -> BoxFuture<'_, Result<(), InformerFailure>>;
    /// Returns the panic that stopped the informer, if there was one.
    fn failure(&self) -> Option<InformerFailure>;
    /// Returns a copy of the informer's state, for the debug page.
    fn status(&self) -> InformerStatus;
    /// Returns the last error, if there is one.
    fn last_error(&self) -> Option<String>;
    /// Stops the informer for good, and waits for its tasks.
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

    fn wait_for_sync(&self) -> BoxFuture<'_, bool> {
        Box::pin(self.wait_for_sync())
    }

    fn wait_for_stop(&self) -> BoxFuture<'_, Result<(), InformerFailure>> {
        Box::pin(self.wait_for_stop())
    }

    fn failure(&self) -> Option<InformerFailure> {
        self.failure()
    }

    fn status(&self) -> InformerStatus {
        self.status()
    }

    fn last_error(&self) -> Option<String> {
        self.last_error().map(|error| error.to_string())
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.stop())
    }
}
