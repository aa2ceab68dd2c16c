//! [`Changes`]: the notification of new revisions.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::storage::ResourceId;

/// Wakes those who wait for a change of one resource, or of any.
///
/// A watch waits for its own resource: most writes are of others. A `watch` channel would wake its
/// readers in a random order; here those who wait longest come first.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    any: Notify,
    /// Indexed by [`ResourceId`]; it grows with the first watch of a resource.
    of_resources: Mutex<Vec<Arc<Notify>>>,
}

// === impl Changes ===

impl Changes {
    /// Waits for the next change of any resource.
    pub(crate) fn next(&self) -> Notified<'_> {
        self.any.notified()
    }

    /// Returns what is notified at each change of a resource, and at each of all resources.
    pub(crate) fn of(&self, resource: ResourceId) -> Arc<Notify> {
        let ResourceId(at) = resource;
        let mut of_resources = self.of_resources.lock();
        if of_resources.len() <= at {
            of_resources.resize_with(at + 1, Arc::default);
        }
        Arc::clone(&of_resources[at])
    }

    /// Notifies those who wait for a change of this resource, or of any.
    pub(crate) fn notify(&self, resource: ResourceId) {
        let of_resource = self.of_resources.lock().get(resource.0).cloned();
        if let Some(of_resource) = of_resource {
            of_resource.notify_waiters();
        }
        self.any.notify_waiters();
    }

    /// Notifies all who wait, after a change that may concern every resource.
    pub(crate) fn notify_all(&self) {
        let of_resources = self.of_resources.lock().clone();
        for of_resource in of_resources {
            of_resource.notify_waiters();
        }
        self.any.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn change_of_one_resource_wakes_its_watches_and_those_of_all() {
        let changes = Changes::default();
        let (pods, nodes) = (changes.of(ResourceId(3)), changes.of(ResourceId(1)));
        let (mut of_pods, mut of_nodes) = (pin!(pods.notified()), pin!(nodes.notified()));
        let mut of_any = pin!(changes.next());
        assert!(poll!(of_pods.as_mut()).is_pending());
        assert!(poll!(of_nodes.as_mut()).is_pending());
        assert!(poll!(of_any.as_mut()).is_pending());
        changes.notify(ResourceId(9));
        assert!(poll!(of_pods.as_mut()).is_pending());
        assert!(poll!(of_any.as_mut()).is_ready());
        changes.notify(ResourceId(3));
        assert!(poll!(of_pods.as_mut()).is_ready());
        assert!(poll!(of_nodes.as_mut()).is_pending());
        changes.notify_all();
        assert!(poll!(of_nodes.as_mut()).is_ready());
    }
}
