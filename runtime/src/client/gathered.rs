//! A stream whose writes wait for the other tasks that are ready, so that they leave together.
//!
//! hyper hands over the head of an HTTP/2 request first, and its body only when the connection has
//! given the stream some of its window. Written at once, each request is two TLS records and two
//! packets, and wakes the server twice. After one turn of the scheduler the body is there too, and
//! so are the requests of other tasks.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};

/// A stream that gives the other ready tasks a turn before each write, on HTTP/2 only.
///
/// The writer is woken at once: it waits for no clock and no peer.
pub(super) struct Gathered<S> {
    inner: S,
    turn: Turn,
}

/// The progress of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The connection is no HTTP/2 connection: each message is complete when it is written.
    NotNeeded,
    /// The next write gives way to other tasks.
    GivesWay,
    /// The other tasks had their turn.
    Over,
}

// === impl Gathered ===

impl<S: Connection> Gathered<S> {
    pub(super) fn new(inner: S) -> Self {
        let is_http2 = inner.connected().is_negotiated_h2();
        let turn = if is_http2 { Turn::GivesWay } else { Turn::NotNeeded };
        Self { inner, turn }
    }
}

impl<S: Unpin> Gathered<S> {
    /// Carries out `write` when the other tasks had their turn. A write that the peer holds up keeps
    /// its turn.
    fn poll_in_turn<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if self.turn == Turn::GivesWay {
            self.turn = Turn::Over;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let written = ready!(write(Pin::new(&mut self.inner), cx));
        if self.turn == Turn::Over {
            self.turn = Turn::GivesWay;
        }
        Poll::Ready(written)
    }
}

impl<S: Write + Unpin> Write for Gathered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_in_turn(cx, |inner, cx| inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_in_turn(cx, |inner, cx| inner.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<S: Read + Unpin> Read for Gathered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: Connection> Connection for Gathered<S> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<S> fmt::Debug for Gathered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathered").field("turn", &self.turn).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    /// A peer that takes everything while it `is_open`.
    struct Peer {
        is_http2: bool,
        is_open: bool,
        taken: Vec<u8>,
    }

    impl Write for Peer {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if !self.is_open {
                return Poll::Pending;
            }
            self.taken.extend_from_slice(bytes);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Connection for Peer {
        fn connected(&self) -> Connected {
            let connected = Connected::new();
            if self.is_http2 { connected.negotiated_h2() } else { connected }
        }
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A stream to a peer, with the number of times that its writer was woken.
    struct Scene {
        stream: Gathered<Peer>,
        wakes: Arc<Wakes>,
    }

    impl Scene {
        fn new(is_http2: bool) -> Self {
            let peer = Peer { is_http2, is_open: true, taken: Vec::new() };
            Self { stream: Gathered::new(peer), wakes: Arc::default() }
        }

        /// Returns true if the write was carried out.
        fn write(&mut self, bytes: &[u8]) -> bool {
            let waker = Waker::from(Arc::clone(&self.wakes));
            let written =
                Pin::new(&mut self.stream).poll_write(&mut Context::from_waker(&waker), bytes);
            matches!(written, Poll::Ready(Ok(length)) if length == bytes.len())
        }

        fn wakes(&self) -> usize {
            self.wakes.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn each_write_on_http2_gives_way_once_and_wakes_its_task() {
        let mut scene = Scene::new(true);
        assert!(!scene.write(b"head"));
        assert_eq!(scene.wakes(), 1);
        assert!(scene.write(b"head and body"));
        assert!(!scene.write(b"next"));
        assert!(scene.write(b"next"));
        assert_eq!(scene.stream.inner.taken, b"head and bodynext");
        assert_eq!(scene.wakes(), 2);
    }

    #[test]
    fn write_that_the_peer_holds_up_gives_way_once() {
        let mut scene = Scene::new(true);
        scene.stream.inner.is_open = false;
        assert!(!scene.write(b"head"));
        assert!(!scene.write(b"head"));
        scene.stream.inner.is_open = true;
        assert!(scene.write(b"head"));
        assert_eq!(scene.wakes(), 1);
    }

    #[test]
    fn write_on_http1_does_not_give_way() {
        let mut scene = Scene::new(false);
        assert!(scene.write(b"GET / HTTP/1.1"));
        assert!(scene.write(b"\r\n\r\n"));
        assert_eq!(scene.wakes(), 0);
    }
}
