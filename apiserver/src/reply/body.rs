//! The body of a response: bytes, or the stream of a watch.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http_body::{Frame, SizeHint};

const LINE_FEED: &[u8] = b"\n";

/// The body of every response. It never fails; a watch that is over ends the body.
pub struct Body {
    kind: Kind,
}

enum Kind {
    /// The bytes that are not sent yet. A line feed follows them if `ends_line`.
    Full {
        bytes: Option<Bytes>,
        ends_line: bool,
    },
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

// === impl Body ===

impl Body {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let bytes = (!bytes.is_empty()).then_some(bytes);
        Self { kind: Kind::Full { bytes, ends_line: false } }
    }

    /// Creates a body of bytes and a line feed. The bytes, which may be shared, are not copied.
    ///
    /// The line feed goes into their buffer if they are not shared and have room for it: a client
    /// joins two chunks by copying both.
    pub(crate) fn line(bytes: Bytes) -> Self {
        let bytes = match bytes.try_into_mut() {
            Ok(mut own) if own.len() < own.capacity() => {
                own.extend_from_slice(LINE_FEED);
                return Self::full(own);
            }
            Ok(own) => own.freeze(),
            Err(shared) => shared,
        };
        Self { kind: Kind::Full { bytes: Some(bytes), ends_line: true } }
    }

    /// Returns the body with other bytes and without a line feed, unless it is a stream.
    pub(crate) fn map_full(self, change: impl FnOnce(Bytes) -> Bytes) -> Self {
        match self.kind {
            Kind::Full { bytes: Some(bytes), .. } => Self::full(change(bytes)),
            kind => Self { kind },
        }
    }

    /// Returns the number of bytes that are left; `None` for a stream.
    pub(crate) fn size(&self) -> Option<u64> {
        http_body::Body::size_hint(self).exact()
    }

    /// Calls `observe` with each chunk of a stream. It is dropped with the stream.
    pub(crate) fn observed(self, mut observe: impl FnMut(&Bytes) + Send + 'static) -> Self {
        match self.kind {
            Kind::Stream(stream) => Self::stream(stream.inspect(move |chunk| observe(chunk))),
            kind @ Kind::Full { .. } => Self { kind },
        }
    }

    pub(crate) fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { kind: Kind::Stream(Box::pin(stream)) }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Full { .. } => "Full",
            Kind::Stream(_) => "Stream",
        };
        f.debug_tuple("Body").field(&kind).finish()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match &mut self.kind {
            Kind::Full { bytes, ends_line } => {
                let next = bytes
                    .take()
                    .or_else(|| std::mem::take(ends_line).then_some(Bytes::from_static(LINE_FEED)));
                Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
            }
            Kind::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Full { bytes: None, ends_line: false })
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full { bytes, ends_line } => {
                let length = bytes.as_ref().map_or(0, Bytes::len) + usize::from(*ends_line);
                SizeHint::with_exact(length as u64)
            }
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn line_feed_is_in_the_only_chunk_of_bytes_with_room_for_it() {
        let bytes = || {
            let mut bytes = Vec::with_capacity(3);
            bytes.extend_from_slice(b"{}");
            Bytes::from(bytes)
        };
        let first = async |body: Body| {
            let mut chunks = body.into_data_stream();
            chunks.next().await.unwrap().unwrap()
        };
        assert_eq!(first(Body::line(bytes())).await, "{}\n");
        let shared = bytes();
        assert_eq!(first(Body::line(shared.clone())).await, "{}");
        assert_eq!(shared, "{}");
        let full = Body::line(Bytes::from(b"{}".to_vec()));
        assert_eq!(full.collect().await.unwrap().to_bytes(), "{}\n");
    }

    #[tokio::test]
    async fn line_feed_follows_bytes_and_counts() {
        let body = Body::line(Bytes::from_static(b"{}"));
        assert_eq!(body.size_hint().exact(), Some(3));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "{}\n");
        let indented = Body::line(Bytes::from_static(b"{}")).map_full(|_| "{\n}".into());
        assert_eq!(indented.collect().await.unwrap().to_bytes(), "{\n}");
    }
}
