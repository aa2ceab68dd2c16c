//! Bodies that do not wait for ever: requests that have to come, and answers that are watched being read.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};
use tower::BoxError;

use super::activity::Ongoing;
use crate::faults::ResponseBody;

/// The body of a request. It fails when it takes too long.
#[derive(Debug)]
pub(crate) struct Patient {
    body: Incoming,
    patience: Duration,
    /// Set when it first had to be waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

/// The body of a request has not come in time.
#[derive(Debug)]
pub(crate) struct Late;

/// The body of an answer, in pieces, so that it is known how far the client has read.
pub(super) struct Answer {
    body: ResponseBody,
    /// What does not fit into the piece that was handed out.
    rest: Bytes,
    ongoing: Ongoing,
}

/// What is handed out at once: as much as a watch hands out.
const PIECE: usize = 64 * 1024;

// === impl Patient ===

impl Patient {
    pub(super) fn new(body: Incoming, patience: Duration) -> Self {
        Self { body, patience, timer: None }
    }
}

impl Body for Patient {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Some(Err(Late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl Late ===

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of the request did not come in time")
    }
}

impl std::error::Error for Late {}

// === impl Answer ===

impl Answer {
    pub(super) fn new(body: ResponseBody, ongoing: Ongoing) -> Self {
        Self { body, rest: Bytes::new(), ongoing }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.ongoing.want();
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
        self.ongoing.hand_out(Instant::now());
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
