//! [`Received`]: the version that a queue has received.
//!
//! Both designs use it for the same promise: the version of the copy never goes back while one
//! history of the server lasts.

use crate::object::ResourceVersion;

/// The newest version that was pushed. It never goes back, except with a list.
pub(super) struct Received {
    version: Option<ResourceVersion>,
}

// === impl Received ===

impl Received {
    /// Starts without a version: nothing was received.
    pub(super) fn new() -> Self {
        Self { version: None }
    }

    /// Takes the version of a push. Returns true if it is newer than all before it.
    pub(super) fn push(&mut self, version: Option<ResourceVersion>) -> bool {
        let Some(version) = version else { return false };
        let newer = version.is_point()
            && self.version.as_ref().is_none_or(|received| version.may_follow(received));
        if newer {
            self.version = Some(version);
        }
        newer
    }

    /// Takes the version of a list, which may be older than before: the server has another history
    /// then.
    pub(super) fn replace(&mut self, version: ResourceVersion) {
        self.version = Some(version);
    }

    /// Returns the newest version, or `None` before the first one.
    pub(super) fn version(&self) -> Option<&ResourceVersion> {
        self.version.as_ref()
    }
}
