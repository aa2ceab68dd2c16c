//! The requests of a [`ListWatch`](super::ListWatch).

use std::time::Duration;

use crate::object::ResourceVersion;
use crate::timeouts::TimeoutConfig;

/// The parameters of a list request.
///
/// The fields mirror the query parameters of the Kubernetes API. Selectors are not among them: they
/// belong to the [`ListWatch`](super::ListWatch), because all requests of one collection share
/// them.
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
    /// Requests the initial list as [`WatchEvent::Applied`](super::WatchEvent::Applied) events,
    /// followed by a bookmark that completes it (`sendInitialEvents`, client-go's `WatchList`).
    pub initial_events: bool,
    /// The time after which the server should close the watch. It is sent in whole seconds, at
    /// least 1.
    pub timeout: Duration,
    /// The longest silence of a server that sends bookmarks; see
    /// [`TimeoutConfig::missed_bookmarks`](crate::TimeoutConfig::missed_bookmarks). The informer
    /// applies it to the watch, and a list-watch that joins several watches to each of them.
    pub silence: Duration,
}

// === impl ListRequest ===

impl ListRequest {
    /// Requests the newest state in one page.
    pub fn new() -> Self {
        Self::default()
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
