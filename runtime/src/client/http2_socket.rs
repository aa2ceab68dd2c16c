//! The socket of an HTTP/2 connection, which sends what h2 writes in one piece.
//!
//! h2 flushes its stream after each request whose body has 1 KiB or more. Each flush would be a
//! record of TLS, a system call, a packet, and a wake-up of the server. Here requests that are
//! ready at the same time share them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// The bytes that are gathered at most before they are sent: those of the longest record of TLS.
/// One write of h2 may exceed it.
const ENOUGH: usize = 16 << 10;

/// A socket that gathers what is written until [`poll_send`](Self::poll_send). Clones share it.
///
/// h2 owns one, and the task of the connection another. The lock is held for one operation of the
/// task, which never waits for it.
pub(super) struct Socket<S> {
    shared: Arc<Mutex<Shared<S>>>,
}

struct Shared<S> {
    stream: TokioIo<S>,
    unsent: BytesMut,
    last_read: Instant,
}

// === impl Socket ===

impl<S> Socket<S> {
    pub(super) fn new(stream: S) -> Self {
        let (unsent, last_read) = (BytesMut::new(), Instant::now());
        let shared = Shared { stream: TokioIo::new(stream), unsent, last_read };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// Returns the time at which it was read last.
    pub(super) fn last_read(&self) -> Instant {
        self.shared.lock().last_read
    }

    /// Sends what was written.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        S: Write + Unpin,
    {
        self.shared.lock().poll_send(cx)
    }
}

impl<S> Clone for Socket<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Read + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut shared = self.shared.lock();
        let read = Pin::new(&mut shared.stream).poll_read(cx, buffer);
        if read.is_ready() {
            shared.last_read = Instant::now();
        }
        read
    }
}

impl<S: Write + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut shared = self.shared.lock();
        if shared.unsent.len() >= ENOUGH {
            ready!(shared.poll_send(cx))?;
        }
        shared.unsent.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    /// Sends nothing: the task of the connection does when h2 has nothing more to write.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = self.shared.lock();
        ready!(shared.poll_send(cx))?;
        Pin::new(&mut shared.stream).poll_shutdown(cx)
    }
}

// === impl Shared ===

impl<S: Write + Unpin> Shared<S> {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.unsent))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent.advance(sent);
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// The pieces that were sent.
    #[derive(Clone, Default)]
    struct Sent(Arc<Mutex<Vec<Vec<u8>>>>);

    impl Write for Sent {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.lock().push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.lock().push(b"end".to_vec());
            Poll::Ready(Ok(()))
        }
    }

    /// Writes the pieces, each with a flush.
    fn written(pieces: &[&[u8]]) -> (Socket<Sent>, Sent) {
        let sent = Sent::default();
        let mut socket = Socket::new(sent.clone());
        let mut cx = Context::from_waker(Waker::noop());
        for piece in pieces {
            let written = Pin::new(&mut socket).poll_write(&mut cx, piece);
            assert!(matches!(written, Poll::Ready(Ok(length)) if length == piece.len()));
            assert!(Pin::new(&mut socket).poll_flush(&mut cx).is_ready());
        }
        (socket, sent)
    }

    #[test]
    fn writes_are_sent_in_one_piece() {
        let (socket, sent) = written(&[b"head", b"body", b"head"]);
        assert!(sent.0.lock().is_empty());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(socket.poll_send(&mut cx).is_ready());
        assert!(socket.poll_send(&mut cx).is_ready());
        assert_eq!(*sent.0.lock(), [b"headbodyhead"]);
    }

    #[test]
    fn gathered_bytes_are_bounded() {
        let (_, sent) = written(&[&[1; ENOUGH - 1], b"23", b"4", b"5"]);
        let lengths: Vec<usize> = sent.0.lock().iter().map(Vec::len).collect();
        assert_eq!(lengths, [ENOUGH + 1]);
    }

    #[test]
    fn shutdown_sends_the_rest() {
        let (mut socket, sent) = written(&[b"last"]);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut socket).poll_shutdown(&mut cx).is_ready());
        assert_eq!(*sent.0.lock(), [b"last".to_vec(), b"end".to_vec()]);
    }
}
