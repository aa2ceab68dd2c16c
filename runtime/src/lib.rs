//! Build Kubernetes controllers: a reconciler is called for a key whenever something about that object may have changed.
//!
//! This is the facade: an author writes `use homeostat::{…}` and finds here the three primitives (informers, work queues,
//! expectations), what joins them, and [`kube_client`].
//!
//! ```text
//!  API server ──list/watch──▶ informers ──events──▶ queue ──key──▶ your Reconciler ──writes──▶ API server
//!                                 │                                      ▲
//!                                 └────────── Lister, Index ─────────────┘
//! ```
//!
//! | You write | It does |
//! | --- | --- |
//! | [`client::builder()`] | a client that waits its turn and never repeats a write whose outcome is unknown |
//! | [`SharedInformerFactory`] | one cache for each kind, kept in step with the server |
//! | [`Controller::builder`] | says which events ask for which keys: [`owns`](ControllerBuilder::owns), [`watches`](ControllerBuilder::watches), [`expecting`](ControllerBuilder::expecting), [`consistency`](ControllerBuilder::consistency) |
//! | a [`Reconciler`] | reads the caches by [`Request::key`], compares, acts; errors, panics and timeouts are retried |
//! | [`Manager::run_until`] | waits for the caches, runs the workers, drains and joins at the end |
//! | [`EventRecorder`] | tells people, without holding anything up |
//! | [`owner`], [`slow_start_batch`] | claims, adopts and releases; does not send a thousand requests into one refusal |
//!
//! Kubernetes types come from `k8s-openapi`: `cargo add k8s-openapi --features v1_37` (or another version; this crate names no
//! field that differs between them). Own kinds are made by `kube`'s `#[derive(CustomResource)]`.
//!
//! A whole program of sixty lines is in the crate's README.

mod any_informer;
mod batch;
pub mod client;
mod controller;
mod enqueue;
pub mod events;
mod manager;
mod owned;
pub mod owner;
#[cfg(feature = "prometheus")]
mod prometheus;
mod reconciler;
mod run;
mod shutdown;
mod worker;

pub use batch::slow_start_batch;
pub use controller::{Builder as ControllerBuilder, Controller, group_resource};
pub use enqueue::Enqueue;
pub use events::EventRecorder;
#[doc(inline)]
pub use homeostat_expectations as expectations;
pub use homeostat_expectations::{
    ConsistencyStore, ControllerExpectations, GroupResource, Readiness, UidTrackingExpectations,
};
#[doc(inline)]
pub use homeostat_informer as informer;
pub use homeostat_informer::{
    Event, Index, Lister, Object, ObjectKey, ObjectMeta, ResourceVersion, SharedIndexInformer,
    SharedInformerFactory, Subscription, Uid,
};
#[doc(inline)]
pub use homeostat_workqueue as workqueue;
#[doc(no_inline)]
pub use homeostat_workqueue::{LOW_PRIORITY, Priorities, Queue, RateLimiter};
pub use kube_client;
pub use manager::{Manager, RunError};
#[cfg(feature = "prometheus")]
pub use prometheus::{Prometheus, PrometheusError, install_prometheus};
pub use reconciler::{Action, Change, Reconciler, Request, Why};
pub use shutdown::shutdown_signal;

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The code in the book's page about expectations compiles, and where it must not, does not.
#[cfg(doctest)]
#[doc = include_str!("../../docs/expectations.md")]
struct Expectations;
