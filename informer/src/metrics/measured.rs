//! [`Measured`]: a list-watch that counts what is asked and what comes of it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use futures::{Stream, StreamExt};
use metrics::{Counter, Histogram};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Labels, quietly};
use crate::{
    list_watch::{
        ListError, ListRequest, ListWatch, Page, WatchError, WatchEvent, WatchRequest, WatchStream,
    },
    object::Object,
};

/// Measures another list-watch.
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

#[derive(Clone)]
struct OfWatches {
    short: Counter,
    duration: Histogram,
    items: Histogram,
}

#[derive(Clone, Copy)]
struct Paging {
    started: Instant,
    items: usize,
}

/// An open watch; measured when it ends.
struct Watch<K> {
    stream: WatchStream<K>,
    opened: Instant,
    items: usize,
    metrics: OfWatches,
}

/// A watch that ends sooner, without an item, is short, as in client-go.
const SHORT: Duration = Duration::from_secs(1);

// === impl Measured ===

impl<K: Object> Measured<K> {
    pub(crate) fn new(list_watch: Arc<dyn ListWatch<K>>, of: &Labels) -> Self {
        Self {
            list_watch,
            lists: metrics::counter!("reflector_lists_total", of.all()),
            list_duration: metrics::histogram!("reflector_list_duration_seconds", of.all()),
            list_items: metrics::histogram!("reflector_items_per_list", of.all()),
            watches: metrics::counter!("reflector_watches_total", of.all()),
            of_watches: OfWatches {
                short: metrics::counter!("reflector_short_watches_total", of.all()),
                duration: metrics::histogram!("reflector_watch_duration_seconds", of.all()),
                items: metrics::histogram!("reflector_items_per_watch", of.all()),
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

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let before = self.paging.lock().take().filter(|_| request.continue_token.is_some());
        let mut paging = before.unwrap_or_else(|| {
            quietly(|| self.lists.increment(1));
            Paging { started: Instant::now(), items: 0 }
        });
        let page = self.list_watch.list(request).await?;
        paging.items += page.items.len();
        if page.continue_token.is_some() {
            *self.paging.lock() = Some(paging);
        } else {
            quietly(|| {
                self.list_duration.record(paging.started.elapsed());
                self.list_items.record(count(paging.items));
            });
        }
        Ok(page)
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        quietly(|| self.watches.increment(1));
        let opened = Instant::now();
        let stream = self.list_watch.watch(request).await?;
        Ok(Watch { stream, opened, items: 0, metrics: self.of_watches.clone() }.boxed())
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 objects")]
fn count(items: usize) -> f64 {
    items as f64
}

// === impl Watch ===

impl<K> Stream for Watch<K> {
    type Item = Result<Vec<WatchEvent<K>>, WatchError>;

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
        quietly(|| {
            self.metrics.duration.record(lived);
            self.metrics.items.record(count(self.items));
            if lived < SHORT && self.items == 0 {
                self.metrics.short.increment(1);
            }
        });
    }
}
