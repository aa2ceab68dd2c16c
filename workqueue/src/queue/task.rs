//! A task that its owner stops.

use tokio::task::JoinHandle;

/// Owns a task; dropping this aborts the task.
pub(super) struct OwnedTask(JoinHandle<()>);

// === impl OwnedTask ===

impl OwnedTask {
    pub(super) fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }

    /// Returns true if the task runs. It stops when its runtime shuts down.
    pub(super) fn is_running(&self) -> bool {
        !self.0.is_finished()
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
