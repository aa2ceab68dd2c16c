//! Waits for a state of the cache.
//!
//! Each wait looks at the state, then waits for a notification, and looks again. It subscribes
//! before the first look, so no change is missed. The informer does not know the waiters: dropping
//! a wait costs nothing.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time;

use super::SharedIndexInformer;
use crate::lister::Lister;
use crate::object::{Object, ResourceVersion};
use crate::status::{InformerFailure, ReflectorError};
use crate::store::Store;

/// The reason why [`SharedIndexInformer::wait_until`] or
/// [`wait_for_sync_within`](SharedIndexInformer::wait_for_sync_within) failed.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_informer::testing::ScriptedListWatch;
/// use homeostat_informer::{SharedIndexInformer, WaitError};
/// use k8s_openapi::api::core::v1::Pod;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).build();
/// let timeout = Duration::from_millis(1);
/// let error = pods.wait_until(|pods| pods.get("a"), timeout).await.unwrap_err();
/// assert!(matches!(error, WaitError::NotSynced { .. }), "it was not started");
/// # }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The informer was synced, and the condition was not met in time.
    #[error("{informer}: not seen within {timeout:?}")]
    NotSeen {
        /// The informer's name.
        informer: Arc<str>,
        /// The timeout that has passed.
        timeout: Duration,
    },
    /// The informer did not sync in time.
    #[error("{unsynced}: not synced within {timeout:?}")]
    NotSynced {
        /// The informer and its last failure.
        unsynced: Unsynced,
        /// The timeout that has passed.
        timeout: Duration,
    },
    /// The informer was stopped.
    #[error("{informer}: stopped")]
    Stopped {
        /// The informer's name.
        informer: Arc<str>,
    },
    /// A task of the informer panicked, and the informer has stopped.
    #[error(transparent)]
    Failed(#[from] InformerFailure),
}

/// An informer that has not synced yet, and its last failure.
///
/// Its text is one line: the name, and the last failure or `waiting for the server`. An informer
/// that was not started has no failure.
///
/// # Examples
///
/// ```
/// use homeostat_informer::SharedIndexInformer;
/// use homeostat_informer::testing::ScriptedListWatch;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let pods = SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).name("pods").build();
/// assert_eq!(pods.unsynced().unwrap().to_string(), "pods: waiting for the server");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsynced {
    /// The informer's name.
    pub name: Arc<str>,
    /// The last failure, if there was one.
    pub error: Option<Arc<ReflectorError>>,
}

// === impl SharedIndexInformer ===

impl<K: Object> SharedIndexInformer<K> {
    /// Waits for the initial list (client-go's `WaitForCacheSync`). Returns false if the informer
    /// stops before that.
    ///
    /// There is no timeout: it waits while the server refuses or is unreachable.
    /// [`unsynced`](Self::unsynced) gives the reason, and
    /// [`wait_for_sync_within`](Self::wait_for_sync_within) takes a timeout.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync(&self) -> bool {
        let mut synced = self.shared.synced.subscribe();
        tokio::select! {
            biased;
            result = synced.wait_for(|synced| *synced) => result.is_ok(),
            () = self.shared.stop.cancelled() => self.has_synced(),
        }
    }

    /// Waits for the initial list, at most for `timeout`.
    ///
    /// # Errors
    ///
    /// Returns an error after `timeout`, which names the informer and its last failure, or if the
    /// informer is stopped or fails before it has synced.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ScriptedListWatch::<Pod>::new();
    /// let pods = SharedIndexInformer::builder(server).name("pods").build();
    /// pods.start();
    /// let error = pods.wait_for_sync_within(Duration::from_millis(1)).await.unwrap_err();
    /// assert_eq!(error.to_string(), "pods: waiting for the server: not synced within 1ms");
    /// # }
    /// ```
    #[doc(alias = "WaitForCacheSync")]
    pub async fn wait_for_sync_within(&self, timeout: Duration) -> Result<(), WaitError> {
        match time::timeout(timeout, self.wait_for_sync()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.stopped()),
            Err(_) => match self.unsynced() {
                Some(unsynced) => Err(WaitError::NotSynced { unsynced, timeout }),
                None => Ok(()),
            },
        }
    }

    /// Returns true once the initial list is in the cache.
    ///
    /// It stays true afterwards, also while the informer relists or has lost its server.
    #[doc(alias = "HasSynced")]
    pub fn has_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Returns the reason why the informer has not synced, or `None` if it has.
    pub fn unsynced(&self) -> Option<Unsynced> {
        let error = self.last_error();
        (!self.has_synced()).then(|| Unsynced { name: Arc::clone(self.name()), error })
    }

    /// Waits until the cache has reached `version` through a list, an event or a bookmark. Returns
    /// false if the informer stops before that.
    ///
    /// Versions that are not decimal numbers have no order: then the wait ends as soon as the cache
    /// has any version.
    ///
    /// Use it after a write, before a decision that must see that write, with a timeout: an
    /// informer that has lost its server does not reach the version. The wait is for the cache
    /// alone: handlers may receive the events of that version after it.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::SharedIndexInformer;
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = ScriptedListWatch::<Pod>::new();
    /// let pods = SharedIndexInformer::builder(server.clone()).build();
    /// pods.start();
    /// let watch = server.expect_watch().await.serve([], "5");
    /// watch.bookmark("9");
    /// assert!(pods.wait_for_version(&"8".into()).await, "9 is later");
    /// # }
    /// ```
    pub async fn wait_for_version(&self, version: &ResourceVersion) -> bool {
        let reached = |store: &Store<K>| {
            let own = store.resource_version()?;
            own.compare(version).is_none_or(Ordering::is_ge).then_some(())
        };
        self.until_store(reached).await.is_some()
    }

    /// Waits until the informer has synced and `condition` returns a value.
    ///
    /// The condition is called once the informer has synced, and again after each change. A state
    /// that is replaced before the condition is called is not seen; a handler sees it. No lock is
    /// held while the condition runs.
    ///
    /// # Errors
    ///
    /// Returns an error after `timeout`, or if the informer is stopped or fails before that.
    ///
    /// # Panics
    ///
    /// Panics if `condition` panics.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use homeostat_informer::SharedIndexInformer;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use std::time::Duration;
    /// # type Result = std::result::Result<(), Box<dyn std::error::Error>>;
    /// # async fn doc(pods: SharedIndexInformer<Pod>) -> Result {
    /// let timeout = Duration::from_secs(30);
    /// let web = pods.wait_until(|pods| pods.get(("shop", "web")), timeout).await?;
    /// let _gone = pods.wait_until(|pods| pods.is_empty().then_some(()), timeout).await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait_until<T>(
        &self,
        mut condition: impl FnMut(&Lister<K>) -> Option<T>,
        timeout: Duration,
    ) -> Result<T, WaitError> {
        let lister = self.lister();
        let look = |_: &Store<K>| self.has_synced().then(|| condition(&lister)).flatten();
        let informer = || Arc::clone(self.name());
        match time::timeout(timeout, self.until_store(look)).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(self.stopped()),
            Err(_) => Err(match self.unsynced() {
                Some(unsynced) => WaitError::NotSynced { unsynced, timeout },
                None => WaitError::NotSeen { informer: informer(), timeout },
            }),
        }
    }

    /// Waits until the informer is stopped or has failed.
    ///
    /// Its tasks may still be ending, and a handler may still run: [`stop`](Self::stop) waits for
    /// them.
    ///
    /// # Errors
    ///
    /// Returns the failure if a task of the informer panicked.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    pub async fn wait_for_stop(&self) -> Result<(), InformerFailure> {
        self.shared.stop.cancelled().await;
        self.failure().map_or(Ok(()), Err)
    }

    /// Returns the panic that ended the informer, or `None` if no task has panicked.
    pub fn failure(&self) -> Option<InformerFailure> {
        self.shared.failure.get()
    }

    /// Returns the error of a wait that ended because the informer has stopped.
    fn stopped(&self) -> WaitError {
        match self.failure() {
            Some(failure) => failure.into(),
            None => WaitError::Stopped { informer: Arc::clone(self.name()) },
        }
    }

    /// Calls `look` now and after each change, until it returns a value. Returns `None` if the
    /// informer has stopped and `look` still finds nothing.
    async fn until_store<T>(&self, mut look: impl FnMut(&Store<K>) -> Option<T>) -> Option<T> {
        let store = &*self.shared.store;
        let mut changes = store.changes();
        let mut synced = self.shared.synced.subscribe();
        loop {
            // Before the look: a change during the look must not be missed.
            changes.borrow_and_update();
            synced.borrow_and_update();
            if let Some(found) = look(store) {
                return Some(found);
            }
            tokio::select! {
                biased;
                () = self.shared.stop.cancelled() => return look(store),
                // Both senders are ours, so they live.
                _alive = changes.changed() => {}
                _alive = synced.changed() => {}
            }
        }
    }
}

// === impl Unsynced ===

impl fmt::Display for Unsynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "{}: {error}", self.name),
            None => write!(f, "{}: waiting for the server", self.name),
        }
    }
}
