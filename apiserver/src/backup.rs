//! The store as it was at one moment.

use std::fmt;
use std::sync::Arc;

use crate::storage::Objects;

/// Everything that a server had stored at one moment; made by [`ApiServer::backup`](crate::ApiServer::backup). It costs
/// next to nothing: objects that did not change since are shared.
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
    /// The resourceVersion that the server was at.
    pub fn revision(&self) -> u64 {
        self.revision
    }
}
