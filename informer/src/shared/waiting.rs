//! Waiting for what the cache shows.

use std::{cmp::Ordering, fmt, sync::Arc, time::Duration};

use tokio::time::timeout;

use super::SharedIndexInformer;
use crate::{
    lister::Lister,
    object::{Object, ResourceVersion},
    reflector::ReflectorError,
    store::Store,
};

/// Why [`SharedIndexInformer::until`] has nothing to return.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum UntilError {
    /// The cache was whole, and did not show it in time.
    #[error("{informer}: not seen within {deadline:?}")]
    NotSeen {
        /// The informer's name.
        informer: Arc<str>,
        /// How long we waited.
        deadline: Duration,
    },
    /// The cache was not whole in time.
    #[error("{unsynced}: not synced within {deadline:?}")]
    NotSynced {
        /// The informer, and what keeps it.
        unsynced: Unsynced,
        /// How long we waited.
        deadline: Duration,
    },
    /// The informer was stopped before.
    #[error("{informer}: stopped")]
    Stopped {
        /// The informer's name.
        informer: Arc<str>,
    },
}

/// An informer whose cache has never been whole.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsynced {
    /// The informer's name.
    pub name: Arc<str>,
    /// What went wrong last, if something did.
    pub error: Option<Arc<ReflectorError>>,
}

// === impl SharedIndexInformer ===

impl<K: Object> SharedIndexInformer<K> {
    /// Waits until the cache is whole for the first time. Returns false if the informer stops before that.
    ///
    /// It waits as long as the server refuses, or is not there: [`unsynced`](Self::unsynced) tells why.
    ///
    /// # Cancel safety
    /// Safe: it only waits.
    pub async fn synced(&self) -> bool {
        let mut synced = self.shared.synced.subscribe();
        tokio::select! {
            biased;
            result = synced.wait_for(|synced| *synced) => result.is_ok(),
            () = self.shared.stop.cancelled() => self.has_synced(),
        }
    }

    /// Whether the cache has been whole once.
    pub fn has_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Why the cache has never been whole; `None` if it has been.
    pub fn unsynced(&self) -> Option<Unsynced> {
        let error = self.last_error();
        (!self.has_synced()).then(|| Unsynced { name: Arc::clone(self.name()), error })
    }

    /// Waits until the cache is as new as `version`: a list, an event or a bookmark has brought it there. Returns false
    /// if the informer stops before that.
    ///
    /// Where versions are no numbers, nobody can tell which is newer: then it does not wait once the cache has any.
    ///
    /// # Cancel safety
    /// Safe: it only waits.
    pub async fn wait_for(&self, version: &ResourceVersion) -> bool {
        let reached = |store: &Store<K>| {
            let own = store.resource_version()?;
            own.compare(version).is_none_or(Ordering::is_ge).then_some(())
        };
        self.until_store(reached).await.is_some()
    }

    /// Waits until the cache is whole and `condition` finds in it what to return: asked at once, and after each change.
    ///
    /// What is over before the condition is asked is not seen; a handler sees it. Nothing is locked while the condition
    /// runs. A panic of it is the caller's.
    ///
    /// # Errors
    /// If `deadline` is over, or the informer is stopped.
    ///
    /// # Cancel safety
    /// Safe: it only waits.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn doc(pods: homeostat_informer::SharedIndexInformer<k8s_openapi::api::core::v1::Pod>) -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// let web = pods.until(|pods| pods.get(("shop", "web")), Duration::from_secs(30)).await?;
    /// let _gone = pods.until(|pods| pods.is_empty().then_some(()), Duration::from_secs(30)).await?;
    /// # Ok(()) }
    /// ```
    pub async fn until<T>(
        &self,
        mut condition: impl FnMut(&Lister<K>) -> Option<T>,
        deadline: Duration,
    ) -> Result<T, UntilError> {
        let lister = self.lister();
        let look = |_: &Store<K>| self.has_synced().then(|| condition(&lister)).flatten();
        let informer = || Arc::clone(self.name());
        match timeout(deadline, self.until_store(look)).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(UntilError::Stopped { informer: informer() }),
            Err(_) => Err(match self.unsynced() {
                Some(unsynced) => UntilError::NotSynced { unsynced, deadline },
                None => UntilError::NotSeen { informer: informer(), deadline },
            }),
        }
    }

    /// Looks at the store now and after each change, until there is something to return. `None`: the informer has
    /// stopped, and then there was nothing either.
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
