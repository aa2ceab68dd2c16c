//! A snapshot of the store.

use std::fmt;
use std::sync::Arc;

use super::Objects;

/// A snapshot of all objects that a server had stored; made by
/// [`ApiServer::backup`](crate::ApiServer::backup).
///
/// It shares unchanged objects with the store, so it costs little.
#[derive(Clone)]
pub struct Backup {
    pub(crate) revision: u64,
    pub(crate) objects: Arc<[Objects]>,
}

impl fmt::Debug for Backup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backup").field("revision", &self.revision).finish_non_exhaustive()
    }
}

impl Backup {
    /// Returns the resourceVersion of the snapshot.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}
