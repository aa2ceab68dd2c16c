//! Kubernetes' `ResourceQuota` controller: `status.used` of each quota, from what is stored.
//!
//! Admission enforces quotas and raises `status.used`. This controller recomputes `status.hard` and
//! `status.used`, mainly to lower the usage when objects are deleted. It replaces the controller of
//! that name in kube-controller-manager (behaviour of v1.37.1). The program
//! `homeostat-resourcequota` runs it for a cluster; in another program, [`run`] runs it, and
//! [`manager`] returns its [`Manager`](homeostat::Manager).
//!
//! ```text
//!  discovery ──▶ Monitor ── follows ──▶ InformerSets ── changes ──▶ queue of (resource, namespace)
//!                                            │                                  │
//!  quota informer ──▶ queues of quotas ◀─────┼──────────────────────────────────┘
//!                          │                 ▼
//!                          └──▶ pass: count ──▶ plan ──▶ one update of the status
//! ```
//!
//! Each pass over a quota counts from the caches, and [`plan`] decides about the status to write.
//! The evaluators and scopes are those of [`homeostat_quota`].
//!
//! Intended differences from upstream, each with a test, are listed in `docs/resource-quota.md`.

mod caches;
mod change;
mod charged;
mod controller;
pub mod gates;
mod monitor;
mod names;
mod needs;
pub mod plan;
pub mod quota;
mod reconciler;
mod replenishment;
mod requested;
mod served;
mod status_update;
mod sync_error;
mod unfit;

pub use homeostat::RunError;

pub use self::controller::{Options, manager, run};
pub use self::gates::{FeatureGates, GateError};

/// Compiles the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
