//! Filters for objects without a name: no key refers to them, and all of them would share one key.
//! They are skipped and counted.
//!
//! A Kubernetes API server never sends such objects, but another server or a custom
//! [`ListWatch`](crate::list_watch::ListWatch) may. These filters are also the first call of
//! [`Object::metadata`], which is the author's code. If that panics, the object counts as nameless.
//! For an object that passes, `metadata` can be called under a lock.

use std::sync::Arc;

use futures::StreamExt;
use homeostat_core::user_code;

use super::Health;
use crate::list_watch::{Decoded, Page, WatchEvent, WatchStream};
use crate::object::{Object, ResourceVersion};

/// Removes the nameless objects from a page.
pub(super) fn without<K: Object>(mut page: Page<K>, health: &Health) -> Page<K> {
    let before = page.items.len();
    page.items.retain(has_name);
    health.skip_nameless(page.skipped_nameless + before - page.items.len());
    page
}

/// Replaces the events of nameless objects by bookmarks, which keep their versions if the watch
/// `is_ordered`.
pub(super) fn filtered<K: Object>(
    stream: WatchStream<K>,
    is_ordered: bool,
    health: Arc<Health>,
) -> WatchStream<K> {
    stream.map(move |batch| batch.map(|events| named(events, is_ordered, &health))).boxed()
}

/// The position of the event in the history counts, even if its object is skipped: without the
/// bookmark, a watch that ends here would read the event again. In a watch without order the event
/// has no position.
fn named<K: Object>(
    mut events: Vec<WatchEvent<K>>,
    is_ordered: bool,
    health: &Health,
) -> Vec<WatchEvent<K>> {
    let is_nameless = |event: &WatchEvent<K>| match event {
        WatchEvent::Applied(object) | WatchEvent::Deleted(object) => !has_name(object),
        WatchEvent::Bookmark { .. } => false,
    };
    let mut skipped_nameless = 0;
    for event in events.iter_mut().filter(|event| is_nameless(event)) {
        skipped_nameless += 1;
        // An empty version does not advance the reflector.
        let resource_version =
            version(event).filter(|_| is_ordered).unwrap_or_else(|| ResourceVersion::from(""));
        *event = WatchEvent::Bookmark { resource_version, initial_events_end: false };
    }
    health.skip_nameless(skipped_nameless);
    events
}

/// Calls the author's `metadata` for the first time for this object, inside the boundary for
/// panics.
fn has_name<K: Object>(object: &Decoded<K>) -> bool {
    let name = || object.metadata().name.as_ref().is_some_and(|name| !name.is_empty());
    user_code("metadata", name).unwrap_or(false)
}

/// Returns the version of the event's object, if its metadata can be read.
fn version<K: Object>(event: &WatchEvent<K>) -> Option<ResourceVersion> {
    let (WatchEvent::Applied(object) | WatchEvent::Deleted(object)) = event else { return None };
    let version = || object.metadata().resource_version.as_deref().map(ResourceVersion::from);
    user_code("metadata", version).ok()?
}
