//! [`TcpStream`]: a connection that says if a proxy reads its requests.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;

/// A TCP connection to the server, directly or in a tunnel, or to a proxy that forwards requests.
///
/// hyper writes the complete URL of a request on a connection to a proxy, and the path alone on
/// others.
#[derive(Debug)]
pub(super) struct TcpStream {
    inner: TokioIo<tokio::net::TcpStream>,
    is_to_proxy: bool,
}

// === impl TcpStream ===

impl TcpStream {
    pub(super) fn to_server(inner: TokioIo<tokio::net::TcpStream>) -> Self {
        Self { inner, is_to_proxy: false }
    }

    pub(super) fn to_proxy(inner: TokioIo<tokio::net::TcpStream>) -> Self {
        Self { inner, is_to_proxy: true }
    }
}

impl Connection for TcpStream {
    fn connected(&self) -> Connected {
        self.inner.connected().proxy(self.is_to_proxy)
    }
}

impl Read for TcpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl Write for TcpStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }
}
