//! The body of an answer on an HTTP/2 connection.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http_body::{Body, Frame, SizeHint};
use tower::BoxError;

use super::http2_usage::InFlight;

/// A body that arrives on an HTTP/2 connection, and keeps it open.
///
/// What was read frees its part of the window at once, so that the server sends on. A body that is
/// not read stops its own stream after 4 MiB. One that is dropped before its end is cancelled.
#[derive(Debug)]
pub(super) struct Http2Body {
    stream: RecvStream,
    /// The bytes that are still to come, if the server has said how many there are.
    missing: Option<u64>,
    in_flight: InFlight,
}

// === impl Http2Body ===

impl Http2Body {
    /// Returns the body of an answer whose `Content-Length` is `length`, if it has one.
    pub(super) fn new(stream: RecvStream, length: Option<u64>, in_flight: InFlight) -> Self {
        Self { stream, missing: length, in_flight }
    }

    /// Returns true if the server has sent the complete answer without reading the whole request,
    /// and resets the stream for that (RFC 9113, 8.1). The end of the connection has the same code.
    fn is_end(&self, error: &h2::Error) -> bool {
        let is_complete = self.missing.is_none_or(|missing| missing == 0);
        error.is_reset() && error.reason() == Some(Reason::NO_ERROR) && is_complete
    }

    /// Frees the part of the window that `data` had.
    fn received(&mut self, data: &Bytes) {
        // It fails only if more is freed than was received.
        drop(self.stream.flow_control().release_capacity(data.len()));
        if let Some(missing) = &mut self.missing {
            *missing = missing.saturating_sub(data.len() as u64);
        }
    }
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match ready!(self.stream.poll_data(cx)) {
            Some(Ok(data)) => {
                self.received(&data);
                Some(Ok(Frame::data(data)))
            }
            Some(Err(error)) if self.is_end(&error) => None,
            Some(Err(error)) => Some(Err(self.in_flight.explain(error))),
            None => {
                let trailers = ready!(self.stream.poll_trailers(cx)).transpose();
                trailers.map(|trailers| match trailers {
                    Ok(trailers) => Ok(Frame::trailers(trailers)),
                    Err(error) => Err(self.in_flight.explain(error)),
                })
            }
        };
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.missing.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
