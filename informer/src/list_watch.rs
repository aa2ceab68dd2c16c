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

mod error;
mod kube;
mod merged;
mod patience;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;

pub use self::error::{ApiError, BoxError, ListError, WatchError};
pub use self::kube::KubeListWatch;
pub use self::merged::MergedListWatch;
pub(crate) use self::patience::{Patient, later};
use crate::object::{Object, ObjectMeta, ResourceVersion};
use crate::timeouts::TimeoutConfig;

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
    /// [`TimeoutConfig`].
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

/// The batches of one watch. A batch is never empty.
pub type WatchStream<K> = BoxStream<'static, Result<Vec<WatchEvent<K>>, WatchError>>;

/// An object from the server that either fits its Rust type or does not.
///
/// client-go has no counterpart: there, an object that does not decode ends the watch.
///
/// The informer keeps an opaque object in its store and reports it as
/// [`Event::Opaque`](crate::Event::Opaque), so that one object with an unknown field value neither
/// stops the informer nor looks deleted.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use homeostat_informer::ObjectMeta;
/// use homeostat_informer::list_watch::Decoded;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let metadata = Arc::new(ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() });
/// let pod = Decoded::<Pod>::Opaque { metadata, error: "does not fit".into() };
/// assert_eq!(pod.metadata().name.as_deref(), Some("web"));
/// assert_eq!(format!("{pod:?}"), r#"Opaque("does not fit")"#);
/// ```
pub enum Decoded<K> {
    /// The decoded object.
    Fits(Arc<K>),
    /// The object exists, but does not fit `K`. Only its metadata is known.
    Opaque {
        /// The members of its metadata that could be decoded. The name is always among them.
        metadata: Arc<ObjectMeta>,
        /// The decoding error. It never contains a part of the object's content, so it is safe to
        /// log.
        error: Arc<str>,
    },
}

/// The parameters of a list request.
///
/// The fields mirror the query parameters of the Kubernetes API. Selectors are not among them: they
/// belong to the [`ListWatch`], because all requests of one collection share them.
///
/// # Examples
///
/// ```
/// use homeostat_informer::list_watch::ListRequest;
///
/// let mut first_page = ListRequest::new();
/// first_page.limit = Some(500);
/// assert!(first_page.resource_version.is_none(), "asks for the newest state");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListRequest {
    /// The maximum number of objects in the page; `None` for all of them.
    pub limit: Option<u32>,
    /// The `continue` token of the previous page. It excludes `resource_version`.
    pub continue_token: Option<String>,
    /// The answer must not be older than this version (`resourceVersionMatch=NotOlderThan`). `None`
    /// requests the newest state, which is a consistent read.
    pub resource_version: Option<ResourceVersion>,
}

/// One page of a list.
///
/// # Examples
///
/// The first of two pages:
///
/// ```
/// use homeostat_informer::list_watch::Page;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let mut page = Page::<Pod>::new(vec![], "7");
/// page.continue_token = Some("next".into());
/// assert!(page.continue_token.is_some(), "the informer requests another page");
/// ```
#[non_exhaustive]
pub struct Page<K> {
    /// The objects of the page, in the server's order.
    pub items: Vec<Decoded<K>>,
    /// The version of the list.
    ///
    /// An informer rejects a list whose version is empty or `0`: no watch can continue from it.
    pub resource_version: ResourceVersion,
    /// The token for the next page; `None` on the last page.
    ///
    /// A token that occurs twice in one list fails the list, so that a list always ends.
    pub continue_token: Option<String>,
    /// The number of items that fit no type and have no name, so that no key can refer to them.
    ///
    /// An informer skips these, and nameless objects of a watch, and counts them in
    /// `informer_skipped_nameless_objects_total`.
    pub skipped_nameless: usize,
    /// True for the last page of a collection that another one follows. It may be empty.
    pub(crate) is_end_of_part: bool,
}

/// The parameters of a watch request. Bookmarks are always requested.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_informer::list_watch::WatchRequest;
///
/// let resume = WatchRequest::after("7".into(), Duration::from_secs(300));
/// assert!(!resume.initial_events);
/// let start = WatchRequest::with_initial_events(None, Duration::from_secs(300));
/// assert!(start.initial_events && start.resource_version.is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchRequest {
    /// The version after which events are sent. With `initial_events`, the initial list must not be
    /// older than this version, and `None` requests the newest.
    pub resource_version: Option<ResourceVersion>,
    /// Requests the initial list as [`WatchEvent::Applied`] events, followed by a bookmark that
    /// completes it (`sendInitialEvents`, client-go's `WatchList`).
    pub initial_events: bool,
    /// The time after which the server should close the watch. It is sent in whole seconds, at
    /// least 1.
    pub timeout: Duration,
    /// The longest silence of a server that sends bookmarks; see
    /// [`TimeoutConfig::missed_bookmarks`](crate::TimeoutConfig::missed_bookmarks). The informer
    /// applies it to the watch, and a list-watch that joins several watches to each of them.
    pub silence: Duration,
}

/// One event of a watch.
///
/// `ADDED` and `MODIFIED` are one variant, because the difference is relative to the server's view:
/// after a reconnect an object that the informer has may arrive as `ADDED`. An `ERROR` event is not
/// an event here; it ends the stream with [`WatchError::Ended`].
///
/// # Examples
///
/// ```
/// use homeostat_informer::list_watch::WatchEvent;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let resource_version = "5".into();
/// let end = WatchEvent::<Pod>::Bookmark { resource_version, initial_events_end: true };
/// assert_eq!(format!("{end:?}"), r#"Bookmark("5")"#);
/// ```
pub enum WatchEvent<K> {
    /// The object was created or changed (`ADDED` or `MODIFIED`).
    Applied(Decoded<K>),
    /// The object was deleted; this is its final state.
    Deleted(Decoded<K>),
    /// The stream contains every event up to this version.
    Bookmark {
        /// The version that the stream has reached.
        resource_version: ResourceVersion,
        /// `true` if this bookmark completes the initial list (annotation
        /// `k8s.io/initial-events-end`).
        initial_events_end: bool,
    },
}

// === impl Decoded ===

impl<K: Object> Decoded<K> {
    /// Returns the object's metadata, decoded or opaque.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Fits(object) => object.metadata(),
            Self::Opaque { metadata, .. } => metadata,
        }
    }
}

impl<K> Clone for Decoded<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Fits(object) => Self::Fits(Arc::clone(object)),
            Self::Opaque { metadata, error } => {
                Self::Opaque { metadata: Arc::clone(metadata), error: Arc::clone(error) }
            }
        }
    }
}

impl<K> From<Arc<K>> for Decoded<K> {
    fn from(object: Arc<K>) -> Self {
        Self::Fits(object)
    }
}

impl<K> fmt::Debug for Decoded<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits(_) => f.write_str("Fits"),
            Self::Opaque { error, .. } => f.debug_tuple("Opaque").field(error).finish(),
        }
    }
}

// === impl ListRequest ===

impl ListRequest {
    /// Requests the newest state in one page.
    pub fn new() -> Self {
        Self::default()
    }
}

// === impl Page ===

impl<K> Page<K> {
    /// Returns a complete list in one page, without a continue token.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::list_watch::Page;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let page = Page::<Pod>::new(vec![], "7");
    /// assert_eq!(page.resource_version.as_str(), "7");
    /// assert!(page.continue_token.is_none());
    /// ```
    pub fn new(items: Vec<Decoded<K>>, resource_version: impl Into<ResourceVersion>) -> Self {
        let resource_version = resource_version.into();
        Self {
            items,
            resource_version,
            continue_token: None,
            skipped_nameless: 0,
            is_end_of_part: false,
        }
    }
}

impl<K> fmt::Debug for Page<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("items", &self.items.len())
            .field("resource_version", &self.resource_version)
            .finish_non_exhaustive()
    }
}

// === impl WatchRequest ===

impl WatchRequest {
    /// Requests the events after `resource_version`, for `timeout`.
    pub fn after(resource_version: ResourceVersion, timeout: Duration) -> Self {
        Self { initial_events: false, ..Self::with_initial_events(Some(resource_version), timeout) }
    }

    /// Requests the initial list, not older than `resource_version`, followed by its changes, for
    /// `timeout`.
    pub fn with_initial_events(
        resource_version: Option<ResourceVersion>,
        timeout: Duration,
    ) -> Self {
        let silence = TimeoutConfig::default().missed_bookmarks;
        Self { resource_version, initial_events: true, timeout, silence }
    }
}

// === impl WatchEvent ===

impl<K> fmt::Debug for WatchEvent<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(object) => f.debug_tuple("Applied").field(object).finish(),
            Self::Deleted(object) => f.debug_tuple("Deleted").field(object).finish(),
            Self::Bookmark { resource_version, .. } => {
                f.debug_tuple("Bookmark").field(resource_version).finish()
            }
        }
    }
}
