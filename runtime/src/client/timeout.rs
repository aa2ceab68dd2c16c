//! The body of an answer: a timeout between two parts, and its length for the metrics.
//!
//! hyper has no timeout for a body that stops in the middle: a server that dies without closing the
//! connection is found by pings, but one whose handler hangs is not. This timeout finds it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep};
use tower::BoxError;

use super::error::TransportError;
use super::measured::AnswerSize;
use super::transport::TransportBody;

/// A body that fails if its next part does not arrive within the timeout, and counts its bytes. The
/// length of the whole body is not limited: a large list takes the time that it needs.
///
/// Memory: the timer is allocated at the first wait and reset for the next ones.
pub(super) struct IdleTimeout {
    inner: TransportBody,
    /// Runs during the wait for a part; created at the first wait, because most answers are short.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
    timeout: Duration,
    server: std::sync::Arc<str>,
    /// `None` without metrics.
    size: Option<AnswerSize>,
}

// === impl IdleTimeout ===

impl IdleTimeout {
    /// Returns `inner` with the timeout. Its bytes are counted in `size`.
    pub(super) fn wrap(
        inner: TransportBody,
        timeout: Duration,
        server: std::sync::Arc<str>,
        size: Option<AnswerSize>,
    ) -> TransportBody {
        Self { inner, timer: None, is_waiting: false, timeout, server, size }.boxed_unsync()
    }

    /// Counts the bytes of a part of the body.
    fn count(&mut self, frame: Option<&Result<Frame<Bytes>, BoxError>>) {
        if let Some(size) = &mut self.size
            && let Some(Ok(frame)) = frame
            && let Some(data) = frame.data_ref()
        {
            size.add(data.len());
        }
    }

    /// Starts the timer if the wait has just begun, and polls it.
    ///
    /// A timeout beyond the end of time never fires.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = Instant::now().checked_add(self.timeout) else {
            return Poll::Pending; // No timeout.
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if !self.is_waiting {
            self.is_waiting = true;
            timer.as_mut().reset(deadline);
        }
        timer.as_mut().poll(cx)
    }
}

impl Body for IdleTimeout {
    type Data = Bytes;
    type Error = BoxError;

    /// After the error the body must not be polled any more, as every body.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            self.is_waiting = false;
            self.count(frame.as_ref());
            return Poll::Ready(frame);
        }
        ready!(self.poll_timeout(cx));
        let (server, timeout) = (self.server.to_string(), self.timeout);
        Poll::Ready(Some(Err(TransportError::TimedOut { server, timeout }.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
