//! Benchmarks of homeostat, and what they have in common: see `peers/` for the same work done by
//! others.

pub mod apiserver;
pub mod audit;
pub mod informer;
pub mod process;
pub mod workqueue;
