//! A Kubernetes API server in process: faithful on the wire, deterministic under a paused clock.
//!
//! [`ApiServer`] is the whole of it. [`ApiServer::client`] gives a [`kube_client::Client`] that calls it without a
//! socket; [`ApiServer::listen`] serves everybody else.
//!
//! # Layout
//!
//! - `kinds`: the table, one row per kind. No other part knows a kind by name.
//! - `storage`: objects as bytes, one revision counter, and the history that watches read.
//! - `admission`: what a write may change, as pure functions.
//! - `api`: the verbs. `http`: paths, queries, bodies, and answers.
//! - `table`: the columns of every kind.
//! - `selector`, `patch`, `names`, `status`: what the names say.

// Public API.
mod backup;
pub mod cluster;
#[cfg(feature = "control-plane")]
pub mod control_plane;
mod duplex;
pub mod faults;
mod kinds;
mod listener;
pub mod patch;
pub mod selector;
mod server;
mod view;

pub use backup::Backup;
pub use duplex::Duplex;
pub use http::Body;
pub use kinds::Kind;
pub use listener::Listener;
pub use server::{ApiServer, ApiService, Builder, ClientName, ReplyFuture};
pub use view::{Lag, View};

// Necessary for the implementation.
mod admission;
mod api;
mod clock;
mod core;
mod go_json;
mod http;
mod names;
mod object;
mod quantity;
mod selection;
mod status;
mod storage;
mod table;
mod types;

/// The pages whose examples are run.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../docs/apiserver.md")]
    mod apiserver {}
    #[doc = include_str!("../../docs/testing.md")]
    mod testing {}
}
