//! Injects faults between a client and an API server.
//!
//! [`Faults`] is a [`tower::Layer`] around any transport, so the same test runs against the server
//! of `homeostat-apiserver` in this process, a server behind a socket, and a real kube-apiserver.
//! A server that carries out faults of its own selects the requests with a [`RuleSet`].
//!
//! ```text
//! Client ─▶ Faults ─▶ transport ─▶ server
//!             │ before the request: refuse, drop, lose, delay, hang; write first as another client
//!             │ after it was processed: lose the reply, replace, truncate, withhold or delay it
//!             │ open watches: tear, expire, corrupt, delay, hold, inject a line
//!             └ the client: partitioned, or crashed
//! ```
//!
//! [`Faults`] is a handle, and clones share everything. Clients have names, and [`Calls`] selects
//! the requests of a client that a fault hits. Random faults are drawn from a seed, so that the
//! same requests meet the same faults. [`Faults::trace`] records each fault with its time and
//! request.
//!
//! # Examples
//!
//! ```
//! # use homeostat_faults::{Calls, Faults};
//! # use k8s_openapi::api::core::v1::Pod;
//! # use kube_client::{Api, Client, api::DeleteParams};
//! # async fn run(client: Client) {
//! let faults = Faults::new();
//! let client = faults.client(client);
//! // The server processes the second delete of a pod; the client does not get the reply.
//! faults.lose_reply(Calls::delete("pods").nth(2));
//!
//! let pods = Api::<Pod>::default_namespaced(client);
//! pods.delete("a", &DeleteParams::default()).await.unwrap();
//! pods.delete("b", &DeleteParams::default()).await.unwrap_err();
//! assert_eq!(faults.trace().messages(), ["delete pods default/b: reply lost (200 OK)"]);
//! faults.assert_all_hit();
//! # }
//! ```

mod api_error;
mod calls;
mod chaos;
mod client_name;
mod conflicting_writer;
mod crash;
mod crash_point;
mod event_rules;
mod fault;
mod faults;
mod held_watches;
mod layer;
mod object_events;
mod object_match;
mod object_rules;
mod open_watches;
mod payload;
mod pending_request;
mod request_body;
mod request_info;
mod resource_names;
mod response_body;
mod rule_set;
mod rules;
mod selection;
mod service;
mod shared;
mod state;
mod stream;
mod stream_fault;
mod trace;
mod watch_commands;
mod watch_rules;

pub use crate::api_error::ApiError;
pub use crate::calls::Calls;
pub use crate::chaos::{Chaos, FaultClass};
pub use crate::client_name::ClientName;
pub use crate::crash::{Crash, Lost, Partition};
pub use crate::crash_point::CrashPoint;
pub use crate::event_rules::HeldEvents;
pub use crate::faults::Faults;
pub use crate::held_watches::HeldWatches;
pub use crate::layer::FaultLayer;
pub use crate::object_events::ObjectEvents;
pub use crate::object_match::RequestObject;
pub use crate::request_info::{RequestInfo, Verb};
pub use crate::response_body::ResponseBody;
pub use crate::rule_set::{Hit, RuleSet};
pub use crate::rules::FaultRule;
pub use crate::service::FaultService;
pub use crate::stream_fault::{Break, Cut};
pub use crate::trace::{Trace, TraceEntry};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
