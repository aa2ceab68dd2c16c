//! Puts the whole state together from the begin of a watch.

use std::collections::HashMap;

use crate::{
    list_watch::{Decoded, WatchEvent},
    object::{Object, ObjectKey, ResourceVersion},
    store::Store,
};

/// The objects so far.
pub(super) struct Gather<K: Object> {
    /// In the order in which they came. If an object comes again, the later state counts: the store sees to that.
    objects: Vec<Decoded<K>>,
    /// What was deleted meanwhile: everything of this key among the first so many objects is void.
    deleted: HashMap<ObjectKey<K::Kind>, usize>,
}

// === impl Gather ===

impl<K: Object> Gather<K> {
    pub(super) fn new() -> Self {
        Self { objects: Vec::new(), deleted: HashMap::new() }
    }

    /// Takes events up to the one that says that the state is complete; returns its version.
    pub(super) fn take(
        &mut self,
        events: &mut impl Iterator<Item = WatchEvent<K>>,
        store: &Store<K>,
    ) -> Option<ResourceVersion> {
        for event in events {
            match event {
                WatchEvent::Applied(mut object) => {
                    store.reuse(&mut object);
                    self.objects.push(object);
                }
                WatchEvent::Deleted(object) => {
                    let key = ObjectKey::from_metadata(object.metadata());
                    self.deleted.insert(key, self.objects.len());
                }
                WatchEvent::Bookmark { resource_version, initial_events_end: true } => {
                    return Some(resource_version);
                }
                WatchEvent::Bookmark { .. } => {}
            }
        }
        None
    }

    pub(super) fn finish(mut self) -> Vec<Decoded<K>> {
        if !self.deleted.is_empty() {
            let mut position = 0;
            self.objects.retain(|object| {
                position += 1;
                let key = ObjectKey::from_metadata(object.metadata());
                self.deleted.get(&key).is_none_or(|deleted| position > *deleted)
            });
        }
        self.objects
    }
}
