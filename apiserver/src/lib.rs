//! A Kubernetes API server in process, for tests of controllers: faithful on the wire,
//! deterministic under a paused clock.
//!
//! [`ApiServer`] is the entry point. [`ApiServer::client`] returns a [`kube_client::Client`] that
//! calls it without a socket; [`ApiServer::listen`] serves other clients.
//!
//! # Layout
//!
//! A module uses only modules that stand above it in this list; a test checks that.
//!
//! - `fields`, `go_json`, `json_path`, `names`, `quantity`, `clock`: JSON, paths, texts, names and
//!   times.
//! - `access`: users, tokens and the rules of roles, as pure functions. `plugin`: the admission
//!   plugins that can be switched off.
//! - `status`, `types`, `object`, `media`, `subject`: errors, the types of built-in kinds, encoded
//!   objects, media types, the subjects of certificates.
//! - `state`: the file that a server can keep its objects in.
//! - `metrics`: what the server has counted, and its text.
//! - `storage`: one revision counter, and the history that watches read.
//! - `pod_security`: the levels of security of pods, as pure functions.
//! - `kinds`: the table of kinds, with a row for each kind, also of a
//!   `CustomResourceDefinition`. Only `api::definitions` and `api::addresses` name kinds, too.
//! - `admission`, `patch`, `selection`, `table`: the rules for writes, patches, selectors and
//!   columns, as pure functions.
//! - `webhooks`: admission and conversion by webhooks, as pure functions, and the calls.
//! - `core`: the state that all requests share.
//! - `request`, `reply`: one decoded request, and the answer to it.
//! - `api`: the verbs. `http`: paths and documents.
//! - `server`: the handle. `listener`, `duplex`: sockets and pipes.

// Public API.
mod access;
pub mod cluster;
mod duplex;
pub mod field_selector;
mod kinds;
mod listener;
pub mod patch;
mod plugin;
mod policies;
mod reply;
mod server;
mod state;
mod storage;
mod view;

pub use access::{KeyError, PublicKey, SigningKey, User};
pub use duplex::Duplex;
pub use kinds::Kind;
pub use listener::Listener;
pub use plugin::AdmissionPlugin;
pub use reply::Body;
pub use server::{ApiServer, ApiService, Builder, ReplyFuture, ServerFault};
pub use state::{State, StateError};
pub use storage::{Backup, Lag};
pub use view::LaggingView;

// Implementation.
mod admission;
mod api;
mod changes;
mod clock;
mod core;
#[cfg(feature = "tls")]
mod credentials;
mod fields;
mod flow_control;
mod go_base64;
mod go_diff;
mod go_json;
mod grants;
mod http;
mod json_path;
mod json_text;
mod media;
mod metrics;
mod names;
mod object;
mod pem;
mod pod_security;
mod quantity;
mod read_objects;
mod recent;
mod request;
mod selection;
mod status;
mod subject;
mod table;
mod types;
mod webhooks;

/// Compiles the examples of the pages.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../../docs/apiserver.md")]
    mod apiserver {}
}
