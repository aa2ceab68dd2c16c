//! [`AnyInformer`]: an informer of a type that the factory does not know.

use std::any::Any;

use async_trait::async_trait;

use crate::object::Object;
use crate::shared::{SharedIndexInformer, Unsynced};
use crate::status::{InformerFailure, InformerStatus};

/// An informer of any type.
///
/// The methods forward to those of [`SharedIndexInformer`]. `Any` is a supertrait so that
/// [`Members::find`] gets the type back.
#[async_trait]
pub(super) trait AnyInformer: Any + Send + Sync {
    fn start(&self);
    async fn stop(&self);
    async fn wait_for_sync(&self) -> bool;
    async fn wait_for_stop(&self) -> Result<(), InformerFailure>;
    fn failure(&self) -> Option<InformerFailure>;
    fn unsynced(&self) -> Option<Unsynced>;
    fn status(&self) -> InformerStatus;
    fn is_stopped(&self) -> bool;
}

// === impl AnyInformer ===

#[async_trait]
impl<K: Object> AnyInformer for SharedIndexInformer<K> {
    fn start(&self) {
        Self::start(self);
    }

    async fn stop(&self) {
        Self::stop(self).await;
    }

    async fn wait_for_sync(&self) -> bool {
        Self::wait_for_sync(self).await
    }

    async fn wait_for_stop(&self) -> Result<(), InformerFailure> {
        self.wait_for_stop().await
    }

    fn failure(&self) -> Option<InformerFailure> {
        self.failure()
    }

    fn unsynced(&self) -> Option<Unsynced> {
        Self::unsynced(self)
    }

    fn status(&self) -> InformerStatus {
        Self::status(self)
    }

    fn is_stopped(&self) -> bool {
        Self::is_stopped(self)
    }
}
