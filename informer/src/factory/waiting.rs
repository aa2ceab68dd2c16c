//! The waits for all informers of a factory: until they have synced, or until one fails.

use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use super::SharedInformerFactory;
use crate::shared::Unsynced;
use crate::status::InformerFailure;

/// The informers of a factory that did not sync in time.
///
/// Its text names each of them with its last failure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NotSynced {
    /// The informers that have not synced; never empty.
    pub unsynced: Vec<Unsynced>,
    /// The timeout of the wait.
    pub timeout: Duration,
}

// === impl SharedInformerFactory ===

impl SharedInformerFactory {
    /// Waits until every informer has its initial list. Returns false if an informer stops before
    /// that.
    ///
    /// There is no timeout. [`unsynced`](Self::unsynced) lists the informers that it waits for.
    ///
    /// It waits for the informers that the factory holds at the call. An informer that was never
    /// started does not sync: call [`start`](Self::start) first.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync(&self) -> bool {
        let informers = self.all();
        // Not one after the other: the end of one must not wait for another that never syncs.
        let mut waits: FuturesUnordered<_> =
            informers.iter().map(|informer| informer.wait_for_sync()).collect();
        while let Some(has_synced) = waits.next().await {
            if !has_synced {
                return false;
            }
        }
        true
    }

    /// Waits until every informer has its initial list, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// Returns an error that lists the informers that have not synced, each with its last failure.
    /// It comes before `timeout` if an informer stops.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn doc(factory: homeostat_informer::SharedInformerFactory)
    /// #     -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// factory.start();
    /// factory.wait_for_sync_within(Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync_within(&self, timeout: Duration) -> Result<(), NotSynced> {
        // After the timeout the informers themselves say which of them are missing.
        let _in_time = tokio::time::timeout(timeout, self.wait_for_sync()).await;
        let unsynced = self.unsynced();
        if unsynced.is_empty() { Ok(()) } else { Err(NotSynced { unsynced, timeout }) }
    }

    /// Returns the panic that has stopped an informer, or `None` if no task has panicked.
    pub fn failure(&self) -> Option<InformerFailure> {
        self.all().iter().find_map(|informer| informer.failure())
    }

    /// Waits until a task of an informer panics, and returns the failure. Never returns if all
    /// informers stop in order.
    ///
    /// It waits for the informers that the factory holds at the call.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    pub async fn wait_for_failure(&self) -> InformerFailure {
        let informers = self.all();
        let mut ends: FuturesUnordered<_> =
            informers.iter().map(|informer| informer.wait_for_stop()).collect();
        while let Some(end) = ends.next().await {
            if let Err(failure) = end {
                return failure;
            }
        }
        std::future::pending().await
    }

    /// Returns the informers that have not synced yet, with their last failures.
    ///
    /// # Examples
    ///
    /// A controller that says why it does not start:
    ///
    /// ```no_run
    /// # async fn doc(factory: homeostat_informer::SharedInformerFactory) {
    /// use std::time::Duration;
    ///
    /// use tokio::time::timeout;
    ///
    /// while timeout(Duration::from_secs(10), factory.wait_for_sync()).await.is_err() {
    ///     for informer in factory.unsynced() {
    ///         eprintln!("waiting for {informer}");
    ///     }
    /// }
    /// # }
    /// ```
    pub fn unsynced(&self) -> Vec<Unsynced> {
        self.all().iter().filter_map(|informer| informer.unsynced()).collect()
    }
}

// === impl NotSynced ===

impl fmt::Display for NotSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} informers are not synced within {:?}", self.unsynced.len(), self.timeout)?;
        self.unsynced.iter().try_for_each(|informer| write!(f, "; {informer}"))
    }
}

impl std::error::Error for NotSynced {}
