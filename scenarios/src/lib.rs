//! What whole clusters are put through: the same scenario on the embedded API server in virtual
//! time, on the embedded server over a socket, and on a real kube-apiserver.
//!
//! A [`World`] is a small cluster: an API server, a kubelet, a garbage collector and, between the
//! controller and the server, a layer of faults. A scenario is an async function of a world; it asks
//! as a user would, and waits, with a deadline, for what it asked.

mod census;
mod convergence;
mod replica_sets;
mod scenarios;
pub mod scene;
mod simulation;
mod world;

pub use census::Census;
pub use convergence::{Convergence, Tally, Wire};
pub use replica_sets::ReplicaSets;
pub use scenarios::{ALL, Scenario};
pub use simulation::{Simulation, in_real_time, in_virtual_time};
pub use world::{Running, Target, World};
