//! The lock of this crate: `parking_lot`'s, or loom's.
//!
//! With `--cfg homeostat_loom` the same files compile against loom, and `tests/loom.rs` runs them
//! under every interleaving. `Arc` is always the one of std: loom's has no `Weak`, and the models
//! do not check reference counts.

#[cfg(not(homeostat_loom))]
pub(crate) use parking_lot::Mutex;

#[cfg(homeostat_loom)]
pub(crate) use self::model::Mutex;

#[cfg(homeostat_loom)]
mod model {
    use std::sync::PoisonError;

    use loom::sync::MutexGuard;

    /// loom's lock with the interface of `parking_lot`'s, which has no poisoning.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    // === impl Mutex ===

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
