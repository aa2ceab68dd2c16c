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
//! # An operator
//!
//! A complete program: it keeps a `ConfigMap` in each namespace with a label. It runs in a cluster
//! and on a laptop, with leader election (`--leader-elect`), health, metrics and a debug page
//! (`--bind-address 127.0.0.1:8080`).
//!
//! ```console
//! cargo add homeostat --features cli
//! cargo add k8s-openapi --features v1_37
//! cargo add clap --features derive
//! ```
//!
#![cfg_attr(feature = "cli", doc = "```no_run")]
#![cfg_attr(not(feature = "cli"), doc = "```ignore")]
//! use std::process::ExitCode;
//!
//! use clap::Parser;
//! use homeostat::apply::Apply;
//! use homeostat::cli::{Flags, Program};
//! use homeostat::informer::Scope;
//! use homeostat::kube_client::{Api, Client, Error};
//! use homeostat::owner::controller_reference;
//! use homeostat::{
//!     Action, Controller, EventRecorder, Lister, Manager, Reconciler, Request,
//!     SharedInformerFactory,
//! };
//! use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
//!
//! /// Keeps a ConfigMap in each namespace with the label settings=yes.
//! #[derive(Parser)]
//! #[command(version)]
//! struct Arguments {
//!     #[command(flatten)]
//!     flags: Flags,
//! }
//!
//! struct Settings {
//!     client: Client,
//!     namespaces: Lister<Namespace>,
//!     maps: Lister<ConfigMap>,
//!     events: EventRecorder,
//! }
//!
//! impl Reconciler<Namespace> for Settings {
//!     type Error = Error;
//!
//!     async fn reconcile(&self, request: &Request<Namespace>) -> Result<Action, Error> {
//!         let name = request.key().name();
//!         let Some(namespace) = self.namespaces.get(request.key()) else {
//!             return Ok(Action::AwaitChange); // Deleted: the garbage collector deletes the map.
//!         };
//!         let mut map = ConfigMap::default();
//!         map.metadata.name = Some("settings".to_owned());
//!         map.metadata.owner_references = controller_reference(&*namespace).map(|it| vec![it]);
//!         map.data = Some([("language".to_owned(), "en".to_owned())].into());
//!         let found = self.maps.get((name, "settings"));
//!         if namespace.metadata.deletion_timestamp.is_none()
//!             && found.is_none_or(|found| found.data != map.data)
//!         {
//!             let maps = Api::namespaced(self.client.clone(), name);
//!             Apply::by("settings-operator").force().object(&maps, &map).await?;
//!             self.events.normal(&namespace, "Configured", "ConfigMap settings written");
//!         }
//!         Ok(Action::AwaitChange)
//!     }
//! }
//!
//! fn manager(client: Client) -> Manager {
//!     let informers = SharedInformerFactory::builder(client.clone()).metrics("settings").build();
//!     let namespaces = informers.informer_in(&Scope::all().labels("settings=yes"));
//!     let maps = informers.informer_in(&Scope::all().fields("metadata.name=settings"));
//!     let events = EventRecorder::new(client.clone(), "settings-operator");
//!     let (cache, recorder) = (namespaces.lister(), events.clone());
//!     let settings =
//!         Settings { client, namespaces: cache, maps: maps.lister(), events: recorder };
//!     let controller = Controller::builder("settings", &namespaces).owns(&maps).build(settings);
//!     Manager::new(informers).with(controller).recorder(&events)
//! }
//!
//! fn main() -> ExitCode {
//!     let Arguments { flags } = Arguments::parse();
//!     let program = Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
//!     program.run(&flags, async |client| Ok(manager(client)))
//! }
//! ```
//!
//! Kubernetes types come from `k8s-openapi`: `cargo add k8s-openapi --features v1_37`, or another
//! version; this crate uses no field that differs between them. `kube`'s
//! `#[derive(CustomResource)]` defines custom kinds.
//!
//! The crate's README has a controller that counts objects with generated names, which needs
//! expectations. The book's page *Write a controller* goes through a custom resource in six steps.

mod any_controller;
mod any_informer;
pub mod apply;
mod batch;
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
#[cfg(test)]
mod test_error;
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
#[doc(inline)]
pub use homeostat_informer::predicate;
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
