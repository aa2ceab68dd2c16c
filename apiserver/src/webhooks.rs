//! Admission and conversion by webhooks: which of them a request concerns, what they are sent, and
//! what their replies mean.
//!
//! A write decides in plain code and under locks, so it cannot wait for a webhook in the middle.
//! It stops at the first webhook whose answer is missing, and leaves a question in the
//! [`Conversation`] of its request. The shell calls the webhook, keeps the answer, and carries out
//! the write from its start again, which now finds the answer. A write that reads a changed object
//! the second time has another question, so it stops again: the optimistic retry of the real
//! server. Writes that no webhook concerns never stop.

mod admit;
mod cache;
mod client;
mod connections;
mod conversation;
mod conversion;
mod converted;
mod directory;
mod outcome;
mod review;
#[cfg(feature = "tls")]
mod tls;
mod webhook;

pub(crate) use admit::Admission;
pub(crate) use cache::Cache;
pub(crate) use client::Client;
pub(crate) use conversation::{Answered, Conversation, Drawn};
pub(crate) use conversion::{ConversionWebhook, Unconverted};
pub(crate) use directory::Server;
pub(crate) use webhook::Webhooks;
