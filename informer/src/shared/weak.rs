//! [`WeakInformer`]: a handle that does not keep its informer running.

use std::fmt;
use std::sync::{Arc, Weak};

use super::{Shared, SharedIndexInformer};
use crate::object::Object;

/// A handle on an informer that does not keep it running.
///
/// Use it in a handler, an index function or a transform that needs its own informer: such code
/// belongs to the informer, so a [`SharedIndexInformer`] in it would keep itself alive, and the
/// tasks would not end when the last handle outside is dropped.
///
/// # Examples
///
/// ```
/// use homeostat_informer::testing::ScriptedListWatch;
/// use homeostat_informer::{Event, SharedIndexInformer};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
/// let weak = pods.downgrade();
/// let subscription = pods.add_handler("count", move |_: Event<Pod>| {
///     let Some(pods) = weak.upgrade() else { return };
///     println!("{} pods", pods.lister().len());
/// });
/// let weak = pods.downgrade();
/// drop((pods, subscription));
/// assert!(weak.upgrade().is_none(), "the informer is gone");
/// ```
pub struct WeakInformer<K: Object> {
    shared: Weak<Shared<K>>,
}

impl<K: Object> SharedIndexInformer<K> {
    /// Returns a handle that does not keep the informer running.
    pub fn downgrade(&self) -> WeakInformer<K> {
        WeakInformer { shared: Arc::downgrade(&self.shared) }
    }
}

// === impl WeakInformer ===

impl<K: Object> WeakInformer<K> {
    /// Returns a handle on the informer, or `None` if its last handle was dropped.
    pub fn upgrade(&self) -> Option<SharedIndexInformer<K>> {
        self.shared.upgrade().map(|shared| SharedIndexInformer { shared })
    }
}

impl<K: Object> Clone for WeakInformer<K> {
    fn clone(&self) -> Self {
        Self { shared: Weak::clone(&self.shared) }
    }
}

impl<K: Object> fmt::Debug for WeakInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakInformer").finish_non_exhaustive()
    }
}
