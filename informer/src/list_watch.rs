//! The one seam to a server: [`ListWatch`], what it is asked, and what it answers.
//!
//! Everything above this seam deals in whole batches of objects that are decoded already; bytes, framing and decoding
//! are private to the implementation. [`KubeListWatch`] asks an API server;
//! [`ScriptedListWatch`](crate::testing::ScriptedListWatch) lets a test be the server.

mod error;
mod kube;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::stream::BoxStream;

pub use self::{
    error::{BoxError, ListError, Refusal, WatchError},
    kube::KubeListWatch,
};
use crate::object::{Object, ObjectMeta, ResourceVersion};

/// Lists and watches one kind, in one place.
#[async_trait]
pub trait ListWatch<K: Object>: Send + Sync + 'static {
    /// What is listed and watched, for people: `pods in namespace shop`.
    fn target(&self) -> Arc<str>;

    /// One page of a list.
    ///
    /// An object that does not fit `K` is part of the page, as [`Decoded::Opaque`]; it never makes the list fail.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses, or answers with something that is no list.
    ///
    /// # Cancel safety
    /// Dropping the future gives the request up; nothing else is lost.
    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError>;

    /// Opens a watch: a stream of batches in the order of the server, which ends with the stream's end (the server
    /// closed it) or with its first error.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses. An error inside the stream comes after everything that was good
    /// before it, and nothing comes after it.
    ///
    /// # Cancel safety
    /// Dropping the future or the stream closes the watch. No event is lost between two polls of the stream.
    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError>;
}

/// The batches of one watch. A batch is never empty.
pub type WatchStream<K> = BoxStream<'static, Result<Vec<WatchEvent<K>>, WatchError>>;

/// An object as it came from the server: it fits its Rust type, or it does not.
pub enum Decoded<K> {
    /// The object.
    Fits(Arc<K>),
    /// The object exists, and this is all that is known of it.
    Opaque {
        /// Its metadata, as far as that could be read; the name always can.
        metadata: Arc<ObjectMeta>,
        /// Why it does not fit. Never a part of the object's content.
        error: Arc<str>,
    },
}

/// What a page of a list is asked with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListRequest {
    /// At most this many objects; `None` for all.
    pub limit: Option<u32>,
    /// Where the last page ended. Excludes `resource_version`.
    pub continue_token: Option<String>,
    /// The answer may not be older than this; `None` asks for the newest state (a consistent read).
    pub resource_version: Option<ResourceVersion>,
}

/// A page of a list.
#[non_exhaustive]
pub struct Page<K> {
    /// The objects.
    pub items: Vec<Decoded<K>>,
    /// The state of the server that the list shows.
    pub resource_version: ResourceVersion,
    /// Where to go on, if there is more.
    pub continue_token: Option<String>,
    /// How many items did not fit and had not even a name, so that nothing can refer to them. An informer counts them, and
    /// what else comes without a name: `informer_left_out_objects_total`.
    pub left_out: usize,
}

/// What a watch is asked with. Bookmarks are always asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchRequest {
    /// Send what happened after this. With `initial_events`, the initial state may not be older than this; `None`
    /// then asks for the newest.
    pub resource_version: Option<ResourceVersion>,
    /// Send the whole state first, as [`WatchEvent::Applied`], and then a bookmark that says that this was all.
    pub initial_events: bool,
    /// The server should close the watch after this.
    pub timeout: Duration,
}

/// What a watch tells.
pub enum WatchEvent<K> {
    /// The object was made or changed.
    Applied(Decoded<K>),
    /// The object is gone; this was its final state.
    Deleted(Decoded<K>),
    /// Nothing before this version is missing from the stream.
    Bookmark {
        /// The version.
        resource_version: ResourceVersion,
        /// Whether this ends the initial state.
        initial_events_end: bool,
    },
}

// === impl Decoded ===

impl<K: Object> Decoded<K> {
    /// The object's metadata.
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
    /// The newest state, in one page.
    pub fn new() -> Self {
        Self::default()
    }
}

// === impl Page ===

impl<K> Page<K> {
    /// All there is, in one page.
    pub fn new(items: Vec<Decoded<K>>, resource_version: impl Into<ResourceVersion>) -> Self {
        let resource_version = resource_version.into();
        Self { items, resource_version, continue_token: None, left_out: 0 }
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
    /// What happened after `resource_version`, for `timeout`.
    pub fn after(resource_version: ResourceVersion, timeout: Duration) -> Self {
        Self { resource_version: Some(resource_version), initial_events: false, timeout }
    }

    /// The whole state, not older than `resource_version`, and then what happens, for `timeout`.
    pub fn with_initial_events(
        resource_version: Option<ResourceVersion>,
        timeout: Duration,
    ) -> Self {
        Self { resource_version, initial_events: true, timeout }
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
