//! What happens to the objects of one resource, as a stream that does not end.

use std::fmt::Debug;

use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};
use kube_client::{Api, Error, Result};
use kube_core::{
    WatchEvent,
    params::{ListParams, WatchParams},
};
use serde::de::DeserializeOwned;
use tokio::time::{Duration, sleep, timeout};

use super::{in_time, work::backoff};

/// Objects per page of a list: what client-go asks for.
const PAGE: u32 = 500;

/// How long a watch may be silent. The server is asked to end it after 290 s, so a longer silence is
/// a connection that nobody serves any more.
const SILENCE: Duration = Duration::from_secs(310);

/// What happened.
#[derive(Debug)]
pub(super) enum Change<K> {
    /// These are all objects there are.
    Listed(Vec<K>),
    /// An object is new, or has changed.
    Applied(K),
    /// An object is gone; this was its last state.
    Deleted(K),
}

/// A list and then watches, again and again.
struct Feed<K> {
    api: Api<K>,
    /// Where the next watch starts; None: list first.
    resource_version: Option<String>,
    watch: Option<BoxStream<'static, Result<WatchEvent<K>>>>,
    /// How many lists and watches in a row have brought nothing.
    failures: u32,
}

/// Everything that happens to the objects of `api`, from a first list on.
pub(super) fn feed<K>(api: Api<K>) -> impl Stream<Item = Change<K>> + Send
where
    K: Clone + Debug + DeserializeOwned + kube_core::Resource + Send + 'static,
{
    let feed = Feed { api, resource_version: None, watch: None, failures: 0 };
    // A stream keeps its place when nobody polls it, so it may be one branch of a select.
    stream::unfold(feed, |mut feed| async move {
        let change = feed.next().await;
        Some((change, feed))
    })
}

// === impl Feed ===

impl<K> Feed<K>
where
    K: Clone + Debug + DeserializeOwned + kube_core::Resource + Send + 'static,
{
    async fn next(&mut self) -> Change<K> {
        loop {
            let step = match (&mut self.watch, &self.resource_version) {
                (Some(watch), _) => match timeout(SILENCE, watch.next()).await {
                    Ok(Some(Ok(event))) => self.event(event),
                    Ok(Some(Err(error))) => Err(error),
                    // The server's time limit, or silence.
                    Ok(None) | Err(_) => {
                        self.watch = None;
                        self.pause().await;
                        continue;
                    }
                },
                (None, Some(version)) => self.open(version.clone()).await.map(|()| None),
                (None, None) => self.list().await.map(|items| Some(Change::Listed(items))),
            };
            match step {
                Ok(Some(change)) => return change,
                Ok(None) => {}
                Err(error) => self.recover(&error).await,
            }
        }
    }

    fn event(&mut self, event: WatchEvent<K>) -> Result<Option<Change<K>>> {
        let (change, version) = match event {
            WatchEvent::Error(status) => return Err(Error::Api(status)),
            WatchEvent::Bookmark(bookmark) => (None, Some(bookmark.metadata.resource_version)),
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let version = object.meta().resource_version.clone();
                (Some(Change::Applied(object)), version)
            }
            WatchEvent::Deleted(object) => {
                let version = object.meta().resource_version.clone();
                (Some(Change::Deleted(object)), version)
            }
        };
        self.failures = 0;
        self.resource_version = version.or_else(|| self.resource_version.take());
        Ok(change)
    }

    async fn open(&mut self, version: String) -> Result<()> {
        let params = WatchParams::default();
        self.watch = Some(in_time(self.api.watch(&params, &version)).await?.boxed());
        Ok(())
    }

    async fn list(&mut self) -> Result<Vec<K>> {
        let mut params = ListParams::default().limit(PAGE);
        let mut items = Vec::new();
        loop {
            let page = in_time(self.api.list(&params)).await?;
            items.extend(page.items);
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                self.resource_version = page.metadata.resource_version;
                return Ok(items);
            }
        }
    }

    /// Waits, and then goes on where it was; lists again when the server, or what it said, leaves
    /// doubt about where that is.
    async fn recover(&mut self, error: &Error) {
        tracing::debug!(%error, url = self.api.resource_url(), "list or watch failed");
        self.watch = None;
        if matches!(error, Error::Api(_) | Error::SerdeError(_)) {
            self.resource_version = None;
        }
        self.pause().await;
    }

    async fn pause(&mut self) {
        sleep(backoff(self.failures)).await;
        self.failures = self.failures.saturating_add(1);
    }
}
