//! The leadership of a manager, if it takes part in an election.
//!
//! [`Manager`](super::Manager) treats both cases alike through this type, so that its steps contain
//! no special case for the election.

use tokio::task::AbortHandle;

use crate::leader_election::{Leadership, LeadershipLost};

/// Leadership, or the right to work without an election.
///
/// `None` in a manager without an election.
pub(super) struct Leader(Option<Leadership>);

// === impl Leader ===

impl Leader {
    /// Returns the leader of a manager without an election. It never loses.
    pub(super) fn without_election() -> Self {
        Self(None)
    }

    /// Returns the leader of a manager whose elector has acquired `leadership`.
    pub(super) fn elected(leadership: Leadership) -> Self {
        Self(Some(leadership))
    }

    /// Aborts `tasks` when leadership is lost.
    pub(super) fn abort_on_loss(&self, tasks: Vec<AbortHandle>) {
        let Some(leadership) = &self.0 else { return };
        for task in tasks {
            leadership.abort_on_loss(task);
        }
    }

    /// Waits until leadership is lost.
    ///
    /// Never ready without an election.
    pub(super) async fn lost(&self) -> LeadershipLost {
        match &self.0 {
            Some(leadership) => leadership.lost().await,
            None => std::future::pending().await,
        }
    }

    /// Gives the lease to the next candidate.
    ///
    /// Without an election it does nothing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the lease to expire.
    pub(super) async fn release(self) {
        if let Some(leadership) = self.0 {
            Box::pin(leadership.release()).await;
        }
    }
}
