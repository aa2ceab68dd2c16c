//! Kubernetes' sample-controller: a Deployment for each [`Foo`].
//!
//! A [`Foo`] names a Deployment of nginx and its number of replicas. The controller creates the
//! Deployment, keeps its number of replicas, and copies the number of available replicas into the
//! status of the Foo. It behaves as sample-controller v0.37.1; the README lists the intended
//! differences.
//!
//! The files:
//!
//! | File | Content |
//! | --- | --- |
//! | `foo.rs` | the custom resource |
//! | `plan.rs` | the decision, without a client, a cache or a clock |
//! | `requests.rs` | the three writes |
//! | `error.rs`, `reported.rs` | the reasons for which a Foo waits, each reported once |
//! | `reconcile.rs` | one pass over one Foo |
//! | `controller.rs`, `main.rs` | the parts joined, and the program |

#![expect(clippy::disallowed_names, reason = "Foo is the name of the kind")]

mod controller;
mod error;
mod foo;
mod plan;
mod reconcile;
mod reported;
mod requests;

pub use homeostat::RunError;

pub use self::controller::{Options, controller, manager, run};
pub use self::foo::{Foo, FooSpec, FooStatus};
pub use self::plan::{Plan, Scale, plan};

/// Compiles the README's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
