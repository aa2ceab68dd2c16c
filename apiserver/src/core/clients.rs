//! The view of each client, and its open watches.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use homeostat_faults::ClientName;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Core;
use crate::status::{Failure, Result};
use crate::storage::Storage;
use crate::view::{ClientView, LaggingView};

/// The state of clients, and of the last restart.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Clients that were moved to a lagging server.
    views: BTreeMap<Arc<str>, LaggingView>,
    /// Cancelled when a client is moved: ends its watches. An entry is removed with the
    /// client's last watch.
    streams: BTreeMap<Arc<str>, Weak<CancellationToken>>,
    /// The watch cache is not ready before this instant.
    pub(super) ready_at: Option<Instant>,
}

/// The longest time that a read waits for a future revision, as in the real server.
const FUTURE_REVISION_TIMEOUT: Duration = Duration::from_secs(3);

// === impl Core ===

impl Core {
    /// Returns a view that is this number of revisions behind.
    pub(crate) fn view(&self, behind: u64) -> LaggingView {
        let revision = self.read(Storage::revision).saturating_sub(behind);
        LaggingView {
            revision: Arc::new(AtomicU64::new(revision)),
            changes: Arc::clone(&self.changes),
        }
    }

    /// Moves a client to a lagging server, or back with `None`. Its watches end.
    pub(crate) fn move_client(&self, name: &str, view: Option<LaggingView>) {
        let where_to = match &view {
            Some(view) => format!("a server that is at {}", view.revision()),
            None => "the server that is up to date".to_owned(),
        };
        self.faults.note(format!("server: {name} moves to {where_to}"));
        let ended = {
            let mut clients = self.clients.lock();
            match view {
                Some(view) => clients.views.insert(name.into(), view),
                None => clients.views.remove(name),
            };
            clients.streams.remove(name)
        };
        if let Some(ended) = ended.and_then(|ended| ended.upgrade()) {
            ended.cancel();
        }
    }

    /// Returns what this client may see.
    pub(crate) fn client_view(&self, client: ClientName) -> ClientView {
        let view = self.clients.lock().views.get(&client.0).cloned();
        ClientView { client: Some(client), view, lag: None }
    }

    /// Fails with 429 while the watch cache is not ready.
    pub(crate) fn check_ready(&self) -> Result<()> {
        match self.clients.lock().ready_at {
            Some(ready_at) if Instant::now() < ready_at => Err(Failure::not_ready()),
            _ => Ok(()),
        }
    }

    /// Returns the token that ends the watches of this client early.
    pub(crate) fn watch_end_token(&self, client_view: &ClientView) -> Arc<CancellationToken> {
        let all = self.streams.lock().clone();
        let Some(name) = client_view.client.as_ref().filter(|name| !name.0.is_empty()) else {
            return Arc::new(all);
        };
        let mut clients = self.clients.lock();
        let known = clients.streams.get(&name.0).and_then(Weak::upgrade);
        known.filter(|end| !end.is_cancelled()).unwrap_or_else(|| {
            let end = Arc::new(all.child_token());
            // Clients may have a new name each time, so entries without a watch are removed.
            clients.streams.retain(|_, end| end.strong_count() > 0);
            clients.streams.insert(Arc::clone(&name.0), Arc::downgrade(&end));
            end
        })
    }

    /// Returns the token that counts an open watch until it is dropped.
    pub(crate) fn watching(&self) -> Arc<()> {
        Arc::clone(&self.watching)
    }

    /// Returns the number of open watches.
    pub(crate) fn watches(&self) -> usize {
        Arc::strong_count(&self.watching) - 1
    }

    /// Waits until the watch cache shows a revision; fails with 504 after 3 seconds, as the real
    /// server does.
    pub(crate) async fn wait_for_revision(
        &self,
        revision: u64,
        client_view: &ClientView,
    ) -> Result<()> {
        let is_shown = || client_view.cached(self.read(Storage::revision)) >= revision;
        let shown = tokio::time::timeout(FUTURE_REVISION_TIMEOUT, self.wait_until(is_shown));
        shown.await.map_err(|_| {
            let shown = client_view.cached(self.read(Storage::revision));
            Failure::too_large_resource_version(revision, shown, Some(1))
        })
    }

    /// Fails if the store has not reached a revision, as the real server does without a watch
    /// cache.
    pub(crate) fn check_revision(&self, revision: u64) -> Result<()> {
        let current = self.read(Storage::revision);
        if current < revision {
            return Err(Failure::too_large_resource_version(revision, current, None));
        }
        Ok(())
    }

    /// Waits until a condition holds, which depends on the stored objects or on their revision.
    pub(crate) async fn wait_until(&self, holds: impl Fn() -> bool) {
        loop {
            let changed = self.changes.next();
            tokio::pin!(changed);
            // Registers before it checks, so that no change is missed in between.
            changed.as_mut().enable();
            if holds() {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use homeostat_core::WallClock;
    use homeostat_faults::Faults;

    use super::*;
    use crate::clock::Chance;
    use crate::kinds::Kinds;

    #[tokio::test(start_paused = true)]
    async fn client_is_known_while_it_watches() {
        let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
        let faults = Faults::seeded(1);
        let core =
            Core::new(Kinds::new(Vec::new()), WallClock::new(Some(epoch)), Chance::new(1), faults);
        let end_of = |name: &str| core.watch_end_token(&core.client_view(ClientName(name.into())));
        let stays = end_of("stays");
        for n in 0..1000 {
            drop(end_of(&format!("client-{n}")));
        }
        assert!(core.clients.lock().streams.len() <= 2);
        let view = core.view(0);
        core.move_client("stays", Some(view));
        assert!(stays.is_cancelled());
        assert!(!end_of("stays").is_cancelled());
    }
}
