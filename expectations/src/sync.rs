//! The lock of this crate: `parking_lot`'s, or loom's.
//!
//! With `--cfg homeostat_loom` the same files compile against loom, and `tests/loom.rs` runs them
//! under every interleaving. `Arc` is always the one of std: loom's has no `Weak`, and the models
//! do not check reference counts.

#[cfg(not(homeostat_loom))]
pub(crate) use parking_lot::Mutex;

#[cfg(homeostat_loom)]
pub(crate) use homeostat_core::sync::Mutex;
