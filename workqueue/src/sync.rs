//! The mutex that this crate uses: `parking_lot`'s, or loom's.
//!
//! With `--cfg homeostat_loom` the same files compile against loom, and `tests/loom.rs` runs them
//! in every interleaving. `Arc` is std's in both cases: loom's has no `Weak`, and the models do not
//! test reference counts.
//!
//! A lock of `parking_lot` is not poisoned by a panic: a panic of the author's `Eq` or `Clone`
//! under the queue's lock must not end every other worker. Each step therefore runs the author's
//! code before its first change.

#[cfg(not(homeostat_loom))]
pub(crate) use parking_lot::Mutex;

#[cfg(homeostat_loom)]
pub(crate) use homeostat_core::sync::Mutex;
