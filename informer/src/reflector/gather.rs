//! [`Gather`] and [`Pages`]: collect a full state from the initial events of a watch or the pages
//! of a list.
//!
//! A full state is collected in memory before it is queued, so that the copy changes in one step
//! and a request that breaks changes nothing. An unchanged object is replaced by the cached `Arc`,
//! so a relist of an unchanged collection ends with one copy.
//!
//! Memory: the objects are `Arc`s, and unchanged ones share the cached memory. A relist of an
//! unchanged collection of `n` objects then needs about `n` pointers in addition. Repeated states
//! are dropped when the list of arrivals has doubled, so that a server that sends each object many
//! times cannot exhaust the memory.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::delta::is_older;
use crate::list_watch::{Decoded, ListError, Page, WatchEvent};
use crate::object::{KeyRef, Object, ResourceVersion};
use crate::store::Store;

/// The objects received so far.
///
/// It holds `Arc`s, not copies. Without a deletion, `finish` returns
/// the objects as they are.
pub(super) struct Gather<K: Object> {
    /// The objects in the order of arrival.
    objects: Vec<Decoded<K>>,
    /// Deleted objects, each with the number of objects that arrived before the deletion.
    deleted: Vec<(usize, Decoded<K>)>,
    /// The number of objects and deletions at which all but the last states are dropped, so that
    /// memory is bounded by the collection and not by its changes.
    compact_at: usize,
}

/// The pages of a list received so far.
pub(super) struct Pages<K: Object> {
    gather: Gather<K>,
    /// The version of the list, which is that of the first page. If a later page has a later
    /// version, the watch delivers the changes in between; the store ignores those that the page
    /// already contained.
    version: Option<ResourceVersion>,
    /// The continue tokens received so far.
    tokens: HashSet<String>,
    /// The number of consecutive empty pages of one collection.
    empty: u32,
    /// The number of objects at which repeated ones are counted.
    count_at: usize,
    /// The number of expired tokens that the server has replaced.
    expired: u32,
}

/// A list from all of its pages.
pub(super) struct List<K: Object> {
    pub(super) objects: Vec<Decoded<K>>,
    /// The version of the first page.
    pub(super) version: ResourceVersion,
    /// False if a token expired and the pages after it are from a later version.
    pub(super) is_consistent: bool,
}

/// After this many consecutive empty pages the list fails. A server may send some empty pages if a
/// selector matches few objects.
const MAX_EMPTY: u32 = 100;

/// The number of replaced tokens after which a list fails. A token lives for at least 5 minutes, so
/// a list that needs more of them is not worth its version.
const MAX_EXPIRED: u32 = 10;

/// The number of objects from which repeated ones are looked for.
const COUNT_FROM: usize = 1024;

// === impl Gather ===

impl<K: Object> Gather<K> {
    pub(super) fn new() -> Self {
        Self { objects: Vec::new(), deleted: Vec::new(), compact_at: COUNT_FROM }
    }

    /// Takes events up to the bookmark that completes the initial state, and returns its version.
    /// Unchanged objects are taken from the `cache`.
    pub(super) fn take(
        &mut self,
        events: &mut impl Iterator<Item = WatchEvent<K>>,
        cache: Option<&Store<K>>,
    ) -> Option<ResourceVersion> {
        for event in events {
            match event {
                WatchEvent::Applied(object) => self.objects.push(reused(object, cache)),
                WatchEvent::Deleted(object) => self.deleted.push((self.objects.len(), object)),
                WatchEvent::Bookmark { resource_version, initial_events_end: true } => {
                    return Some(resource_version);
                }
                WatchEvent::Bookmark { .. } => {}
            }
        }
        if self.objects.len() + self.deleted.len() >= self.compact_at {
            self.keep_last_states();
            self.deleted.clear();
            self.compact_at = COUNT_FROM.max(2 * self.objects.len());
        }
        None
    }

    /// Returns the objects without the deleted ones. The store resolves an object that arrived
    /// twice, unless there are deletions: then the order of arrival matters and is resolved here.
    pub(super) fn finish(mut self) -> Vec<Decoded<K>> {
        if !self.deleted.is_empty() {
            self.keep_last_states();
        }
        self.objects
    }

    /// Drops the objects that were replaced or deleted later.
    fn keep_last_states(&mut self) {
        let mut keep = self.last_states().into_iter();
        self.objects.retain(|_| keep.next().unwrap_or(true));
    }

    /// Returns true if the objects arrived twice on average.
    ///
    /// It costs one hash per object, and is called when the number of objects has doubled since the
    /// last call.
    fn is_repeated(&self) -> bool {
        let metadata = self.objects.iter().map(Decoded::metadata);
        let distinct: hashbrown::HashSet<_, RandomState> =
            metadata.map(KeyRef::<K::Kind>::from_metadata).collect();
        2 * distinct.len() <= self.objects.len()
    }

    /// Returns, for each object, true if it is part of the final state. A later event wins, unless
    /// its version is known to be older.
    ///
    /// Deletions are merged in by their position, so that an object that was deleted and created
    /// again is kept.
    fn last_states(&self) -> Vec<bool> {
        let mut keep = vec![true; self.objects.len()];
        let mut last =
            HashMap::with_capacity_and_hasher(self.objects.len(), RandomState::default());
        let mut deleted = self.deleted.iter().peekable();
        for (position, object) in self.objects.iter().enumerate() {
            while let Some((_, gone)) = deleted.next_if(|(before, _)| *before <= position) {
                self.delete(gone, &mut last, &mut keep);
            }
            let metadata = object.metadata();
            let key = KeyRef::<K::Kind>::from_metadata(metadata);
            let previous = last.get(&key).copied();
            if previous.is_some_and(|at: usize| is_older(metadata, self.objects[at].metadata())) {
                keep[position] = false;
            } else if let Some(at) = last.insert(key, position) {
                keep[at] = false;
            }
        }
        for (_, gone) in deleted {
            self.delete(gone, &mut last, &mut keep);
        }
        keep
    }

    /// Removes the state that a deletion refers to.
    fn delete<'a>(
        &self,
        gone: &'a Decoded<K>,
        last: &mut HashMap<KeyRef<'a, K::Kind>, usize, RandomState>,
        keep: &mut [bool],
    ) {
        let key = KeyRef::from_metadata(gone.metadata());
        let Some(at) = last.get(&key).copied() else { return };
        let object = self.objects[at].metadata();
        // The deletion of an earlier object of the same name does not delete this object.
        if gone.metadata().uid == object.uid || !is_older(gone.metadata(), object) {
            last.remove(&key);
            keep[at] = false;
        }
    }
}

// === impl Pages ===

impl<K: Object> Pages<K> {
    pub(super) fn new() -> Self {
        Self {
            gather: Gather::new(),
            version: None,
            tokens: HashSet::new(),
            empty: 0,
            count_at: COUNT_FROM,
            expired: 0,
        }
    }

    /// Returns the token that the server offers instead of an expired one.
    ///
    /// The pages after it are from a later version than those before.
    ///
    /// Returns `None` if no page was received, if the error is not an expired token, after 10
    /// replacements, or if the token was used before. The list then fails.
    pub(super) fn resume(&mut self, error: &ListError) -> Option<String> {
        if self.version.is_none() || !error.is_expired() || self.expired >= MAX_EXPIRED {
            return None;
        }
        let token = error.api_error()?.continue_token()?.to_owned();
        self.expired += 1;
        self.tokens.insert(token.clone()).then_some(token)
    }

    /// Takes a page and returns the continue token of the next one. Unchanged objects are taken
    /// from the `cache`.
    ///
    /// # Errors
    /// The reason why the list is invalid: it has no version, or it never ends.
    pub(super) fn take(
        &mut self,
        mut page: Page<K>,
        cache: Option<&Store<K>>,
    ) -> Result<Option<String>, &'static str> {
        if !page.resource_version.is_point() {
            return Err("its resourceVersion is no point in history");
        }
        let is_empty = page.items.is_empty() && !page.is_end_of_part;
        self.empty = if is_empty { self.empty + 1 } else { 0 };
        if let Some(cache) = cache {
            for object in &mut page.items {
                cache.reuse(object);
            }
        }
        if self.gather.objects.is_empty() {
            self.gather.objects = page.items;
        } else {
            self.gather.objects.append(&mut page.items);
        }
        self.version.get_or_insert(page.resource_version);
        if self.gather.objects.len() >= self.count_at {
            self.count_at = 2 * self.gather.objects.len();
            if self.gather.is_repeated() {
                return Err("its pages repeat their objects");
            }
        }
        if let Some(token) = &page.continue_token {
            if !self.tokens.insert(token.clone()) {
                return Err("its continue token repeats an earlier one");
            }
            if self.empty >= MAX_EMPTY {
                return Err("it has too many empty pages");
            }
        }
        Ok(page.continue_token)
    }

    /// Returns the objects and their resourceVersion.
    ///
    /// # Panics
    /// If no page was taken.
    pub(super) fn finish(self) -> List<K> {
        let version = self.version.expect("the first page has set the version");
        let is_consistent = self.expired == 0;
        List { objects: self.gather.finish(), version, is_consistent }
    }
}

/// Returns the object, or the cached one if that is equal.
fn reused<K: Object>(mut object: Decoded<K>, cache: Option<&Store<K>>) -> Decoded<K> {
    if let Some(cache) = cache {
        cache.reuse(&mut object);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectMeta;
    use k8s_openapi::api::core::v1::Pod;
    use std::sync::Arc;

    fn pod(name: &str, uid: &str, version: &str) -> Decoded<Pod> {
        let metadata = ObjectMeta {
            name: Some(name.into()),
            uid: Some(uid.into()),
            resource_version: Some(version.into()),
            ..ObjectMeta::default()
        };
        Decoded::Fits(Arc::new(Pod { metadata, ..Pod::default() }))
    }

    fn applied(name: &str, uid: &str, version: &str) -> WatchEvent<Pod> {
        WatchEvent::Applied(pod(name, uid, version))
    }

    fn deleted(name: &str, uid: &str, version: &str) -> WatchEvent<Pod> {
        WatchEvent::Deleted(pod(name, uid, version))
    }

    fn gathered(mut events: Vec<WatchEvent<Pod>>) -> Vec<String> {
        let mut gather = Gather::new();
        events.insert(0, deleted("some other", "u", "1"));
        assert!(gather.take(&mut events.into_iter(), None).is_none());
        texts(gather.finish())
    }

    fn texts(objects: Vec<Decoded<Pod>>) -> Vec<String> {
        let text = |object: Decoded<Pod>| {
            let ObjectMeta { name, uid, resource_version, .. } = object.metadata().clone();
            [name, uid, resource_version].map(Option::unwrap_or_default).join(" ")
        };
        objects.into_iter().map(text).collect()
    }

    fn page(items: Vec<Decoded<Pod>>, version: &str, token: Option<&str>) -> Page<Pod> {
        let mut page = Page::new(items, version);
        page.continue_token = token.map(Into::into);
        page
    }

    #[test]
    fn object_received_twice_is_kept_once_in_its_newest_state() {
        let events = vec![applied("a", "u", "9"), applied("b", "v", "2"), applied("a", "u", "10")];
        assert_eq!(gathered(events), ["b v 2", "a u 10"]);
        let replayed = vec![applied("a", "u", "10"), applied("a", "u", "9")];
        assert_eq!(gathered(replayed), ["a u 10"]);
        let remade = vec![applied("a", "u", "9"), applied("a", "w", "10")];
        assert_eq!(gathered(remade), ["a w 10"]);
        let unordered = vec![applied("a", "u", "x"), applied("a", "u", "y")];
        assert_eq!(gathered(unordered), ["a u y"], "without an order the later state wins");
    }

    #[test]
    fn deletion_removes_only_earlier_states_of_the_object() {
        let events = vec![applied("a", "u", "1"), deleted("a", "u", "3"), applied("b", "v", "2")];
        assert_eq!(gathered(events), ["b v 2"]);
        let remade = vec![applied("a", "u", "1"), deleted("a", "u", "3"), applied("a", "w", "4")];
        assert_eq!(gathered(remade), ["a w 4"]);
        let last = vec![applied("a", "u", "1"), applied("a", "u", "2"), deleted("a", "u", "3")];
        assert_eq!(gathered(last), [""; 0]);
        let unknown = vec![deleted("c", "x", "1"), applied("a", "u", "2")];
        assert_eq!(gathered(unknown), ["a u 2"]);
    }

    #[test]
    fn deletion_of_earlier_object_keeps_later_object_of_same_name() {
        assert_eq!(gathered(vec![applied("a", "w", "9"), deleted("a", "u", "5")]), ["a w 9"]);
        assert_eq!(gathered(vec![applied("a", "u", "5"), deleted("a", "w", "9")]), [""; 0]);
    }

    #[test]
    fn list_has_version_of_its_first_page() {
        let mut pages = Pages::new();
        let more = pages.take(page(vec![pod("a", "u", "1")], "5", Some("more")), None);
        assert_eq!(more, Ok(Some("more".to_owned())));
        let last = page(vec![pod("b", "v", "8"), pod("a", "u", "7")], "9", None);
        assert_eq!(pages.take(last, None), Ok(None));
        let List { objects, version, is_consistent } = pages.finish();
        assert!(is_consistent);
        assert_eq!(texts(objects), ["a u 1", "b v 8", "a u 7"], "the store takes the newest");
        assert_eq!(version.as_str(), "5");
    }

    #[test]
    fn list_with_repeated_token_or_empty_pages_fails() {
        let mut pages = Pages::new();
        for token in ["a", "b"] {
            assert!(pages.take(page(vec![pod("a", "u", "1")], "5", Some(token)), None).is_ok());
        }
        assert!(pages.take(page(vec![pod("a", "u", "1")], "5", Some("a")), None).is_err());
        let mut pages = Pages::new();
        let mut next = |at: u32| pages.take(page(Vec::new(), "5", Some(&at.to_string())), None);
        assert!((1..MAX_EMPTY).all(|at| next(at).is_ok()));
        assert!(next(MAX_EMPTY).is_err());
    }

    #[test]
    fn list_without_version_fails() {
        for version in ["", "0"] {
            assert!(Pages::new().take(page(Vec::new(), version, None), None).is_err());
        }
    }
}
