//! [`TimeoutConfig`]: the limits of the requests of an informer.

use std::time::Duration;

/// The limits of the requests of an informer. The defaults are client-go's where it has the same
/// limit.
///
/// Change them for a server that is much slower than usual, for example behind a narrow link, with
/// [`InformerBuilder::timeouts`](crate::InformerBuilder::timeouts). A request that exceeds a limit
/// fails, and the informer sends another one after its back-off.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_informer::TimeoutConfig;
///
/// let mut timeouts = TimeoutConfig::default();
/// assert_eq!(timeouts.watch, Duration::from_secs(300));
/// timeouts.initial_events = Duration::from_secs(600);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeoutConfig {
    /// The shortest `timeoutSeconds` of a watch; each watch asks for a random time between once and
    /// twice this, so that the watches of many clients do not end together. 5 minutes by default.
    #[doc(alias = "MinWatchTimeout")]
    pub watch: Duration,
    /// The limit for a page of a list, and for opening a watch. 75 s by default: an API server ends
    /// a request after one minute.
    pub answer: Duration,
    /// The limit for a list without pages. 15 minutes by default, because it may be gigabytes.
    pub unpaged_list: Duration,
    /// The longest gap between the initial events of a watch. 30 s by default: a server that does
    /// not support watch-list may never complete the initial list.
    pub initial_silence: Duration,
    /// The limit for the complete initial list by watch-list. 2 minutes by default. After it the
    /// informer lists.
    pub initial_events: Duration,
    /// A watch that has received a bookmark ends if nothing arrives for this time. 3 minutes by
    /// default: an API server sends a bookmark each minute, so three are missing.
    pub missed_bookmarks: Duration,
}

// === impl TimeoutConfig ===

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self {
            watch: Duration::from_secs(300),
            answer: Duration::from_secs(75),
            unpaged_list: Duration::from_secs(900),
            initial_silence: Duration::from_secs(30),
            initial_events: Duration::from_secs(120),
            missed_bookmarks: Duration::from_secs(180),
        }
    }
}
