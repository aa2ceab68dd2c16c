//! [`Change`]: a resource and a namespace in which an object changed, and its queue.

use std::fmt;
use std::sync::Arc;

use homeostat::{KeySource, Target};
use homeostat_core::GroupResource;

use crate::plan::Recount;
use crate::requested::Requested;

/// An object of `resource` in `namespace` was added, changed or deleted.
///
/// It names no object, so the queue merges the changes of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Change {
    pub(crate) resource: GroupResource,
    pub(crate) namespace: Arc<str>,
}

/// The queue `resource_quota_controller_resource_changes`.
#[derive(Clone)]
pub(crate) struct Changes {
    pub(crate) requested: Requested<Change>,
    pub(crate) source: KeySource<Change>,
}

// === impl Change ===

impl Target for Change {
    type Key = Self;
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.resource, self.namespace)
    }
}

// === impl Changes ===

impl Changes {
    pub(crate) fn new() -> Self {
        Self { requested: Requested::new(), source: KeySource::new("informers") }
    }

    pub(crate) fn add(&self, change: Change, recount: Recount) {
        self.requested.request(&change, recount);
        self.source.add(change);
    }
}
