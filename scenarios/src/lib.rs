//! Scenarios for complete clusters: each runs on the embedded API server in virtual time, on the
//! embedded server over a socket, and on a real kube-apiserver.
//!
//! A [`World`] is a small cluster: an API server, a kubelet, a garbage collector and, between the
//! controller and the server, a layer of faults. A scenario is an async function of a world: it
//! sends requests as a user would, and waits, with a timeout, for the result.

mod census;
mod claim_scenarios;
mod consistency;
mod convergence;
pub mod election;
pub mod foos;
mod logged;
mod neighbours;
mod pod;
mod quota_scenarios;
mod replica_sets;
pub mod resource_claims;
mod scenarios;
pub mod scene;
mod upstream;
mod world;

pub use census::Census;
pub use claim_scenarios::CLAIMS;
pub use convergence::{Convergence, Tally, Wire};
pub use logged::record_warnings;
pub use neighbours::{NEIGHBOURS, NEIGHBOURS_REPLICA_SETS};
pub use pod::Pod;
pub use quota_scenarios::QUOTAS;
pub use replica_sets::{PodOwner, ReplicaSets};
pub use resource_claims::ResourceClaims;
pub use scenarios::{ALL, Scenario};
pub use upstream::{UPSTREAM, UPSTREAM_REPLICA_SETS};
pub use world::{Running, Target, World};

/// The page for authors of controllers. It needs the runtime and the API server, so it is compiled
/// here.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../docs/testing-your-controller.md")]
    mod testing_your_controller {}
}
