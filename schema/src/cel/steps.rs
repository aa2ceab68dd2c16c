//! [`Steps`]: the steps of an evaluation.

use std::cell::Cell;

use super::error::EvalError;

/// The steps that an evaluation took, and the most that it may take.
#[derive(Debug)]
pub(super) struct Steps {
    spent: Cell<usize>,
    limit: usize,
}

// === impl Steps ===

impl Steps {
    pub(super) fn new(limit: usize) -> Self {
        Self { spent: Cell::new(0), limit }
    }

    pub(super) fn spent(&self) -> usize {
        self.spent.get()
    }

    /// Counts steps.
    ///
    /// # Errors
    ///
    /// Fails if the evaluation took more than its limit.
    pub(super) fn spend(&self, steps: usize) -> Result<(), EvalError> {
        let sum = self.spent.get().saturating_add(steps);
        self.spent.set(sum);
        if sum > self.limit { Err(EvalError::Limit) } else { Ok(()) }
    }
}
