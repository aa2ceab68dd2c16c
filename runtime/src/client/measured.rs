//! The metrics of a client's requests, under client-go's names.
//!
//! | Metric | Type | Labels |
//! |---|---|---|
//! | `rest_client_requests_total` | counter | `code`, `method`, `host` |
//! | `rest_client_request_duration_seconds` | histogram | `verb`, `host` |
//! | `rest_client_rate_limiter_duration_seconds` | histogram | `verb`, `host` |
//! | `rest_client_request_retries_total` | counter | `code`, `verb`, `host` |
//! | `rest_client_request_size_bytes` | histogram | `verb`, `host` |
//! | `rest_client_response_size_bytes` | histogram | `verb`, `host` |
//!
//! The names and labels are those of component-base (`metrics/prometheus/restclient`). The number
//! of time series is bounded: a method that is not listed in [`verb`] has the label `other`, and
//! the host is that of one server.

use std::sync::Arc;
use std::time::Duration;

use homeostat_core::metrics::{is_recorded, record};
use http::Method;

/// The metrics of one client. Off if no recorder was installed when the client was built.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    is_on: bool,
    /// The label `host`: the server's authority.
    host: Arc<str>,
}

/// Counts the bytes of one answer's body, and records their number when it is dropped.
///
/// A body of which nothing was read is not recorded: the client repeats the request.
pub(super) struct AnswerSize {
    requests: Requests,
    verb: &'static str,
    /// Bytes that were read.
    read: u64,
}

// === impl Requests ===

impl Requests {
    /// Keeps the authority of the URL: the label is `HOST:PORT`.
    pub(super) fn new(server: &str) -> Self {
        let behind_scheme = server.split_once("://").map_or(server, |(_, rest)| rest);
        let host = behind_scheme.split('/').next().unwrap_or_default();
        Self { is_on: is_recorded(), host: host.into() }
    }

    /// Counts an answer, or a failure with the code `<error>`, as client-go.
    ///
    /// `took` is the time from sending the request to the headers of the answer. It contains no
    /// wait for a permit or for the rate.
    pub(super) fn answered(&self, method: &Method, code: Option<u16>, took: Duration) {
        if !self.is_on {
            return;
        }
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let (verb, host) = (verb(method), &self.host);
        record(|| {
            metrics::counter!(
                "rest_client_requests_total",
                "code" => code, "method" => verb, "host" => Arc::clone(host)
            )
            .increment(1);
            metrics::histogram!(
                "rest_client_request_duration_seconds", "verb" => verb, "host" => Arc::clone(host)
            )
            .record(took);
        });
    }

    /// Records the time that a request waited for the client's own rate limit.
    ///
    /// Requests that did not wait are recorded too, so that the count of the histogram is that of
    /// the requests.
    pub(super) fn throttled(&self, method: &Method, waited: Duration) {
        if !self.is_on {
            return;
        }
        let (verb, host) = (verb(method), &self.host);
        record(|| {
            metrics::histogram!(
                "rest_client_rate_limiter_duration_seconds",
                "verb" => verb, "host" => Arc::clone(host)
            )
            .record(waited);
        });
    }

    /// Records the length of a request's body in bytes. A request without one is not recorded.
    pub(super) fn sent(&self, method: &Method, length: Option<u64>) {
        if let Some(length) = length.filter(|length| self.is_on && *length > 0) {
            self.record_size("rest_client_request_size_bytes", verb(method), length);
        }
    }

    /// Returns a counter for the body of an answer to a request with `method`, if metrics are on.
    pub(super) fn answer_size(&self, method: &Method) -> Option<AnswerSize> {
        let size = || AnswerSize { requests: self.clone(), verb: verb(method), read: 0 };
        self.is_on.then(size)
    }

    #[expect(clippy::cast_precision_loss, reason = "bodies are far below 2^52 bytes")]
    fn record_size(&self, name: &'static str, verb: &'static str, bytes: u64) {
        let (host, bytes) = (&self.host, bytes as f64);
        record(|| {
            metrics::histogram!(name, "verb" => verb, "host" => Arc::clone(host)).record(bytes);
        });
    }

    /// Counts a request that is sent again.
    pub(super) fn retried(&self, method: &Method, code: Option<u16>) {
        if !self.is_on {
            return;
        }
        let code = code.map_or_else(|| "<error>".to_owned(), |code| code.to_string());
        let (verb, host) = (verb(method), &self.host);
        record(|| {
            metrics::counter!(
                "rest_client_request_retries_total",
                "code" => code, "verb" => verb, "host" => Arc::clone(host)
            )
            .increment(1);
        });
    }
}

// === impl AnswerSize ===

impl AnswerSize {
    /// Counts a part of the body.
    pub(super) fn add(&mut self, bytes: usize) {
        self.read += bytes as u64;
    }
}

impl Drop for AnswerSize {
    fn drop(&mut self) {
        if self.read > 0 {
            let name = "rest_client_response_size_bytes";
            self.requests.record_size(name, self.verb, self.read);
        }
    }
}

/// Returns the label for `method`.
fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_of_the_label_has_neither_scheme_nor_path() {
        for (server, host) in [
            ("https://a.example:6443", "a.example:6443"),
            ("https://a.example/k8s/clusters/c1", "a.example"),
            ("the server", "the server"),
        ] {
            assert_eq!(&*Requests::new(server).host, host);
        }
    }
}
