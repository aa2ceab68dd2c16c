//! Kubernetes controllers: a reconciler is called for a key whenever something about that object
//! may have changed.
//!
//! This crate is the facade. An author writes `use homeostat::{…}` and gets the three primitives
//! (informers, work queues, expectations), the parts that connect them, and [`kube_client`].
//!
//! ```text
//!  API server ─list/watch─▶ informers ─events─▶ queue ─key─▶ Reconciler ─writes─▶ API server
//!                              │                              ▲
//!                              └─────── Lister, Index ────────┘
//! ```
//!
//! | Item | Purpose |
//! | --- | --- |
//! | [`client::builder()`] | a client that never repeats a write with an unknown outcome |
//! | [`SharedInformerFactory`] | one cache per kind, kept up to date by a watch |
//! | [`Controller::builder`] | which events enqueue which keys |
//! | [`Reconciler`] | the author's code: reads the caches, compares, acts |
//! | [`Manager::run_until`] | waits for the caches, runs the workers, drains at shutdown |
//! | [`LeaderElector`] | one replica that works, with a fence around its writes |
//! | [`Discovery`] | the resources that the server serves, at the versions that it prefers |
//! | [`observe`] | health, readiness, metrics and a debug page on one address |
//! | [`EventRecorder`] | Kubernetes Events, without blocking a reconcile |
//! | [`owner`], [`slow_start_batch`] | controller references; growing batches of requests |
//! | [`testing`] | parts for unit tests without a server |
//!
//! Kubernetes types come from `k8s-openapi`: `cargo add k8s-openapi --features v1_37`, or another
//! version; this crate uses no field that differs between them. `kube`'s
//! `#[derive(CustomResource)]` defines custom kinds.
//!
//! The crate's README has a complete program.

mod any_controller;
mod any_informer;
pub mod apply;
mod batch;
mod chain;
#[cfg(feature = "cli")]
pub mod cli;
pub mod client;
pub mod conditions;
mod controller;
pub mod crd;
mod discovery;
mod enqueue;
pub mod events;
mod finalizer;
mod key_source;
mod last_errors;
mod last_reconciles;
pub mod leader_election;
mod live;
mod manager;
pub mod observe;
pub mod outcome;
mod owned;
pub mod owner;
pub mod predicate;
#[cfg(feature = "prometheus")]
mod prometheus;
mod read_your_writes;
mod reconcile_metrics;
mod reconciler;
mod request;
mod run_error;
#[cfg(test)]
mod scripted_server;
mod shutdown;
mod target;
mod terminal;
pub mod testing;
mod text;
mod turns;
mod watch;
mod work_limit;
mod worker;

pub use batch::slow_start_batch;
pub use controller::{Controller, ControllerBuilder, NoPrimary, Primary, group_resource};
pub use discovery::{Discovered, Discovery, DiscoveryError, ServedResource};
pub use enqueue::Enqueue;
pub use events::EventRecorder;
pub use finalizer::Finalizer;
#[doc(inline)]
pub use homeostat_expectations as expectations;
pub use homeostat_expectations::{
    ConsistencyStore, ControllerExpectations, GroupResource, Readiness, UidTrackingExpectations,
};
#[doc(inline)]
pub use homeostat_informer as informer;
#[doc(inline)]
pub use homeostat_informer::__private::Projection;
pub use homeostat_informer::{
    Event, Index, Lister, Object, ObjectKey, ObjectMeta, ResourceVersion, SharedIndexInformer,
    SharedInformerFactory, Subscription, Uid,
};
#[doc(hidden)]
pub use homeostat_informer_derive::FacadeProjection as Projection;
#[doc(inline)]
pub use homeostat_workqueue as workqueue;
#[doc(no_inline)]
pub use homeostat_workqueue::{LOW_PRIORITY, Priorities, Queue, RateLimiter};
pub use key_source::KeySource;
pub use kube_client;
pub use leader_election::LeaderElector;
pub use manager::{Manager, ManagerHandle, ManagerPhase};
pub use owned::{AnyOwner, OwnedEvents};
#[cfg(feature = "prometheus")]
pub use prometheus::{
    Prometheus, PrometheusError, PrometheusRecorder, RecorderError, install_prometheus,
    install_prometheus_recorder, install_prometheus_recorder_with,
};
pub use read_your_writes::{ReadYourWrites, RecordWrites, RecordWritesLayer};
pub use reconciler::{Action, Reconciler};
pub use request::{ChangeKind, Request, Trigger};
pub use run_error::RunError;
pub use shutdown::shutdown_signal;
pub use target::Target;
pub use terminal::{OnError, TerminalError};
pub use tokio_util::sync::CancellationToken;
pub use watch::Watch;
pub use work_limit::WorkLimit;

/// Compiles the workspace's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct WorkspaceReadme;

/// Compiles the README's program.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the code of the page about expectations.
#[cfg(doctest)]
#[doc = include_str!("../../docs/expectations.md")]
struct Expectations;

/// The code in the book's pages for authors compiles.
#[cfg(doctest)]
#[doc = include_str!("../../docs/controller.md")]
#[doc = include_str!("../../docs/from-client-go.md")]
#[doc = include_str!("../../docs/from-kube-runtime.md")]
#[doc = include_str!("../../docs/leader-election.md")]
#[doc = include_str!("../../docs/events.md")]
struct Guides;

/// The code of the page about observability compiles. It uses the command line.
#[cfg(all(doctest, feature = "cli"))]
#[doc = include_str!("../../docs/observability.md")]
struct Observability;
