//! [`MergedListWatch`]: several collections of one kind behind one informer.
//!
//! Pages: the parts are listed one after the other, and the continue token is the number of the
//! part, a colon, and the part's own token. The version of the list is that of its first page, as
//! for a list with pages: a watch from there delivers what the later parts have already shown, and
//! the store ignores it.
//!
//! Watches: all parts are watched at once, from the same version. The bookmarks of the parts are
//! replaced by one, whose version all parts have reached.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::{BoxStream, SelectAll, once, select_all, unfold};
use tokio::time::Instant;

use super::patience::Patient;
use super::{
    ApiError, ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest,
    WatchStream,
};
use crate::object::{Object, ResourceVersion};

/// Lists and watches several collections of one kind, for example some namespaces or selectors, as
/// if they were one.
///
/// The collections must not overlap: an object that leaves one of two overlapping collections would
/// look deleted. They must be on one server, because their versions are compared.
///
/// Use it for a controller that may read some namespaces and not all of them. With permission for
/// all namespaces, one list-watch of all of them costs less.
///
/// Events reach the cache as soon as they arrive. The *version* of the cache, for which
/// [`wait_for_version`](crate::SharedIndexInformer::wait_for_version) waits, is that of the
/// collection that is furthest behind: a quiet collection reaches a version with its next bookmark,
/// up to a minute later.
///
/// All watches are opened at the same time, and the end of one ends all. A connection of one
/// collection that breaks off without a sign is noticed as that of a single watch, although the
/// others deliver events: when three bookmarks are missing, see
/// [`TimeoutConfig::missed_bookmarks`](crate::TimeoutConfig::missed_bookmarks).
///
/// # Examples
///
/// ```
/// use homeostat_informer::SharedIndexInformer;
/// use homeostat_informer::list_watch::{KubeListWatch, MergedListWatch};
/// use k8s_openapi::api::core::v1::Pod;
///
/// fn pods(client: &kube_client::Client, namespaces: &[&str]) -> SharedIndexInformer<Pod> {
///     let in_namespace = |name: &&str| KubeListWatch::<Pod>::new(client.clone(), Some(name));
///     let merged = MergedListWatch::new(namespaces.iter().map(in_namespace));
///     SharedIndexInformer::builder(merged).name("pods").build()
/// }
/// ```
pub struct MergedListWatch<K: Object> {
    parts: Vec<Arc<dyn ListWatch<K>>>,
    target: Arc<str>,
}

/// The watches of all parts, as one.
struct Merged<K> {
    batches: SelectAll<BoxStream<'static, Part<K>>>,
    progress: Progress,
    /// True after an error or the end of one part: the other parts are closed too.
    is_over: bool,
}

/// A batch of the part with this number; `None` at its end.
type Part<K> = (usize, Option<Result<Vec<WatchEvent<K>>, WatchError>>);

/// The versions that the parts have reached.
struct Progress {
    /// The version of each part; `None` before its first event.
    reached: Vec<Option<ResourceVersion>>,
    /// The parts whose initial events are not complete.
    initial: Vec<bool>,
    /// The parts whose objects carry versions; of the others only bookmarks do.
    ordered: Vec<bool>,
    /// The version of the last bookmark.
    announced: Option<ResourceVersion>,
}

// === impl MergedListWatch ===

impl<K: Object> MergedListWatch<K> {
    /// Merges `parts`, which must not overlap.
    ///
    /// # Panics
    ///
    /// Panics if there is no part.
    pub fn new<L: ListWatch<K>>(parts: impl IntoIterator<Item = L>) -> Self {
        let parts: Vec<Arc<dyn ListWatch<K>>> =
            parts.into_iter().map(|part| Arc::new(part) as Arc<dyn ListWatch<K>>).collect();
        assert!(!parts.is_empty(), "a merged list-watch needs a part");
        let targets: Vec<_> = parts.iter().map(|part| part.target()).collect();
        Self { parts, target: targets.join(", ").into() }
    }
}

#[async_trait]
impl<K: Object> ListWatch<K> for MergedListWatch<K> {
    fn target(&self) -> Arc<str> {
        Arc::clone(&self.target)
    }

    fn is_ordered(&self) -> bool {
        self.parts.len() == 1 && self.parts[0].is_ordered()
    }

    /// Lists one part after the other. The continue token names the part.
    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let token = request.continue_token.as_deref().unwrap_or("0:");
        let part = token.split_once(':').and_then(|(at, token)| Some((at.parse().ok()?, token)));
        let part = part.and_then(|(at, token)| Some((at, self.parts.get::<usize>(at)?, token)));
        let Some((at, part, token)) = part else {
            let error = "its continue token is that of another list".to_owned();
            return Err(ListError::Corrupt { target: self.target(), error });
        };
        let mut own = request.clone();
        own.continue_token = (!token.is_empty()).then(|| token.to_owned());
        let of_part = |token: &str| format!("{at}:{token}");
        let mut page = part.list(&own).await.map_err(|error| match error {
            ListError::Refused { target, error } => {
                let token = error.continue_token().map(of_part);
                let error = token.into_iter().fold(error, ApiError::with_continue_token);
                ListError::Refused { target, error }
            }
            other => other,
        })?;
        let next = at + 1;
        let last = page.continue_token.is_none();
        page.is_end_of_part |= last && next < self.parts.len();
        page.continue_token = match page.continue_token.take() {
            Some(token) => Some(of_part(&token)),
            None => (next < self.parts.len()).then(|| format!("{next}:")),
        };
        Ok(page)
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let opened = Instant::now();
        // Not one after the other: the reflector's limit is for all of them.
        let streams = try_join_all(self.parts.iter().map(|part| part.watch(request))).await?;
        let of_part = |(at, stream): (usize, WatchStream<K>)| {
            let watch = Patient::new(stream, opened, request);
            let target = self.parts[at].target();
            let batches = unfold((watch, target), |(mut watch, target)| async {
                let batch = watch.next(|| Arc::clone(&target)).await;
                batch.map(|batch| (batch, (watch, target)))
            });
            let batches = batches.map(Some).chain(once(async { None }));
            batches.map(move |batch| (at, batch)).boxed()
        };
        let merged = Merged {
            progress: Progress::new(&self.parts, request),
            batches: select_all(streams.into_iter().enumerate().map(of_part)),
            is_over: false,
        };
        let batches = unfold(merged, |mut merged| async move {
            merged.next_batch().await.map(|batch| (batch, merged))
        });
        Ok(batches.boxed())
    }
}

impl<K: Object> fmt::Debug for MergedListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergedListWatch").field("target", &self.target).finish_non_exhaustive()
    }
}

// === impl Merged ===

impl<K: Object> Merged<K> {
    /// Waits for the next batch of a part. The end of one part ends the watch, so that all are
    /// opened again after the same version.
    ///
    /// # Cancel safety
    ///
    /// A dropped future loses nothing: a batch is taken from its part in the poll that returns it.
    async fn next_batch(&mut self) -> Option<Result<Vec<WatchEvent<K>>, WatchError>> {
        while !self.is_over {
            let events = match self.batches.next().await {
                Some((at, Some(Ok(events)))) => self.progress.take(at, events),
                Some((_, Some(Err(error)))) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
                Some((_, None)) | None => {
                    self.is_over = true;
                    None
                }
            };
            if events.is_some() {
                return events.map(Ok);
            }
        }
        None
    }
}

// === impl Progress ===

impl Progress {
    /// A watch with initial events starts without versions: a part has none before its first
    /// bookmark.
    fn new<K: Object>(parts: &[Arc<dyn ListWatch<K>>], request: &WatchRequest) -> Self {
        let after = request.resource_version.clone().filter(|_| !request.initial_events);
        Self {
            reached: vec![after.clone(); parts.len()],
            initial: vec![request.initial_events; parts.len()],
            ordered: parts.iter().map(|part| part.is_ordered()).collect(),
            announced: after,
        }
    }

    /// Records the events of a part, and replaces its bookmarks by one for all parts. It also adds
    /// one when all parts have reached a later version. Returns `None` if no event is left.
    ///
    /// A quiet part repeats its version, and so does the bookmark for all: it shows that the watch
    /// is alive. A part that is silent meanwhile is found by its own limit.
    ///
    /// The bookmark comes after the objects of the batch. The one that follows the last end of
    /// initial events ends them for all parts.
    fn take<K: Object>(
        &mut self,
        at: usize,
        mut events: Vec<WatchEvent<K>>,
    ) -> Option<Vec<WatchEvent<K>>> {
        let was_initial = self.initial.contains(&true);
        let mut is_alive = false;
        for event in &events {
            let version = match event {
                WatchEvent::Applied(object) | WatchEvent::Deleted(object) => {
                    object.metadata().resource_version.as_deref().map(ResourceVersion::from)
                }
                WatchEvent::Bookmark { resource_version, initial_events_end } => {
                    self.initial[at] &= !*initial_events_end;
                    is_alive = true;
                    Some(resource_version.clone())
                }
            };
            // The initial events are in no order.
            let is_in_order = self.ordered[at] && !self.initial[at];
            let is_position = is_in_order || matches!(event, WatchEvent::Bookmark { .. });
            if let Some(version) = version.filter(|_| is_position) {
                self.advance(at, version);
            }
        }
        events.retain(|event| !matches!(event, WatchEvent::Bookmark { .. }));
        let is_complete = !self.initial.contains(&true);
        if let Some(resource_version) = self.least().filter(|_| is_complete)
            && (is_alive || self.announced.as_ref() != Some(&resource_version))
        {
            self.announced = Some(resource_version.clone());
            let initial_events_end = was_initial;
            events.push(WatchEvent::Bookmark { resource_version, initial_events_end });
        }
        (!events.is_empty()).then_some(events)
    }

    /// Records the version of a part. It may be older than the last one: the server then sends old
    /// events again. Such a replay must be read to its end, since it may restore a deleted object:
    /// if the watch breaks off, the next one starts at the older version.
    fn advance(&mut self, at: usize, version: ResourceVersion) {
        if version.is_point() {
            self.reached[at] = Some(version);
        }
    }

    /// Returns the version that all parts have reached; `None` if it is unknown for one of them.
    fn least(&self) -> Option<ResourceVersion> {
        let mut all = self.reached.iter().map(Option::as_ref);
        let first = all.next()??;
        let least = all.try_fold(first, |least, version| {
            let version = version?;
            let order = version.compare(least)?;
            Some(if order == Ordering::Less { version } else { least })
        });
        least.cloned()
    }
}
