//! A list and watch of one resource, as a stream of changes that does not end.

use std::fmt::Debug;

use futures::stream::{self, Stream};
use kube_client::{Api, Error, Result};
use kube_core::params::ListParams;
use kube_core::{ObjectList, Request, WatchEvent};
use serde::de::DeserializeOwned;
use tokio::time::{Duration, sleep, timeout};

use super::watch::{Part, Watch};
use super::with_timeout;
use super::work_queue::backoff;

/// Objects per page of a list, as in client-go.
const PAGE: u32 = 500;

/// Time without an event after which a watch is reopened. The server ends a watch after 290 s, so
/// longer silence means a dead connection.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(310);

/// A change of the objects. One object is in a box: it is large, and moves a few times.
#[derive(Debug)]
pub(super) enum Change<K> {
    /// The complete list of objects.
    Listed(Vec<K>),
    /// An object was added or modified.
    Applied(Box<K>),
    /// An object was deleted; its last state.
    Deleted(Box<K>),
}

/// The state of the list and watch.
struct Feed<K> {
    api: Api<K>,
    part: Part,
    /// The version at which the next watch starts; `None` to list first.
    resource_version: Option<String>,
    watch: Option<Watch>,
    /// Number of consecutive lists and watches without an event.
    failures: u32,
}

/// Returns the changes of a part of the objects of `api`, beginning with a list.
pub(super) fn feed<K>(api: Api<K>, part: Part) -> impl Stream<Item = Change<K>> + Send
where
    K: Clone + Debug + DeserializeOwned + kube_core::Resource + Send + 'static,
{
    let feed = Feed { api, part, resource_version: None, watch: None, failures: 0 };
    // The stream keeps its state while it is not polled, so a `select!` can poll it.
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
                (Some(watch), _) => match timeout(SILENCE_TIMEOUT, watch.next()).await {
                    Ok(Ok(Some(event))) => self.event(event),
                    Ok(Err(error)) => Err(error),
                    // The server's watch timeout, or silence.
                    Ok(Ok(None)) | Err(_) => {
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

    fn event(&mut self, event: WatchEvent<Box<K>>) -> Result<Option<Change<K>>> {
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
        self.watch = Some(with_timeout(Watch::open(&self.api, self.part, &version)).await?);
        Ok(())
    }

    async fn list(&mut self) -> Result<Vec<K>> {
        let mut params = ListParams::default().limit(PAGE);
        let mut items = Vec::new();
        loop {
            let page = with_timeout(page(&self.api, self.part, &params)).await?;
            items.extend(page.items);
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                self.resource_version = page.metadata.resource_version;
                return Ok(items);
            }
        }
    }

    /// Waits and resumes the watch. Relists after an API error or an unreadable event.
    async fn recover(&mut self, error: &Error) {
        tracing::debug!(%error, url = self.api.resource_url(), "list or watch failed, will retry");
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

/// Returns a page of the list of a part of the objects.
async fn page<K>(api: &Api<K>, part: Part, params: &ListParams) -> Result<ObjectList<K>>
where
    K: Clone + Debug + DeserializeOwned + kube_core::Resource,
{
    let request = Request::new(api.resource_url());
    let request = match part {
        Part::Whole => request.list(params),
        Part::Metadata => request.list_metadata(params),
    };
    let mut request = request.map_err(Error::BuildRequest)?;
    request.extensions_mut().insert("list");
    api.clone().into_client().request(request).await
}
