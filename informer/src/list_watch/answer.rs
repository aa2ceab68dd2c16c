//! The answers of a [`ListWatch`](super::ListWatch): pages and batches of decoded objects.

use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;

use super::WatchError;
use crate::object::{Object, ObjectMeta, ResourceVersion};

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
