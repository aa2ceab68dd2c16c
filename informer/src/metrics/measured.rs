//! [`Measured`]: a list-watch that counts requests, items and durations.
//!
//! It wraps the author's list-watch, so that the reflector has no code for metrics and an informer
//! without them pays nothing.
//!
//! The metrics are those of client-go's `MetricsProvider` for reflectors, under the names that
//! Kubernetes gave them: `reflector_lists_total`, `reflector_list_duration_seconds`,
//! `reflector_items_per_list`, `reflector_watches_total`, `reflector_short_watches_total`,
//! `reflector_watch_duration_seconds` and `reflector_items_per_watch`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures::{Stream, StreamExt};
use homeostat_core::metrics::record;
use metrics::{Counter, Histogram};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Labels;
use crate::list_watch::{
    ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest, WatchStream,
};
use crate::object::Object;

/// Wraps a list-watch and records its metrics.
pub(crate) struct Measured<K: Object> {
    list_watch: Arc<dyn ListWatch<K>>,
    lists: Counter,
    list_duration: Histogram,
    list_items: Histogram,
    watches: Counter,
    of_watches: OfWatches,
    /// The list that is being read, page by page.
    paging: Mutex<Option<Paging>>,
}

/// The handles that each open watch needs until it is dropped.
#[derive(Clone)]
struct OfWatches {
    short: Counter,
    duration: Histogram,
    items: Histogram,
}

/// The state of a list between two pages. A failed page forgets it, so only complete lists are
/// recorded.
///
/// A reflector has one list at a time. A first page starts a new one, so that a list that was given
/// up does not count.
#[derive(Clone, Copy)]
struct Paging {
    started: Instant,
    items: usize,
}

/// An open watch. Its metrics are recorded when it is dropped.
struct Watch<K> {
    stream: WatchStream<K>,
    opened: Instant,
    items: usize,
    metrics: OfWatches,
}

/// A watch that ends sooner than this, without an item, counts as short (as in client-go).
const SHORT: Duration = Duration::from_secs(1);

// === impl Measured ===

impl<K: Object> Measured<K> {
    /// Registers the handles, which calls the recorder.
    pub(crate) fn new(list_watch: Arc<dyn ListWatch<K>>, of: &Labels) -> Self {
        Self {
            list_watch,
            lists: of.counter("reflector_lists_total"),
            list_duration: of.histogram("reflector_list_duration_seconds"),
            list_items: of.histogram("reflector_items_per_list"),
            watches: of.counter("reflector_watches_total"),
            of_watches: OfWatches {
                short: of.counter("reflector_short_watches_total"),
                duration: of.histogram("reflector_watch_duration_seconds"),
                items: of.histogram("reflector_items_per_watch"),
            },
            paging: Mutex::new(None),
        }
    }
}

#[async_trait]
impl<K: Object> ListWatch<K> for Measured<K> {
    fn target(&self) -> Arc<str> {
        self.list_watch.target()
    }

    fn is_ordered(&self) -> bool {
        self.list_watch.is_ordered()
    }

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let before = self.paging.lock().take().filter(|_| request.continue_token.is_some());
        let mut paging = before.unwrap_or_else(|| {
            record(|| self.lists.increment(1));
            Paging { started: Instant::now(), items: 0 }
        });
        let page = self.list_watch.list(request).await?;
        paging.items += page.items.len();
        if page.continue_token.is_some() {
            *self.paging.lock() = Some(paging);
        } else {
            record(|| {
                self.list_duration.record(paging.started.elapsed());
                self.list_items.record(count(paging.items));
            });
        }
        Ok(page)
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        record(|| self.watches.increment(1));
        let opened = Instant::now();
        let stream = self.list_watch.watch(request).await?;
        Ok(Watch { stream, opened, items: 0, metrics: self.of_watches.clone() }.boxed())
    }
}

/// Returns the number as a histogram value.
#[expect(clippy::cast_precision_loss, reason = "a list has fewer than 2^52 objects")]
fn count(items: usize) -> f64 {
    items as f64
}

// === impl Watch ===

impl<K> Stream for Watch<K> {
    type Item = Result<Vec<WatchEvent<K>>, WatchError>;

    /// Bookmarks are no items.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.stream.poll_next_unpin(cx);
        if let Poll::Ready(Some(Ok(events))) = &next {
            let is_item = |event: &&WatchEvent<K>| !matches!(event, WatchEvent::Bookmark { .. });
            self.items += events.iter().filter(is_item).count();
        }
        next
    }
}

impl<K> Drop for Watch<K> {
    fn drop(&mut self) {
        let lived = self.opened.elapsed();
        record(|| {
            self.metrics.duration.record(lived);
            self.metrics.items.record(count(self.items));
            if lived < SHORT && self.items == 0 {
                self.metrics.short.increment(1);
            }
        });
    }
}
