//! What only a server can do to its clients: forget, restart, and live in the past.

use std::time::Duration;

use super::ApiServer;
use crate::backup::Backup;
use crate::core::Core;
use crate::faults::{Calls, Order, Trouble};
use crate::view::{Lag, View};

// === impl ApiServer ===

impl ApiServer {
    /// Forgets the past, as a compaction of etcd does: lists and watches from before now are answered with 410. Watches
    /// that are open go on.
    pub fn compact(&self) {
        self.inner.core.compact();
    }

    /// Does what a restart does: what is stored stays, open watches end, and the past is forgotten.
    pub fn restart(&self) {
        self.restart_slowly(Duration::ZERO);
    }

    /// A restart after which the watch cache takes a while to be filled: until then watches, and lists that any
    /// resourceVersion will do for, are answered with 429.
    pub fn restart_slowly(&self, warm_up: Duration) {
        self.inner.core.restart(warm_up);
    }

    /// What is stored now, to be [restored](Self::restore) later.
    pub fn backup(&self) -> Backup {
        self.inner.core.backup()
    }

    /// Goes back to what was stored then, as etcd does from a backup: versions go back too, and will be used a second
    /// time for other writes. Open watches end; one that starts at a version that is yet to come says nothing until
    /// then.
    pub fn restore(&self, backup: &Backup) {
        self.inner.core.restore(backup);
    }

    /// Uses up revisions, as writes to other resources do.
    pub fn advance_revision(&self, revisions: u64) {
        self.inner.core.skip(revisions);
    }

    /// Sends a bookmark to every watch that takes them, now; after [`advance_revision`](Self::advance_revision) it is
    /// far ahead of the last event.
    pub fn bookmark_watches(&self) {
        self.inner.core.bookmark();
    }

    /// A second server on the same store, whose watch cache stays at what is stored now.
    pub fn lagging_view(&self) -> View {
        self.inner.core.view()
    }

    /// Moves the client of this name to a lagging server: its open watches end, and it goes on there.
    pub fn move_client(&self, client: &str, view: &View) {
        self.inner.core.move_client(client, Some(view.clone()));
    }

    /// Moves the client of this name back to the server that is up to date; its open watches end.
    pub fn move_back(&self, client: &str) {
        self.inner.core.move_client(client, None);
    }

    /// These gets and lists are answered from the past, also those that the real server answers from its store: what
    /// they were when caches could be stale. A list's resourceVersion says so; a read that demands a newer one gets it
    /// or 504.
    pub fn stale_reads(&self, calls: Calls, lag: Lag) {
        self.inner.core.faults.order(calls, Order::Stale(lag));
    }

    /// The server goes through this just before it carries these requests out.
    pub fn trouble_before(&self, calls: Calls, trouble: Trouble) {
        self.inner.core.faults.order(calls, Order::Before(trouble));
    }

    /// The server goes through this just after it has carried these requests out, before it answers.
    pub fn trouble_after(&self, calls: Calls, trouble: Trouble) {
        self.inner.core.faults.order(calls, Order::After(trouble));
    }
}

pub(super) fn undergo(core: &Core, trouble: &Trouble) {
    match trouble {
        Trouble::Compact => core.compact(),
        Trouble::Restart => core.restart(Duration::ZERO),
        Trouble::Restore(backup) => core.restore(backup),
    }
}
