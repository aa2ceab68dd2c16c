//! Kubernetes' `ReplicaSet` controller: as many pods as asked for, never more than asked for without a reason.

pub mod gates;
pub mod plan;
pub mod pod;
pub mod ranking;
pub mod replica_set;
pub mod selector;
pub mod status;

pub use self::gates::{FeatureGates, GateError};
