//! Kubernetes' `ReplicaSet` controller: the desired number of pods, and never more because of a
//! stale cache. It is the controller of `ReplicationController`s too.
//!
//! It replaces the controllers of these names in kube-controller-manager (behaviour of v1.37.1):
//! the same requests, the same events, the same order of deletion. The program
//! `homeostat-replicaset` runs them for a cluster. In another program, [`run`] runs them alone, and
//! [`controller`](fn@controller) and [`replication_controller`] return them for a
//! [`Manager`](homeostat::Manager) that runs others too.
//!
//! The code is generic over the kind: [`WorkloadKind`] has all that differs. Each pass over one
//! [`Workload`](workload::Workload) has the same steps, whatever triggered it:
//!
//! 1. Do the caches show the controller's last writes? If not, the pass creates and deletes
//!    nothing. If they are late by five seconds, the controller lists the server's pods.
//! 2. Claim: orphans that match are adopted, owned pods that no longer match are released.
//! 3. [`plan`]: pods are created in batches of 1, 2, 4, …, or deleted concurrently in the order of
//!    [`ranking`].
//! 4. [`status`]: written if it changed.
//!
//! Intended differences from upstream:
//!
//! - A create whose reply was lost is neither repeated nor awaited for five minutes: after five
//!   seconds the controller lists the server's pods.
//! - Pods are deleted by name *and* UID, so that another pod of that name is not deleted.
//! - A pod that does not decode is not counted as missing: its owner's pods are not changed until
//!   it does, and the condition `ReplicaFailure` and an event say so.
//! - Fields of the pod template that this program does not know are kept in the pods.

mod caches;
mod controller;
mod events;
pub mod gates;
mod kind;
mod left_statuses;
mod own_writes;
pub mod plan;
pub mod pod;
mod pod_events;
pub mod ranking;
mod reconciler;
mod requests;
mod scale;
#[cfg(test)]
mod scripted_server;
mod selection;
pub mod status;
mod template;
pub mod workload;

pub use homeostat::RunError;

pub use self::controller::{HISTOGRAMS, Options, controller, manager, replication_controller, run};
pub use self::gates::{FeatureGates, GateError};
pub use self::kind::WorkloadKind;
pub use self::selection::{Controllers, ControllersError};

/// Compiles the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
