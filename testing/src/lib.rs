//! Tests for Kubernetes controllers: everything that takes a [`kube_client::Client`], written with
//! homeostat or with kube-rs.
//!
//! - [`Simulation`]: a cluster in virtual time, with an embedded API server, a kubelet and a
//!   garbage collector. The same seed gives the same run.
//! - [`crash_at_every_call`]: runs a story once per write of the controller, with a crash before
//!   it, a crash after it and a lost reply, and compares the end states.
//! - [`disturb_every_event`]: the same for each event that the controller receives (late, repeated,
//!   lost), and for successors that read stale state.
//! - [`SweepBuilder`]: the same sweeps around a server with custom resources, quotas or roles.
//! - [`OnePass`]: runs one pass of a reconciler and returns the calls that it made.
//! - [`oracle`]: checks that are ready to use.
//! - [`RequestedPermissions`]: compares what a controller requested with its roles.
//! - [`ProgramTest`]: runs a controller program, to test its command line.
//! - [`RecordedLog`]: keeps the log lines of a test.
//! - `control_plane` (feature `control-plane`): a real etcd and kube-apiserver as child processes.

#[cfg(feature = "control-plane")]
pub mod control_plane;
mod one_pass;
pub mod oracle;
mod pace;
mod permissions;
mod program;
mod recorded_log;
mod retries;
mod simulation;
mod sweep;

pub use crate::one_pass::{Call, OnePass};
pub use crate::permissions::{Permission, RequestedPermissions, RolesDiffer};
pub use crate::program::{ProgramTest, assert_failed};
pub use crate::recorded_log::RecordedLog;
pub use crate::simulation::{Simulation, in_real_time, in_virtual_time};
pub use crate::sweep::{
    CONTROLLER, Disturbance, Outcome, Plan, Sweep, SweepBuilder, SweepFailure, crash_at_every_call,
    disturb_every_event,
};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
