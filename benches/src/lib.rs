//! The shared parts of homeostat's benchmarks. `peers/` does the same work with other libraries.

pub mod apiserver;
pub mod audit;
pub mod controllers;
pub mod informer;
pub mod process;
pub mod workqueue;
