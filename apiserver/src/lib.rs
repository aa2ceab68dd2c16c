//! A Kubernetes API server in process.

#[cfg(feature = "control-plane")]
pub mod control_plane;
pub mod faults;
pub mod patch;
pub mod selector;
