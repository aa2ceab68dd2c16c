//! The lock that everything here is made of: `parking_lot`'s, or the model checker's.
//!
//! With `--cfg homeostat_loom` the very same files are compiled against loom, and `tests/loom.rs` runs
//! them under every interleaving. `Arc` is std's in both: loom's knows no `Weak`, and who counts
//! references is not in question here.

#[cfg(not(homeostat_loom))]
pub(crate) use parking_lot::Mutex;

#[cfg(homeostat_loom)]
pub(crate) use self::model::Mutex;

#[cfg(homeostat_loom)]
mod model {
    use std::sync::PoisonError;

    use loom::sync::MutexGuard;

    /// loom's lock in the shape of `parking_lot`'s, which has no poison.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    // === impl Mutex ===

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}
