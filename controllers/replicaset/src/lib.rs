//! Kubernetes' `ReplicaSet` controller: as many pods as asked for, and never more for want of looking.
//!
//! It takes the place of the controller of that name in kube-controller-manager (behaviour of v1.37.1): the same requests,
//! the same events, the same order of deletion. Beside a cluster it runs as the program `homeostat-replicaset`; in a
//! program of your own, [`run`] is all of it, and [`controller`] is the part that a
//! [`Manager`](homeostat::Manager) runs beside others.
//!
//! Each pass over one `ReplicaSet` is the same, whatever led to it:
//!
//! 1. Has the cache shown our last writes? If not, nothing is made or deleted in this pass; and if it takes long, the
//!    server is asked what became of them.
//! 2. Which pods count? Orphans that match are adopted, what matches no longer is released.
//! 3. [`plan`]: too few, too many, or settled. Made in batches of 1, 2, 4, …; deleted all at once, those first that
//!    would be missed least ([`ranking`]).
//! 4. [`status`]: reported if it changed.
//!
//! Where it differs from upstream, on purpose:
//!
//! - A create whose reply was lost is neither repeated blindly nor awaited for five minutes: after five seconds the server is
//!   asked which pods there are.
//! - Pods are deleted by name *and* uid, so that another pod of that name stays.
//! - A pod that does not decode is not taken for missing: its owner's pods are left as they are until it does.
//! - Fields of the pod template that this program does not know reach the pods all the same.

mod claim;
mod clock;
mod events;
pub mod gates;
mod handlers;
mod outcome;
pub mod plan;
pub mod pod;
pub mod ranking;
mod reconcile;
pub mod replica_set;
mod requests;
mod scale;
#[cfg(test)]
mod script;
pub mod selector;
mod settled;
pub mod status;
mod template;
mod wiring;

pub use self::gates::{FeatureGates, GateError};
pub use self::wiring::{Options, RunError, controller, run};
