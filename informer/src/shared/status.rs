//! The status of an informer.

use std::sync::Arc;

use super::{Lifecycle, SharedIndexInformer};
use crate::object::Object;
use crate::status::{InformerPhase, InformerStatus, ReflectorPhase};

impl<K: Object> SharedIndexInformer<K> {
    /// Returns the informer's state at this moment, for a debug page or a log line.
    ///
    /// It takes each lock only for a moment and one after the other, so it is cheap enough for
    /// every request of a debug page. Its numbers may be a few events apart.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
    /// let subscription = pods.add_handler("print", |event| println!("{event:?}"));
    /// let status = pods.status();
    /// assert_eq!(&*status.handlers[0].name, "print");
    /// assert!(status.reflector.last_error.is_none());
    /// # drop(subscription);
    /// ```
    pub fn status(&self) -> InformerStatus {
        let shared = &*self.shared;
        let phase = match (shared.failure.get(), &*shared.lifecycle.lock()) {
            (Some(failure), _) => InformerPhase::Failed(failure),
            (None, Lifecycle::New { .. }) => InformerPhase::New,
            (None, Lifecycle::Running(_)) if self.has_synced() => InformerPhase::Following,
            (None, Lifecycle::Running(_)) => InformerPhase::Syncing,
            (None, Lifecycle::Stopped) => InformerPhase::Stopped,
        };
        let (objects, opaque) = shared.store.count();
        let mut reflector = shared.health.status(shared.fifo.received());
        if !matches!(phase, InformerPhase::Syncing | InformerPhase::Following) {
            reflector.phase = ReflectorPhase::Idle;
        }
        InformerStatus {
            name: Arc::clone(&shared.name),
            phase,
            resource_version: shared.store.resource_version(),
            objects,
            opaque,
            indices: shared.store.index_count(),
            index_panics: shared.store.index_panics(),
            queued: shared.fifo.len(),
            handlers: shared.applier.handlers().iter().map(|handler| handler.status()).collect(),
            reflector,
        }
    }
}
