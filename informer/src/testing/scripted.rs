//! [`ScriptedListWatch`]: a server whose answers a test gives.

mod request;
mod watch;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Mutex, mpsc, oneshot};

pub use self::request::{PendingList, PendingWatch, ScriptedRequest};
pub use self::watch::ScriptedWatch;
use crate::list_watch::{
    ListError, ListRequest, ListWatch, Page, WatchError, WatchRequest, WatchStream,
};
use crate::object::Object;

/// A [`ListWatch`] whose requests wait until the test answers them.
///
/// A clone is another handle: one goes to the informer, the test keeps the other. With tokio's
/// paused clock a test of back-off and timeouts takes no time.
///
/// # Examples
///
/// ```
/// use homeostat_informer::SharedIndexInformer;
/// use homeostat_informer::testing::ScriptedListWatch;
/// use k8s_openapi::api::core::v1::Pod;
///
/// fn pod(name: &str, version: &str) -> Pod {
///     let mut pod = Pod::default();
///     pod.metadata.name = Some(name.into());
///     pod.metadata.resource_version = Some(version.into());
///     pod
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let server = ScriptedListWatch::<Pod>::new();
/// let pods = SharedIndexInformer::builder(server.clone()).build();
/// pods.start();
///
/// // The informer asks for the initial list as a watch (WatchList).
/// let watch = server.expect_watch().await.serve([pod("a", "1")], "5");
/// assert!(pods.wait_for_sync().await);
///
/// // The connection breaks: the informer resumes after the last version that it has seen.
/// watch.tear();
/// let watch = server.expect_watch().await;
/// assert_eq!(watch.request().resource_version.as_ref().unwrap().as_str(), "5");
/// # }
/// ```
pub struct ScriptedListWatch<K: Object> {
    sender: mpsc::Sender<ScriptedRequest<K>>,
    requests: Arc<Mutex<mpsc::Receiver<ScriptedRequest<K>>>>,
}

/// The number of requests that can be pending. An informer sends one at a time.
const OPEN: usize = 16;

/// The target in the errors that this server sends.
const TARGET: &str = "scripted objects";

// === impl ScriptedListWatch ===

impl<K: Object> ScriptedListWatch<K> {
    /// Returns a server that has received no request.
    pub fn new() -> Self {
        let (sender, requests) = mpsc::channel(OPEN);
        Self { sender, requests: Arc::new(Mutex::new(requests)) }
    }

    /// Waits for the next request that the informer has not cancelled.
    ///
    /// It waits as long as the informer sends none. A paused clock skips the back-off of the
    /// informer.
    ///
    /// # Cancel safety
    /// Cancel safe: a request is taken in the same step in which this completes.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::testing::{ScriptedListWatch, ScriptedRequest};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ScriptedListWatch::<Pod>::new();
    /// let pods = SharedIndexInformer::builder(server.clone()).watch_list(false).build();
    /// pods.start();
    /// let ScriptedRequest::List(list) = server.next_request().await else { panic!("no list") };
    /// assert_eq!(list.request().limit, Some(500));
    /// list.serve([], "5");
    /// assert!(pods.wait_for_sync().await);
    /// # }
    /// ```
    pub async fn next_request(&self) -> ScriptedRequest<K> {
        loop {
            let next = self.requests.lock().await.recv().await;
            match next {
                Some(request) if !request.is_given_up() => return request,
                Some(_) => {}
                // `self` holds a sender, so the channel stays open.
                None => std::future::pending().await,
            }
        }
    }

    /// Waits for the next request, which must be a list.
    ///
    /// # Panics
    /// Panics if the request is a watch.
    ///
    /// # Cancel safety
    /// Cancel safe, as [`next_request`](Self::next_request).
    pub async fn expect_list(&self) -> PendingList<K> {
        match self.next_request().await {
            ScriptedRequest::List(list) => list,
            ScriptedRequest::Watch(watch) => panic!("expected a list, got {watch:?}"),
        }
    }

    /// Waits for the next request, which must be a watch.
    ///
    /// # Panics
    /// Panics if the request is a list.
    ///
    /// # Cancel safety
    /// Cancel safe, as [`next_request`](Self::next_request).
    pub async fn expect_watch(&self) -> PendingWatch<K> {
        match self.next_request().await {
            ScriptedRequest::Watch(watch) => watch,
            ScriptedRequest::List(list) => panic!("expected a watch, got {list:?}"),
        }
    }
}

impl<K: Object> Default for ScriptedListWatch<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Object> Clone for ScriptedListWatch<K> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), requests: Arc::clone(&self.requests) }
    }
}

impl<K: Object> fmt::Debug for ScriptedListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedListWatch").finish_non_exhaustive()
    }
}

#[async_trait]
impl<K: Object> ListWatch<K> for ScriptedListWatch<K> {
    fn target(&self) -> Arc<str> {
        TARGET.into()
    }

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let (reply, answer) = oneshot::channel();
        let pending = PendingList { request: request.clone(), reply };
        let sent = self.sender.send(ScriptedRequest::List(pending)).await;
        sent.expect("`self` holds the receiver, so the channel is open");
        answer.await.unwrap_or_else(|_| {
            Err(ListError::Unreachable { target: TARGET.into(), source: "dropped".into() })
        })
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let (reply, answer) = oneshot::channel();
        let pending = PendingWatch { request: request.clone(), reply };
        let sent = self.sender.send(ScriptedRequest::Watch(pending)).await;
        sent.expect("`self` holds the receiver, so the channel is open");
        answer.await.unwrap_or_else(|_| {
            Err(WatchError::Unreachable { target: TARGET.into(), source: "dropped".into() })
        })
    }
}
