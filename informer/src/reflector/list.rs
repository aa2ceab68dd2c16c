//! The lists of a [`Reflector`]: pages, and the probe after a silent watch.
//!
//! A page is one request with its own timeout. The list as a whole has no time limit: a collection
//! of any size is read as long as each page arrives. Empty pages, repeated tokens and repeated
//! objects end a list that would never end.

use std::time::Duration;

use tokio::time;
use tokio::time::Instant;

use super::gather::{List, Pages};
use super::{Reflector, TOO_OLD, nameless};
use crate::list_watch::{ListError, ListRequest, Page};
use crate::object::Object;

/// The reason why a list failed.
///
/// `TooOld` is apart, because the server answered correctly and only the next request must differ.
enum ListFailure {
    /// The list is older than the requested version.
    TooOld,
    Failed {
        error: ListError,
        /// True if at least one page was received.
        continued: bool,
    },
}

// === impl Reflector ===

impl<K: Object> Reflector<K> {
    /// Requests a full state by a list, and returns the wait before the next request.
    ///
    /// A list that was read from several versions is marked as inconsistent until a later event
    /// arrives.
    pub(super) async fn list(&mut self, request: ListRequest) -> Duration {
        let sent = Instant::now();
        match self.pages(request).await {
            Ok(list) => {
                self.gathered(list.objects, list.version);
                if !list.is_consistent {
                    self.state.gathered_inconsistently();
                }
                Duration::ZERO
            }
            Err(ListFailure::TooOld) => {
                self.failed(self.corrupt_list(TOO_OLD));
                self.state.full_state_too_old()
            }
            Err(ListFailure::Failed { error, continued }) => {
                let pause = self.state.list_failed(&error, continued);
                let waited = error.time_without_answer(sent);
                self.failed(error);
                pause.saturating_sub(waited)
            }
        }
    }

    /// Reads all pages of a list. Unchanged objects are taken from the cache, unless the server has
    /// another history, in which the same version may be a different state.
    ///
    /// If a continue token expires and the server offers another one, the list continues with later
    /// versions of the remaining objects. The watch from the version of the first page delivers the
    /// changes in between.
    ///
    /// Only the first page names a version; the continue token contains it for the others.
    ///
    /// # Errors
    ///
    /// The error of the page that failed, or `TooOld` if the server returned an older state than
    /// the request allows.
    async fn pages(&self, mut request: ListRequest) -> Result<List<K>, ListFailure> {
        let not_older = request.resource_version.is_some();
        let mut pages = Pages::new();
        let mut continued = false;
        loop {
            let failed = |error| ListFailure::Failed { error, continued };
            let page = self.page(&request).await;
            if let Some(token) = page.as_ref().err().and_then(|error| pages.resume(error)) {
                tracing::debug!(
                    informer = &**self.health.name(),
                    "list continues with a new token"
                );
                request.continue_token = Some(token);
                continue;
            }
            let page = page.map_err(failed)?;
            let back = self.state.is_back(&page.resource_version);
            if back && not_older {
                return Err(ListFailure::TooOld);
            }
            let next = pages.take(page, (!back).then_some(&*self.store));
            let Some(token) = next.map_err(|what| failed(self.corrupt_list(what)))? else {
                return Ok(pages.finish());
            };
            request.continue_token = Some(token);
            request.resource_version = None;
            continued = true;
        }
    }

    /// Requests one page, without its nameless objects, within the timeout for its form.
    async fn page(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let timeouts = self.state.timeouts();
        let timeout = if request.limit.is_some() { timeouts.answer } else { timeouts.unpaged_list };
        let timed_out = |_| ListError::TimedOut { target: self.list_watch.target(), timeout };
        let page =
            time::timeout(timeout, self.list_watch.list(request)).await.map_err(timed_out)?;
        page.map(|page| nameless::without(page, &self.health))
    }

    /// Returns the error for a list that is invalid although it was decoded.
    fn corrupt_list(&self, what: &str) -> ListError {
        ListError::Corrupt { target: self.list_watch.target(), error: what.to_owned() }
    }

    /// Requests the server's version after a silent watch, and returns the wait before the next
    /// request.
    ///
    /// The list has one object at most, and only its version counts: it is the version of the
    /// server.
    pub(super) async fn probe(&mut self, request: &ListRequest) -> Duration {
        let sent = Instant::now();
        match self.page(request).await {
            Ok(page) => {
                self.health.succeeded();
                self.state.probed(&page.resource_version);
                Duration::ZERO
            }
            Err(error) => {
                let pause = self.state.probe_failed(&error);
                let waited = error.time_without_answer(sent);
                self.failed(error);
                pause.saturating_sub(waited)
            }
        }
    }
}
