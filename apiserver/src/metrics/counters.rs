//! Counters with labels.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Label;
use super::text::{Family, number};

/// A counter. Each variant has the labels of [`Counter::family`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    WebhookFailOpen,
    WebhookRejections,
    WebhookRequests,
    HonoredDurations,
    RequestedDurations,
    PolicyChecks,
    WatchEvents,
    AuthenticatedUsers,
    Authentications,
    Authorizations,
    SecurityErrors,
    SecurityEvaluations,
    SecurityExemptions,
}

/// The counts of all counters.
#[derive(Debug)]
pub(super) struct Counters {
    /// One entry for each counter.
    series: [BTreeMap<Box<[Label]>, u64>; Counter::ALL.len()],
}

// === impl Counter ===

impl Counter {
    const ALL: [Self; 13] = [
        Self::WebhookFailOpen,
        Self::WebhookRejections,
        Self::WebhookRequests,
        Self::HonoredDurations,
        Self::RequestedDurations,
        Self::PolicyChecks,
        Self::WatchEvents,
        Self::AuthenticatedUsers,
        Self::Authentications,
        Self::Authorizations,
        Self::SecurityErrors,
        Self::SecurityEvaluations,
        Self::SecurityExemptions,
    ];

    fn family(self) -> Family {
        let (name, labels) = self.named();
        Family { name, help: self.help(), kind: "counter", labels }
    }

    /// Returns the name and the labels.
    fn named(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::WebhookFailOpen => {
                ("apiserver_admission_webhook_fail_open_count", &["name", "type"])
            }
            Self::WebhookRejections => (
                "apiserver_admission_webhook_rejection_count",
                &["error_type", "name", "operation", "rejection_code", "type"],
            ),
            Self::WebhookRequests => (
                "apiserver_admission_webhook_request_total",
                &["code", "name", "operation", "rejected", "type"],
            ),
            Self::HonoredDurations => {
                ("apiserver_certificates_registry_csr_honored_duration_total", &["signerName"])
            }
            Self::RequestedDurations => {
                ("apiserver_certificates_registry_csr_requested_duration_total", &["signerName"])
            }
            Self::PolicyChecks => (
                "apiserver_validating_admission_policy_check_total",
                &["enforcement_action", "error_type", "policy", "policy_binding"],
            ),
            Self::WatchEvents => {
                ("apiserver_watch_events_total", &["group", "resource", "version"])
            }
            Self::AuthenticatedUsers => ("authenticated_user_requests", &["username"]),
            Self::Authentications => ("authentication_attempts", &["result"]),
            Self::Authorizations => ("authorization_attempts_total", &["result"]),
            Self::SecurityErrors => (
                "pod_security_errors_total",
                &["fatal", "request_operation", "resource", "subresource"],
            ),
            Self::SecurityEvaluations => (
                "pod_security_evaluations_total",
                &[
                    "decision",
                    "mode",
                    "policy_level",
                    "policy_version",
                    "request_operation",
                    "resource",
                    "subresource",
                ],
            ),
            Self::SecurityExemptions => {
                ("pod_security_exemptions_total", &["request_operation", "resource", "subresource"])
            }
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::WebhookFailOpen => {
                "[ALPHA] Admission webhook fail open count, identified by name and broken out for \
                 each admission type (validating or admit)."
            }
            Self::WebhookRejections => {
                "[ALPHA] Admission webhook rejection count, identified by name and broken out for \
                 each admission type (validating or admit) and operation. Additional labels \
                 specify an error type (calling_webhook_error or apiserver_internal_error if an \
                 error occurred; no_error otherwise) and optionally a non-zero rejection code if \
                 the webhook rejects the request with an HTTP status code (honored by the \
                 apiserver when the code is greater or equal to 400). Codes greater than 600 are \
                 truncated to 600, to keep the metrics cardinality bounded."
            }
            Self::WebhookRequests => {
                "[ALPHA] Admission webhook request total, identified by name and broken out for \
                 each admission type (validating or admit) and operation. Additional labels \
                 specify whether the request was rejected or not and an HTTP status code. Codes \
                 greater than 600 are truncated to 600, to keep the metrics cardinality bounded."
            }
            Self::HonoredDurations => {
                "[ALPHA] Total number of issued CSRs with a requested duration that was honored, \
                 sliced by signer (only kubernetes.io signer names are specifically identified)"
            }
            Self::RequestedDurations => {
                "[ALPHA] Total number of issued CSRs with a requested duration, sliced by signer \
                 (only kubernetes.io signer names are specifically identified)"
            }
            Self::PolicyChecks => {
                "[BETA] Validation admission policy check total, labeled by policy and further \
                 identified by binding and enforcement action taken."
            }
            Self::WatchEvents => "[BETA] Number of events sent in watch clients",
            Self::AuthenticatedUsers => {
                "[ALPHA] Counter of authenticated requests broken out by username."
            }
            Self::Authentications => "[ALPHA] Counter of authenticated attempts.",
            Self::Authorizations => {
                "[ALPHA] Counter of authorization attempts broken down by result. It can be either \
                 'allowed', 'denied', 'no-opinion' or 'error'."
            }
            Self::SecurityErrors => {
                "[ALPHA] Number of errors preventing normal evaluation. Non-fatal errors may \
                 result in the latest restricted profile being used for evaluation."
            }
            Self::SecurityEvaluations => {
                "[ALPHA] Number of policy evaluations that occurred, not counting ignored or \
                 exempt requests."
            }
            Self::SecurityExemptions => {
                "[ALPHA] Number of exempt requests, not counting ignored or out of scope requests."
            }
        }
    }

    /// Returns the labels of the counts that are shown from the start.
    fn initial(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::SecurityEvaluations => &[
                &["allow", "enforce", "privileged", "latest", "create", "pod", ""],
                &["allow", "enforce", "privileged", "latest", "update", "pod", ""],
            ],
            // Nothing is exempt without a configuration file.
            Self::SecurityExemptions => &[
                &["create", "controller", ""],
                &["create", "pod", ""],
                &["update", "controller", ""],
                &["update", "pod", ""],
            ],
            _ => &[],
        }
    }
}

// === impl Counters ===

impl Default for Counters {
    fn default() -> Self {
        let series = Counter::ALL.map(|counter| {
            let initial = counter.initial().iter();
            initial.map(|labels| (labels.iter().copied().map(Cow::Borrowed).collect(), 0)).collect()
        });
        Self { series }
    }
}

impl Counters {
    pub(super) fn add(&mut self, counter: Counter, labels: &[Label], events: u64) {
        debug_assert_eq!(labels.len(), counter.family().labels.len(), "{counter:?}");
        let series = &mut self.series[counter as usize];
        match series.get_mut(labels) {
            Some(count) => *count += events,
            None => {
                series.insert(labels.into(), events);
            }
        }
    }

    /// Returns the text of each counter with its name; empty if it has counted nothing.
    pub(super) fn families(&self) -> impl Iterator<Item = (&'static str, String)> {
        Counter::ALL.into_iter().zip(&self.series).map(|(counter, series)| {
            let (family, mut text) = (counter.family(), String::new());
            if !series.is_empty() {
                family.begin(&mut text);
            }
            for (labels, count) in series {
                let labels: Vec<&str> = labels.iter().map(AsRef::as_ref).collect();
                #[expect(clippy::cast_precision_loss, reason = "Prometheus counts in floats")]
                family.sample(&mut text, &labels, &number(*count as f64));
            }
            (family.name, text)
        })
    }
}
