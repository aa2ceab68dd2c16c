//! Puts the whole state together, from the begin of a watch or from the pages of a list.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::{
    delta::is_older,
    list_watch::{Decoded, Page, WatchEvent},
    object::{KeyRef, Object, ResourceVersion},
    store::Store,
};

/// The objects so far.
pub(super) struct Gather<K: Object> {
    /// In the order in which they came.
    objects: Vec<Decoded<K>>,
    /// What was deleted meanwhile, and how many objects had come by then.
    deleted: Vec<(usize, Decoded<K>)>,
}

/// The pages of a list so far.
pub(super) struct Pages<K: Object> {
    gather: Gather<K>,
    /// The state that the list shows: the first page's. If a later page shows a later state, what happened in between is
    /// watched, and what of it the page shows already is ignored then.
    version: Option<ResourceVersion>,
    /// The places that were asked for.
    tokens: HashSet<String>,
    /// How many pages in a row had nothing on them.
    empty: u32,
}

/// After this many empty pages in a row there is nothing more to come. A server whose selector matches little may send
/// some.
const MAX_EMPTY: u32 = 100;

// === impl Gather ===

impl<K: Object> Gather<K> {
    pub(super) fn new() -> Self {
        Self { objects: Vec::new(), deleted: Vec::new() }
    }

    /// Takes events up to the one that says that the state is complete; returns its version. What has not changed is
    /// taken from the `cache`.
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
        None
    }

    /// The objects, and none of what is gone. An object that came twice is the store's to look at, unless there is a
    /// deletion, of which somebody must know whether it came after both.
    pub(super) fn finish(mut self) -> Vec<Decoded<K>> {
        if !self.deleted.is_empty() {
            let mut keep = self.last_states().into_iter();
            self.objects.retain(|_| keep.next().unwrap_or(true));
        }
        self.objects
    }

    /// For each object whether it is in the state. What comes later counts, unless it is known to be older.
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

    fn delete<'a>(
        &self,
        gone: &'a Decoded<K>,
        last: &mut HashMap<KeyRef<'a, K::Kind>, usize, RandomState>,
        keep: &mut [bool],
    ) {
        let key = KeyRef::from_metadata(gone.metadata());
        let Some(at) = last.get(&key).copied() else { return };
        let object = self.objects[at].metadata();
        // The deletion of an earlier object of the same name says nothing of this one.
        if gone.metadata().uid == object.uid || !is_older(gone.metadata(), object) {
            last.remove(&key);
            keep[at] = false;
        }
    }
}

// === impl Pages ===

impl<K: Object> Pages<K> {
    pub(super) fn new() -> Self {
        Self { gather: Gather::new(), version: None, tokens: HashSet::new(), empty: 0 }
    }

    /// Takes a page; returns where the next one begins. What has not changed is taken from the `cache`.
    ///
    /// An error says why this list never ends, or is none.
    pub(super) fn take(
        &mut self,
        mut page: Page<K>,
        cache: Option<&Store<K>>,
    ) -> Result<Option<String>, &'static str> {
        if !page.resource_version.is_point() {
            return Err("its resourceVersion is no point in history");
        }
        self.empty = if page.items.is_empty() { self.empty + 1 } else { 0 };
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
        if let Some(token) = &page.continue_token {
            if !self.tokens.insert(token.clone()) {
                return Err("it goes on at a place where it has been");
            }
            if self.empty >= MAX_EMPTY {
                return Err("it goes on without an object");
            }
        }
        Ok(page.continue_token)
    }

    /// The objects, and the state of the server that they show.
    ///
    /// # Panics
    /// If no page was taken.
    pub(super) fn finish(self) -> (Vec<Decoded<K>>, ResourceVersion) {
        let version = self.version.expect("the first page that was taken has left its version");
        (self.gather.finish(), version)
    }
}

/// The object, or the cache's if that is the same.
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
    fn object_that_comes_twice_is_there_once_in_its_newest_state() {
        let events = vec![applied("a", "u", "9"), applied("b", "v", "2"), applied("a", "u", "10")];
        assert_eq!(gathered(events), ["b v 2", "a u 10"]);
        let replayed = vec![applied("a", "u", "10"), applied("a", "u", "9")];
        assert_eq!(gathered(replayed), ["a u 10"]);
        let remade = vec![applied("a", "u", "9"), applied("a", "w", "10")];
        assert_eq!(gathered(remade), ["a w 10"]);
        let untold = vec![applied("a", "u", "x"), applied("a", "u", "y")];
        assert_eq!(gathered(untold), ["a u y"], "who cannot tell takes the later one");
    }

    #[test]
    fn deletion_takes_what_came_before_it_and_nothing_else() {
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
    fn deletion_of_an_earlier_object_of_the_name_leaves_the_later_one() {
        assert_eq!(gathered(vec![applied("a", "w", "9"), deleted("a", "u", "5")]), ["a w 9"]);
        assert_eq!(gathered(vec![applied("a", "u", "5"), deleted("a", "w", "9")]), [""; 0]);
    }

    #[test]
    fn list_shows_the_state_of_its_first_page() {
        let mut pages = Pages::new();
        let more = pages.take(page(vec![pod("a", "u", "1")], "5", Some("more")), None);
        assert_eq!(more, Ok(Some("more".to_owned())));
        let last = page(vec![pod("b", "v", "8"), pod("a", "u", "7")], "9", None);
        assert_eq!(pages.take(last, None), Ok(None));
        let (objects, version) = pages.finish();
        assert_eq!(texts(objects), ["a u 1", "b v 8", "a u 7"], "the store takes the newest");
        assert_eq!(version.as_str(), "5");
    }

    #[test]
    fn list_that_goes_in_a_circle_or_nowhere_ends() {
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
    fn list_without_a_version_is_none() {
        for version in ["", "0"] {
            assert!(Pages::new().take(page(Vec::new(), version, None), None).is_err());
        }
    }
}
