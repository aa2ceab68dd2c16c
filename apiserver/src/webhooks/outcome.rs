//! The outcome of the call of a webhook: the reply to the request, and what metrics count.

use std::time::Duration;

use homeostat_core::go_quote;

use super::conversation::Conversation;
use super::webhook::Webhook;
use crate::metrics::{Counter, Label};
use crate::status::{Failure, Result};

/// The reason why a webhook lets a request not pass.
#[derive(Debug)]
pub(super) enum Stop {
    /// The call failed with this code: the failure policy decides.
    Call { code: u16, why: String },
    /// The request is refused, by the webhook or because of it.
    Refused { by: RefusedBy, failure: Failure },
    /// The server has to call the webhook first.
    Open,
}

/// The origin of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusedBy {
    Webhook,
    /// The server, which cannot do what the webhook says.
    Server,
}

/// The outcome of a call, for metrics.
pub(super) struct Outcome<'a> {
    pub(super) webhook: &'a Webhook,
    pub(super) is_mutating: bool,
    pub(super) operation: &'static str,
    pub(super) time: Duration,
    /// None if the webhook lets the request pass.
    pub(super) stop: Option<&'a Stop>,
}

/// Codes above count as this one.
const HIGHEST_CODE: u16 = 600;

// === impl Stop ===

impl Stop {
    /// Returns the reply to the request; `Ok` if the failure of the webhook is ignored.
    pub(super) fn judge(self, webhook: &Webhook) -> Result<()> {
        match self {
            Self::Call { .. } if webhook.ignores_failures => Ok(()),
            Self::Call { why, .. } => {
                let name = go_quote(&webhook.name);
                Err(Failure::internal_error(&format!("failed calling webhook {name}: {why}")))
            }
            Self::Refused { failure, .. } => Err(failure),
            Self::Open => Err(Failure::open_question()),
        }
    }
}

// === impl Outcome ===

impl Outcome<'_> {
    /// Counts the call.
    pub(super) fn count(&self, counts: &Conversation) {
        // The error of a rejection, and the code; the code alone if the request goes on.
        let (error, code) = match self.stop {
            None => (None, 200),
            Some(Stop::Open) => return,
            Some(Stop::Call { code, .. }) if self.webhook.ignores_failures => (None, *code),
            Some(Stop::Call { code, .. }) => (Some("calling_webhook_error"), *code),
            Some(Stop::Refused { by: RefusedBy::Webhook, failure }) => {
                (Some("no_error"), failure.code)
            }
            Some(Stop::Refused { by: RefusedBy::Server, .. }) => {
                (Some("apiserver_internal_error"), 0)
            }
        };
        let name = || Label::Owned(self.webhook.name.clone());
        let kind = || Label::Borrowed(if self.is_mutating { "admit" } else { "validating" });
        let operation = || Label::Borrowed(self.operation);
        let code = || Label::Owned(code.min(HIGHEST_CODE).to_string());
        let rejected = || Label::Borrowed(if error.is_some() { "true" } else { "false" });
        if let Some(error) = error {
            let labels = [error.into(), name(), operation(), code(), kind()];
            counts.count(Counter::WebhookRejections, &labels);
        }
        if error.is_none() && self.stop.is_some() {
            counts.count(Counter::WebhookFailOpen, &[name(), kind()]);
        }
        let labels = [code(), name(), operation(), rejected(), kind()];
        counts.count(Counter::WebhookRequests, &labels);
        counts.observe_webhook([name(), operation(), rejected(), kind()], self.time);
    }
}
