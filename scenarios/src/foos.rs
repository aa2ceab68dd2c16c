//! Scenarios of the sample controller: a [`World`] with Deployments, `ReplicaSet`s and pods below
//! the Foos.

mod scenarios;
pub mod scene;
mod user;
mod world;

pub use self::scenarios::{ALL, Scenario};
pub use self::user::Foos;
pub use self::world::{Below, World, garbage_collector};
