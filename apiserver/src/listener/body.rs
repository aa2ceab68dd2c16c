//! Bodies with timeouts: request bodies that must arrive, and reply bodies that must be read.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use homeostat_faults::ResponseBody;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};
use tower::BoxError;

use super::activity::RequestGuard;
use crate::http::BodyTimeout;

/// A request body that fails when it takes too long.
#[derive(Debug)]
pub(crate) struct TimedBody {
    body: Incoming,
    timeout: Duration,
    /// Started at the first wait.
    timer: Option<Pin<Box<Sleep>>>,
}

/// A reply body in pieces, which shows how far the client has read.
pub(super) struct PacedBody {
    body: ResponseBody,
    /// The part that did not fit into the last piece.
    rest: Bytes,
    guard: RequestGuard,
}

/// The size of a piece in bytes, which is also that of a watch.
const PIECE: usize = 64 * 1024;

// === impl TimedBody ===

impl TimedBody {
    pub(super) fn new(body: Incoming, timeout: Duration) -> Self {
        Self { body, timeout, timer: None }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Some(Err(BodyTimeout.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl PacedBody ===

impl PacedBody {
    pub(super) fn new(body: ResponseBody, guard: RequestGuard) -> Self {
        Self { body, rest: Bytes::new(), guard }
    }
}

impl Body for PacedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.guard.mark_read();
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return Poll::Ready(other),
            }
        }
        let size = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(size);
        self.guard.mark_unread(Instant::now());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, of_body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower().saturating_add(rest));
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}
