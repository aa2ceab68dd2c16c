//! A controller that publishes each [`Greeting`] as a `ConfigMap`.

mod controller;
mod greeting;

pub use crate::controller::{Options, manager};
pub use crate::greeting::{Greeting, GreetingSpec, GreetingStatus};
