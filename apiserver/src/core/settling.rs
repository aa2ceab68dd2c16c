//! The definitions that were written, and whose effects are still to be carried out.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Core;

/// The definitions that were written, and whose effects are still to be carried out.
#[derive(Debug, Default)]
pub(super) struct Pending {
    names: BTreeSet<String>,
    /// Those whose kinds are not yet served as the last write says.
    unserved: BTreeSet<String>,
    /// True while a task carries them out.
    is_running: bool,
}

/// Marks that a task carries out the effects of definitions; dropped at its end.
#[derive(Debug)]
pub(crate) struct Settling {
    core: Arc<Core>,
    is_done: bool,
}

// === impl Core ===

impl Core {
    /// Returns the mark of the task that carries out the effects of definitions, if there are any
    /// and no task does so yet.
    pub(crate) fn start_settling(self: &Arc<Self>) -> Option<Settling> {
        let mut pending = self.pending.lock();
        if pending.names.is_empty() || pending.is_running {
            return None;
        }
        pending.is_running = true;
        Some(Settling { core: Arc::clone(self), is_done: false })
    }

    /// Takes the names of the definitions that were written.
    pub(crate) fn take_written_definitions(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.pending.lock().names)
    }

    /// Takes the names of the definitions whose kinds are not yet served as the last write says.
    pub(crate) fn take_unserved_definitions(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.pending.lock().unserved)
    }

    /// Looks at a definition again, whose kinds are served as it says.
    pub(crate) fn revisit_definition(&self, name: &str) {
        self.pending.lock().names.insert(name.to_owned());
    }

    /// Notes that a definition was written.
    pub(super) fn definition_written(&self, name: &str) {
        let mut pending = self.pending.lock();
        pending.names.insert(name.to_owned());
        pending.unserved.insert(name.to_owned());
    }
}

// === impl Settling ===

impl Settling {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Ends the task if no definition was written; returns the names of those that were.
    pub(crate) fn next(&mut self) -> Option<BTreeSet<String>> {
        let mut pending = self.core.pending.lock();
        if pending.names.is_empty() {
            pending.is_running = false;
            self.is_done = true;
            return None;
        }
        Some(std::mem::take(&mut pending.names))
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        // The task was dropped with its runtime: another one goes on.
        if !self.is_done {
            self.core.pending.lock().is_running = false;
        }
    }
}
