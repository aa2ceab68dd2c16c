//! [`Unfit`]: the objects whose present state does not fit its type.

use std::collections::HashSet;

use homeostat::{Event, Object, ObjectKey};
use parking_lot::Mutex;

/// The objects of a cache that do not fit their type at present.
///
/// While an object does not fit, changes are not counted. The event of its next state has the last
/// one that fitted as the old state, and the two may be equal.
pub(crate) struct Unfit<K: Object> {
    keys: Mutex<HashSet<ObjectKey<K::Kind>>>,
}

// === impl Unfit ===

impl<K: Object> Unfit<K> {
    pub(crate) fn new() -> Self {
        Self { keys: Mutex::default() }
    }

    /// Notes an event. Returns true if the object did not fit before it, and does so now or is
    /// gone.
    pub(crate) fn note(&self, event: &Event<K>) -> bool {
        let mut keys = self.keys.lock();
        if matches!(event, Event::Opaque { .. }) {
            keys.insert(event.key());
            return false;
        }
        !keys.is_empty() && keys.remove(&event.key())
    }
}
