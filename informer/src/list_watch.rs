//! The boundary between an informer and an API server: [`ListWatch`], its requests and its answers.
//!
//! An implementation frames and decodes bytes. Everything above this trait handles batches of
//! decoded objects. [`KubeListWatch`] sends requests to a Kubernetes API server;
//! [`ScriptedListWatch`](crate::testing::ScriptedListWatch) lets a test answer them.
//!
//! # Examples
//!
//! A [`ListWatch`] over a fixed set of objects, for example for a dry run:
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use futures::StreamExt;
//! use homeostat_informer::SharedIndexInformer;
//! use homeostat_informer::list_watch::{
//!     Decoded, ListError, ListRequest, ListWatch, Page, WatchError, WatchRequest, WatchStream,
//! };
//! use k8s_openapi::api::core::v1::Pod;
//!
//! struct Fixed(Vec<Arc<Pod>>);
//!
//! #[async_trait]
//! impl ListWatch<Pod> for Fixed {
//!     fn target(&self) -> Arc<str> {
//!         "fixed pods".into()
//!     }
//!
//!     async fn list(&self, _: &ListRequest) -> Result<Page<Pod>, ListError> {
//!         let items = self.0.iter().map(|pod| Decoded::Fits(Arc::clone(pod))).collect();
//!         Ok(Page::new(items, "1"))
//!     }
//!
//!     async fn watch(&self, _: &WatchRequest) -> Result<WatchStream<Pod>, WatchError> {
//!         Ok(futures::stream::pending().boxed()) // no changes
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let mut pod = Pod::default();
//! pod.metadata.name = Some("web".into());
//! let pods = SharedIndexInformer::builder(Fixed(vec![Arc::new(pod)])).watch_list(false).build();
//! pods.start();
//! assert!(pods.wait_for_sync().await);
//! assert_eq!(pods.lister().len(), 1);
//! # }
//! ```
//!
//! # Upstream
//!
//! The seam is client-go's `ListerWatcher` with typed results: a page, a batch of events, and
//! errors whose cause a caller can branch on. There a watch sends single untyped events; here a
//! batch is what arrived together, so that the layers above take their locks per batch.

mod answer;
mod error;
mod kube;
mod merged;
mod patience;
mod request;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::answer::{Decoded, Page, WatchEvent, WatchStream};
pub use self::error::{ApiError, BoxError, ListError, WatchError};
pub use self::kube::KubeListWatch;
pub use self::merged::MergedListWatch;
pub(crate) use self::patience::{Patient, later};
pub use self::request::{ListRequest, WatchRequest};
use crate::object::Object;

/// Lists and watches the objects of one kind, in one namespace or in all.
///
/// The reflector calls [`list`](Self::list) and [`watch`](Self::watch) one at a time and decides
/// itself when to retry. An implementation must not retry: it would hide failures from the back-off
/// and from the error handler.
///
/// Use [`KubeListWatch`] for an API server, and
/// [`ScriptedListWatch`](crate::testing::ScriptedListWatch) in tests. Implement the trait for
/// another source of objects, or to wrap one of these: to count requests or to inject faults.
/// [`MergedListWatch`] joins several collections.
///
/// A panic of an implementation does not end the informer: it counts as a failed request.
#[async_trait]
#[doc(alias = "ListerWatcher")]
#[doc(alias = "ListerWatcherWithContext")]
pub trait ListWatch<K: Object>: Send + Sync + 'static {
    /// Names the resource in log lines and errors: `pods in namespace shop`.
    ///
    /// It is called for each error, so it should return a clone of a stored `Arc`.
    fn target(&self) -> Arc<str>;

    /// Returns true if the events of a watch arrive in the order of their versions: the version of
    /// an event then says that every earlier event has arrived. The default is true, as for an API
    /// server.
    ///
    /// With false only bookmarks carry versions: the informer resumes from the last bookmark, and
    /// its cache counts as having reached that version.
    fn is_ordered(&self) -> bool {
        true
    }

    /// Returns one page of a list.
    ///
    /// An object that does not fit `K` is part of the page as [`Decoded::Opaque`]; it never makes
    /// the list fail.
    ///
    /// The informer reads the next page by another call with the page's continue token. It gives up
    /// a page after 75 s, and a list without a limit after 15 minutes; see
    /// [`TimeoutConfig`](crate::TimeoutConfig).
    ///
    /// # Errors
    /// Returns a [`ListError`] if the server cannot be reached, refuses the request, or answers
    /// with something that is not a list.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the request. Nothing else is lost.
    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError>;

    /// Opens a watch: a stream of batches in the server's order.
    ///
    /// The stream ends when the server closes the watch, or with its first error.
    ///
    /// The informer closes a watch that is open 5 s longer than [`WatchRequest::timeout`], and
    /// gives up an attempt to open one after 75 s. An implementation needs no timeouts of its own.
    ///
    /// # Errors
    /// Returns a [`WatchError`] if the server cannot be reached or refuses the request. An error
    /// inside the stream comes after every valid event that preceded it, and is the last item.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream closes the watch. No event is lost between two polls of
    /// the stream.
    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError>;
}
