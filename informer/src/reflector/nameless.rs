//! Objects without a name: nothing can refer to them, and all of them would be one. They are left out, and counted.
//!
//! No server has such objects; but a server may be anybody's, and so may a [`ListWatch`](crate::ListWatch). This is also
//! where an object's metadata is asked for first: it is told by the author's code, and if that panics, the object has no
//! name. What gets past here can be asked again where a lock is held.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures::StreamExt;

use super::Health;
use crate::{
    list_watch::{Decoded, Page, WatchEvent, WatchStream},
    object::{Object, ResourceVersion},
};

/// The page, without objects that have no name.
pub(super) fn without<K: Object>(mut page: Page<K>, health: &Health) -> Page<K> {
    let before = page.items.len();
    page.items.retain(has_name);
    health.leave_out(page.left_out + before - page.items.len());
    page
}

/// The stream, without events of objects that have no name. How far the server has got is kept.
pub(super) fn filtered<K: Object>(stream: WatchStream<K>, health: Arc<Health>) -> WatchStream<K> {
    stream.map(move |batch| batch.map(|events| named(events, &health))).boxed()
}

fn named<K: Object>(mut events: Vec<WatchEvent<K>>, health: &Health) -> Vec<WatchEvent<K>> {
    let is_nameless = |event: &WatchEvent<K>| match event {
        WatchEvent::Applied(object) | WatchEvent::Deleted(object) => !has_name(object),
        WatchEvent::Bookmark { .. } => false,
    };
    let mut left_out = 0;
    for event in events.iter_mut().filter(|event| is_nameless(event)) {
        left_out += 1;
        // A version that is none is no news.
        let resource_version = version(event).unwrap_or_else(|| ResourceVersion::from(""));
        *event = WatchEvent::Bookmark { resource_version, initial_events_end: false };
    }
    health.leave_out(left_out);
    events
}

fn has_name<K: Object>(object: &Decoded<K>) -> bool {
    let name = || object.metadata().name.as_ref().is_some_and(|name| !name.is_empty());
    catch_unwind(AssertUnwindSafe(name)).unwrap_or(false)
}

fn version<K: Object>(event: &WatchEvent<K>) -> Option<ResourceVersion> {
    let (WatchEvent::Applied(object) | WatchEvent::Deleted(object)) = event else { return None };
    let version = || object.metadata().resource_version.as_deref().map(ResourceVersion::from);
    catch_unwind(AssertUnwindSafe(version)).ok()?
}
