//! Locks of loom, for the models of the other crates.

use std::sync::PoisonError;

use loom::sync::MutexGuard;

/// Wraps loom's mutex in the API of `parking_lot`'s, which has no poisoning.
pub struct Mutex<T>(loom::sync::Mutex<T>);

// === impl Mutex ===

impl<T> Mutex<T> {
    /// Returns an unlocked mutex.
    pub fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value, which no other thread can lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}
