//! Sends events to the API server, with retries until the recorder is shut down.
//!
//! | Answer | Next step |
//! |---|---|
//! | success; 409 for a create | done |
//! | 404 for an update | create the event, with its count |
//! | another status | dropped and counted: a retry would not help |
//! | none within 10 s, or a broken connection | again, up to 12 times, 10 s apart |
//!
//! As in client-go (`record/event.go`), an event is not worth more than two minutes, and events
//! stay in order.

use std::time::Duration;

use bytes::Bytes;
use homeostat_core::{Panicked, Random, user_future};
use http::StatusCode;
use kube_client::Client;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::client::Body;
use kube_client::core::{Request, Status};
use tokio_util::sync::CancellationToken;

use super::post::{Post, Stored};
use crate::client::{describe_error, metadata_only};

/// The space for an event in the body of its request, in bytes. A longer one makes the body grow.
const EVENT_BYTES: usize = 1 << 10;

/// client-go's `maxTriesPerEvent` and `defaultSleepDuration`: two minutes for an unreachable
/// server.
const ATTEMPTS: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);

/// The time in which a request has to be answered. Without it one unanswered request would stop all
/// later events.
const TIMEOUT: Duration = Duration::from_secs(10);

/// It has no queue: the caller waits for each event. An unreachable server therefore holds up the
/// events behind it, and the recorder's queue fills up.
///
/// One task owns it.
pub(super) struct Sender {
    client: Client,
    /// Spreads the first pause, so that the controllers of a cluster do not all retry at once.
    random: Random,
    closing: CancellationToken,
}

/// The result of one attempt.
///
/// Only `NotFound` and `Unanswered` lead to another request.
enum Sent {
    /// The server has the event.
    Done,
    /// The event to update does not exist on the server: it has to be created.
    NotFound,
    /// The server refused the event. A retry would not help.
    Refused(Rejection),
    /// No answer arrived.
    Unanswered(String),
    /// The author's code in the client panicked. A retry would do the same.
    Panicked(Panicked),
}

/// The end of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The server has the event.
    Sent,
    /// The server refused the event.
    Refused,
    /// No answer arrived in time.
    Unsent,
}

/// The reason for which the server refused an event.
struct Rejection {
    text: String,
    /// True if the namespace is being deleted: the events of its objects are of no use.
    is_expected: bool,
}

// === impl Sender ===

impl Sender {
    /// Creates a sender. `closing` ends the pauses, so that a shutdown waits for one attempt and
    /// not for two minutes.
    pub(super) fn new(client: Client, random: Random, closing: CancellationToken) -> Self {
        Self { client, random, closing }
    }

    /// Waits until the recorder is shut down.
    pub(super) async fn wait_for_shut_down(&self) {
        self.closing.cancelled().await;
    }

    /// Sends one event. Repeats it after a pause if no answer arrives, unless the recorder is shut
    /// down. Logs an event that the server does not get.
    ///
    /// It ends after 12 attempts without an answer, at the latest, and after a panic. A `NotFound`
    /// is no attempt: the event is created at once.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the server may have the event or not.
    pub(super) async fn send<E: Stored>(&mut self, mut post: Post<E>) -> Fate {
        let mut attempt = 1;
        loop {
            let reason = match self.attempt(&post).await {
                Sent::Done => return Fate::Sent,
                Sent::Refused(rejection) => {
                    rejection.log();
                    return Fate::Refused;
                }
                Sent::NotFound => {
                    // The event expired on the server. Its count continues.
                    post = post.into_create();
                    continue;
                }
                Sent::Unanswered(reason) => reason,
                Sent::Panicked(panicked) => {
                    tracing::error!(error = %panicked, "request of an event panicked, dropping it");
                    return Fate::Unsent;
                }
            };
            tracing::debug!(attempt, %reason, "event got no answer");
            if attempt == ATTEMPTS {
                tracing::warn!(attempt, %reason, "Unable to write event (retry limit exceeded!)");
                return Fate::Unsent;
            }
            if !self.pause(attempt).await {
                tracing::warn!(attempt, %reason, "Unable to write event (shutting down)");
                return Fate::Unsent;
            }
            attempt += 1;
        }
    }

    /// Sends one request and reads its answer to the end, within [`TIMEOUT`].
    async fn attempt<E: Stored>(&self, post: &Post<E>) -> Sent {
        let request = match request(post) {
            Ok(request) => request,
            Err(error) => return Sent::Refused(Rejection::new(error.to_string(), &[])),
        };
        // A layer of the client is the author's code. Its panic must not end the task.
        let answer = user_future("event request", self.answer(request));
        let (status, body) = match tokio::time::timeout(TIMEOUT, answer).await {
            Ok(Ok(Ok(answer))) => answer,
            Ok(Err(panicked)) => return Sent::Panicked(panicked),
            Ok(Ok(Err(error))) => return Sent::Unanswered(describe_error(&error)),
            Err(_) => return Sent::Unanswered(format!("no answer within {TIMEOUT:?}")),
        };
        match status {
            _ if status.is_success() => Sent::Done,
            // An earlier attempt was stored and its answer was lost.
            StatusCode::CONFLICT if matches!(post, Post::Create(_)) => Sent::Done,
            StatusCode::NOT_FOUND if matches!(post, Post::Update(_)) => Sent::NotFound,
            _ => Sent::Refused(Rejection::new(status.to_string(), &body)),
        }
    }

    /// Sends the request and reads the body of the answer. The client below repeats what is safe to
    /// repeat.
    async fn answer(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> kube_client::Result<(StatusCode, Bytes)> {
        let mut request = metadata_only(request.map(Body::from));
        request.extensions_mut().insert("event");
        let response = self.client.send(request).await?;
        let status = response.status();
        // The body is the metadata of the event, which nothing here needs. Reading it keeps the
        // connection.
        let body = response.into_body().collect_bytes().await;
        Ok((status, body.unwrap_or_default()))
    }

    /// Pauses before a retry. Returns false if the recorder was shut down.
    async fn pause(&mut self, attempt: u32) -> bool {
        let pause = if attempt == 1 { PAUSE.mul_f64(self.random.fraction()) } else { PAUSE };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

// === impl Rejection ===

impl Rejection {
    /// Reads the server's `Status`, if the body is one.
    ///
    /// A body that is no `Status`, such as the page of a proxy, gives the status code alone.
    fn new(code: String, body: &[u8]) -> Self {
        let status: Option<Status> = serde_json::from_slice(body).ok();
        let Some(status) = status else { return Self { text: code, is_expected: false } };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let is_expected = causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating");
        Self { text: format!("{code}: {}", status.message), is_expected }
    }

    /// Logs the refusal: a warning, unless the namespace is being deleted.
    fn log(&self) {
        let reason = &self.text;
        if self.is_expected {
            tracing::trace!(%reason, "Server rejected event (will not retry!)");
        } else {
            tracing::warn!(%reason, "Server rejected event (will not retry!)");
        }
    }
}

/// Builds the request: a create of the event, or a patch of what a repetition changes.
fn request<E: Stored>(
    post: &Post<E>,
) -> Result<http::Request<Vec<u8>>, kube_client::core::request::Error> {
    let event = post.event();
    let url = E::url_path(&(), event.meta().namespace.as_deref());
    match post {
        Post::Create(_) => {
            let mut body = Vec::with_capacity(EVENT_BYTES);
            serde_json::to_writer(&mut body, event)
                .map_err(kube_client::core::request::Error::SerializeBody)?;
            Request::new(url).create(&PostParams::default(), body)
        }
        Post::Update(_) => {
            let name = event.meta().name.as_deref().unwrap_or_default();
            let patch = Patch::Strategic(event.repetition());
            Request::new(url).patch(name, &PatchParams::default(), &patch)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejection_in_a_terminating_namespace_is_expected() {
        let status = |reason: &str| {
            let status = serde_json::json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no",
                "details": {"causes": [{"reason": reason, "message": "", "field": ""}]}
            });
            Rejection::new("403 Forbidden".to_owned(), status.to_string().as_bytes())
        };
        assert!(status("NamespaceTerminating").is_expected);
        let other = status("Quota");
        assert_eq!((other.is_expected, other.text.as_str()), (false, "403 Forbidden: no"));
        assert!(!Rejection::new("500".to_owned(), b"<html>").is_expected);
    }
}
