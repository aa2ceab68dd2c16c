//! Kubernetes' `ResourceClaim` controller: exactly one claim per pod entry, and no reservation of a
//! live pod dropped.
//!
//! It replaces the controller of that name in kube-controller-manager (behaviour of v1.37.1). The
//! program `homeostat-resourceclaim` runs it for a cluster. In another program, [`run`] runs it
//! alone, and [`controller`](fn@controller) returns it for a [`Manager`](homeostat::Manager) that
//! runs others too.
//!
//! The controller creates claims from templates, reserves allocated claims for pods that reached a
//! node without the scheduler, removes reservations that are not needed any more, and deletes the
//! claims of finished pods. It allocates nothing: the scheduler does.
//!
//! One queue has keys of two kinds:
//!
//! - The pass over a **pod** finds or creates the claim of each entry, records the names in the
//!   pod's status with one apply, and reserves the claims if the pod is on a node.
//! - The pass over a **claim** removes consumers that are gone or done, deallocates a claim without
//!   consumers, removes the scheduler's finalizer, and deletes the claim of a finished pod.
//!
//! Intended differences from upstream:
//!
//! - The name of a claim is derived from the pod's UID and the entry ([`names`]). A create whose
//!   reply was lost never makes a second claim.
//! - The apply is bound to the pod's UID: another pod of the name gets nothing.
//! - Reservations and removals that wait for one claim go in one write ([`plan::StatusWrite`]).
//! - Nothing is reserved for a pod that has ended.
//! - A claim is deleted by name *and* UID.
//! - Nothing is created, released or deleted for a pod that does not decode.
//! - `PodGroup`s are not supported.

mod caches;
pub mod claim;
mod claim_pass;
mod controller;
mod creation;
mod deleted_uids;
mod error;
mod events;
pub mod gates;
mod handlers;
mod key;
mod metrics;
pub mod names;
pub mod plan;
pub mod pod;
mod pod_pass;
mod pods_with_claims;
mod reconciler;
mod requests;
mod status_writer;
pub mod template;

pub use homeostat::RunError;

pub use self::controller::{Options, controller, manager, run};
pub use self::gates::{FeatureGates, GateError};
pub use self::metrics::MetricNames;

/// Compiles the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
