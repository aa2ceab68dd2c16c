//! [`Changes`]: the results of a step.

use smallvec::SmallVec;

use super::super::garbage::Garbage;
use crate::event::Event;
use crate::object::{Object, ResourceVersion};

/// The results of a step: events for the handlers, and values to be dropped.
///
/// Filled under the lock, delivered under the writer's lock alone, and dropped without one.
pub(crate) struct Changes<K: Object> {
    pub(crate) events: Vec<Event<K>>,
    /// Each version that the store reached, in order.
    pub(crate) versions: SmallVec<[ResourceVersion; 1]>,
    /// Dropped after the locks are released.
    pub(in crate::store) garbage: Garbage<K>,
    /// True while objects are added that existed before the informer started: part of the initial
    /// list.
    pub(in crate::store) initial: bool,
    /// True if this step completes the first full state.
    pub(crate) first_sync: bool,
}

// === impl Changes ===

impl<K: Object> Changes<K> {
    /// Starts without changes. `garbage` is empty; its memory is used.
    pub(in crate::store) fn new(garbage: Garbage<K>) -> Self {
        Self {
            events: Vec::new(),
            versions: SmallVec::new(),
            garbage,
            initial: false,
            first_sync: false,
        }
    }
}
